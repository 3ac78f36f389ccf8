"""The K steps of a matrix product, one after the other: what a kernel costs that neither splits K nor looks ahead."""

from __future__ import annotations

import numpy as np

from .gemm_tiles import K_STEP_BYTE, Machine
from .stage import compute_time
from .validity import FloatArray
from .waves import cta_count, k_tile_count, wave_count
from .work import element_byte

TILE_M = (16.0, 32.0, 64.0, 128.0, 256.0)
TILE_N = (64.0, 128.0, 256.0)
"""Edges of the tiles that tuned libraries choose from, down to those for a few rows."""


def serial_time(mach: Machine, m: FloatArray, n: FloatArray, k: FloatArray, batch: FloatArray, precision: str
                ) -> FloatArray:  # fmt: skip
    """Waves x K steps x the longer of one memory latency and one step's arithmetic [s], of the tile with the least.

    Little's law (1961) with one step in flight: a unit waits for the operands of each step. Libraries look further
    ahead, so this is no part of the analytic time; a calibration tells how much of it a library pays. m, n, k, batch
    and the result have shape (n,); non-decreasing in each of them.
    """
    step_k = K_STEP_BYTE / element_byte(precision)
    tile_m, tile_n = (edges.reshape(-1, 1) for edges in np.meshgrid(TILE_M, TILE_N))
    waves = wave_count(cta_count(m, n, tile_m, tile_n, batch), mach.units)
    step = np.maximum(mach.latency_s, compute_time(tile_m, tile_n, step_k, mach.unit_flop_per_s))
    return np.asarray((waves * k_tile_count(k, step_k) * step).min(axis=0))
