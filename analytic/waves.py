"""Tiles, waves and the tail: how a grid of CTAs falls on the compute units.

arXiv 2605.04178 prints `K_tiles * T_step` as a kernel's time, which is the time of one CTA. A grid takes that once per
wave, `waves = ceil(CTAs / (units * CTAs_per_unit))`; without it the paper's own example does not add up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .validity import FloatArray, at_least_one, non_negative


def ceil_div(count: ArrayLike, size: ArrayLike) -> FloatArray:
    """`ceil(count / size)` as float64; `count >= 0`, `size >= 1`."""
    return np.ceil(non_negative("count", count) / at_least_one("size", size))


def k_tile_count(k: ArrayLike, tile_k: ArrayLike) -> FloatArray:
    """K-steps of one tile: `K_tiles = ceil(K / bK)`. arXiv 2605.04178 section IV.A."""
    return ceil_div(k, tile_k)


def cta_count(m: ArrayLike, n: ArrayLike, tile_m: ArrayLike, tile_n: ArrayLike, batch: ArrayLike = 1.0) -> FloatArray:
    """CTAs of an m x n output cut in tiles, times `batch` independent problems."""
    return ceil_div(m, tile_m) * ceil_div(n, tile_n) * at_least_one("batch", batch)


def wave_count(ctas: ArrayLike, units: ArrayLike, ctas_per_unit: ArrayLike = 1.0) -> FloatArray:
    """Waves of a grid, the partly filled last one included: `ceil(CTAs / (units * CTAs_per_unit))`."""
    return ceil_div(ctas, at_least_one("units", units) * at_least_one("ctas_per_unit", ctas_per_unit))


def full_waves(ctas: ArrayLike, units: ArrayLike, ctas_per_unit: ArrayLike = 1.0) -> FloatArray:
    """Waves a grid would take if the last one could be shared out evenly: `CTAs / (units * CTAs_per_unit)`."""
    slots = at_least_one("units", units) * at_least_one("ctas_per_unit", ctas_per_unit)
    return non_negative("ctas", ctas) / slots
