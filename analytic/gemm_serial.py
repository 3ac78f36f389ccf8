"""The K steps of a matrix product, one after the other: what a kernel costs that neither splits K nor looks ahead."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .gemm_tiles import K_STEP_BYTE, Machine
from .stage import compute_time
from .validity import FloatArray
from .waves import cta_count, k_tile_count, wave_count
from .work import element_byte

TILE_M = (16.0, 32.0, 64.0, 128.0, 256.0)
TILE_N = (64.0, 128.0, 256.0)
"""Edges of the tiles that tuned libraries choose from, down to those for a few rows."""
SHAPES = ((16, 64), (32, 64), (64, 64), (64, 128), (128, 128))
"""Tiles whose own time is worth a column: which of them is taken changes with the rows."""


def tile_time(mach: Machine, tile_m: ArrayLike, tile_n: ArrayLike, m: FloatArray, n: FloatArray, k: FloatArray,
              batch: FloatArray, precision: str) -> FloatArray:
    """Waves x K steps x the longer of one memory latency and one step's arithmetic [s], of a given tile.

    Little's law (1961) with one step in flight: a unit waits for the operands of each step. Libraries look further
    ahead, so this is no part of the analytic time; a calibration tells how much of it a library pays. m, n, k, batch
    have shape (n,), tiles (t, 1) or scalars; non-decreasing in each of m, n, k and batch.
    """
    step_k = K_STEP_BYTE / element_byte(precision)
    waves = wave_count(cta_count(m, n, tile_m, tile_n, batch), mach.units)
    step = np.maximum(mach.latency_s, compute_time(tile_m, tile_n, step_k, mach.unit_flop_per_s))
    return np.asarray(waves * k_tile_count(k, step_k) * step)


def serial_times(mach: Machine, m: FloatArray, n: FloatArray, k: FloatArray, batch: FloatArray, precision: str
                 ) -> dict[str, FloatArray]:
    """`rounds_s`: `tile_time` of the tile with the least; `serial_16x64_s` …: that of each of SHAPES; shapes (n,)."""
    tile_m, tile_n = (edges.reshape(-1, 1) for edges in np.meshgrid(TILE_M, TILE_N))
    least = tile_time(mach, tile_m, tile_n, m, n, k, batch, precision).min(axis=0)
    each = {f"serial_{tm}x{tn}_s": tile_time(mach, tm, tn, m, n, k, batch, precision) for tm, tn in SHAPES}
    return {"rounds_s": np.asarray(least), **each}
