"""`kernelcast measure`: a suite of kernels timed on the GPU of this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..analytic.errors import InputError
from .ask import AsJson
from .show import console, print_json, text, warn


def measure(
    platform: Annotated[str | None, typer.Option("--platform", "-p", metavar="NAME", help="What this GPU is.")] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Parquet table to write.")] = None,
    suite: Annotated[str | None, typer.Option("--suite", metavar="NAME", help="Suite, or a suite file.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Two sizes of every implementation only.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Keep what the journal beside FILE already holds.")] = False,
    budget: Annotated[str | None, typer.Option("--budget", metavar="TIME", help="Stop after 20min, 560s, …")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure a suite of kernels on the GPU of this machine (needs torch and cupy)."""
    if platform is None or out is None:
        raise InputError("say what this GPU is and where the table goes: --platform PLATFORM --out FILE")
    from ..analytic.platform import load_platform
    from ..measure.__main__ import parse_budget
    from ..measure.run import run_suite

    target = load_platform(platform).id
    watched = sys.stderr.isatty()
    summary = run_suite(suite or f"{target}-full", target, Path(out), quick, resume, parse_budget(budget),
                        progress=(lambda words: warn(words)) if watched else None)  # fmt: skip
    for reason, count in summary.skipped.most_common(20):
        warn(f"skipped {count}: {reason}")
    facts = {"out": str(summary.out), "rows": summary.rows, "configurations": summary.measured,
             "seconds": summary.seconds, "complete": summary.complete}  # fmt: skip
    if as_json:
        print_json(facts)
        return
    state = "complete" if summary.complete else "partial, continue with --resume"
    console().print(text(f"{summary.rows} rows of {summary.measured} configurations in {summary.seconds:.0f} s "
                         f"({state}): {summary.out}"))  # fmt: skip
