"""`kernelcast adapt` and `kernelcast suggest`: new hardware from a few runs, and which runs those should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .ask import AsJson
from .show import add_row, console, percent, print_json, print_table, seconds, table, text, warn

if TYPE_CHECKING:
    from ...registry.publish import Trained

Platform = Annotated[str, typer.Option("--platform", "-p", metavar="PLATFORM", help="Id or parameter file.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="NAME",
        help="Model, platform or model folder to start from; 'parameters': the parameter file alone. "
        "Default: the shipped model across platforms.",
    ),
]


def adapt(
    platform: Platform,
    runs: Annotated[list[str], typer.Option("--runs", metavar="FEW", help="Table of the few measured runs; repeat.")],
    source: From = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name of the adapted model.")] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave unusable rows out and count them.")] = False,
    as_json: AsJson = False,
) -> None:
    """Retrain on new hardware from a few runs of it; corrections that do not hold with runs left out are not used."""
    import pandas as pd

    from ...analytic.platform import load_platform
    from ...training.tables.schema import read_runs
    from ..adapt import adapt_platform

    target = load_platform(platform)
    tables = [read_runs(path, skip_bad=skip_bad, platforms={target.id}) for path in runs]
    dropped = sum(item.dropped for item in tables)
    if dropped:
        warn(f"{dropped} unusable rows left out")
    few = pd.concat([item.frame for item in tables], ignore_index=True)
    done = adapt_platform(few, target, source=source, name=name, runs=" + ".join(runs))
    if as_json:
        print_json(_line(done))
        return
    _show(done)


def _line(done: Trained) -> dict[str, Any]:
    from ...registry.index import label

    model = done.model
    return {
        "platform": model.platform, "model": label(model), "champion": done.champion, "verdict": done.verdict,
        "rows": model.meta["rows"], "refused": model.meta["refused"], "adapted_from": model.meta["adapted_from"],
        "heldout": model.meta["heldout"], "families": model.meta["left_out"],
        "run_id": done.logged.run_id if done.logged else None,
    }


def _show(done: Trained) -> None:
    from ...registry.index import label

    model, where = done.model, console()
    origin = " and ".join(model.meta["adapted_from"]) or "the parameter file alone"
    where.print(text(f"{label(model)}: adapted from {origin} with {model.meta['rows']} runs", "bold"))
    numbers = ["runs", "error, runs left out", "un-adapted"]
    made = table(["family", "correction", *numbers], numbers)
    for family, item in model.meta["left_out"].items():
        add_row(made, [family, item["kind"], item["rows"], percent(item[item["kind"]]), percent(item["as it is"])])
    print_table(where, "what was kept", made)
    where.print(text(done.verdict))
    if model.meta["refused"]:
        warn(f"{model.meta['refused']} rows of {model.platform} could not be described and were not used")


def suggest(
    platform: Platform,
    n: Annotated[int, typer.Option("-n", metavar="N", help="How many runs.")] = 20,
    source: From = None,
    candidates: Annotated[
        str | None, typer.Option("--candidates", metavar="FILE", help="Table to choose from. Default: shipped runs.")
    ] = None,
    runs: Annotated[str | None, typer.Option("--runs", metavar="FILE", help="Runs measured already.")] = None,
    family: Annotated[list[str] | None, typer.Option("--family", metavar="FAMILY", help="Only these; repeat.")] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write the runs as a table.")] = None,
    as_json: AsJson = False,
) -> None:
    """Propose the runs to measure next: those that leave the least doubt about all the others."""
    from ...analytic.platform import load_platform
    from ...training.tables.schema import read_runs
    from ..adapt import suggest as choose

    target = load_platform(platform)
    here = {target.id}
    pool = None if candidates is None else read_runs(candidates, require_time=False, platforms=here).frame
    measured = None if runs is None else read_runs(runs, platforms=here).frame
    found = choose(target, n, source=source, candidates=pool, measured=measured, families=family or ())
    if len(found) < n:
        warn(f"only {len(found)} candidates")
    if out is not None:
        _write(found.drop(columns="expected_s"), out)
    if as_json:
        import json

        print_json([{**line, "params": json.loads(line["params"])} for line in found.to_dict("records")])
        return
    made = table(["kernel", "precision", "params", "expected"], ["expected"])
    for line in found.to_dict("records"):
        add_row(made, [line["kernel"], line["precision"], line["params"], seconds(line["expected_s"])])
    print_table(console(), f"runs to measure on {target.id}", made)


def _write(frame: Any, path: str) -> None:
    """The proposed runs, without times: `measure` or a person fills those in."""
    from pathlib import Path

    from ...analytic.errors import InputError

    target = Path(path)
    try:
        if target.suffix == ".parquet":
            frame.to_parquet(target, index=False)
        else:
            frame.to_csv(target, index=False)
    except OSError as fault:
        raise InputError(f"{path}: cannot be written ({fault.strerror or fault})") from None
