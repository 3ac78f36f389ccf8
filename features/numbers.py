"""Numbers that describe how a size meets the machine: alignment, padding to a tile, the tail of a last wave."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..analytic.work import FloatArray

_TINY = 1e-30


def log2(x: Any) -> FloatArray:
    """log₂, with zero taken as a number far below anything that occurs."""
    return np.asarray(np.log2(np.maximum(np.asarray(x, dtype=np.float64), _TINY)))


def alignment_log2(size: FloatArray, byte: float, cap: float = 7.0) -> FloatArray:
    """log₂ of the largest power of two that divides size · byte, at most `cap` (2⁷ B: a cache line)."""
    whole = np.where(np.isfinite(size), np.maximum(np.round(size * byte), 1.0), 1.0).astype(np.int64)
    lowest = (whole & -whole).astype(np.float64)
    return np.asarray(np.minimum(np.log2(lowest), cap))


def padding_log2(size: FloatArray, tile: float | FloatArray) -> FloatArray:
    """log₂ of padded over given size for a tile edge: 0 where it divides, 1 where half of the work is padding."""
    return np.asarray(np.log2(np.ceil(size / tile) * tile / size))


def tail(units: FloatArray, slots: float) -> FloatArray:
    """How much longer a quantised number of waves takes than a smooth one: ceil(u/s) ÷ (u/s), as log₂, at most 6."""
    waves = np.maximum(units / slots, _TINY)
    return np.asarray(np.minimum(np.log2(np.ceil(waves) / waves), 6.0))


