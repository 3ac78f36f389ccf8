"""What a person sees of a measurement under way. Here: lines of text; the command line draws a bar on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

EVERY_S = 10.0


class Progress(Protocol):
    """`say` words, `step` a phase to `done` of `count`, `close` before the process ends without unwinding."""

    def say(self, words: str) -> None: ...

    def step(self, phase: str, done: int, count: int) -> None: ...

    def close(self) -> None: ...


class Lines:
    """A line now and then: how far, how long already, and about how long still, by the pace of the phase so far."""

    def __init__(
        self, write: Callable[[str], object], every_s: float = EVERY_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write, self._every_s, self._clock = write, every_s, clock
        self._begun = clock()
        self._phase, self._phase_begun, self._done_then, self._last = "", 0.0, 0, 0.0

    def say(self, words: str) -> None:
        self._write(words)

    def step(self, phase: str, done: int, count: int) -> None:
        now = self._clock()
        if phase != self._phase:
            self._phase, self._phase_begun, self._done_then, self._last = phase, now, done, now
        moved = done - self._done_then
        if moved <= 0 or now - self._last < self._every_s:
            return
        self._last = now
        left_s = (now - self._phase_begun) * (count - done) / moved
        self._write(f"{done}/{count} {phase}, {now - self._begun:.0f} s, about {left_s:.0f} s left")

    def close(self) -> None:
        """Lines need no tidying."""


SILENT = Lines(lambda _: None)
