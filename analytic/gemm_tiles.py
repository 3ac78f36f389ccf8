"""Candidate tiles of a matrix product and what a platform offers one tile: the inputs of the GEMM paths.

A candidate is (tile_m, tile_n, tile_k, split): the K loop of a tile may be split over `split` CTAs (split-K).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .cachemodel import KNEE_END_PER_CAPACITY, KNEE_START_PER_CAPACITY
from .errors import InputError
from .platform import Platform
from .validity import FloatArray
from .work import element_byte

# Output element where it is not the operand's type: low precisions accumulate to 2 bytes, integers to 4.
OUTPUT_BYTE = {"fp8": 2.0, "fp6": 2.0, "fp4": 2.0, "int8": 4.0}
ACCUMULATOR_BYTE = {"fp64": 8.0}  # every other precision accumulates in 4 bytes
K_STEP_BYTE = 128.0  # one swizzled shared-memory row: the K depth libraries step by
SPLITS = (1, 2, 4, 8, 16)

STAGE_TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (64, 32))
WAVEFRONT_TILES = ((256, 256), (256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (32, 32), (16, 16))
ROUTE_TILES = {"stage": STAGE_TILES, "wavefront": WAVEFRONT_TILES}
VECTOR_TILES = ((128, 128), (128, 64), (64, 128), (64, 64), (64, 32), (32, 32))

# Model constants that no parameter file holds (assumed; sources in the comments).
PORT_BYTE_PER_CYCLE = 64.0  # L2 to SM/CU port, both vendors: 64 B per clock (public microbenchmarks of both)
MAX_STAGES = 4  # shared-memory stages of common GEMM pipelines
KERNEL_TRIPS = 2.0  # memory round trips beside the first operands: arguments and descriptors, then the drained output
OVERLAP_ALPHA = 0.9  # middle of 0.85 to 0.95, arXiv 2605.04178 section IV.A.3, where a platform sets none


def output_byte(precision: str) -> float:
    """Bytes of one output element."""
    return OUTPUT_BYTE.get(precision, element_byte(precision))


def accumulator_byte(precision: str) -> float:
    """Bytes of one accumulator."""
    return ACCUMULATOR_BYTE.get(precision, 4.0)


def default_tile_k(precision: str) -> int:
    """K depth of a step: the power of two that fills 128 bytes of the operand (64 at 2 bytes, 16 at 8, 128 at 0.75)."""
    return int(2 ** math.floor(math.log2(K_STEP_BYTE / element_byte(precision))))


@dataclass(frozen=True)
class Tiles:
    """Candidates as columns of shape (candidates, 1)."""

    tile_m: FloatArray
    tile_n: FloatArray
    tile_k: FloatArray
    split: FloatArray

    def keep(self, fits: np.ndarray) -> Tiles:
        """Only the candidates where `fits` (shape (candidates, 1) or (candidates,)) is True."""
        rows = np.ravel(fits)
        return Tiles(self.tile_m[rows], self.tile_n[rows], self.tile_k[rows], self.split[rows])


def columns(rows: list[tuple[float, float, float, float]]) -> Tiles:
    """Candidates given as (tile_m, tile_n, tile_k, split) rows."""
    table = np.asarray(rows, dtype=np.float64)
    return Tiles(table[:, 0:1], table[:, 1:2], table[:, 2:3], table[:, 3:4])


def candidates(platform: Platform, precision: str, unit: str, tile: tuple[int, ...] | None) -> Tiles:
    """All candidates of a platform, or the one given as (tile_m, tile_n, tile_k[, split]).

    Raises InputError when a given tile is malformed.
    """
    if tile is not None:
        if len(tile) not in (3, 4) or any(int(size) != size or size < 1 for size in tile):
            raise InputError(f"tile {tile!r}: give tile_m, tile_n, tile_k (and split) as whole numbers of 1 or more")
        return columns([(float(tile[0]), float(tile[1]), float(tile[2]), float(tile[3]) if len(tile) > 3 else 1.0)])
    shapes = VECTOR_TILES if unit == "vector" else ROUTE_TILES[platform.architecture.matrix_route]
    depth = 8 if unit == "vector" else default_tile_k(precision)
    return columns([(m, n, depth, s) for m, n in shapes for s in SPLITS])


def require_some(fits: np.ndarray, tile: tuple[int, ...] | None, what: str, platform: Platform) -> None:
    """Raise InputError when no candidate fits, naming the tile that was asked for."""
    if not np.any(fits):
        asked = f"tile {'x'.join(str(int(size)) for size in tile)}" if tile is not None else "every candidate tile"
        raise InputError(f"{asked} does not fit {what} of {platform.id}; choose a smaller tile")


@dataclass(frozen=True)
class Machine:
    """What the GEMM paths need of a platform, in SI units; per unit means one SM or CU."""

    units: float
    unit_flop_per_s: float
    peak_flop_per_s: float
    hbm_byte_per_s: float
    hbm_peak_byte_per_s: float
    l2_byte_per_s: float
    llc_byte_per_s: float
    """0 where there is no memory-side cache."""
    port_byte_per_s: float
    latency_s: float
    llc_latency_s: float
    cached_latency_s: float
    """Round trip to the last cache before HBM: what operands found there wait for."""
    launch_s: float
    barrier_s: float
    overlap_alpha: float
    """Share of a tile's fill and store that hides behind its neighbour: alpha of Eq. (7)."""
    reduction_s: float
    """Extra time of a split-K reduction: one more dependent kernel or grid barrier."""
    multicast: float
    cache_start_byte: float
    cache_end_byte: float
    """Knees of the last cache before HBM: L2, or LLC where there is one."""
    l2_start_byte: float
    l2_end_byte: float
    """Knees of the L2 one unit sees (one partition's share on multi-die parts)."""
    partitions: float


def machine(platform: Platform, precision: str, unit: str, flop_per_s: float | None = None) -> Machine:
    """Rates of `platform` for one precision. `flop_per_s`: arithmetic rate of all units; the sustained one if None."""
    units = platform.value("compute_units")
    peak = platform.peak_flop_per_s(precision, unit)
    rate = platform.sustained_flop_per_s(precision, unit) if flop_per_s is None else flop_per_s
    clock = platform.value("clock_boost")
    port = PORT_BYTE_PER_CYCLE * clock
    hbm = platform.value("sustained_hbm_bw")
    partitions = platform.get("l2_partitions") or 1.0
    l2_size = platform.value("l2_size")
    l2_start = platform.get("l2_knee_start") or KNEE_START_PER_CAPACITY * l2_size
    l2_end = platform.get("l2_knee_end") or KNEE_END_PER_CAPACITY * l2_size
    llc_size = platform.value("llc_size")
    llc = (platform.get("llc_bw") or hbm) if llc_size > 0 else 0.0
    start = (platform.get("llc_knee_start") or KNEE_START_PER_CAPACITY * llc_size) if llc_size > 0 else l2_start
    end = (platform.get("llc_knee_end") or KNEE_END_PER_CAPACITY * llc_size) if llc_size > 0 else l2_end
    launch = platform.get("empty_kernel_duration") or platform.value("kernel_launch_latency")
    latency = platform.value("latency_hbm_time")
    return Machine(
        units=units,
        unit_flop_per_s=rate / units,
        peak_flop_per_s=peak,
        hbm_byte_per_s=hbm,
        hbm_peak_byte_per_s=max(platform.value("hbm_peak_bw"), hbm),
        # a cache is never slower than the memory behind it; an unknown L2 rate is bounded by the units' ports
        l2_byte_per_s=max(platform.get("l2_bw") or units * port, hbm),
        llc_byte_per_s=max(llc, hbm) if llc_size > 0 else 0.0,
        port_byte_per_s=port,
        latency_s=latency,
        llc_latency_s=min(platform.get("latency_llc_time") or latency, latency) if llc_size > 0 else latency,
        cached_latency_s=min(
            platform.get("latency_llc_time" if llc_size > 0 else "latency_l2_time") or latency, latency
        ),
        launch_s=launch,
        barrier_s=(platform.get("mbarrier_latency") or 0.0) / clock,
        overlap_alpha=platform.get("pipeline_overlap_alpha", OVERLAP_ALPHA) or 0.0,
        reduction_s=platform.get("grid_barrier_latency") or launch,
        multicast=float(platform.architecture.multicast.value) if unit == "matrix" else 1.0,
        cache_start_byte=start,
        cache_end_byte=end,
        l2_start_byte=l2_start / partitions,
        l2_end_byte=l2_end / partitions,
        partitions=partitions,
    )
