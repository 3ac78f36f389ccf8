"""The measuring program on a GPU made of paper: real suite, journal, rounds and table; kernels are entries in a list.

python fake_suite.py SUITE OUT [--resume] [--time-limit 1s]
n = 13: out of memory when built; 14: in the second call, which is timed; 15: fails there for another reason; 17: waits
for the host, so no graph; 666: hangs when built; 667: in its second call.
"""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
from kernelcast.measure import run, runner
from kernelcast.measure.case import Case
from kernelcast.measure.replay import GraphReplay
from kernelcast.measure.trace import CACHES, METHOD, RECORD

CALL_S = 0.0003  # real time a call takes, so that there is something to interrupt


class Paper:
    """Trace and GPU in one: what is launched is written down with a duration."""

    name = "NVIDIA H200"
    method, caches, why = METHOD + "paper", CACHES, ""

    def __init__(self) -> None:
        self.records: list[tuple[int, int, int, int]] = []
        self.capturing = False
        self.now = 0
        self.cache: dict[str, Any] = {}
        event = SimpleNamespace(record=lambda: None, elapsed_time=lambda _: 0.002)
        backends = SimpleNamespace(cudnn=SimpleNamespace(version=lambda: 0))
        self.torch = SimpleNamespace(
            cuda=SimpleNamespace(Event=lambda enable_timing: event), __version__="paper",
            version=SimpleNamespace(cuda="paper"), backends=backends,
        )
        runtime = SimpleNamespace(driverGetVersion=lambda: 0)
        self.cp = SimpleNamespace(__version__="paper", cuda=SimpleNamespace(runtime=runtime))

    def launch(self, ns: int, grid: int = 1, marker: int = 0) -> None:
        self.records.append((self.now, self.now + ns, grid, marker))
        self.now += ns + 10

    def mark(self, code: int) -> None:
        self.launch(1, code, 1)

    def flush(self) -> None:
        self.launch(1000)

    def drain(self) -> np.ndarray:
        taken, self.records = np.array(self.records, RECORD), []
        return taken

    def dropped(self) -> int:
        return 0

    def close(self) -> None: ...

    def capture(self, call: Any, count: int) -> Any:
        """A graph on paper: the launches of `count` calls, a tenth of a microsecond apart, written down once."""
        self.capturing = True
        before, self.records = self.records, []
        try:
            for _ in range(count):
                call()
            ns = sum(end - start + 100 for start, end, _, _ in self.records)
        finally:
            self.records, self.capturing = before, False
        return lambda: ns * 1e-9

    def sync(self) -> None: ...

    def seed(self, seed: int) -> None: ...

    def release(self) -> None: ...


def fails(words: str) -> Any:
    def fail() -> None:
        raise RuntimeError(words)

    return fail


LATE = {14: fails("CUDA out of memory. Tried to allocate 2.00 GiB"), 15: fails("no algorithm found"),
        667: lambda: time.sleep(3600)}


def build(gpu: Any, params: Any, precision: str) -> Case:
    n = params["n"]
    if n == 13:
        raise RuntimeError("CUDA out of memory. Tried to allocate 200.00 GiB")
    if n == 666:
        time.sleep(3600)

    calls = []

    def call() -> None:
        calls.append(1)
        if len(calls) > 1 and n in LATE:
            LATE[n]()
        if n == 17 and gpu.capturing:
            raise RuntimeError("operation not permitted when stream is capturing")
        time.sleep(CALL_S)
        gpu.launch(1000 + n)

    return Case(call, lambda: 1.0 if n == 31 else 0.0)


def install(records: bool = True) -> Paper:
    """Put the paper GPU where the real one would be; without records it can be timed by replaying graphs only."""
    paper = Paper()
    tracer = paper if records else GraphReplay(paper, "no records on paper")
    run.Gpu = lambda: paper  # type: ignore[assignment,misc]
    run.open_tracer = lambda gpu: tracer  # type: ignore[assignment,return-value]
    runner.BUILDERS[("vector_copy", "paper")] = build
    return paper


if __name__ == "__main__":
    from kernelcast.measure.__main__ import main

    install()
    sys.exit(main(["--suite", sys.argv[1], "--platform", "h200", "--out", sys.argv[2], *sys.argv[3:]]))
