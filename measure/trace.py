"""Kernel durations of this process, cut from a trace at markers.

A tiny marker kernel whose grid is its code precedes all that is timed; a segment is what lies between two markers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..analytic.errors import KernelcastError

RECORD = np.dtype([("start_ns", "<u8"), ("end_ns", "<u8"), ("grid_x", "<u4"), ("marker", "<u4")])
MARKER = "kc_marker"


@dataclass(frozen=True)
class Segment:
    """One timed call: its marker's code, summed kernel time [s], kernels launched (None where nothing counted them)."""

    code: int
    time_s: float
    launches: int | None


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


METHOD = "the median over repeats of the summed durations of all kernels (no copies, no memsets) of a call, from "
CACHES: tuple[str, ...] = ("cold", "warm")


class Tracer(Protocol):
    """Collects the kernels run since the last drain; call `drain` only after a device synchronisation."""

    name: str
    method: str  # what a time is, for the meta file: "time_s is …"
    why: str  # why no better one is used; empty for the best
    caches: tuple[str, ...]

    def drain(self) -> np.ndarray: ...

    def dropped(self) -> int: ...

    def close(self) -> None: ...


def assign_codes(segments: list[Segment], codes: list[int]) -> list[Segment]:
    """Give a trace without grids (all codes 0) the codes in launch order; anything that does not match is an error."""
    if len(segments) != len(codes):
        raise KernelcastError(f"the trace holds {len(segments)} markers where {len(codes)} were launched")
    if any(s.code not in (0, code) for s, code in zip(segments, codes, strict=True)):
        raise KernelcastError("the trace's markers are not in the order in which they were launched")
    return [Segment(code, s.time_s, s.launches) for s, code in zip(segments, codes, strict=True)]
