"""Table III of arXiv 2605.04178 and the mix of bandwidths printed under Eq. (10)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..cachemodel import knees
from ..validity import FloatArray, Validity, fraction, non_negative, positive

# Table III of arXiv 2605.04178, in its own megabytes (1e6 B): knees of the MI300A Infinity Cache as printed.
TABLE_III_KNEE_START_BYTE = 205e6
TABLE_III_KNEE_END_BYTE = 256e6

TABLE_III_VALIDITY = (
    Validity("working_set_byte", 0.0, 1e9, "B"),  # sweeps behind the knees end near 0.8 GB
    Validity("alpha", 0.1, 10.0, "1"),
    Validity("beta", 0.1, 10.0, "1"),
)


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
    low, high = knees(knee_start_byte, knee_end_byte)
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
    low, high = knees(knee_start_byte, knee_end_byte)
    at_knee = fraction("join", join)
    inside = 1.0 - (1.0 - at_knee) * np.clip((w - low) / (high - low), 0.0, 1.0) ** positive("alpha", alpha)
    above = at_knee * (high / np.maximum(w, high)) ** positive("beta", beta)
    return np.where(w <= high, inside, above)


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
