"""The wavefront-centric model of CDNA in its consistent form; Eqs. (9)-(14) as printed are in `published.wavefront`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .occupancy import GemmOccupancy
from .validity import FloatArray, at_least_one, non_negative, positive


def latency_bound_time(
    byte: ArrayLike, latency_s: ArrayLike, bytes_in_flight: ArrayLike
) -> FloatArray:
    """Time [s] of `byte` when `bytes_in_flight` are outstanding over a latency: Little's law."""
    return (
        non_negative("byte", byte) * non_negative("latency_s", latency_s) / positive("bytes_in_flight", bytes_in_flight)
    )


def step_time(t_memory_s: ArrayLike, t_compute_s: ArrayLike, n_wavefronts: ArrayLike) -> FloatArray:
    """Time [s] in which N wavefronts of one SIMD each do a K-step: the consistent form of arXiv 2605.04178 Eqs. (9) and
    (12).

    `N*T_compute + (1 - eta)*T_mem` with eta of Eq. (9), which is `max(N*T_compute, T_compute + T_mem)`: either the
    matrix unit never idles, or one wavefront's own chain is the longest. Times are of one wavefront; non-decreasing in
    both, per wavefront-step non-increasing in N.
    """
    waves = at_least_one("n_wavefronts", n_wavefronts)
    compute = non_negative("t_compute_s", t_compute_s)
    return np.maximum(waves * compute, compute + non_negative("t_memory_s", t_memory_s))


def wavefront_round_time(
    workgroups: FloatArray,
    occupancy: GemmOccupancy,
    compute_s: FloatArray,
    load_s: FloatArray,
    latency_s: FloatArray,
) -> FloatArray:
    """Time [s] in which `workgroups` on one CU each do a K-step: matrix units, load port or latency, the longest.

    `compute_s` is one workgroup's step with all SIMDs at work. As in `step_time`, but the loads of the next K-step are
    issued before this one's MFMA (double buffering), so the wait overlaps with the wavefront's own compute too.
    """
    per_simd = np.ceil(workgroups * occupancy.waves_per_workgroup / occupancy.simds)
    one_wave = compute_s * occupancy.simds / occupancy.waves_per_workgroup
    longest = np.maximum(np.maximum(per_simd * one_wave, workgroups * load_s), latency_s)
    return np.where(workgroups > 0.0, longest, 0.0)
