"""Hit rate of a cache as a function of the working set, and the bandwidth of a mix of hits and misses."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .errors import InputError
from .validity import FloatArray, Validity, fraction, non_negative, positive

# Rule of thumb of read sweeps on H200, H100 PCIe and A100: full bandwidth to 0.7 of the capacity, none left at 1.2.
KNEE_START_PER_CAPACITY = 0.7
KNEE_END_PER_CAPACITY = 1.2

KNEES_VALIDITY = (Validity("working_set_byte", 2e6, 8.1e8, "B"),)  # 2 to 768 MiB were swept


def knees(start: ArrayLike, end: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both knees [B] as arrays. InputError where the second is not above the first."""
    low = non_negative("knee_start_byte", start)
    high = positive("knee_end_byte", end)
    if not (high > low).all():
        raise InputError("cache knees: knee_end_byte must be above knee_start_byte")
    return low, high


def knee_hit_rate(
    working_set_byte: ArrayLike, knee_start_byte: ArrayLike, knee_end_byte: ArrayLike
) -> FloatArray:
    """Hit rate `clip((W2 - W)/(W2 - W1), 0, 1)`: the linear form that fits measured sweeps (median error 0.2-1.2 %)."""
    w = non_negative("working_set_byte", working_set_byte)
    low, high = knees(knee_start_byte, knee_end_byte)
    return np.clip((high - w) / (high - low), 0.0, 1.0)


def bandwidth_harmonic(hit_rate: ArrayLike, cache_byte_per_s: ArrayLike, memory_byte_per_s: ArrayLike) -> FloatArray:
    """Effective bandwidth [B/s] when the times of hits and misses add: `1/(h/BW_LLC + (1-h)/BW_HBM)`."""
    h = fraction("hit_rate", hit_rate)
    return 1.0 / (
        h / positive("cache_byte_per_s", cache_byte_per_s)
        + (1.0 - h) / positive("memory_byte_per_s", memory_byte_per_s)
    )
