"""Bank conflicts: the optional LDS term of arXiv 2605.04178 section IV.B."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..validity import FloatArray, at_least_one, non_negative, positive

LDS_BANKS = 32.0
LDS_BANK_BYTE = 4.0


def lds_conflict_degree(
    stride_byte: ArrayLike, banks: ArrayLike = LDS_BANKS, bank_byte: ArrayLike = LDS_BANK_BYTE
) -> FloatArray:
    """Accesses one bank serves in turn when lanes step by `stride_byte`: `gcd(stride in banks, banks)`; stride 0 is a
    broadcast (1). The optional LDS term of arXiv 2605.04178 section IV.B."""
    words = np.rint(non_negative("stride_byte", stride_byte) / positive("bank_byte", bank_byte)).astype(np.int64)
    count = np.rint(positive("banks", banks)).astype(np.int64)
    return np.where(words == 0, 1, np.gcd(words, count)).astype(np.float64)


def lds_time(byte: ArrayLike, lds_byte_per_s: ArrayLike, conflict_degree: ArrayLike = 1.0) -> FloatArray:
    """LDS time [s]: conflict-free time times the conflict degree."""
    return (
        non_negative("byte", byte)
        / positive("lds_byte_per_s", lds_byte_per_s)
        * at_least_one("conflict_degree", conflict_degree)
    )
