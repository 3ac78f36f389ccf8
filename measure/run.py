"""Measure a suite into a table: chunks, a journal, progress, time limits, and a table that is always valid."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..analytic.errors import KernelcastError
from .costs import planned_s
from .gpu import Gpu, card_state, require_platform, throttled
from .journal import Journal, fold
from .meta import write_meta
from .progress import SILENT, Progress
from .replay import GraphReplay
from .runner import Runner
from .suite import Config, load_suite
from .summary import Summary
from .tracers import open_tracer
from .watchdog import HANG_S, HANG_STATUS, Watchdog

CHUNK_CONFIGS = 32
CHUNK_EFFORT = 6e9  # bytes, roughly, held by the configurations of a chunk
LOOK_CHUNKS = 30  # between two looks at the card


def chunks(configs: list[Config]) -> Iterator[list[Config]]:
    """Configurations that are timed in turn, never splitting a draw's shared inputs over more chunks than needed."""
    held: list[Config] = []
    size = 0.0
    for config in configs:
        if held and (len(held) >= CHUNK_CONFIGS or size + config.effort > CHUNK_EFFORT):
            yield held
            held, size = [], 0.0
        held.append(config)
        size += config.effort
    if held:
        yield held


def quick_set(configs: list[Config]) -> list[Config]:
    """The smallest, and one of middle size, of every kind."""
    kinds: dict[tuple[str, str, str], list[Config]] = {}
    for c in configs:
        kinds.setdefault(c.kind, []).append(c)
    chosen: dict[str, Config] = {}
    for group in kinds.values():
        ordered = sorted(group, key=lambda c: c.effort)
        for c in (ordered[0], ordered[len(ordered) // 2]):
            chosen[c.key] = c
    return [c for c in configs if c.key in chosen]


def run_suite(
    suite: str | Path,
    platform_id: str,
    out: Path,
    quick: bool = False,
    resume: bool = False,
    budget_s: float | None = None,
    progress: Progress | None = None,
    hang_s: float | None = HANG_S,
) -> Summary:
    """Measure `suite` on this machine's GPU into the table `out` (Parquet, with a meta file and a journal beside it).

    The table is valid whenever this returns or raises: Ctrl-C and a spent budget fold what was measured. What takes
    longer than `hang_s` ends the process (status 2) after folding; it is skipped when resumed.
    Raises KernelcastError: no GPU, a GPU that is not `platform_id`, an unwritable or full disk.
    """
    begun, shown = time.monotonic(), progress or SILENT
    configs = load_suite(suite)
    gpu = Gpu()
    require_platform(platform_id, gpu.name)
    journal = Journal.open(out.with_suffix(".journal.jsonl"), resume)
    tracer = open_tracer(gpu)
    if tracer.why:
        shown.say(f"timing by {tracer.name}: {tracer.why}")
    states = [card_state()]
    if quick:
        configs = quick_set(configs)
    suspects = journal.suspects()
    todo = [c for c in configs if c.key not in journal.entries or c.key in suspects]
    parts = [*chunks([c for c in todo if c.key not in suspects]), *([c] for c in todo if c.key in suspects)]
    summary = Summary(out=out)
    runner = Runner(gpu, tracer, journal, quick)
    constants = {
        "platform": platform_id, "statistic": "median", "scope": "kernel",
        "source": "kernelcast measure", "license": "Apache-2.0",
    }
    if isinstance(tracer, GraphReplay):
        constants["timing"] = tracer.name  # not comparable to the last digit with rows from kernel records
    interrupted: BaseException | None = None
    watchdog = Watchdog(hang_s, lambda key: _hung(key, hang_s, todo, journal, out, constants, shown))
    runner.beat, runner.step = watchdog.beat, shown.step
    try:
        with watchdog.watching():
            kinds = len({c.kind for c in todo})
            about_s = planned_s(kinds, len(todo))
            shown.say(f"{len(todo)} configurations of {kinds} kinds, about {about_s:.0f} s on an H200")
            runner.check_kinds(todo)
            checked = time.monotonic()
            shown.say(f"{len(runner.broken)} kinds failed a check, {checked - begun:.0f} s")
            done = 0
            shown.step("configurations", 0, len(todo))
            for chunk in parts:
                if budget_s is not None and time.monotonic() - begun > budget_s:
                    summary.complete = False
                    break
                summary.skipped += runner.chunk(chunk)
                done += len(chunk)
                shown.step("configurations", done, len(todo))
                if done % (LOOK_CHUNKS * CHUNK_CONFIGS) < len(chunk):
                    states.append(card_state())
                    if throttled(states):
                        shown.say(f"THROTTLING: {states[-1]}")
    except KeyboardInterrupt:
        summary.complete = False
        shown.say("interrupted: folding what was measured; continue with --resume")
    except KernelcastError as error:
        interrupted = error
    finally:
        states.append(card_state())
        journal.reread()
        summary.rows = fold(journal, out, constants)
    summary.measured = sum("rows" in e for e in journal.entries.values())
    summary.seconds = time.monotonic() - begun
    with contextlib.suppress(OSError):
        write_meta(out, gpu, tracer, journal, runner, states, summary, str(suite))
    if interrupted:
        raise interrupted
    return summary


def _hung(
    key: str,
    hang_s: float | None,
    todo: list[Config],
    journal: Journal,
    out: Path,
    constants: dict[str, Any],
    shown: Progress,
) -> None:
    """Leave a valid table without the configuration that hangs, and end: nothing else stops a kernel."""
    held = [c for c in todo if c.key in key.split()]
    reason = f"no answer in {hang_s:g} s"
    # one that hangs is left out; of several nobody knows which: they are measured alone when resumed
    word = "skip" if len(held) == 1 else "suspect"
    what, then = ((str(held[0]), "leaves it out") if len(held) == 1
                  else (f"a round of {len(held)} configurations", "measures them one by one"))
    try:
        journal.append([{"key": c.key, "kind": "/".join(c.kind), word: reason} for c in held])
        rows = fold(journal, out, constants)
        shown.close()  # a bar left on the terminal would keep its cursor
        shown.say(f"{what} gave {reason}: stopped. {rows} rows are in {out}; continue with --resume, which {then}")
    except KernelcastError as error:
        shown.say(f"{what} gave {reason}: stopped; {error}")
    finally:
        os._exit(HANG_STATUS)
