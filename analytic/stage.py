"""The stage-centric model (Blackwell; older parts by parameters): Eq. (3) of arXiv 2605.04178, and what fits an SM.

Eqs. (2), (4)-(8) as printed are in `published.stage` and `published.stage_io`.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from .errors import InputError
from .validity import BoolArray, FloatArray, Validity, at_least_one, non_negative, positive

COMPUTE_VALIDITY = (
    Validity("tile_m", 16, 256, "element"),
    Validity("tile_n", 8, 256, "element"),
    Validity("tile_k", 8, 512, "element"),
    Validity("s_mode", 1.0, 2.0, "1"),
    Validity("s_2sm", 1.0, 2.0, "1"),  # measured 1.28; two SMs can do no more than twice the work of one
    Validity("l_mma_s", 0.0, 128 / 1.0e9, "s"),
)


def tmem_demand(
    tile_m: ArrayLike,
    tile_n: ArrayLike,
    tile_k: ArrayLike,
    accumulator_byte: ArrayLike,
    operand_byte: ArrayLike,
    strategy: str = "A",
    buffers: ArrayLike = 1.0,
) -> FloatArray:
    """Tensor memory a CTA needs [B]. Strategy "A": accumulators only; "B": the A operand of a step as well
    (arXiv 2605.04178 section IV.A.1). `buffers` accumulators are kept (2 hide the epilogue of a persistent kernel)."""
    accumulators = at_least_one("buffers", buffers) * positive("tile_m", tile_m) * positive("tile_n", tile_n)
    a_operand = {"A": 0.0, "B": 1.0}
    if strategy not in a_operand:
        raise InputError(f"TMEM strategy {strategy!r}: A (accumulators only) or B (A operand and accumulators)")
    return accumulators * positive("accumulator_byte", accumulator_byte) + a_operand[strategy] * positive(
        "tile_m", tile_m
    ) * positive("tile_k", tile_k) * positive("operand_byte", operand_byte)


def smem_per_step(
    tile_m: ArrayLike, tile_n: ArrayLike, tile_k: ArrayLike, operand_byte: ArrayLike, strategy: str = "A"
) -> FloatArray:
    """Shared memory one K-step's operands take [B]: A and B tiles, or with strategy "B" the B tile only, since the A
    operand is in tensor memory (arXiv 2605.04178 section IV.A.1: "reduces SMEM pressure")."""
    a_operand = {"A": 1.0, "B": 0.0}
    if strategy not in a_operand:
        raise InputError(f"TMEM strategy {strategy!r}: A (accumulators only) or B (A operand and accumulators)")
    rows = a_operand[strategy] * positive("tile_m", tile_m) + positive("tile_n", tile_n)
    return rows * positive("tile_k", tile_k) * positive("operand_byte", operand_byte)


def compute_time(
    tile_m: ArrayLike,
    tile_n: ArrayLike,
    tile_k: ArrayLike,
    sm_flop_per_s: ArrayLike,
    s_mode: ArrayLike = 1.0,
    t_tmem_s: ArrayLike = 0.0,
    t_tmem_mgmt_s: ArrayLike = 0.0,
) -> FloatArray:
    """Tensor-core time of one K-step [s]: `2*bM*bN*bK / (R_TC_SM * S_mode) + T_TMEM + T_TMEM_mgmt`.
    arXiv 2605.04178 Eq. (3). `sm_flop_per_s` is one SM's rate for the precision."""
    flop = 2.0 * positive("tile_m", tile_m) * positive("tile_n", tile_n) * positive("tile_k", tile_k)
    return (
        flop / (positive("sm_flop_per_s", sm_flop_per_s) * positive("s_mode", s_mode))
        + non_negative("t_tmem_s", t_tmem_s)
        + non_negative("t_tmem_mgmt_s", t_tmem_mgmt_s)
    )


def register_accumulators_fit(
    tile_m: ArrayLike,
    tile_n: ArrayLike,
    accumulator_byte: ArrayLike,
    registers_per_unit: ArrayLike,
    share: float = 0.75,
) -> BoolArray:
    """True where an accumulator tile held in registers (Hopper and older) leaves room for operands and addresses: at
    most `share` of the unit's 32-bit registers."""
    needed = positive("tile_m", tile_m) * positive("tile_n", tile_n) * positive("accumulator_byte", accumulator_byte)
    return needed / 4.0 <= share * positive("registers_per_unit", registers_per_unit)
