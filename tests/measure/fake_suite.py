"""The measuring program on a GPU made of paper: real suite, journal, rounds and table; kernels are entries in a list.

python fake_suite.py starts a process for every order on its standard input (`serve`).
n = 13: out of memory when built; 14: in the second call, which is timed; 15: fails there for another reason; 17: waits
for the host, so no graph; 666: hangs when built; 667: in its second call.
"""

from __future__ import annotations

import importlib
import json
import os
import pty
import resource
import selectors
import signal
import sys
import termios
import time
import traceback
from collections.abc import Callable
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


def obey(order: dict[str, Any]) -> int:
    """Be the process that is ordered: its limit of files and its command line; the status it ends with."""
    os.environ |= order["env"]
    if order["file_limit"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_limit"], order["file_limit"]))
    install()
    if order["program"] == "kernelcast":
        from kernelcast.service.cli.main import status_of

        return status_of(order["words"])
    from kernelcast.measure.__main__ import main

    return main(order["words"])


def be(order: dict[str, Any], out: int, err: int) -> None:
    """Obey, and end as Python ends: with the status, or 1 after a traceback."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it starts with & ignore interrupts
    os.dup2(out, 1)
    os.dup2(err, 2)
    status = 1
    try:
        status = obey(order)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def start(order: dict[str, Any], say: Callable[[Any], None]) -> None:
    """Start a process and say its number; once it has ended, its status, standard output and standard error."""
    (out, out_end), (err, err_end) = os.pipe(), pty.openpty() if order["terminal"] else os.pipe()
    if order["terminal"]:
        termios.tcsetwinsize(err_end, (40, 120))
    pid = os.fork()
    if not pid:
        be(order, out_end, err_end)
    os.close(out_end)
    os.close(err_end)
    say(pid)
    said = {out: b"", err: b""}
    with selectors.DefaultSelector() as ready:
        for end in said:
            ready.register(end, selectors.EVENT_READ)
        while ready.get_map():
            for key, _ in ready.select():
                try:
                    piece = os.read(key.fd, 65536)
                except OSError:  # Linux's way of saying that the other end of a terminal was closed
                    piece = b""
                said[key.fd] += piece
                if not piece:
                    ready.unregister(key.fd)
                    os.close(key.fd)
    say([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said[out].decode(), said[err].decode()])


def serve() -> None:
    """A process for each order, a line of JSON, forked from this one, which has imported what they need."""
    for module in ("kernelcast.measure.__main__", "kernelcast.service.cli.main", "kernelcast.service.cli.measure",
                   "pandas", "pyarrow.parquet"):
        importlib.import_module(module)
    replies = os.fdopen(os.dup(1), "w")

    def say(word: Any) -> None:
        print(json.dumps(word), file=replies, flush=True)

    say("ready")
    for line in sys.stdin:
        start(json.loads(line), say)


if __name__ == "__main__":
    serve()
