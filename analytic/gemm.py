"""Tile paths of a matrix product: stage-centric (NVIDIA) and wavefront-centric (CDNA), adaptive over candidate tiles.

`stage_gemm` and `wavefront_gemm` evaluate every candidate tile for every row and return the fastest. Each candidate's
time is non-decreasing in m, n, k and batch, so their minimum is; alignment penalties are left to the learned residual.
The same two with the equations as printed are in `published.gemm`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from .gemm_common import (
    CandidateTerms,
    GemmTime,
    check_words,
    fastest_of,
    in_tmem,
    problem_rows,
    resolve_unit,
    stage_tiles,
    stages_held,
    wavefront_tiles,
)
from .gemm_tiles import KERNEL_TRIPS, Machine, Tiles, machine, output_byte
from .gemm_traffic import bound_time, gemm_traffic, traffic_time
from .platform import Platform
from .stage import compute_time
from .validity import FloatArray
from .wavefront import wavefront_round_time
from .waves import cta_count, full_waves, k_tile_count, wave_count
from .work import element_byte

# (tiles the busiest unit works through, share of loads from HBM) -> (matrix time of one tile's K-step [s], time of a
# K-step of all of the unit's tiles [s])
StepFunction = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


def _latency(mach: Machine, misses: FloatArray) -> FloatArray:
    """Round trip of a load [s] when the share `misses` of the operands comes from HBM, the rest from the last cache."""
    return np.asarray(mach.cached_latency_s + misses * (mach.latency_s - mach.cached_latency_s))


def _body_terms(
    mach: Machine,
    tiles: Tiles,
    step: StepFunction,
    shape: list[FloatArray],
    precision: str,
    cache: str,
) -> CandidateTerms:
    """Terms, details and bound of every candidate, shape (candidates, rows)."""
    m, n, k, batch = shape
    element, out = element_byte(precision), output_byte(precision)
    ctas = cta_count(m, n, tiles.tile_m, tiles.tile_n, batch) * tiles.split
    k_tiles = k_tile_count(k, tiles.tile_k)
    k_steps = np.ceil(k_tiles / tiles.split)
    waves, even = wave_count(ctas, mach.units), full_waves(ctas, mach.units)
    traffic = gemm_traffic(mach, tiles, m, n, k, batch, element, out, cache)
    compute_step, unit_step = step(waves, 1.0 - traffic.cached_share)
    busy = waves * k_steps * compute_step
    memory = traffic_time(mach, traffic)
    body = np.maximum(np.maximum(k_steps * unit_step, busy), memory)
    compute = busy * (even / waves)
    ones = np.ones_like(ctas)
    split_cost = np.where(tiles.split > 1.0, mach.reduction_s, 0.0)
    store = tiles.tile_m * tiles.tile_n * out / mach.port_byte_per_s
    # the first fill and the last store are bare; those between hide behind the neighbouring tile up to 1 - alpha
    exposed = 1.0 + (waves - 1.0) * (1.0 - mach.overlap_alpha)
    terms = {
        "launch": mach.launch_s * ones,
        "compute": compute,
        "tail": busy - compute,
        "memory_exposed": body - busy,
        "writeback": store * exposed,
        # filling the pipeline, the kernel's own dependent trips, its closing barrier, the reduction of a split K loop
        "sync": _latency(mach, 1.0 - traffic.cached_share) * (exposed + KERNEL_TRIPS) + (mach.barrier_s + split_cost),
    }
    details = {
        "ctas": ctas,
        "waves": waves,
        "wave_efficiency": even / waves,
        "tile_m": tiles.tile_m * ones,
        "tile_n": tiles.tile_n * ones,
        "tile_k": tiles.tile_k * ones,
        "split": tiles.split * ones,
        "k_tiles": k_tiles * ones,
        "compute_s": busy,
        "memory_s": memory,
        "l2_traffic_byte": traffic.l2_byte,
        "llc_traffic_byte": traffic.llc_byte if mach.llc_byte_per_s > 0.0 else 0.0 * ones,
        "hbm_traffic_byte": traffic.hbm_byte,
        "padded_flop": 2.0 * ctas / tiles.split * tiles.tile_m * tiles.tile_n * k_tiles * tiles.tile_k,
    }
    return terms, details, bound_time(mach, traffic, 2.0 * m * n * k * batch * ones)


def stage_gemm(
    platform: Platform,
    m: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    batch: ArrayLike,
    precision: str,
    tile: tuple[int, ...] | None = None,
    *,
    unit: str = "matrix",
    cache: str = "cold",
) -> GemmTime:
    """Stage-centric time of n matrix products `C[m,n] = A[m,k] B[k,n]` on NVIDIA parts, arXiv 2605.04178 Eqs. (2)-(8).

    m, n, k, batch: counts, scalars or arrays broadcast to shape (n,). `tile`: (tile_m, tile_n, tile_k[, split]) instead
    of the adaptive choice. `unit`: "matrix", or "vector" where a precision has no matrix unit. `cache`: "cold" takes
    every compulsory byte from HBM; "warm"/"unknown" takes what fits from L2.

    Eq. (3) per K-step at the SM's share of the *sustained* rate (which already holds T_TMEM and its
    management: they were in the measured kernels), the pipelined steady state above Eq. (8) with the copy stage as the
    larger of port time and latency over the stages in flight, quantised waves, and HBM, L2 limits on the whole kernel.
    Terms: launch, compute (evenly shared waves), tail (what the last, partly filled wave adds), memory_exposed,
    writeback (the last tile's store, and the share 1 - alpha of the earlier ones), sync (pipeline fill likewise,
    closing barrier, split-K reduction), bound.

    Raises InputError for a tile that does not fit shared memory, tensor memory or registers.
    """
    check_words(unit, cache)
    unit = resolve_unit(platform, precision, unit)
    shape = problem_rows(m, n, k, batch)
    mach = machine(platform, precision, unit)
    tiles = stage_tiles(platform, precision, unit, tile)
    element = element_byte(precision)
    compute_step = compute_time(tiles.tile_m, tiles.tile_n, tiles.tile_k, mach.unit_flop_per_s)
    step_byte = (tiles.tile_m + tiles.tile_n / mach.multicast) * tiles.tile_k * element
    port_step = step_byte / mach.port_byte_per_s
    stages = stages_held(platform, tiles, element, in_tmem(platform, precision, unit))

    def unit_step(waves: FloatArray, misses: FloatArray) -> tuple[FloatArray, FloatArray]:
        copy_step = np.maximum(port_step, _latency(mach, misses) / stages)
        return compute_step, waves * np.maximum(compute_step, copy_step)

    return fastest_of(lambda part: _body_terms(mach, tiles, unit_step, part, precision, cache), shape)


def wavefront_gemm(
    platform: Platform,
    m: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    batch: ArrayLike,
    precision: str,
    tile: tuple[int, ...] | None = None,
    *,
    unit: str = "matrix",
    cache: str = "cold",
) -> GemmTime:
    """Wavefront-centric time of n matrix products on CDNA parts, arXiv 2605.04178 Eqs. (9)-(14); arguments, terms and
    errors as `stage_gemm`.

    MFMA time at the CU's share of the sustained rate (Eq. 11, utilisation inside the rate), occupancy from
    VGPRs and LDS, latency hidden by the other wavefronts of the SIMD (the consistent form of Eqs. 9 and 12), quantised
    workgroups per CU, and HBM, LLC, L2 limits on the whole kernel with h(W) of the last cache.
    """
    check_words(unit, cache)
    unit = resolve_unit(platform, precision, unit)
    shape = problem_rows(m, n, k, batch)
    mach = machine(platform, precision, unit)
    tiles, occupancy = wavefront_tiles(platform, precision, unit, tile)
    compute_step = compute_time(tiles.tile_m, tiles.tile_n, tiles.tile_k, mach.unit_flop_per_s)
    load_step = (tiles.tile_m + tiles.tile_n) * tiles.tile_k * element_byte(precision) / mach.port_byte_per_s

    def unit_step(queued: FloatArray, misses: FloatArray) -> tuple[FloatArray, FloatArray]:
        latency = mach.llc_latency_s + misses * (mach.latency_s - mach.llc_latency_s)
        rounds = np.floor(queued / occupancy.workgroups)
        rest = queued - rounds * occupancy.workgroups
        full = wavefront_round_time(occupancy.workgroups, occupancy, compute_step, load_step, latency)
        last = wavefront_round_time(rest, occupancy, compute_step, load_step, latency)
        return compute_step, rounds * full + last

    return fastest_of(lambda part: _body_terms(mach, tiles, unit_step, part, precision, cache), shape)
