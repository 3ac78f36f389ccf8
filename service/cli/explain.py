"""`kernelcast explain`: why the time is what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...analytic.errors import InputError
from . import ask, workload
from .advice import print_advice
from .columns import documents, longest_term, print_changes
from .explain_workload import MOVES, parameters, sensitivity
from .show import (
    add_row,
    band,
    console,
    params_words,
    percent,
    plot_path,
    print_facts,
    print_json,
    print_table,
    seconds,
    table,
    text,
    warn,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ..answer import Answered, Prediction

ROUTES = {
    "stage": "stage-centric (matrix product on NVIDIA: tiles, stages, waves; Eqs. 2-8)",
    "wavefront": "wavefront-centric (matrix product on CDNA; Eqs. 9-14)",
    "generic": "generic (roofline with working-set-aware bandwidth; Eq. 1)",
}


def explain(
    family: ask.Family = None,
    params: ask.Params = None,
    platform: ask.Platforms = None,
    level: ask.Level = 0.9,
    cache: ask.Cache = "warm",
    model: ask.ModelName = None,
    analytic: ask.Analytic = False,
    changes: ask.Overrides = None,
    fusions: ask.Fusions = None,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="Draw the roofline picture (.svg, .png, .pdf).")
    ] = None,
    as_json: ask.AsJson = False,
) -> None:
    """Explain a prediction: bound in words, terms, parameters with their sources, and what would change it."""
    if not family:
        raise InputError("say what to explain: kernelcast explain FAMILY key=value … -p PLATFORM")
    if workload.is_workload(family):
        workload.predict(family, params, platform, changes, as_json, fusions=fusions, full=True, plot=plot,
                         level=level, cache=cache, model=model, analytic=analytic)
        return
    ask.refuse_fusions(fusions)
    answers, before = ask.with_and_without(family, params, platform, changes, level=level, cache=cache, model=model,
                                           analytic=analytic)
    from ..explain import explanation

    said, found = [explanation(item) for item in answers], [item.prediction for item in answers]
    if plot is not None:
        _draw(answers, plot)
    if as_json:
        print_json(documents(found, longest_term, before, said))
        return
    where = console()
    for i, (item, facts) in enumerate(zip(found, said, strict=True)):
        _show(where, item, facts)
        print_changes(where, [item], None if before is None else [before[i]], lambda one: one.changed)
        if item.note:
            where.print(text(f"note: {item.note}"))
        where.print()


def _draw(answers: list[Answered], plot: str) -> None:
    from ..explain import picture

    for item in answers:
        warn(f"picture written to {picture(item, plot_path(plot, item.platform.id, len(answers)))}")


def _show(where: Console, item: Prediction, facts: dict[str, Any]) -> None:
    where.print(text(f"{item.kernel} {item.precision}  {params_words(item.params)}  on {item.platform}, cache "
                     f"{item.cache}", "bold"))
    where.print()
    over = f", {facts['over_bound']:.3g} times the bound" if facts["over_bound"] else ""
    counted = ("first-principles: FLOP and bytes counted by the family from its sizes"
               if facts["characterisation"] == "first-principles" else "FLOP and bytes as given")
    lines = [
        ("inputs", counted),
        ("predicted", f"{seconds(item.predicted_s)}{over}"),
        (f"{100 * item.level:g} % band", band(item.lower_s, item.upper_s)),
        ("physical bound", facts["bound_words"]),
        ("naive roofline", f"{seconds(item.naive_s)} (datasheet peaks, every operand once)"),
        ("analytic", f"{seconds(item.baseline_s)} by the route {ROUTES.get(item.route, item.route)}"),
        ("correction", _correction(item, facts)),
        ("what binds", facts["binding"]),
        ("to move it", facts["to_move"]),
        ("guard", facts["guard"]),
    ]
    print_facts(where, lines)
    where.print()
    print_advice(where, facts)
    print_table(where, "step by step (what runs side by side counts once, the longest)", _steps(facts))
    where.print(text("equations, numbered as in arXiv 2605.04178", "bold"))
    for line in facts["equations"]:
        where.print(text(f"  {line}"))
    where.print()
    print_table(where, "terms of the analytic time", _terms(item, facts))
    print_table(where, MOVES, sensitivity(facts["sensitivity"]))
    print_table(where, "parameters looked up", parameters(item.parameters))


def _correction(item: Prediction, facts: dict[str, Any]) -> str:
    if item.model == "analytic":
        return "none: the analytic time is the prediction"
    return (f"x {facts['hybrid_factor']:.4g} by {item.model}: calibrated terms {seconds(item.calibrated_s)}, "
            f"then the learned residual x {facts['residual_factor']:.4g}")


def _steps(facts: dict[str, Any]) -> Table:
    made = table(["step", "amount ÷ rate = time", "equation"])
    for step in facts["steps"]:
        add_row(made, [step["name"], step["words"], step["equation"]])
    return made


def _terms(item: Prediction, facts: dict[str, Any]) -> Table:
    made = table(["term", "time", "share"], ["time", "share"])
    for name, value in item.terms.items():
        if value:
            add_row(made, [name, seconds(value), percent(100.0 * facts["shares"][name])])
    return made
