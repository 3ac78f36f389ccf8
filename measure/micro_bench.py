"""How a microbenchmark is timed: kernel durations from the tracer, one call at a time, short or in a steady state."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from .gpu import Gpu, Skip, card_state
from .replay import GraphReplay
from .trace import Tracer, assign_codes, cut
from .tracers import open_tracer

STEADY_S = 1.5  # long enough for the power limit to have taken hold


class Bench:
    """Times calls on `gpu`. The tracer starts with the first timing: host-side launch loops come before it."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.units = int(gpu.torch.cuda.get_device_properties(0).multi_processor_count)

    @cached_property
    def tracer(self) -> Tracer:
        found = open_tracer(self.gpu)
        if isinstance(found, GraphReplay):
            raise Skip(f"it needs records of kernels, and there are none: {found.why}")
        return found

    def time_s(self, call: Callable[[], Any], repeats: int = 9, cold: bool = False) -> float:
        """Median kernel time [s] of `repeats` calls, warm or after the cache was flushed."""
        gpu, codes = self.gpu, []
        call()
        gpu.sync()
        self.tracer.drain()
        for _ in range(repeats):
            if cold:
                gpu.mark(1)
                gpu.flush()
                codes.append(1)
            gpu.mark(2)
            codes.append(2)
            call()
        gpu.mark(1)
        codes.append(1)
        gpu.sync()
        return float(np.median([s.time_s for s in assign_codes(cut(self.tracer.drain()), codes) if s.code == 2]))

    def slope_s(self, make: Callable[[int], Callable[[], Any]], rounds: int, repeats: int = 5) -> float:
        """Seconds a round: the difference between twice the rounds and once, so that fixed costs drop out."""
        once, twice = (self.time_s(make(r), repeats) for r in (rounds, 2 * rounds))
        return (twice - once) / rounds

    def steady(self, call: Callable[[], Any], seconds: float = STEADY_S) -> tuple[float, dict[str, str]]:
        """Seconds a call in the last third of a run of `seconds` without a pause, and the card's state meanwhile."""
        gpu = self.gpu
        total = max(6, int(seconds / self.time_s(call, 3)) + 1)
        late = total // 3
        self.tracer.drain()
        gpu.mark(1)
        for _ in range(total - late):
            call()
        gpu.mark(2)
        for _ in range(late):
            call()
        state = card_state()  # the queue is still running
        gpu.mark(1)
        gpu.sync()
        found = assign_codes(cut(self.tracer.drain()), [1, 2, 1])
        return found[1].time_s / late, state

    def makespan_s(self, call: Callable[[], Any], repeats: int = 7) -> float:
        """Median time [s] from the first kernel's start to the last one's end, kernels overlapping or not."""
        found = []
        call()
        for _ in range(repeats):
            self.gpu.sync()
            self.tracer.drain()
            call()
            self.gpu.sync()
            records = self.tracer.drain()
            found.append(float(records["end_ns"].max() - records["start_ns"].min()) * 1e-9)
        return float(np.median(found))
