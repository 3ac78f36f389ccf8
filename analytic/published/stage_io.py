"""The stage-centric model's input side: TMA copies, decompression, synchronisation and their overlap.

arXiv 2605.04178 Eq. (4), (5), (7).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..cachemodel import bandwidth_harmonic
from ..errors import InputError
from ..validity import FloatArray, Validity, at_least_one, fraction, non_negative, positive

IO_VALIDITY = (
    Validity("alpha", 0.85, 0.95, "1"),  # double to triple buffering
    Validity("n_barriers", 1, 2, "1"),
    Validity("participants", 1, 16, "1"),  # largest cluster on Hopper and Blackwell
    Validity("compression_ratio", 1.0, 245.45, "1"),  # patterns measured in arXiv 2512.02189
    Validity("efficiency", 0.0, 1.0, "1"),
    Validity("tile_byte", 0.0, 232448.0, "B"),  # what one SM's shared memory holds
    Validity("l_tma_s", 0.0, 1e-6, "s"),  # 420 cycles printed, 658 to 860 measured
)


def tma_time(
    tile_byte: ArrayLike, tma_byte_per_s: ArrayLike, l_tma_s: ArrayLike, participants: ArrayLike = 1.0
) -> FloatArray:
    """TMA time of a tile for one CTA [s]: `L_TMA + bytes(T) / (P * B_TMA)`. arXiv 2605.04178 Eq. (4).

    `participants` P CTAs share the tile by multicast; `B_TMA` depends on L2 residency (`tma_bandwidth`).
    """
    return non_negative("l_tma_s", l_tma_s) + non_negative("tile_byte", tile_byte) / (
        at_least_one("participants", participants) * positive("tma_byte_per_s", tma_byte_per_s)
    )


def tma_bandwidth(
    h_l2: ArrayLike, l2_byte_per_s: ArrayLike, hbm_byte_per_s: ArrayLike
) -> FloatArray:
    """B_TMA of arXiv 2605.04178 Eq. (4) [B/s] when the share `h_l2` of the loads is found in L2 ("L2 hit rates strongly
    affect B_TMA"): the times of hits and misses add. Both rates are one SM's."""
    return bandwidth_harmonic(h_l2, l2_byte_per_s, hbm_byte_per_s)


def tma_time_operands(
    a_tile_byte: ArrayLike,
    b_tile_byte: ArrayLike,
    tma_byte_per_s: ArrayLike,
    l_tma_s: ArrayLike,
    participants_a: ArrayLike = 1.0,
    participants_b: ArrayLike = 1.0,
    order: str = "serial",
) -> FloatArray:
    """TMA time of the A and B tiles with their own P [s]: Eq. (4) of arXiv 2605.04178 per operand, summed when `order`
    is "serial", the larger when "overlapped"."""
    combine = {"serial": np.add, "overlapped": np.maximum}
    if order not in combine:
        raise InputError(f"TMA order {order!r}: serial or overlapped")
    return combine[order](
        tma_time(a_tile_byte, tma_byte_per_s, l_tma_s, participants_a),
        tma_time(b_tile_byte, tma_byte_per_s, l_tma_s, participants_b),
    )


def decompression_load_time(
    uncompressed_byte: ArrayLike,
    compression_ratio: ArrayLike,
    link_byte_per_s: ArrayLike,
    efficiency: ArrayLike = 1.0,
) -> FloatArray:
    """Load of compressed data bound by the link [s]: `D_uncompressed / (CR * BW_link * eta_DE)`.
    arXiv 2605.04178 Eq. (5)."""
    return non_negative("uncompressed_byte", uncompressed_byte) / (
        positive("compression_ratio", compression_ratio)
        * positive("link_byte_per_s", link_byte_per_s)
        * positive("efficiency", fraction("efficiency", efficiency))
    )


def decompression_engine_time(
    compressed_byte: ArrayLike, link_byte_per_s: ArrayLike, engine_input_byte_per_s: ArrayLike
) -> FloatArray:
    """Load of compressed data by link or engine, the slower [s]: `max(D_c/BW_link, D_c/R_DE)`. arXiv 2605.04178,
    unnumbered form above Eq. (5). `R_DE` counts input bytes; see `engine_input_rate`."""
    compressed = non_negative("compressed_byte", compressed_byte)
    return np.maximum(
        compressed / positive("link_byte_per_s", link_byte_per_s),
        compressed / positive("engine_input_byte_per_s", engine_input_byte_per_s),
    )


def engine_input_rate(engine_output_byte_per_s: ArrayLike, compression_ratio: ArrayLike) -> FloatArray:
    """Input rate of a decompression engine bound by its output [B/s]: `R_out / CR`. arXiv 2512.02189 Table II: 170 to
    220 GB/s out whatever the ratio, so the rate in falls as 1/CR."""
    return positive("engine_output_byte_per_s", engine_output_byte_per_s) / positive(
        "compression_ratio", compression_ratio
    )


def unpack_time(compressed_byte: ArrayLike, unpack_byte_per_s: ArrayLike, l_setup_s: ArrayLike = 0.0) -> FloatArray:
    """Sub-byte unpacking [s]: `T_decomp = bytes_comp / R_decomp + L_decomp_setup`. arXiv 2605.04178 section IV.A.3."""
    return non_negative("compressed_byte", compressed_byte) / positive(
        "unpack_byte_per_s", unpack_byte_per_s
    ) + non_negative("l_setup_s", l_setup_s)


def sync_time(n_barriers: ArrayLike, l_mbar_s: ArrayLike) -> FloatArray:
    """Synchronisation of a K-step [s]: `T_sync = N_bar * L_mbar`, 1 or 2 barriers. arXiv 2605.04178 section IV.A.3."""
    return non_negative("n_barriers", n_barriers) * non_negative("l_mbar_s", l_mbar_s)


def io_time_effective(
    t_tma_s: ArrayLike, t_decomp_s: ArrayLike, t_sync_s: ArrayLike, alpha: ArrayLike
) -> FloatArray:
    """Input time a K-step cannot hide [s]: `(1 - alpha)*(T_tma + T_decomp) + T_sync`. arXiv 2605.04178 Eq. (7).

    `alpha` is the hidden fraction (0.85 to 0.95 for double to triple buffering). Note: the hidden part is not checked
    against the copy bandwidth, so with alpha near 1 the form promises loads faster than the L2 delivers; the default
    GEMM path therefore also applies whole-kernel bandwidth limits.
    """
    hidden = fraction("alpha", alpha)
    copies = non_negative("t_tma_s", t_tma_s) + non_negative("t_decomp_s", t_decomp_s)
    return (1.0 - hidden) * copies + non_negative("t_sync_s", t_sync_s)
