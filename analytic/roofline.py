"""Execution time as the larger of compute and memory, the naive roofline, and the bound no prediction may beat."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .validity import BoolArray, FloatArray, Validity, as_float, fraction, non_negative, positive

ROOFLINE_VALIDITY = (
    Validity("t_compute_s", 0.0, np.inf, "s"),
    Validity("t_memory_s", 0.0, np.inf, "s"),
    Validity("t_overhead_s", 0.0, 12e-6, "s"),  # barriers, and launches of 5 to 12 us where they were measured
    Validity("overlap", 0.0, 1.0, "1"),
)


def execution_time(t_compute_s: ArrayLike, t_memory_s: ArrayLike, t_overhead_s: ArrayLike = 0.0) -> FloatArray:
    """Execution time [s]: `max(T_compute, T_memory) + T_overhead`. arXiv 2605.04178 Eq. (1).

    `T_overhead` is barriers and launch. All arguments in seconds, broadcast together.
    """
    return np.maximum(non_negative("t_compute_s", t_compute_s), non_negative("t_memory_s", t_memory_s)) + non_negative(
        "t_overhead_s", t_overhead_s
    )


def combine_overlap(first_s: ArrayLike, second_s: ArrayLike, overlap: ArrayLike) -> FloatArray:
    """Two phases that overlap by a fraction [s]: 0 gives their sum, 1 their maximum, between them a straight line.

    `max(a, b) + (1 - overlap) * min(a, b)`: non-decreasing in both times and never below the larger.
    """
    a = non_negative("first_s", first_s)
    b = non_negative("second_s", second_s)
    return np.maximum(a, b) + (1.0 - fraction("overlap", overlap)) * np.minimum(a, b)


def naive_roofline(
    flop: ArrayLike, byte: ArrayLike, peak_flop_per_s: ArrayLike, peak_byte_per_s: ArrayLike
) -> FloatArray:
    """Lower bound from datasheet peaks [s]: `max(FLOP/P_peak, bytes/B_HBM_peak)`. Williams et al. 2009;
    arXiv 2605.04178 section II.A (its `T_roofline`)."""
    return np.maximum(
        non_negative("flop", flop) / positive("peak_flop_per_s", peak_flop_per_s),
        non_negative("byte", byte) / positive("peak_byte_per_s", peak_byte_per_s),
    )


def guard_bound(time_s: ArrayLike, bound_s: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Return `(max(time, bound), acts)`: `acts` is True where the bound replaced the modelled time."""
    time = as_float(time_s)
    bound = as_float(bound_s)
    acts = time < bound
    return np.where(acts, bound, time), acts
