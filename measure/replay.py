"""Times without kernel records: a call captured several times in a graph of the GPU, replayed between two events.

The last resort, where neither activity records nor torch's profiler give anything (another profiler attached, a
container without the right). What it cannot see it does not give: no cold times, no launches of a call, and a call that
waits for the host or allocates outside the graph cannot be captured. Gaps between kernels and copies on the device are
in its times, so they are a little longer than summed kernel durations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .trace import Segment

if TYPE_CHECKING:
    from .case import Case

REPLAY_S = 5e-4  # wanted length of a replay: the graph's own launch and the events' resolution are then below 1 %
MOST_CALLS = 100


class GraphReplay:
    """Stands where a tracer does. `why` says what was tried before it."""

    name = "graph replay"
    method = (
        "the median over replays of the mean time of a call in a graph of up to 100 such calls, between two events: "
        "gaps between kernels and copies on the device are in it"
    )
    caches = ("warm",)

    def __init__(self, gpu: Any, why: str) -> None:
        self._gpu, self.why = gpu, why

    def dropped(self) -> int:
        return 0

    def times(self, calls: Sequence[tuple[Case, float, int]]) -> list[list[Segment] | Exception]:
        """Of (case, rough seconds of a call, replays) each: a segment a replay, or why it cannot be timed.

        Cases are replayed in turn, so that a drift of the clock meets all of them alike."""
        replays = [self._capture(case, call_s) for case, call_s, _ in calls]
        found: list[list[float]] = [[] for _ in calls]
        for turn in range(max((repeats for _, _, repeats in calls), default=0)):
            for index, (_, _, repeats) in enumerate(calls):
                replay = replays[index]
                if turn < repeats and not isinstance(replay, Exception):
                    found[index].append(replay())
        return [
            replay if isinstance(replay, Exception) else [Segment(0, t, None) for t in times]
            for replay, times in zip(replays, found, strict=True)
        ]

    def _capture(self, case: Case, call_s: float) -> Callable[[], float] | Exception:
        count = int(np.clip(np.ceil(REPLAY_S / max(call_s, 1e-7)), 1, MOST_CALLS))
        try:
            if case.reset is None:
                whole = self._gpu.capture(case.call, count)
                return lambda: whole() / count
            reset = case.reset

            def both() -> None:
                reset()
                case.call()

            pairs, resets = self._gpu.capture(both, count), self._gpu.capture(reset, count)
            return lambda: (pairs() - resets()) / count
        except Exception as error:
            return error
