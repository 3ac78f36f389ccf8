"""Generic roofline path of arXiv 2605.04178 sections IV.E, IV.F: transfers, working-set bandwidth, class and precision
scales, extra launches, concurrent kernels, several devices, fusion."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from .errors import InputError, nearest_names
from .validity import FloatArray, Validity, as_float, at_least_one, non_negative, positive

MEMCPY_BYTE_PER_S = 45e9  # printed default of B_eff, both directions (Table VII)
MEMCPY_LATENCY_S = 2e-6  # tau_memcpy, Table VII
HOST_SYNC_S = 3e-6  # tau_sync, Table VII

CLASSES = ("memory", "compute", "balanced", "stencil", "irregular")
# Published routing of segments to the validated families (section V.B): class -> family.
PUBLISHED_ROUTE = {"stencil": "transpose", "compute": "gemm", "memory": "vector_copy"}

GENERIC_VALIDITY = (
    Validity("byte_per_s", 1e9, 1e12, "B/s"),  # one PCIe 3 lane to a coherent link between chips
    Validity("tau_s", 0.0, 100e-6, "s"),
    Validity("working_set_byte", 0.0, np.inf, "B"),
    Validity("w0_byte", -np.inf, 1e10, "B"),  # 0 and less switch the blend off
    Validity("class_scale", 0.1, 10.0, "1"),
    Validity("precision_efficiency", 0.05, 1.0, "1"),
)


def memcpy_time(
    byte: ArrayLike, byte_per_s: ArrayLike = MEMCPY_BYTE_PER_S, tau_s: ArrayLike = MEMCPY_LATENCY_S
) -> FloatArray:
    """One copy between host and device [s]: `T_memcpy = S/B_dir + tau_memcpy`. arXiv 2605.04178 Eq. (15).

    Nothing to copy still costs the call: ask only for episodes that happen (`transfer_time` counts them).
    """
    return non_negative("byte", byte) / positive("byte_per_s", byte_per_s) + non_negative("tau_s", tau_s)


def host_sync_time(syncs: ArrayLike, tau_sync_s: ArrayLike = HOST_SYNC_S) -> FloatArray:
    """Explicit host synchronisations [s]: `tau_sync` each, 3 us by default. arXiv 2605.04178 section IV.E."""
    return non_negative("syncs", syncs) * non_negative("tau_sync_s", tau_sync_s)


def transfer_time(
    byte: ArrayLike,
    episodes: ArrayLike,
    syncs: ArrayLike = 0.0,
    n_exec: ArrayLike = 1.0,
    *,
    byte_per_s: ArrayLike = MEMCPY_BYTE_PER_S,
    tau_memcpy_s: ArrayLike = MEMCPY_LATENCY_S,
    tau_sync_s: ArrayLike = HOST_SYNC_S,
    unified_memory: bool = False,
) -> FloatArray:
    """Host side of a segment [s]: `n_exec * (episodes * T_memcpy + syncs * tau_sync)`. arXiv 2605.04178 Eq. (15).

    `byte` is per episode. Unified memory (MI300A) needs no copies; synchronisations remain. Overlap of copies with
    kernels is not modelled: the sum is an upper estimate against the wall clock.
    """
    copies = non_negative("episodes", episodes) * memcpy_time(byte, byte_per_s, tau_memcpy_s)
    once = host_sync_time(syncs, tau_sync_s) + (0.0 if unified_memory else 1.0) * copies
    return non_negative("n_exec", n_exec) * once


def effective_bandwidth(
    working_set_byte: ArrayLike, sustained_byte_per_s: ArrayLike, peak_byte_per_s: ArrayLike, w0_byte: ArrayLike
) -> FloatArray:
    """Global-memory bandwidth [B/s]: `B_sustained + (B_peak - B_sustained)*exp(-W/w0)`. arXiv 2605.04178 Eq. (16).

    `w0 <= 0` switches the blend off (sustained everywhere). Needs `peak >= sustained`: non-increasing in W.
    """
    sustained = positive("sustained_byte_per_s", sustained_byte_per_s)
    peak = positive("peak_byte_per_s", peak_byte_per_s)
    if (peak < sustained).any():
        raise InputError("effective_bandwidth: peak_byte_per_s is below sustained_byte_per_s")
    w = non_negative("working_set_byte", working_set_byte)
    w0 = as_float(w0_byte)
    if np.isnan(w0).any():
        raise InputError(f"w0_byte is nan at position {int(np.argmax(np.isnan(w0)))}; a size, or 0 to switch it off")
    with np.errstate(divide="ignore", over="ignore"):  # W/w0 beyond float range is exp(-inf) = 0, as it should be
        share = np.where(w0 > 0.0, np.exp(-w / np.where(w0 > 0.0, w0, 1.0)), 0.0)
    return sustained + (peak - sustained) * share


def class_scale(work_class: str, scales: Mapping[str, float]) -> float:
    """Calibrated time scale of a workload class (arXiv 2605.04178 section IV.F); a class without one scales by 1."""
    if work_class not in CLASSES:
        raise InputError(f"unknown workload class {work_class!r}{nearest_names(work_class, CLASSES)}")
    return float(positive(f"class scale of {work_class}", scales.get(work_class, 1.0)))


def extra_launch_time(kernels: ArrayLike, t_launch_s: ArrayLike) -> FloatArray:
    """Launches of a multi-kernel segment beyond the first [s]: `(kernels - 1) * T_launch`. arXiv 2605.04178 section
    IV.F."""
    return (at_least_one("kernels", kernels) - 1.0) * non_negative("t_launch_s", t_launch_s)


def concurrency_time(count: ArrayLike, tau_s: ArrayLike) -> FloatArray:
    """What running beside others adds [s]: `(N - 1) * tau`. arXiv 2605.04178 sections IV.A.6 and IV.B: streams
    (`tau_c`), concurrent kernels (`tau_interf`, 50 us tuned), devices (`tau_g`, `tau_interf_gpu`). One alone adds 0."""
    return (at_least_one("count", count) - 1.0) * non_negative("tau_s", tau_s)


def fused_work(
    flop: ArrayLike, byte: ArrayLike, intermediate_byte: ArrayLike, axis: int = -1
) -> tuple[FloatArray, FloatArray]:
    """Work of fused kernels: summed FLOP, summed bytes less the intermediates that stay on chip. arXiv 2605.04178
    section IV.B. `flop`, `byte` list the kernels along `axis`; `intermediate_byte` is what their sum counts in vain
    (each intermediate once written and once read)."""
    total = as_float(non_negative("byte", byte)).sum(axis=axis)
    saved = non_negative("intermediate_byte", intermediate_byte)
    if (saved > total).any():
        raise InputError("fused_work: intermediate_byte exceeds the traffic of the kernels")
    return as_float(non_negative("flop", flop)).sum(axis=axis), total - saved


def fused_time(t_fused_s: ArrayLike, tau_fusion_s: ArrayLike = 0.0) -> FloatArray:
    """Fused kernel [s]: the time of the fused work plus `tau_fusion`. arXiv 2605.04178 section IV.B."""
    return non_negative("t_fused_s", t_fused_s) + non_negative("tau_fusion_s", tau_fusion_s)
