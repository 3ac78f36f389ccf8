"""Where kernel durations come from: CUPTI activity records, torch's profiler, or else no records but graph replays.

Each is tried on one marker before it is trusted: a tracer may open and then see nothing.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..analytic.errors import KernelcastError
from .replay import GraphReplay
from .trace import CACHES, MARKER, METHOD, RECORD, Tracer, cut


class ActivityTracer:
    """CUPTI activity records through a small library, built on first use with the system's C++ compiler."""

    name = "CUPTI activity records"
    method = METHOD + name
    caches = CACHES
    why = ""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(str(_library()))
        self._library.kc_trace_drain.restype = ctypes.c_int64
        self._library.kc_trace_drain.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        self._library.kc_trace_dropped.restype = ctypes.c_uint64
        status = self._library.kc_trace_start(_cupti().encode())
        if status != 0:
            raise KernelcastError(f"CUPTI refused to trace kernels (status {status}); is another profiler attached?")

    def drain(self) -> np.ndarray:
        count = self._library.kc_trace_drain(None, 0)
        out = np.zeros(max(count, 0), RECORD)
        if count > 0:
            self._library.kc_trace_drain(out.ctypes.data_as(ctypes.c_void_p), count)
        return out

    def dropped(self) -> int:
        return int(self._library.kc_trace_dropped())

    def close(self) -> None:
        """Nothing: an activity that records nothing costs nothing."""


class ProfilerTracer:
    """torch.profiler (Kineto): the same records, slower to read; the way on AMD and without a C++ compiler."""

    name = "torch.profiler"
    method = METHOD + name
    caches = CACHES
    why = ""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._profile: Any = None
        self._open()

    def _open(self) -> None:
        activity = self._torch.profiler.ProfilerActivity
        self._profile = self._torch.profiler.profile(activities=[activity.CUDA])
        self._profile.__enter__()

    def drain(self) -> np.ndarray:
        self._profile.__exit__(None, None, None)
        device = self._torch.autograd.DeviceType.CUDA
        rows = [
            (e.start_ns(), e.start_ns() + e.duration_ns(), 0, e.name().startswith(MARKER))
            for e in self._profile.profiler.kineto_results.events()
            if e.device_type() == device and not e.name().startswith(("Memcpy", "Memset"))
        ]
        self._open()
        return np.array(rows, RECORD) if rows else np.zeros(0, RECORD)

    def dropped(self) -> int:
        return 0

    def close(self) -> None:
        self._profile.__exit__(None, None, None)


KINDS: tuple[tuple[str, Callable[[Any], Tracer]], ...] = (
    (ActivityTracer.name, lambda gpu: ActivityTracer()),
    (ProfilerTracer.name, lambda gpu: ProfilerTracer(gpu.torch)),
)


def open_tracer(gpu: Any) -> Tracer | GraphReplay:
    """The best that gives records on this machine; graph replay where none does, with the reasons in `why`."""
    reasons: list[str] = []
    for name, kind in KINDS:
        try:
            tracer = kind(gpu)
            _prove(gpu, tracer)
        except (OSError, KernelcastError, RuntimeError, subprocess.SubprocessError) as error:
            reasons.append(f"no {name}: {error}")
        else:
            tracer.why = "; ".join(reasons)
            return tracer
    return GraphReplay(gpu, "; ".join(reasons))


def _prove(gpu: Any, tracer: Tracer) -> None:
    """KernelcastError if a marker that was launched does not come back; the tracer is closed then."""
    gpu.mark(1)
    gpu.sync()
    if len(cut(tracer.drain())) != 1:
        tracer.close()
        raise KernelcastError("it opens, but a kernel that was launched is not in its records")


def _include_folders() -> list[Path]:
    roots = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))]
    roots += [p for entry in sys.path if (p := Path(entry) / "nvidia").is_dir()]
    found = [p.parent for root in roots if root.is_dir() for p in root.rglob("cupti.h")]
    found += [p.parent for root in roots if root.is_dir() for p in root.rglob("cuda.h")]
    return found


def _cupti() -> str:
    """The CUPTI that torch already loaded, by its soname; else the one of the toolkit."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "libcupti.so" in line:
            return line.split()[-1]
    return "libcupti.so"


def _library() -> Path:
    prebuilt = os.environ.get("KERNELCAST_TRACE_LIBRARY")
    return Path(prebuilt) if prebuilt else build_host_library("activity_trace")


def build_host_library(name: str) -> Path:
    """Build measure/kernels/<name>.cu, plain C++, as a shared library. KernelcastError without a compiler."""
    compiler = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    if compiler is None:
        raise KernelcastError("no C++ compiler found")
    target = Path(tempfile.mkdtemp(prefix="kernelcast-")) / f"libkc_{name}.so"
    source = Path(__file__).parent / "kernels" / f"{name}.cu"
    flags = [f"-I{folder}" for folder in _include_folders()]
    command = [compiler, "-shared", "-fPIC", "-O2", "-x", "c++", str(source), *flags, "-ldl", "-o", str(target)]
    subprocess.run(command, check=True, capture_output=True)
    return target
