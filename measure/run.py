"""Measure a suite into a table: chunks, a journal, progress, time limits, and a table that is always valid."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..analytic.errors import KernelcastError
from .gpu import Gpu, card_state, require_platform
from .journal import Journal, fold
from .runner import Runner
from .suite import Config, load_suite
from .trace import open_tracer
from .watchdog import Watchdog

CHUNK_CONFIGS = 32
CHUNK_EFFORT = 6e9  # bytes, roughly, held by the configurations of a chunk
HANG_S = 180.0  # longer than any build and check here takes
HANG_STATUS = 2
REPORT_CHUNKS = 30  # between two words of progress and two looks at the card
THROTTLED = 0.85  # share of the highest SM clock below which a state counts as throttled
Progress = Callable[[str], None]


@dataclass
class Summary:
    rows: int = 0
    measured: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    complete: bool = True
    out: Path | None = None


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


def throttled(states: list[dict[str, str]]) -> bool:
    """Whether the latest reading shows the SM clock well below its highest."""
    now, top = (states[-1].get(name, "").split()[:1] for name in ("clocks.sm", "clocks.max.sm"))
    return bool(now and top and now[0].isdigit() and top[0].isdigit() and float(now[0]) < THROTTLED * float(top[0]))


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
    from .meta import write_meta

    begun, say = time.monotonic(), progress or (lambda _: None)
    configs = load_suite(suite)
    gpu = Gpu()
    require_platform(platform_id, gpu.name)
    journal = Journal.open(out.with_suffix(".journal.jsonl"), resume)
    tracer = open_tracer(gpu.torch)
    states = [card_state()]
    if quick:
        configs = quick_set(configs)
    todo = [c for c in configs if c.key not in journal.entries]
    summary = Summary(out=out)
    runner = Runner(gpu, tracer, journal, quick)
    constants = {
        "platform": platform_id, "statistic": "median", "scope": "kernel",
        "source": "kernelcast measure", "license": "Apache-2.0",
    }  # fmt: skip
    interrupted: BaseException | None = None
    watchdog = Watchdog(hang_s, lambda key: _hung(key, hang_s, todo, journal, out, constants, say))
    runner.beat = watchdog.beat
    try:
        with watchdog.watching():
            runner.check_kinds(todo)
            checked = time.monotonic()
            say(f"{len(todo)} configurations, {len(runner.broken)} kinds failed a check, {checked - begun:.0f} s")
            done = 0
            for chunk in chunks(todo):
                if budget_s is not None and time.monotonic() - begun > budget_s:
                    summary.complete = False
                    break
                summary.skipped += runner.chunk(chunk)
                done += len(chunk)
                if done % (REPORT_CHUNKS * CHUNK_CONFIGS) < len(chunk):
                    states.append(card_state())
                    left_s = (time.monotonic() - checked) * (len(todo) - done) / done
                    hot = f"; THROTTLING: {states[-1]}" if throttled(states) else ""
                    taken_s = time.monotonic() - begun
                    say(f"{done}/{len(todo)} configurations, {taken_s:.0f} s, about {left_s:.0f} s left{hot}")
    except KeyboardInterrupt:
        summary.complete = False
        say("interrupted: folding what was measured; continue with --resume")
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
    say: Progress,
) -> None:
    """Leave a valid table without the configuration that hangs, and end: nothing else stops a kernel."""
    config = next((c for c in todo if c.key == key), None)
    if config is not None:
        reason = f"no answer in {hang_s:g} s"
        journal.append([{"key": config.key, "kind": "/".join(config.kind), "skip": reason}])
    rows = fold(journal, out, constants)
    say(f"{config or 'a round of timing'} gave no answer in {hang_s:g} s: stopped. {rows} rows are in {out}; "
        "continue with --resume, which leaves it out")  # fmt: skip
    os._exit(HANG_STATUS)
