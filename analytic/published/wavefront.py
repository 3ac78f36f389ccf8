"""The wavefront-centric model as printed: Eq. (9)-(14) of arXiv 2605.04178; occupancy and its limits under Eq. (9)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..validity import FloatArray, Validity, at_least_one, fraction, non_negative, positive

PRINTED_REGISTERS = 65536.0
PRINTED_MAX_WAVES = 32.0

WAVEFRONT_VALIDITY = (
    Validity("n_wavefronts", 1, 40, "wavefront"),  # per CU: 32 on CDNA2 and later, 40 on CDNA1
    Validity("utilisation", 0.4, 0.7, "1"),  # typical range printed with Eq. (11)
    Validity("t_coherence_s", 100e-9, 200e-9, "s"),
    Validity("t_cross_xcd_s", 50e-9, 100e-9, "s"),
    Validity("tile", 8, 64, "element"),  # tiles of the study behind Eq. (14)
    Validity("overlap", 0.0, 1.0, "1"),
    Validity("h_l1", 0.0, 1.0, "1"),
    Validity("h_l2", 0.0, 1.0, "1"),
    Validity("h_llc", 0.0, 1.0, "1"),
    Validity("l_hbm_s", 0.0, 1.2e-6, "s"),  # 400 cycles printed, up to 2,450 under load (public MI300X profile)
    Validity("w_eff", 0.1, 40.0, "1"),  # below 1: idle units; above: wavefronts, where the peak is not a unit's share
    Validity("tau_cta_s", 0.0, 1e-6, "s"),
)


def overlap_factor(n_wavefronts: ArrayLike, t_compute_s: ArrayLike, t_memory_s: ArrayLike) -> FloatArray:
    """Share of a wavefront's memory time that the others' compute covers [1]:
    `eta = min(1, (N_wf - 1) * T_compute / T_memory)`. arXiv 2605.04178 Eq. (9). No memory time: 1."""
    others = at_least_one("n_wavefronts", n_wavefronts) - 1.0
    compute = non_negative("t_compute_s", t_compute_s)
    memory = non_negative("t_memory_s", t_memory_s)
    covered = others * compute
    return np.where(covered >= memory, 1.0, covered / np.where(memory > 0.0, memory, 1.0))


def memory_time_latency(
    n_loads: ArrayLike,
    h_l1: ArrayLike,
    h_l2: ArrayLike,
    h_llc: ArrayLike,
    l_l1_s: ArrayLike,
    l_l2_s: ArrayLike,
    l_llc_s: ArrayLike,
    l_hbm_s: ArrayLike,
) -> FloatArray:
    """Memory time as a latency sum [s]: `N_loads * [h1*L1 + (1-h1)*h2*L2 + (1-h1)(1-h2)*hLLC*LLLC + (1-h_total)*LHBM]`.
    arXiv 2605.04178 Eq. (10).

    `N_loads` counts loads that wait for each other. `h_total`, not defined there, is the share that hits anywhere, so
    `1 - h_total = (1-h1)(1-h2)(1-hLLC)`: the weights then add up to 1.
    """
    h1, h2, h3 = fraction("h_l1", h_l1), fraction("h_l2", h_l2), fraction("h_llc", h_llc)
    miss1, miss2 = 1.0 - h1, (1.0 - h1) * (1.0 - h2)
    latency = (
        h1 * non_negative("l_l1_s", l_l1_s)
        + miss1 * h2 * non_negative("l_l2_s", l_l2_s)
        + miss2 * h3 * non_negative("l_llc_s", l_llc_s)
        + miss2 * (1.0 - h3) * non_negative("l_hbm_s", l_hbm_s)
    )
    return non_negative("n_loads", n_loads) * latency


def memory_time_kernel(t_latency_s: ArrayLike, byte: ArrayLike, byte_per_s: ArrayLike) -> FloatArray:
    """Whole-kernel memory time [s]: the larger of the latency-bound and the bandwidth-bound form (Little's law)."""
    return np.maximum(
        non_negative("t_latency_s", t_latency_s), non_negative("byte", byte) / positive("byte_per_s", byte_per_s)
    )


def mfma_time(
    n_mfma: ArrayLike, n_cu: ArrayLike, mfma_per_s: ArrayLike, utilisation: ArrayLike
) -> FloatArray:
    """MFMA time [s]: `N_MFMA / (N_CU * Throughput_MFMA * Utilisation)`. arXiv 2605.04178 Eq. (11).

    `n_mfma` instructions of the whole device and `mfma_per_s` of one CU (or FLOP and FLOP/s: the ratio is the same).
    """
    return non_negative("n_mfma", n_mfma) / (
        at_least_one("n_cu", n_cu)
        * positive("mfma_per_s", mfma_per_s)
        * positive("utilisation", fraction("utilisation", utilisation))
    )


def step_time_printed(t_memory_s: ArrayLike, t_compute_s: ArrayLike, overlap: ArrayLike) -> FloatArray:
    """K-step [s] as printed: `(T_mem_eff + T_compute) / (1 + eta)`. arXiv 2605.04178 Eq. (12).

    At eta = 1 this is the mean of the two times, below the larger: it can beat the physical bound (see
    `step_time_guarded`). With eta from Eq. (9) it even falls when T_compute grows.
    """
    total = non_negative("t_memory_s", t_memory_s) + non_negative("t_compute_s", t_compute_s)
    return total / (1.0 + fraction("overlap", overlap))


def kernel_time_wavefront(
    t_launch_s: ArrayLike,
    k_tiles: ArrayLike,
    t_step_s: ArrayLike,
    t_writeback_s: ArrayLike = 0.0,
    t_coherence_s: ArrayLike = 0.0,
    t_cross_xcd_s: ArrayLike = 0.0,
    waves: ArrayLike = 1.0,
) -> FloatArray:
    """Kernel time [s]: `T_launch + waves * K_tiles * T_step + T_writeback + T_coherence + T_cross_XCD`.
    arXiv 2605.04178 Eq. (13).

    The wave term is missing in print: leave `waves=1` when `T_step` already counts the MFMA of the whole grid, as Eq.
    (11) with its N_CU does; give the waves when `T_step` is one workgroup's.
    """
    body = non_negative("waves", waves) * non_negative("k_tiles", k_tiles) * non_negative("t_step_s", t_step_s)
    return (
        non_negative("t_launch_s", t_launch_s)
        + body
        + non_negative("t_writeback_s", t_writeback_s)
        + non_negative("t_coherence_s", t_coherence_s)
        + non_negative("t_cross_xcd_s", t_cross_xcd_s)
    )


def tile_step_time(
    flop_per_cta: ArrayLike,
    byte_per_cta: ArrayLike,
    cu_flop_per_s: ArrayLike,
    cu_byte_per_s: ArrayLike,
) -> FloatArray:
    """One CTA [s]: `T_step_cta = max(flop_cta/peak, bytes_cta/BW_eff)`. arXiv 2605.04178, above Eq. (14).

    Peak and bandwidth are ONE CU's share (device rate / N_CU): Eq. (14) divides the sum over CTAs by N_CU, so device
    rates would count the CUs twice. `W_eff` is then 1 for a CU kept busy.
    """
    return np.maximum(
        non_negative("flop_per_cta", flop_per_cta) / positive("cu_flop_per_s", cu_flop_per_s),
        non_negative("byte_per_cta", byte_per_cta) / positive("cu_byte_per_s", cu_byte_per_s),
    )


def tile_kernel_time(
    n_cta: ArrayLike,
    t_step_cta_s: ArrayLike,
    n_cu: ArrayLike,
    w_eff: ArrayLike = 1.0,
    tau_cta_s: ArrayLike = 0.0,
    t_launch_s: ArrayLike = 0.0,
    t_writeback_s: ArrayLike = 0.0,
    t_coherence_s: ArrayLike = 0.0,
    t_cross_xcd_s: ArrayLike = 0.0,
) -> FloatArray:
    """Tile study [s]: `T_launch + tau_cta*N_cta + N_cta*T_step_cta/(N_CU*W_eff) + T_writeback + T_coherence +
    T_cross_XCD`. arXiv 2605.04178 Eq. (14); `T_step_cta` from `tile_step_time` (per-CU shares)."""
    ctas = non_negative("n_cta", n_cta)
    body = ctas * non_negative("t_step_cta_s", t_step_cta_s) / (at_least_one("n_cu", n_cu) * positive("w_eff", w_eff))
    return (
        non_negative("t_launch_s", t_launch_s)
        + non_negative("tau_cta_s", tau_cta_s) * ctas
        + body
        + non_negative("t_writeback_s", t_writeback_s)
        + non_negative("t_coherence_s", t_coherence_s)
        + non_negative("t_cross_xcd_s", t_cross_xcd_s)
    )


def occupancy_printed(vgpr_per_wavefront: ArrayLike) -> FloatArray:
    """Wavefronts per CU as printed: `min(32, floor(65536 / VGPR_per_wf))`. arXiv 2605.04178, below Eq. (9).

    The units that make it right: `VGPR_per_wf` is the 32-bit registers of a whole wavefront (64 lanes x registers per
    lane). 65536 is only the architectural half of a CDNA2/3 unit: 4 SIMDs x 512 registers x 64 lanes are 131072, so
    where registers bind this gives half of what the hardware keeps resident (`waves_per_simd`).
    """
    wanted = positive("vgpr_per_wavefront", vgpr_per_wavefront)
    return np.minimum(PRINTED_MAX_WAVES, np.floor(PRINTED_REGISTERS / wanted))


def effective_wavefronts(n_active: ArrayLike, mwp: ArrayLike = 0.0, cwp: ArrayLike = 0.0) -> FloatArray:
    """`N_wf_eff = min(N_wf_active, MWP, CWP)`; a limit of 0 is not set. arXiv 2605.04178 section IV.B; Hong & Kim
    2009."""
    active = non_negative("n_active", n_active)
    for name, limit in (("mwp", mwp), ("cwp", cwp)):
        value = non_negative(name, limit)
        active = np.minimum(active, np.where(value > 0.0, value, np.inf))
    return active
