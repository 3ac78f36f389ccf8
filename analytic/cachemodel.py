"""Hit rate of a cache as a function of the working set, and the bandwidth of a mix of hits and misses."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .errors import InputError
from .validity import FloatArray, Validity, fraction, non_negative, positive

# Table III of arXiv 2605.04178, in its own megabytes (1e6 B): knees of the MI300A Infinity Cache as printed.
TABLE_III_KNEE_START_BYTE = 205e6
TABLE_III_KNEE_END_BYTE = 256e6

# Rule of thumb of read sweeps on H200, H100 PCIe and A100: full bandwidth to 0.7 of the capacity, none left at 1.2.
KNEE_START_PER_CAPACITY = 0.7
KNEE_END_PER_CAPACITY = 1.2

TABLE_III_VALIDITY = (
    Validity("working_set_byte", 0.0, 1e9, "B"),  # sweeps behind the knees end near 0.8 GB
    Validity("alpha", 0.1, 10.0, "1"),
    Validity("beta", 0.1, 10.0, "1"),
)
KNEES_VALIDITY = (Validity("working_set_byte", 2e6, 8.1e8, "B"),)  # 2 to 768 MiB were swept


def _knees(start: ArrayLike, end: ArrayLike) -> tuple[FloatArray, FloatArray]:
    low = non_negative("knee_start_byte", start)
    high = positive("knee_end_byte", end)
    if not (high > low).all():
        raise InputError("cache knees: knee_end_byte must be above knee_start_byte")
    return low, high


def hit_rate_table_iii_printed(
    working_set_byte: ArrayLike,
    alpha: ArrayLike = 1.0,
    beta: ArrayLike = 1.0,
    knee_start_byte: ArrayLike = TABLE_III_KNEE_START_BYTE,
    knee_end_byte: ArrayLike = TABLE_III_KNEE_END_BYTE,
) -> FloatArray:
    """LLC hit rate h(W), exactly as printed in arXiv 2605.04178 Table III.

    1 below the first knee, `1 - ((W - W1)/(W2 - W1))**alpha` between, `(W2/W)**beta` above. It JUMPS from 0 back to 1
    at the second knee (the pieces do not meet), so only the as-published parameter sets use it.
    """
    w = non_negative("working_set_byte", working_set_byte)
    low, high = _knees(knee_start_byte, knee_end_byte)
    inside = 1.0 - np.clip((w - low) / (high - low), 0.0, 1.0) ** positive("alpha", alpha)
    above = (high / np.maximum(w, high)) ** positive("beta", beta)
    return np.where(w < low, 1.0, np.where(w <= high, inside, above))


def hit_rate_table_iii(
    working_set_byte: ArrayLike,
    alpha: ArrayLike = 1.0,
    beta: ArrayLike = 1.0,
    join: ArrayLike = 0.5,
    knee_start_byte: ArrayLike = TABLE_III_KNEE_START_BYTE,
    knee_end_byte: ArrayLike = TABLE_III_KNEE_END_BYTE,
) -> FloatArray:
    """LLC hit rate h(W) after arXiv 2605.04178 Table III, made continuous and non-increasing.

    The same three pieces, meeting at `join` (the hit rate at the second knee, 0 to 1): 1, then
    `1 - (1 - join) * ((W - W1)/(W2 - W1))**alpha`, then `join * (W2/W)**beta`.
    """
    w = non_negative("working_set_byte", working_set_byte)
    low, high = _knees(knee_start_byte, knee_end_byte)
    at_knee = fraction("join", join)
    inside = 1.0 - (1.0 - at_knee) * np.clip((w - low) / (high - low), 0.0, 1.0) ** positive("alpha", alpha)
    above = at_knee * (high / np.maximum(w, high)) ** positive("beta", beta)
    return np.where(w <= high, inside, above)


def hit_rate_from_bandwidth(
    byte_per_s: ArrayLike, cache_byte_per_s: ArrayLike, memory_byte_per_s: ArrayLike
) -> FloatArray:
    """Hit rate a measured bandwidth stands for, clipped to [0, 1]: the inverse of `bandwidth_harmonic`."""
    slow = 1.0 / positive("memory_byte_per_s", memory_byte_per_s)
    fast = 1.0 / positive("cache_byte_per_s", cache_byte_per_s)
    if not (fast < slow).all():
        raise InputError("hit_rate_from_bandwidth: cache_byte_per_s must be above memory_byte_per_s")
    return np.clip((slow - 1.0 / positive("byte_per_s", byte_per_s)) / (slow - fast), 0.0, 1.0)


def fit_hit_rate_table_iii(
    working_set_byte: ArrayLike,
    hit_rate: ArrayLike,
    knee_start_byte: float = TABLE_III_KNEE_START_BYTE,
    knee_end_byte: float = TABLE_III_KNEE_END_BYTE,
) -> tuple[float, float, float]:
    """Fit (alpha, beta, join) of `hit_rate_table_iii` to a measured sweep, shape (n,), by least squares.

    Raises InputError for fewer than four points: three unknowns are fitted.
    """
    from scipy.optimize import least_squares  # only calibration needs it

    w = non_negative("working_set_byte", working_set_byte)
    target = fraction("hit_rate", hit_rate)
    if w.size < 4 or w.shape != target.shape:
        raise InputError("fit_hit_rate_table_iii: needs four or more points, one hit rate per working set")

    def error(x: FloatArray) -> FloatArray:
        return hit_rate_table_iii(w, x[0], x[1], x[2], knee_start_byte, knee_end_byte) - target

    solution = least_squares(error, [1.0, 1.0, 0.5], bounds=([0.1, 0.1, 0.0], [10.0, 10.0, 1.0])).x
    return float(solution[0]), float(solution[1]), float(solution[2])


def knee_hit_rate(
    working_set_byte: ArrayLike, knee_start_byte: ArrayLike, knee_end_byte: ArrayLike
) -> FloatArray:
    """Hit rate `clip((W2 - W)/(W2 - W1), 0, 1)`: the linear form that fits measured sweeps (median error 0.2-1.2 %)."""
    w = non_negative("working_set_byte", working_set_byte)
    low, high = _knees(knee_start_byte, knee_end_byte)
    return np.clip((high - w) / (high - low), 0.0, 1.0)


def bandwidth_arithmetic(
    hit_rate: ArrayLike, cache_byte_per_s: ArrayLike, memory_byte_per_s: ArrayLike
) -> FloatArray:
    """Effective bandwidth [B/s] as printed under arXiv 2605.04178 Eq. (10): `h*BW_LLC + (1-h)*BW_HBM`.

    It adds rates where times add, so it is too high between the ends; for the as-published sets.
    """
    h = fraction("hit_rate", hit_rate)
    return h * positive("cache_byte_per_s", cache_byte_per_s) + (1.0 - h) * positive(
        "memory_byte_per_s", memory_byte_per_s
    )


def bandwidth_harmonic(hit_rate: ArrayLike, cache_byte_per_s: ArrayLike, memory_byte_per_s: ArrayLike) -> FloatArray:
    """Effective bandwidth [B/s] when the times of hits and misses add: `1/(h/BW_LLC + (1-h)/BW_HBM)`."""
    h = fraction("hit_rate", hit_rate)
    return 1.0 / (
        h / positive("cache_byte_per_s", cache_byte_per_s)
        + (1.0 - h) / positive("memory_byte_per_s", memory_byte_per_s)
    )
