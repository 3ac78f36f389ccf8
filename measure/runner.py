"""One process's measuring: build, check against a reference, time in interleaved rounds, warm and cold."""

from __future__ import annotations

import json
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..analytic.errors import KernelcastError
from .case import Case
from .families import BUILDERS, group_key
from .gpu import Gpu, Skip
from .journal import Journal
from .replay import GraphReplay
from .suite import Config
from .trace import CACHES, Segment, Tracer, assign_codes, cut

CHECK_EFFORT = 2e7  # full-size checks below this; above it the kind's smallest configuration stands for all
SLOWEST_S = 0.08
REPEATS = ((1e-4, 9), (1e-3, 7), (5e-3, 5), (float("inf"), 3))  # (call shorter than [s], repeats)
QUIET = 1  # marker before what is not timed
COARSEST_TICK_S = 1e-6  # of a timer of which nothing is known yet
OUTLIER = 1.5  # a first repeat this many times the median is reported
Timed = dict[int, "list[Segment] | Exception"]  # by marker code: the repeats, or why there are none


@dataclass
class Prepared:
    config: Config
    case: Case
    repeats: int
    call_s: float  # of one call between two events, its launch included


def repeats_for(call_s: float, quick: bool) -> int:
    count = next(n for limit, n in REPEATS if call_s < limit)
    return 3 if quick else count


class Runner:
    def __init__(self, gpu: Gpu, tracer: Tracer | GraphReplay, journal: Journal, quick: bool) -> None:
        self.gpu, self.tracer, self.journal, self.quick = gpu, tracer, journal, quick
        self.broken: dict[tuple[str, str, str], str] = {}
        self.worst_error: dict[tuple[str, str, str], float] = {}
        self.first_check_s: dict[tuple[str, str, str], float] = {}
        self.first_outliers: Counter[str] = Counter()
        self.tick_s = COARSEST_TICK_S
        self.beat: Callable[[str], None] = lambda _: None
        self.step: Callable[[str, int, int], None] = lambda *_: None

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
        for number, (kind, group) in enumerate(smallest.items()):
            self.step("kinds checked", number, len(smallest))
            for config in sorted(group, key=lambda c: c.effort)[:5]:
                reason = self._attempt(config)
                if reason is None:
                    self.broken.pop(kind, None)
                    break
                self.broken[kind] = reason
                if not reason.startswith("skipped"):
                    break
        self.step("kinds checked", len(smallest), len(smallest))

    def _attempt(self, config: Config) -> str | None:
        begun = time.monotonic()
        self.beat(config.key)
        try:
            self._verify(config, self._build(config))
            self.gpu.sync()
            self.first_check_s.setdefault(
                config.kind, time.monotonic() - begun
            )  # compiling, loading, choosing included
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
        return Prepared(config, case, repeats_for(taken_s, self.quick), taken_s)

    def _time(self, prepared: list[Prepared]) -> Timed:
        """All in one go; one by one where that fails, so that what fails takes nothing with it."""
        try:
            return self._together(prepared)
        except KernelcastError:
            raise
        except Exception as error:
            if _fatal(error):
                raise KernelcastError(f"the GPU failed in a round of timing: {error}") from error
            if len(prepared) == 1:
                return {QUIET + 1 + state: error for state, _ in enumerate(CACHES)}
        found: Timed = {}
        for index, item in enumerate(prepared):
            self.beat(item.config.key)
            found |= {code + 2 * index: times for code, times in self._time([item]).items() if code > QUIET}
        return found

    def _together(self, prepared: list[Prepared]) -> Timed:
        if not isinstance(self.tracer, GraphReplay):
            return self._traced(prepared, self.tracer)
        warm = QUIET + 1 + CACHES.index("warm")
        times = self.tracer.times([(p.case, p.call_s, p.repeats) for p in prepared])
        return {warm + 2 * index: found for index, found in enumerate(times)}

    def _traced(self, prepared: list[Prepared], tracer: Tracer) -> Timed:
        """Rounds over all configurations; in each: flush, cold call, warm call."""
        gpu, codes = self.gpu, []
        gpu.sync()
        tracer.drain()

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
        records = tracer.drain()
        self.tick_s = min(self.tick_s, tick_s(records))
        found: dict[int, list[Segment]] = {}
        for segment in assign_codes(cut(records), codes):
            found.setdefault(segment.code, []).append(segment)
        return dict(found)

    def _rows(self, item: Prepared, found: Timed, index: int) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        params = dict(item.case.params or item.config.params)
        params.pop("seed", None)
        for state, cache in enumerate(CACHES):
            if cache not in self.tracer.caches:
                continue
            segments = found[QUIET + 1 + 2 * index + state]
            if isinstance(segments, Exception):
                raise Skip(_reason(segments))
            times = np.array([s.time_s for s in segments])
            if not (times > 0).all():
                raise Skip("a repeat took no time: it launched no kernel")
            low, mid, high = np.percentile(times, [25, 50, 75])
            if times[0] > OUTLIER * mid:
                self.first_outliers["/".join(item.config.kind)] += 1
            rows.append({
                "kernel": item.config.family, "precision": item.config.precision,
                "params": json.dumps(plain(params), separators=(",", ":")),
                "time_s": mid, "spread_s": high - low,
                "noise_floor_s": max(high - low, self.tick_s), "time_min_s": times.min(), "n_reps": len(times),
                "cache": cache,
                "launches": _launches(segments),
                "implementation": item.config.implementation,
                "group": group_key(item.config.family, item.config.params, item.config.seed),
            })
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
            self.beat(config.key)
            try:
                prepared.append(self._prepare(config))
            except Exception as error:
                if _fatal(error):
                    raise KernelcastError(f"the GPU failed at {config}: {error}") from error
                skip(config, _reason(error))
        self.beat(" ".join(item.config.key for item in prepared))
        if prepared:
            found = self._time(prepared)
            for index, item in enumerate(prepared):
                try:
                    entries.append({"key": item.config.key, "rows": self._rows(item, found, index)})
                except Skip as error:
                    skip(item.config, str(error))
        self.beat("")
        self.journal.append(entries)
        prepared.clear()
        self.gpu.release()
        return skipped


def tick_s(records: np.ndarray) -> float:
    """Resolution of the trace's clock [s]: the smallest step between its durations, rounding to a nanosecond aside."""
    steps = np.diff(np.unique((records["end_ns"] - records["start_ns"]).astype(np.int64)))
    steps = steps[steps > 2]
    return float(steps.min()) * 1e-9 if steps.size else COARSEST_TICK_S


def _launches(segments: list[Segment]) -> int | None:
    counts = [s.launches for s in segments if s.launches is not None]
    return int(np.median(counts)) if counts else None


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
