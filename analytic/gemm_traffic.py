"""Bytes a tiled matrix product moves over each boundary, and the time the bandwidths ask for them.

Boundaries: HBM to the last cache, LLC to L2 (where there is an LLC), L2 to the compute units. Each is non-decreasing in
m, n, k and batch: the adaptive minimum over tiles then is, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .cachemodel import knee_hit_rate
from .gemm_tiles import Machine, Tiles
from .validity import FloatArray
from .waves import ceil_div


@dataclass(frozen=True)
class Traffic:
    """Bytes by boundary, shape (candidates, rows)."""

    compulsory_byte: FloatArray
    hbm_byte: FloatArray
    llc_byte: FloatArray
    l2_byte: FloatArray
    cached_share: FloatArray
    """Share of the compulsory bytes found in the last cache before HBM."""


def gemm_traffic(
    machine: Machine,
    tiles: Tiles,
    m: FloatArray,
    n: FloatArray,
    k: FloatArray,
    batch: FloatArray,
    element: float,
    out_byte: float,
    cache: str,
) -> Traffic:
    """Traffic of every candidate for every row.

    Compulsory: A and B read once, C written once. Re-reads: the tiles in flight form a near-square block of
    `g_m x g_n`, whose panels are loaded once per block; with h(W) of the operands in cache that part stays there.
    Warm: compulsory bytes come from the cache as far as the whole footprint fits.
    """
    a, b, c = m * k * element * batch, n * k * element * batch, m * n * out_byte * batch
    m_tiles, n_tiles = ceil_div(m, tiles.tile_m), ceil_div(n, tiles.tile_n)
    in_flight = np.maximum(machine.units / machine.partitions / tiles.split, 1.0)
    g_m = np.maximum(np.floor(np.sqrt(in_flight * tiles.tile_n / tiles.tile_m)), 1.0)
    g_n = np.maximum(np.floor(in_flight / g_m), 1.0)
    reread = a * (ceil_div(n_tiles, g_n) - 1.0) + b * (ceil_div(m_tiles, g_m) - 1.0)
    compulsory = np.broadcast_to(a + b + c, reread.shape)
    operands = (m + n) * k * element  # of one problem: what a later block of tiles would find again
    resident = knee_hit_rate(operands, machine.cache_start_byte, machine.cache_end_byte)
    footprint = knee_hit_rate(a + b + c, machine.cache_start_byte, machine.cache_end_byte)
    cached = np.zeros_like(footprint) if cache == "cold" else footprint
    in_l2 = knee_hit_rate(operands, machine.l2_start_byte, machine.l2_end_byte)
    # split-K writes every partial tile in 4 bytes and reads it back once
    partial = np.where(tiles.split > 1.0, 2.0 * tiles.split * 4.0 * m * n * batch, 0.0)
    return Traffic(
        compulsory_byte=compulsory,
        hbm_byte=compulsory * (1.0 - cached) + reread * (1.0 - resident),
        llc_byte=compulsory + reread * (1.0 - in_l2) + partial,
        l2_byte=a * n_tiles + b * ceil_div(m_tiles, machine.multicast) + c + partial,
        cached_share=np.broadcast_to(cached, reread.shape),
    )


def traffic_time(machine: Machine, traffic: Traffic) -> FloatArray:
    """Time [s] the slowest boundary needs; the levels work at the same time."""
    slowest = np.maximum(traffic.hbm_byte / machine.hbm_byte_per_s, traffic.l2_byte / machine.l2_byte_per_s)
    if machine.llc_byte_per_s > 0.0:
        slowest = np.maximum(slowest, traffic.llc_byte / machine.llc_byte_per_s)
    return slowest


def bound_time(machine: Machine, traffic: Traffic, flop: FloatArray) -> FloatArray:
    """Physical bound [s]: logical FLOP at the dense peak, or the compulsory bytes not in cache at the peak HBM rate."""
    from_hbm = traffic.compulsory_byte * (1.0 - traffic.cached_share)
    return np.maximum(flop / machine.peak_flop_per_s, from_hbm / machine.hbm_peak_byte_per_s)
