"""A time limit for what cannot be interrupted: a kernel that hangs takes its process with it, but not the table."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

HANG_S = 180.0  # longer than any build and check here takes
HANG_STATUS = 2


class Watchdog:
    """Calls `act(label)` from a thread of its own when no `beat` came for `limit_s`; the main thread may be stuck.

    `limit_s` None never acts. What `act` does must need neither the GPU nor the main thread; it usually ends the
    process, since a hung kernel ends no other way."""

    def __init__(self, limit_s: float | None, act: Callable[[str], None]) -> None:
        self.limit_s, self._act = limit_s, act
        self._label, self._last, self._done = "", time.monotonic(), threading.Event()

    def beat(self, label: str) -> None:
        """Say what begins now."""
        self._label, self._last = label, time.monotonic()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch while the block runs."""
        if self.limit_s is None:
            yield
            return
        thread = threading.Thread(target=self._watch, args=(self.limit_s,), daemon=True)
        self.beat("")
        thread.start()
        try:
            yield
        finally:
            self._done.set()
            thread.join(timeout=5.0)

    def _watch(self, limit_s: float) -> None:
        while not self._done.wait(min(1.0, limit_s / 10.0)):
            if time.monotonic() - self._last > limit_s:
                self._act(self._label)
                return
