"""Launches and copies issued by a compiled loop: what the host and the driver cost, without Python between."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ..analytic.errors import KernelcastError
from .tracers import build_host_library

# library, then: launch, stream synchronise, event create, event record, event elapsed, copy to device, copy to host
DRIVERS = {
    "nvidia": (
        "libcuda.so.1", "cuLaunchKernel", "cuStreamSynchronize", "cuEventCreate", "cuEventRecord",
        "cuEventElapsedTime", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
    ),
    "amd": (
        "libamdhip64.so", "hipModuleLaunchKernel", "hipStreamSynchronize", "hipEventCreateWithFlags",
        "hipEventRecord", "hipEventElapsedTime", "hipMemcpyHtoDAsync", "hipMemcpyDtoHAsync",
    ),
}


class HostLoop:
    """Times launches of one kernel that takes an int, and copies, on one stream. Raises KernelcastError on failure."""

    def __init__(self, vendor: str, function: int, stream: int = 0) -> None:
        library, *names = DRIVERS[vendor]
        self._c = ctypes.CDLL(str(build_host_library("host_loop")))
        for name in ("kc_pipelined_s", "kc_copy_s"):
            getattr(self._c, name).restype = ctypes.c_double
        status = self._c.kc_host_open(library.encode(), (ctypes.c_char_p * len(names))(*(n.encode() for n in names)))
        if status != 0:
            raise KernelcastError(f"the driver library {library} has not what the launch loops need (status {status})")
        self._function, self._stream = ctypes.c_void_p(function), ctypes.c_void_p(stream)

    def pipelined_s(self, count: int) -> float:
        """Seconds from launch to launch when nothing is waited for."""
        return _good(self._c.kc_pipelined_s(self._function, self._stream, count))

    def launch_sync_s(self, count: int) -> np.ndarray:
        """Seconds of each launch followed by a wait, shape (count,)."""
        return self._each(self._c.kc_launch_sync_s, count)

    def event_bracketed_s(self, count: int) -> np.ndarray:
        """Seconds between two events around each launch, shape (count,)."""
        return self._each(self._c.kc_event_bracketed_s, count)

    def copy_s(self, down: bool, host: int, device: int, byte: int, copies: int) -> float:
        """Seconds a copy of `byte` between pinned `host` and `device` when `copies` are queued, then waited for."""
        seconds = self._c.kc_copy_s(
            int(down), ctypes.c_void_p(host), ctypes.c_void_p(device), ctypes.c_size_t(byte), self._stream, copies
        )
        return _good(seconds)

    def _each(self, function: Any, count: int) -> np.ndarray:
        each = np.zeros(count)
        status = function(self._function, self._stream, count, each.ctypes.data_as(ctypes.c_void_p))
        if status != 0:
            raise KernelcastError("a launch failed inside the launch loop")
        return each


def _good(seconds: float) -> float:
    if seconds < 0:
        raise KernelcastError("a launch or copy failed inside the launch loop")
    return seconds
