"""Bank conflicts: the optional LDS term of arXiv 2605.04178 section IV.B."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..validity import FloatArray, at_least_one, non_negative, positive


def lds_time(byte: ArrayLike, lds_byte_per_s: ArrayLike, conflict_degree: ArrayLike = 1.0) -> FloatArray:
    """LDS time [s]: conflict-free time times the conflict degree."""
    return (
        non_negative("byte", byte)
        / positive("lds_byte_per_s", lds_byte_per_s)
        * at_least_one("conflict_degree", conflict_degree)
    )
