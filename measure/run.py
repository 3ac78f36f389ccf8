"""Measure a suite: build, check against a reference, time in interleaved rounds with a warm and a cold cache."""

from __future__ import annotations

import contextlib
import json
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..analytic.errors import KernelcastError
from .case import Case
from .gpu import Gpu, Skip, card_state, require_platform
from .groups import group_key
from .journal import Journal, fold
from .registry import BUILDERS
from .suite import Config, effort, load_suite
from .trace import Segment, Tracer, assign_codes, cut, open_tracer

CHUNK_CONFIGS = 32
CHUNK_EFFORT = 6e9  # bytes, roughly, held by the configurations of a chunk
CHECK_EFFORT = 2e7  # full-size checks below this; above it the kind's smallest configuration stands for all
SLOWEST_S = 0.08
REPEATS = ((1e-4, 9), (1e-3, 7), (5e-3, 5), (float("inf"), 3))  # (call shorter than [s], repeats)
QUIET = 1  # marker before what is not timed
CACHES = ("cold", "warm")
Progress = Callable[[str], None]


@dataclass
class Summary:
    rows: int = 0
    measured: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    complete: bool = True
    out: Path | None = None


@dataclass
class Prepared:
    config: Config
    case: Case
    repeats: int


def repeats_for(call_s: float, quick: bool) -> int:
    count = next(n for limit, n in REPEATS if call_s < limit)
    return 3 if quick else count


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


class Runner:
    def __init__(self, gpu: Gpu, tracer: Tracer, journal: Journal, quick: bool) -> None:
        self.gpu, self.tracer, self.journal, self.quick = gpu, tracer, journal, quick
        self.broken: dict[tuple[str, str, str], str] = {}
        self.worst_error: dict[tuple[str, str, str], float] = {}

    def _build(self, config: Config) -> Case:
        self.gpu.seed(config.seed)
        builder = BUILDERS.get((config.family, config.implementation))
        if builder is None:
            raise KernelcastError(f"no implementation {config.implementation!r} of {config.family!r}")
        return builder(self.gpu, {**config.params, "seed": config.seed}, config.precision)

    def _verify(self, config: Config, case: Case) -> None:
        error = case.check()
        self.worst_error[config.kind] = max(error, self.worst_error.get(config.kind, 0.0))
        if not error <= case.tolerance:
            raise Skip(f"wrong result: relative error {error:.2e}, allowed {case.tolerance:.0e}")

    def check_kinds(self, configs: list[Config]) -> None:
        """Check the smallest configuration of every kind; a kind that fails is not timed at all."""
        smallest: dict[tuple[str, str, str], list[Config]] = {}
        for c in configs:
            smallest.setdefault(c.kind, []).append(c)
        for kind, group in smallest.items():
            for config in sorted(group, key=lambda c: c.effort)[:5]:
                reason = self._attempt(config)
                if reason is None:
                    self.broken.pop(kind, None)
                    break
                self.broken[kind] = reason
                if not reason.startswith("skipped"):
                    break

    def _attempt(self, config: Config) -> str | None:
        try:
            self._verify(config, self._build(config))
            self.gpu.sync()
        except Skip as error:
            text = str(error)
            return text if text.startswith("wrong") else f"skipped: {text}"
        except Exception as error:
            return _reason(error)
        return None

    def _prepare(self, config: Config) -> Prepared:
        if config.kind in self.broken and not self.broken[config.kind].startswith("skipped"):
            raise Skip(f"kind failed its check: {self.broken[config.kind]}")
        case = self._build(config)
        if config.effort < CHECK_EFFORT:
            self._verify(config, case)
        else:
            case.call()
        if case.reset:
            case.reset()
        events = [self.gpu.torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        case.call()
        events[1].record()
        self.gpu.sync()
        taken_s = events[0].elapsed_time(events[1]) * 1e-3
        if taken_s > SLOWEST_S:
            raise Skip(f"one call takes longer than {SLOWEST_S} s")
        return Prepared(config, case, repeats_for(taken_s, self.quick))

    def _time(self, prepared: list[Prepared]) -> dict[int, list[Segment]]:
        """Rounds over all configurations; in each: flush, cold call, warm call. Segments by marker code."""
        gpu, codes = self.gpu, []
        gpu.sync()
        self.tracer.drain()

        def mark(code: int) -> None:
            gpu.mark(code)
            codes.append(code)

        for turn in range(max(p.repeats for p in prepared)):
            for index, item in enumerate(prepared):
                if turn >= item.repeats:
                    continue
                for state, _ in enumerate(CACHES):
                    if state == 0 or item.case.reset:
                        mark(QUIET)
                        if item.case.reset:
                            item.case.reset()
                        if state == 0:
                            gpu.flush()
                    mark(QUIET + 1 + 2 * index + state)
                    item.case.call()
        mark(QUIET)
        gpu.sync()
        found: dict[int, list[Segment]] = {}
        for segment in assign_codes(cut(self.tracer.drain()), codes):
            found.setdefault(segment.code, []).append(segment)
        return found

    def _rows(self, item: Prepared, found: dict[int, list[Segment]], index: int) -> list[dict[str, Any]]:
        rows = []
        params = dict(item.case.params or item.config.params)
        params.pop("seed", None)
        for state, cache in enumerate(CACHES):
            segments = found[QUIET + 1 + 2 * index + state]
            times = np.array([s.time_s for s in segments])
            if not (times > 0).all():
                raise Skip("a repeat launched no kernel")
            low, mid, high = np.percentile(times, [25, 50, 75])
            rows.append({
                "kernel": item.config.family, "precision": item.config.precision,
                "params": json.dumps(plain(params), separators=(",", ":")),
                "time_s": mid, "spread_s": high - low, "time_min_s": times.min(), "n_reps": len(times), "cache": cache,
                "launches": int(np.median([s.launches for s in segments])),
                "implementation": item.config.implementation,
                "group": group_key(item.config.family, item.config.params, item.config.seed),
            })  # fmt: skip
        return rows

    def chunk(self, configs: list[Config]) -> Counter[str]:
        """Measure some configurations and journal each of them, measured or skipped with its reason."""
        entries: list[dict[str, Any]] = []
        prepared: list[Prepared] = []
        skipped: Counter[str] = Counter()

        def skip(config: Config, reason: str) -> None:
            kind = "/".join(config.kind)
            entries.append({"key": config.key, "kind": kind, "skip": reason})
            skipped[f"{kind}: {reason}"] += 1

        for config in configs:
            try:
                prepared.append(self._prepare(config))
            except Exception as error:
                if _fatal(error):
                    raise KernelcastError(f"the GPU failed at {config}: {error}") from error
                skip(config, _reason(error))
        if prepared:
            found = self._time(prepared)
            for index, item in enumerate(prepared):
                try:
                    entries.append({"key": item.config.key, "rows": self._rows(item, found, index)})
                except Skip as error:
                    skip(item.config, str(error))
        self.journal.append(entries)
        prepared.clear()
        self.gpu.release()
        return skipped


def plain(params: dict[str, Any]) -> dict[str, Any]:
    return {k: float(f"{v:.7g}") if isinstance(v, float) else v for k, v in params.items()}


def _reason(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    if "out of memory" in text.lower():
        return "out of device memory"
    if isinstance(error, Skip):
        return text[:200]
    place = traceback.extract_tb(error.__traceback__)
    ours = [f for f in place if f.filename.startswith(str(Path(__file__).parent))]
    where = f" at {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__}{where}: {text[:200]}"


def _fatal(error: Exception) -> bool:
    text = str(error)
    return any(
        word in text
        for word in ("illegal memory access", "illegal instruction", "unspecified launch failure", "misaligned")
    )


def run_suite(
    suite: str | Path,
    platform_id: str,
    out: Path,
    quick: bool = False,
    resume: bool = False,
    budget_s: float | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Measure `suite` on this machine's GPU into the table `out` (Parquet, with a meta file and a journal beside it).

    The table is valid whenever this returns or raises: Ctrl-C and a spent budget fold what was measured.
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
    try:
        runner.check_kinds(todo)
        say(f"{len(todo)} configurations, {len(runner.broken)} kinds failed a check, {time.monotonic() - begun:.0f} s")
        done = 0
        for chunk in chunks(todo):
            if budget_s is not None and time.monotonic() - begun > budget_s:
                summary.complete = False
                break
            summary.skipped += runner.chunk(chunk)
            done += len(chunk)
            if done % (100 * CHUNK_CONFIGS) < len(chunk):
                states.append(card_state())
                say(f"{done}/{len(todo)} configurations, {time.monotonic() - begun:.0f} s, {states[-1]}")
    except KeyboardInterrupt:
        summary.complete = False
        say("interrupted: folding what was measured; continue with --resume")
    except KernelcastError as error:
        interrupted = error
    finally:
        states.append(card_state())
        summary.rows = fold(journal, out, constants)
    summary.measured = sum("rows" in e for e in journal.entries.values())
    summary.seconds = time.monotonic() - begun
    with contextlib.suppress(OSError):
        write_meta(out, gpu, tracer, journal, runner, states, summary, str(suite))
    if interrupted:
        raise interrupted
    return summary


__all__ = ["Summary", "effort", "run_suite"]
