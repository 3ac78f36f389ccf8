"""`kernelcast predict`: one configuration or one application on one or more platforms, or a whole table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ...analytic.errors import InputError, RefusedError
from . import ask, workload
from .columns import documents, longest_term, print_changes, print_what_is_compared, ratio_columns, ratios, with_ratios
from .parse import overrides
from .show import (
    add_row,
    band,
    clean,
    console,
    params_words,
    print_json,
    print_sides,
    print_table,
    seconds,
    table,
    text,
    warn,
)

if TYPE_CHECKING:
    from rich.table import Table

    from ..answer import Prediction


def predict(
    family: ask.Family = None,
    params: ask.Params = None,
    platform: ask.Platforms = None,
    level: ask.Level = 0.9,
    cache: ask.Cache = "warm",
    model: ask.ModelName = None,
    analytic: ask.Analytic = False,
    changes: ask.Overrides = None,
    fusions: ask.Fusions = None,
    runs: Annotated[str | None, typer.Option("--runs", metavar="IN", help="Predict every row of this table.")] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="OUT", help="Where it goes (.csv, .parquet).")] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave unusable rows of --runs out.")] = False,
    as_json: ask.AsJson = False,
) -> None:
    """Predict how long a kernel takes, with a band. Example: kernelcast predict gemm m=8192 n=8192 k=8192 -p h200"""
    if runs is not None or out is not None:
        if family or params:
            raise InputError("--runs predicts a table; leave FAMILY and its parameters out")
        if runs is None or out is None:
            raise InputError("a table needs both: --runs IN --out OUT")
        _table(runs, out, platform or [], level, cache, model, analytic, overrides(changes or []), skip_bad, as_json)
        return
    if family and workload.is_workload(family):
        workload.predict(family, params, platform, changes, as_json, fusions=fusions, level=level, cache=cache,
                         model=model, analytic=analytic)
        return
    ask.refuse_fusions(fusions)
    answers, before = ask.with_and_without(family, params, platform, changes, level=level, cache=cache, model=model,
                                           analytic=analytic)
    found = [item.prediction for item in answers]
    if as_json:
        print_json(documents(found, longest_term, before))
    else:
        show(found, before)


def show(found: list[Prediction], before: list[Prediction] | None = None) -> None:
    """Predictions as tables: the times side by side, then the terms, then what was changed."""
    first = found[0]
    where = console()
    where.print(text(f"{first.kernel} {first.precision}  {params_words(first.params)}  cache {first.cache}", "bold"))
    percent = f"{100 * first.level:g} % band"
    several = ["ratio", "decided by"] if len(found) > 1 else []
    columns = ["platform", "predicted", percent, *several, "analytic", "bound", "limit", "model", "implementation"]
    rows = []
    for item, ratio in zip(found, ratios(found), strict=True):
        beside = [f"{ratio:.3g}", longest_term(item)] if several else []
        rows.append([item.platform, seconds(item.predicted_s), band(item.lower_s, item.upper_s), *beside,
                     seconds(item.baseline_s), seconds(item.bound["seconds"]), item.bound["limit"], item.model,
                     item.implementation or "-"])
    print_sides(where, columns, rows, ["predicted", percent, "ratio", "analytic", "bound"])
    print_table(where, "terms of the analytic time", _terms(found))
    print_what_is_compared(where, found, lambda item: item.implementation)
    print_changes(where, found, before, lambda item: item.changed)
    for item in found:
        if item.note:
            prefix = f"{item.platform}: " if len(found) > 1 else ""
            where.print(text(f"note: {prefix}{item.note}"))


def _terms(found: list[Prediction]) -> Table:
    """Terms of each platform, and how much longer each takes than on the first."""
    beside = ratio_columns([item.platform for item in found])
    made = table(["term", *beside], beside)
    for name in dict.fromkeys(name for item in found for name in item.terms):
        values = [item.terms.get(name) for item in found]
        if any(values):
            add_row(made, [name, *with_ratios([seconds(value) for value in values], values)])
    return made


def _table(runs: str, out: str, platforms: list[str], level: float, cache: str, model: str | None, analytic: bool,
           changes: dict[str, str], skip_bad: bool, as_json: bool) -> None:
    from pathlib import Path

    from ...training.tables.files import check_target, save_table
    from ..batch import predict_runs, read_questions

    check_target(Path(out))
    frame = read_questions(runs, needs_platform=not platforms, skip_bad=skip_bad)
    done = predict_runs(frame, platforms=platforms, level=level, model=model, analytic=analytic, overrides=changes,
                        cache=cache, skip_bad=skip_bad, where=runs)
    save_table(done, Path(out))
    answered = int(done["predicted_s"].notna().sum())
    refused = len(done) - answered
    counts = {"out": out, "rows": len(done), "predicted": answered, "not_predicted": refused}
    if as_json:
        print_json(counts)
    else:
        console().print(text(f"{answered} of {len(done)} rows predicted, written to {out}"))
    if refused:
        reason = str(done.loc[done["predicted_s"].isna(), "note"].iloc[0])
        if not answered:
            raise RefusedError(f"no row could be predicted; the first: {clean(reason)} (the reasons are in {out})")
        warn(f"{refused} rows could not be predicted (the reason is in their note); the first: {reason}")
