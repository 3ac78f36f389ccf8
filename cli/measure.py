"""`kernelcast measure`: a suite of kernels timed on the GPU of this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..analytic.errors import InputError
from .ask import AsJson
from .show import console, print_json, text, warn

COUNT_S = 1200.0  # for counters where no budget is given


def measure(
    platform: Annotated[str | None, typer.Option("--platform", "-p", metavar="NAME", help="What this GPU is.")] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Parquet table to write.")] = None,
    suite: Annotated[str | None, typer.Option("--suite", metavar="NAME", help="Suite, or a suite file.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Two sizes of every implementation only.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Keep what the journal beside FILE already holds.")] = False,
    budget: Annotated[str | None, typer.Option("--budget", metavar="TIME", help="Stop after 20min, 560s, …")] = None,
    time_limit: Annotated[str, typer.Option("--time-limit", metavar="TIME", help="What takes longer hangs.")] = "180s",
    counters: Annotated[int, typer.Option("--counters", metavar="ROWS", help="Then count FLOP and bytes of so many "
                                          "rows with Nsight Compute.")] = 0,
    micro: Annotated[bool, typer.Option("--micro", help="Microbenchmarks instead, as JSON for `calibrate`.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Measure a suite of kernels on the GPU of this machine (needs torch and cupy)."""
    if platform is None or out is None:
        raise InputError("say what this GPU is and where the table goes: --platform PLATFORM --out FILE")
    from ..analytic.platform import load_platform
    from ..measure.__main__ import parse_budget
    from ..measure.run import run_suite
    from ..measure.suite import default_suite

    target = load_platform(platform).id
    if micro:
        _micro(target, Path(out), as_json)
        return
    watched = sys.stderr.isatty()
    progress = (lambda words: warn(words)) if watched else None
    drawn, limit_s = suite or default_suite(target), parse_budget(budget)
    summary = run_suite(drawn, target, Path(out), quick, resume, limit_s, progress, parse_budget(time_limit))
    for reason, count in summary.skipped.most_common(20):
        warn(f"skipped {count}: {reason}")
    facts = {"out": str(summary.out), "rows": summary.rows, "configurations": summary.measured,
             "seconds": summary.seconds, "complete": summary.complete}  # fmt: skip
    if counters > 0:
        from ..measure.counted import count_table

        say = progress or (lambda _: None)
        counted, calls = count_table(drawn, target, Path(out), counters, limit_s or COUNT_S, say)
        facts |= {"counted": str(counted), "counted_calls": calls}
    if as_json:
        print_json(facts)
        return
    if counters > 0:
        console().print(text(f"{facts['counted_calls']} calls counted: {facts['counted']}"))
    state = "complete" if summary.complete else "partial, continue with --resume"
    console().print(text(f"{summary.rows} rows of {summary.measured} configurations in {summary.seconds:.0f} s "
                         f"({state}): {summary.out}"))  # fmt: skip


def _micro(platform: str, out: Path, as_json: bool) -> None:
    from ..measure.microbench import measure as bench

    report = bench(platform, out)
    for name, reason in report["failed"].items():
        warn(f"{name}: {reason}")
    if as_json:
        print_json({"out": str(out), "sections": sorted(report["results"]), "failed": report["failed"]})
        return
    console().print(text(f"{len(report['results'])} microbenchmarks: {out}; "
                         f"next: kernelcast calibrate -p {platform} --runs {out} --out {platform}.yaml"))  # fmt: skip
