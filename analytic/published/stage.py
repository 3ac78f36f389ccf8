"""The stage-centric model as printed: Eq. (2), (6), (8) of arXiv 2605.04178 and the kernel time under it.

Eq. (3), which our form shares, is in `analytic.stage`; Eq. (4), (5) and (7) are in `stage_io`. Without tensor memory
(Hopper: accumulators in registers) `d_accum_byte` is 0, so every TMEM term is 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..stage import compute_time
from ..validity import FloatArray, Validity, at_least_one, non_negative, positive

TMEM_CAPACITY_BYTE = 262144.0  # 256 KiB per SM: 512 columns x 128 lanes x 4 B
TWO_SM_SPEEDUP_MEASURED = 1.28  # arXiv 2605.04178 section V

TMEM_VALIDITY = (
    Validity("d_accum_byte", 0.0, TMEM_CAPACITY_BYTE, "B"),
    Validity("read_byte_per_s", 1e11, 2.6e13, "B/s"),  # 16 TB/s a SM as printed, 24 to 26 in tuned kernels
    Validity("write_byte_per_s", 1e11, 2.6e13, "B/s"),
    Validity("l_mma_s", 0.0, 128 / 1.0e9, "s"),  # 11 to 14 cycles on Blackwell, up to 128 on Hopper
)
STEP_VALIDITY = (
    Validity("n_barriers", 1, 2, "1"),
    Validity("k_tiles", 1, 1e5, "1"),
    Validity("t_sync_s", 0.0, 100e-9, "s"),  # one or two barriers of 40 to 50 cycles
    Validity("o_misc_s", 0.0, 1e-6, "s"),  # bubbles and bookkeeping: less than one memory latency
)


def tmem_time(
    d_accum_byte: ArrayLike, read_byte_per_s: ArrayLike, write_byte_per_s: ArrayLike, l_mma_s: ArrayLike
) -> FloatArray:
    """TMEM time of one K-step [s]: `D/BW_read + D/BW_write + L_mma`. arXiv 2605.04178 Eq. (2).

    `d_accum_byte` is what one SM moves in the step; the bandwidths are one SM's (the only reading of "16/8 TB/s" under
    which the equation is not absurd). An accumulator that stays in TMEM over the K loop moves once per tile: pass
    `D / K_tiles`.
    """
    moved = non_negative("d_accum_byte", d_accum_byte)
    return (
        moved / positive("read_byte_per_s", read_byte_per_s)
        + moved / positive("write_byte_per_s", write_byte_per_s)
        + non_negative("l_mma_s", l_mma_s)
    )


def tmem_traffic_per_step(
    d_accum_byte: ArrayLike, a_tile_byte: ArrayLike, strategy: str = "A"
) -> FloatArray:
    """TMEM bytes of a K-step for `tmem_time`: strategy "B" also moves the A tile through TMEM (tcgen05.cp; the paper
    prints "tcgen08.cp", which does not exist)."""
    extra = {"A": 0.0, "B": 1.0}
    if strategy not in extra:
        raise InputError(f"TMEM strategy {strategy!r}: A (accumulators only) or B (A operand and accumulators)")
    return non_negative("d_accum_byte", d_accum_byte) + extra[strategy] * non_negative("a_tile_byte", a_tile_byte)


def tmem_management_time(l_alloc_s: ArrayLike, l_dealloc_s: ArrayLike, k_tiles: ArrayLike) -> FloatArray:
    """Amortised TMEM management per K-step [s]: `(L_alloc + L_dealloc) / K_tiles`. arXiv 2605.04178 section IV.A.5."""
    return (non_negative("l_alloc_s", l_alloc_s) + non_negative("l_dealloc_s", l_dealloc_s)) / at_least_one(
        "k_tiles", k_tiles
    )


def compute_time_2sm(
    tile_m: ArrayLike,
    tile_n: ArrayLike,
    tile_k: ArrayLike,
    sm_flop_per_s: ArrayLike,
    s_2sm: ArrayLike = TWO_SM_SPEEDUP_MEASURED,
    t_tmem_s: ArrayLike = 0.0,
    t_tmem_mgmt_s: ArrayLike = 0.0,
) -> FloatArray:
    """Tensor-core time of one K-step on a CTA pair [s]: Eq. (3) with `S_2SM`. arXiv 2605.04178 Eq. (6).

    The paper measures 1.28 (its model: 1.30) for a tile that one SM would otherwise compute alone.
    """
    return compute_time(tile_m, tile_n, tile_k, sm_flop_per_s, s_2sm, t_tmem_s, t_tmem_mgmt_s)


def pair_traffic(m_a_byte: ArrayLike, m_b_byte: ArrayLike) -> FloatArray:
    """Bytes a CTA pair loads per step: `D_2CTA = 2*M_A + M_B` (B shared through DSMEM). arXiv 2605.04178 section
    IV.A.4; without pairing it is `2*(M_A + M_B)`."""
    return 2.0 * non_negative("m_a_byte", m_a_byte) + non_negative("m_b_byte", m_b_byte)


def pair_memory_time(m_a_byte: ArrayLike, m_b_byte: ArrayLike, shared_byte_per_s: ArrayLike) -> FloatArray:
    """Memory time of a CTA pair's step [s]: `(2*M_A + M_B) / BW_shared`. arXiv 2605.04178 section IV.A.4."""
    return pair_traffic(m_a_byte, m_b_byte) / positive("shared_byte_per_s", shared_byte_per_s)


def pair_sync_time(k_tiles: ArrayLike, l_commit_s: ArrayLike) -> FloatArray:
    """Commit cost of a CTA pair over its K loop [s]: `K_tiles * L_commit`. arXiv 2605.04178 section IV.A.4."""
    return non_negative("k_tiles", k_tiles) * non_negative("l_commit_s", l_commit_s)


def step_time(
    t_compute_s: ArrayLike,
    t_io_eff_s: ArrayLike,
    t_sync_s: ArrayLike = 0.0,
    o_misc_s: ArrayLike = 0.0,
    *,
    count_sync_twice: bool = False,
) -> FloatArray:
    """One K-step [s]: `max(T_compute, T_io_eff) + T_sync + O_misc`. arXiv 2605.04178 Eq. (8).

    `T_sync` is already inside `T_io_eff` of Eq. (7), so as printed it counts twice. `count_sync_twice=False` (default)
    counts it once, where Eq. (7) has it and where MMA work can hide it; this is also the paper's own section IV.C form.
    """
    step = np.maximum(non_negative("t_compute_s", t_compute_s), non_negative("t_io_eff_s", t_io_eff_s))
    again = non_negative("t_sync_s", t_sync_s) if count_sync_twice else 0.0 * non_negative("t_sync_s", t_sync_s)
    return step + again + non_negative("o_misc_s", o_misc_s)


def step_time_pipelined(
    t_tma_s: ArrayLike,
    t_decomp_s: ArrayLike,
    t_compute_s: ArrayLike,
    t_sync_s: ArrayLike,
    epsilon_s: ArrayLike = 0.0,
) -> FloatArray:
    """Steady state of a full pipeline [s]: `max(T_tma, T_decomp, T_compute, T_sync) + eps`. arXiv 2605.04178 section
    IV.A.5 (above Eq. 8)."""
    stages = np.maximum(
        np.maximum(non_negative("t_tma_s", t_tma_s), non_negative("t_decomp_s", t_decomp_s)),
        np.maximum(non_negative("t_compute_s", t_compute_s), non_negative("t_sync_s", t_sync_s)),
    )
    return stages + non_negative("epsilon_s", epsilon_s)


def kernel_time(
    t_launch_s: ArrayLike,
    k_tiles: ArrayLike,
    t_step_s: ArrayLike,
    t_sync_s: ArrayLike = 0.0,
    t_writeback_s: ArrayLike = 0.0,
    waves: ArrayLike = 1.0,
    *,
    persistent: bool = True,
) -> FloatArray:
    """Kernel time [s]: `T_launch + waves * K_tiles * T_step + T_sync + T_writeback`. arXiv 2605.04178 sections IV.A.5
    and IV.C, with the wave term the paper leaves out (`waves=1` is the printed, one-CTA form).

    `persistent=True`: closing sync and store of every tile but the last hide behind the next tile. Otherwise each wave
    pays both.
    """
    count = non_negative("waves", waves)
    body = count * non_negative("k_tiles", k_tiles) * non_negative("t_step_s", t_step_s)
    closing = non_negative("t_sync_s", t_sync_s) + non_negative("t_writeback_s", t_writeback_s)
    return non_negative("t_launch_s", t_launch_s) + body + closing * (1.0 if persistent else np.maximum(count, 1.0))


def store_time(c_tile_byte: ArrayLike, gmem_byte_per_s: ArrayLike, l_store_setup_s: ArrayLike = 0.0) -> FloatArray:
    """Plain store of an output tile [s]: `bytes(C)/B_gmem + L_store_setup`. arXiv 2605.04178 section IV.A.5."""
    return non_negative("c_tile_byte", c_tile_byte) / positive("gmem_byte_per_s", gmem_byte_per_s) + non_negative(
        "l_store_setup_s", l_store_setup_s
    )


def tma_store_time(c_tile_byte: ArrayLike, tma_byte_per_s: ArrayLike, l_tma_store_s: ArrayLike = 0.0) -> FloatArray:
    """TMA store of an output tile [s]: `L_TMA_store + bytes(C)/B_TMA`. arXiv 2605.04178 section IV.A.5."""
    return non_negative("l_tma_store_s", l_tma_store_s) + non_negative("c_tile_byte", c_tile_byte) / positive(
        "tma_byte_per_s", tma_byte_per_s
    )
