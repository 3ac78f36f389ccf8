"""`kernelcast explain`: why the time is what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..analytic.errors import InputError
from . import ask, workload
from .parse import overrides
from .show import (
    add_row,
    amount,
    band,
    console,
    params_words,
    percent,
    plot_path,
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

    from ..registry.predictor import Prediction

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
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="Draw the roofline picture (.svg, .png, .pdf).")
    ] = None,
    as_json: ask.AsJson = False,
) -> None:
    """Explain a prediction: bound in words, terms, parameters with their sources, and what would change it."""
    if not family:
        raise InputError("say what to explain: kernelcast explain FAMILY key=value … -p PLATFORM")
    if workload.is_workload(family):
        workload.predict(family, params, platform, changes, as_json, full=True, plot=plot, level=level, cache=cache,
                         model=model, analytic=analytic)  # fmt: skip
        return
    found = ask.predictions(family, params, platform, level=level, cache=cache, model=model, analytic=analytic,
                            changes=changes)  # fmt: skip
    from ..registry.explain import explanation

    said = [explanation(item, overrides(changes or []), name) for item, name in
            zip(found, dict.fromkeys(platform or []), strict=True)]  # fmt: skip
    if plot is not None:
        _draw(found, plot, overrides(changes or []), list(dict.fromkeys(platform or [])))
    if as_json:
        print_json(said[0] if len(said) == 1 else said)
        return
    where = console()
    for item, facts in zip(found, said, strict=True):
        _show(where, item, facts)


def _draw(found: list[Prediction], plot: str, changes: dict[str, str], platforms: list[str]) -> None:
    from ..registry.explain import picture

    for item, name in zip(found, platforms, strict=True):
        warn(f"picture written to {picture(item, plot_path(plot, item.platform, len(found)), changes, name)}")


def _show(where: Console, item: Prediction, facts: dict[str, Any]) -> None:
    where.print(text(f"{item.kernel} {item.precision}  {params_words(item.params)}  on {item.platform}, cache "
                     f"{item.cache}", "bold"))  # fmt: skip
    where.print()
    over = f", {facts['over_bound']:.3g} times the bound" if facts["over_bound"] else ""
    lines = [
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
    for name, words in lines:
        where.print(text(f"  {name:15} {words}"))
    where.print()
    print_table(where, "step by step (what runs side by side counts once, the longest)", _steps(facts))
    where.print(text("equations, numbered as in arXiv 2605.04178", "bold"))
    for line in facts["equations"]:
        where.print(text(f"  {line}"))
    where.print()
    print_table(where, "terms of the analytic time", _terms(item, facts))
    print_table(where, "what would change it: analytic time with a parameter a tenth higher", _sensitivity(facts))
    print_table(where, "parameters looked up", _parameters(item))
    if item.note:
        where.print(text(f"note: {item.note}"))
    where.print()


def _correction(item: Prediction, facts: dict[str, Any]) -> str:
    if item.model == "analytic":
        return "none: the analytic time is the prediction"
    return (f"x {facts['hybrid_factor']:.4g} by {item.model}: calibrated terms {seconds(item.calibrated_s)}, "
            f"then the learned residual x {facts['residual_factor']:.4g}")  # fmt: skip


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


def _sensitivity(facts: dict[str, Any]) -> Table:
    made = table(["parameter", "change"], ["change"])
    for line in facts["sensitivity"][:8]:
        add_row(made, [line["parameter"], f"{100.0 * line['change']:+.1f} %"])
    if not facts["sensitivity"]:
        add_row(made, ["no single parameter", "below 0.1 %"])
    return made


def _parameters(item: Prediction) -> Table:
    made = table(["parameter", "value", "kind", "source", "date"], ["value"])
    for row in item.parameters:
        add_row(made, [row["name"], amount(row["value"], row["unit"]), row["kind"], row["source"], row["date"]],
                "yellow" if row["kind"] in ("assumed", "override") else "")  # fmt: skip
    return made
