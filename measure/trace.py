"""Kernel durations of this process: CUPTI activity records, or torch's profiler where no library can be built.

A tiny marker kernel whose grid is its code precedes all that is timed; a segment is what lies between two markers.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..analytic.errors import KernelcastError

RECORD = np.dtype([("start_ns", "<u8"), ("end_ns", "<u8"), ("grid_x", "<u4"), ("marker", "<u4")])
MARKER = "kc_marker"


@dataclass(frozen=True)
class Segment:
    """One timed call: its marker's code, summed kernel time [s], kernels launched."""

    code: int
    time_s: float
    launches: int


def cut(records: np.ndarray) -> list[Segment]:
    """Cut a trace (RECORD array, any order) at its markers; kernels before the first marker are dropped."""
    if len(records) == 0:
        return []
    ordered = records[np.argsort(records["start_ns"], kind="stable")]
    marks = np.flatnonzero(ordered["marker"])
    if len(marks) == 0:
        return []
    duration_s = (ordered["end_ns"] - ordered["start_ns"]).astype(float) * 1e-9
    duration_s[marks] = 0.0
    sums = np.add.reduceat(duration_s, marks)
    counts = np.diff(np.append(marks, len(ordered))) - 1
    codes = ordered["grid_x"][marks]
    return [Segment(int(c), float(t), int(n)) for c, t, n in zip(codes, sums, counts, strict=True)]


class Tracer(Protocol):
    """Collects the kernels run since the last drain; call `drain` only after a device synchronisation."""

    name: str

    def drain(self) -> np.ndarray: ...

    def dropped(self) -> int: ...


class ActivityTracer:
    """CUPTI activity records through a small library, built on first use with the system's C++ compiler."""

    name = "CUPTI activity records"

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


class ProfilerTracer:
    """torch.profiler (Kineto): the same records, slower to read; the way on AMD and without a C++ compiler."""

    name = "torch.profiler"

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


def assign_codes(segments: list[Segment], codes: list[int]) -> list[Segment]:
    """Give a trace without grids (all codes 0) the codes in launch order; anything that does not match is an error."""
    if len(segments) != len(codes):
        raise KernelcastError(f"the trace holds {len(segments)} markers where {len(codes)} were launched")
    if any(s.code not in (0, code) for s, code in zip(segments, codes, strict=True)):
        raise KernelcastError("the trace's markers are not in the order in which they were launched")
    return [Segment(code, s.time_s, s.launches) for s, code in zip(segments, codes, strict=True)]


def open_tracer(torch: Any) -> Tracer:
    """The best tracer this machine has."""
    try:
        return ActivityTracer()
    except (OSError, KernelcastError, subprocess.CalledProcessError, FileNotFoundError) as error:
        print(f"no CUPTI activity library ({error}); using torch.profiler", file=sys.stderr)
        return ProfilerTracer(torch)


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
