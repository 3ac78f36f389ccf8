"""`kernelcast train` and `kernelcast compare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .ask import AsJson, Level
from .progress import progress
from .show import add_row, console, percent, print_json, print_table, table, text, warn

if TYPE_CHECKING:
    import pandas as pd

    from ...registry.publish import Trained

Runs = Annotated[
    list[str] | None, typer.Option("--runs", metavar="FILE", help="Table of measured runs; repeat. Default: shipped.")
]
OnlyPlatforms = Annotated[
    list[str] | None, typer.Option("--platform", "-p", metavar="PLATFORM", help="Only these platforms; repeat.")
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave unusable rows out and count them.")]
METHODS = ("naive_roofline", "analytic", "calibrated_analytic", "nearest_utilisation", "hybrid")


def load(runs: Sequence[str] | None, platforms: Sequence[str] | None, skip_bad: bool) -> tuple[pd.DataFrame, str]:
    """(rows, name of their table) from --runs, or the shipped tables of the platforms."""
    from ...training.tables.shipped import choose_tables, only_platforms, read_tables

    paths = choose_tables(runs or [], platforms or [])
    frame, dropped = read_tables(paths, skip_bad=skip_bad)
    if dropped:
        warn(f"{dropped} unusable rows left out")
    names = " + ".join(str(path) if runs else f"shipped {getattr(path, 'name', path)}" for path in paths)
    return only_platforms(frame, platforms or []), names


def train(
    runs: Runs = None,
    platform: OnlyPlatforms = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name of the model.")] = None,
    skip_bad: SkipBad = False,
    level: Level = 0.9,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer trees: a first look in a quarter of the time.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train the residual and its band on measured runs; the model is scored, stored, tracked and, if better, used."""
    from ...registry.index import check_name
    from ..answer import check_level
    from ..train import train_platforms

    check_level(level)
    if name is not None:
        check_name(name)
    frame, source = load(runs, platform, skip_bad)
    with progress("training") as move:
        trained = train_platforms(frame, name=name, runs=source, level=level, quick=quick, progress=move)
    if as_json:
        print_json([_line(item) for item in trained])
        return
    for item in trained:
        show_trained(item)


def _line(item: Trained) -> dict[str, Any]:
    from ...registry.index import label

    model, logged = item.model, item.logged
    return {
        "platform": model.platform, "model": label(model), "champion": item.champion, "verdict": item.verdict,
        "rows": model.meta["rows"], "refused": model.meta["refused"], "families": sorted(model.families),
        "runs": model.meta["runs"], "runs_digest": model.meta["runs_digest"], "heldout": model.meta.get("heldout"),
        "experiment": logged.experiment if logged else None, "run_id": logged.run_id if logged else None,
    }


def show_trained(item: Trained) -> None:
    """What was trained, how well it does on held-out rows, and whether it is used now."""
    from ...registry.index import label

    meta = item.model.meta
    where = console()
    where.print(text(f"{label(item.model)}: {meta['rows']} runs of {len(item.model.families)} families "
                     f"from {meta['runs']}", "bold"))
    if item.comparison is not None:
        show_comparison(item.comparison.records)
    else:
        where.print(text("too few rows or groups to hold some out: not scored"))
    where.print(text(item.verdict))
    if meta["refused"]:
        why = f"; the first: {meta['refused_why']}" if "refused_why" in meta else ""
        warn(f"{meta['refused']} rows of {item.model.platform} could not be described and were not used{why}")


def compare(
    runs: Runs = None,
    platform: OnlyPlatforms = None,
    model: Annotated[str | None, typer.Option("--model", metavar="NAME", help="Score this one, not a new one.")] = None,
    level: Level = 0.9,
    skip_bad: SkipBad = False,
    quick: Annotated[bool, typer.Option("--quick", help="Where a model is trained: fewer trees.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare the naive roofline, analytic, nearest-utilisation and hybrid on held-out runs."""
    from ..answer import check_level
    from ..compare import compare_table

    check_level(level)
    frame, source = load(runs, platform, skip_bad)
    with progress("training") as move:
        comparison = compare_table(frame, model=model, level=level, quick=quick, progress=move)
    if as_json:
        print_json(comparison.records)
        return
    console().print(text(f"runs: {source}"))
    show_comparison(comparison.records)


def show_comparison(records: list[dict[str, Any]]) -> None:
    """Mean error of each method by family, with the hybrid's median, coverage and width; one table a platform."""
    where = console()
    for name in dict.fromkeys(record["platform"] for record in records):
        lines = [record for record in records if record["platform"] == name]
        level = lines[0]["hybrid"]["level"]
        columns = ["kernel", "rows", "naive roofline", "analytic", "calibrated", "nearest util.", "hybrid", "median",
                   f"in {100 * level:g} % band", "width"]
        made = table(columns, columns[1:])
        for line in [*lines[1:], lines[0]]:
            hybrid = line["hybrid"]
            width = hybrid["median_relative_width"]
            add_row(made, [line["kernel"], line["n"], *(percent(line[method]["mape"]) for method in METHODS),
                           percent(hybrid["median_ape"]), _share(hybrid["coverage"]), _share(width)],
                    "bold" if line["kernel"] == "all" else "")
        print_table(where, f"{name}: mean error on held-out rows", made)
        where.print(text(f"split: {lines[0]['split']}; width: median of (upper - lower) / predicted"))


def _share(value: float | None) -> str:
    return percent(None if value is None else 100.0 * value)
