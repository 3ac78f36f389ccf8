"""`kernelcast measure`: a suite of kernels timed on the GPU of this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...analytic.errors import InputError
from .ask import AsJson
from .show import clean, console, print_json, text, warn

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from ...measure.progress import Progress

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
    dry: Annotated[bool, typer.Option("--dry", help="Say what would be measured; needs no GPU.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure a suite of kernels on the GPU of this machine (needs torch and cupy)."""
    if dry:
        _dry(suite, platform, quick, as_json)
        return
    if platform is None or out is None:
        raise InputError("say what this GPU is and where the table goes: --platform PLATFORM --out FILE")
    from ...analytic.platform import load_platform
    from ...measure.__main__ import parse_budget
    from ...measure.run import run_suite
    from ...measure.suite import default_suite

    target = load_platform(platform).id
    if micro:
        _micro(target, Path(out), as_json)
        return
    drawn, limit_s = suite or default_suite(target), parse_budget(budget)
    with _shown(as_json) as progress:
        summary = run_suite(drawn, target, Path(out), quick, resume, limit_s, progress, parse_budget(time_limit))
    for reason, count in summary.skipped.most_common(20):
        warn(f"skipped {count}: {reason}")
    facts = {"out": str(summary.out), "rows": summary.rows, "configurations": summary.measured,
             "seconds": summary.seconds, "complete": summary.complete}
    if counters > 0:
        from ...measure.counted import count_table

        with _shown(as_json) as progress:
            counted, calls = count_table(drawn, target, Path(out), counters, limit_s or COUNT_S, progress.say)
        facts |= {"counted": str(counted), "counted_calls": calls, "counters_asked_for": counters}
    if as_json:
        print_json(facts)
        return
    if counters > 0:
        console().print(text(f"{facts['counted_calls']} calls counted, {counters} asked for: {facts['counted']}"))
    state = "complete" if summary.complete else "partial, continue with --resume"
    console().print(text(f"{summary.rows} rows of {summary.measured} configurations in {summary.seconds:.0f} s "
                         f"({state}): {summary.out}"))


def _dry(suite: str | None, platform: str | None, quick: bool, as_json: bool) -> None:
    from dataclasses import asdict

    from ...measure.dry import lines, plan_suite
    from ...measure.suite import default_suite

    if suite is None and platform is None:
        raise InputError("say which suite, or for which platform: --suite NAME or --platform PLATFORM")
    if platform is not None:
        from ...analytic.platform import load_platform

        platform = load_platform(platform).id
    found = plan_suite(suite or default_suite(platform or ""), quick)
    if as_json:
        print_json(asdict(found))
        return
    for line in lines(found):
        console().print(text(line))


def _micro(platform: str, out: Path, as_json: bool) -> None:
    from ...measure.microbench import measure as bench

    with _shown(as_json) as progress:
        report = bench(platform, out, step=progress.step)
    for name, reason in report["failed"].items():
        warn(f"{name}: {reason}")
    if as_json:
        print_json({"out": str(out), "sections": sorted(report["results"]), "failed": report["failed"]})
        return
    console().print(text(f"{len(report['results'])} microbenchmarks: {out}; "
                         f"next: kernelcast calibrate -p {platform} --runs {out} --out {platform}.yaml"))


class Bar:
    """A bar a phase on standard error, each with how long it will still take; words go above it."""

    def __init__(self, bar: RichProgress) -> None:
        self._bar = bar
        self._tasks: dict[str, TaskID] = {}

    def say(self, words: str) -> None:
        warn(words)  # rich takes what is written to standard error meanwhile and puts it above

    def step(self, phase: str, done: int, count: int) -> None:
        if phase not in self._tasks:
            for earlier in self._tasks.values():
                self._bar.update(earlier, visible=False)
            self._tasks[phase] = self._bar.add_task(clean(phase).replace("[", "("), total=count)
        self._bar.update(self._tasks[phase], completed=done, total=count)

    def close(self) -> None:
        self._bar.stop()


@contextmanager
def _shown(as_json: bool) -> Iterator[Progress]:
    """A bar where a person watches, lines in a log, and nothing beside a JSON document that is read by a program."""
    from ...measure.progress import SILENT, Lines

    if not sys.stderr.isatty():
        yield SILENT if as_json else Lines(warn)
        return
    from rich import progress as r
    from rich.console import Console

    columns = (r.TextColumn("{task.description}"), r.BarColumn(), r.MofNCompleteColumn(), r.TimeElapsedColumn(),
               r.TextColumn("about"), r.TimeRemainingColumn(), r.TextColumn("left"))
    with r.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Bar(bar)
