"""Tile paths of a matrix product: stage-centric (NVIDIA) and wavefront-centric (CDNA), adaptive over candidate tiles.

`stage_gemm` and `wavefront_gemm` evaluate every candidate tile for every row and return the fastest. Each candidate's
time is non-decreasing in m, n, k and batch, so their minimum is; alignment penalties are left to the learned residual.
`as_published=True` follows the printed equations instead (`gemm_published`); left None it follows the parameter set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .errors import InputError
from .gemm_tiles import (
    KERNEL_TRIPS,
    MAX_STAGES,
    Machine,
    Tiles,
    accumulator_byte,
    candidates,
    machine,
    output_byte,
    require_some,
)
from .gemm_traffic import bound_time, gemm_traffic, traffic_time
from .occupancy import GemmOccupancy, gemm_occupancy
from .platform import Platform
from .published.gemm import stage_terms_published, wavefront_terms_published
from .stage import compute_time, register_accumulators_fit, smem_per_step, tmem_demand
from .validity import BoolArray, FloatArray, at_least_one
from .wavefront import wavefront_round_time
from .waves import cta_count, full_waves, k_tile_count, wave_count
from .work import element_byte

CHUNK_ROWS = 32768  # rows evaluated at a time: bounds memory at candidates x CHUNK_ROWS, not a loop over rows
CACHE_STATES = ("cold", "warm", "unknown")
GEMM_UNITS = ("matrix", "vector")

# (tiles the busiest unit works through, share of loads from HBM) -> (matrix time of one tile's K-step [s], time of a
# K-step of all of the unit's tiles [s])
StepFunction = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class GemmTime:
    """Time of n matrix products; every array has shape (n,). `terms` add up to `time_s` in their order."""

    time_s: FloatArray
    terms: dict[str, FloatArray]
    details: dict[str, FloatArray]
    guard: BoolArray
    """True where the modelled time lay below the physical bound and was lifted to it (term `bound`)."""


def _latency(mach: Machine, misses: FloatArray) -> FloatArray:
    """Round trip of a load [s] when the share `misses` of the operands comes from HBM, the rest from the last cache."""
    return np.asarray(mach.cached_latency_s + misses * (mach.latency_s - mach.cached_latency_s))


def _rows(*sizes: ArrayLike) -> list[FloatArray]:
    names = ("m", "n", "k", "batch")
    arrays = [np.atleast_1d(at_least_one(name, size)) for name, size in zip(names, sizes, strict=True)]
    return [np.array(array) for array in np.broadcast_arrays(*arrays)]


def _body_terms(
    mach: Machine,
    tiles: Tiles,
    step: StepFunction,
    shape: list[FloatArray],
    precision: str,
    cache: str,
) -> tuple[dict[str, FloatArray], dict[str, FloatArray], FloatArray]:
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


def _fastest(
    terms: dict[str, FloatArray], details: dict[str, FloatArray], bound: FloatArray
) -> GemmTime:
    """The fastest candidate of each row, lifted to the physical bound where it lies below."""
    total = sum(terms.values(), start=np.zeros(bound.shape))
    best = np.argmin(np.maximum(total, bound), axis=0)[None, :]

    def pick(array: FloatArray) -> FloatArray:
        return np.take_along_axis(np.broadcast_to(array, bound.shape), best, axis=0)[0]

    chosen = {name: pick(array) for name, array in terms.items()}
    floor = pick(bound)
    time = sum(chosen.values(), start=np.zeros(floor.shape))
    guard = time < floor
    # one part in 1e15 above, so that rounding in the sum never leaves the total under the bound
    chosen["bound"] = np.where(guard, floor * (1.0 + 4e-16) - time, 0.0)
    picked = {name: pick(array) for name, array in details.items()}
    picked["bound_s"] = floor
    return GemmTime(sum(chosen.values(), start=np.zeros(floor.shape)), chosen, picked, guard)


def _in_chunks(evaluate: Callable[[list[FloatArray]], GemmTime], shape: list[FloatArray]) -> GemmTime:
    count = shape[0].size
    parts = [
        evaluate([size[start : start + CHUNK_ROWS] for size in shape]) for start in range(0, max(count, 1), CHUNK_ROWS)
    ]
    if len(parts) == 1:
        return parts[0]
    join = np.concatenate
    return GemmTime(
        join([part.time_s for part in parts]),
        {name: join([part.terms[name] for part in parts]) for name in parts[0].terms},
        {name: join([part.details[name] for part in parts]) for name in parts[0].details},
        join([part.guard for part in parts]),
    )


def _check(unit: str, cache: str) -> None:
    if unit not in GEMM_UNITS:
        raise InputError(f"gemm unit {unit!r}: matrix or vector")
    if cache not in CACHE_STATES:
        raise InputError(f"cache {cache!r}: {', '.join(CACHE_STATES)}")


def resolve_unit(platform: Platform, precision: str, unit: str) -> str:
    """The unit that does the arithmetic: a precision without a matrix mode (fp32, fp64, int32 on some parts) falls back
    to the vector units, as `Platform.peak_flop_per_s` does; it raises where there is neither."""
    platform.peak_flop_per_s(precision, unit)
    return unit if platform.get(f"peak_{precision}_matrix") else "vector"


def _in_tmem(platform: Platform, precision: str, unit: str) -> bool:
    # fp64 does not use tcgen05: its accumulators stay in registers on every part
    return unit == "matrix" and precision != "fp64" and (platform.get("tmem_per_cu") or 0.0) > 0.0


def _stages(platform: Platform, tiles: Tiles, element: float, in_tmem: bool) -> FloatArray:
    strategy = platform.switch("tmem_strategy") if in_tmem else "A"
    step_byte = smem_per_step(tiles.tile_m, tiles.tile_n, tiles.tile_k, element, strategy)
    return np.minimum(np.floor(platform.value("shared_mem_per_cu") / step_byte), MAX_STAGES)


def _fitting_tiles(platform: Platform, precision: str, unit: str, tile: tuple[int, ...] | None) -> Tiles:
    tiles = candidates(platform, precision, unit, tile)
    element, accumulator = element_byte(precision), accumulator_byte(precision)
    in_tmem = _in_tmem(platform, precision, unit)
    staged = _stages(platform, tiles, element, in_tmem) >= 2.0
    require_some(staged, tile, "two stages of shared memory", platform)
    if in_tmem:
        demand = tmem_demand(
            tiles.tile_m, tiles.tile_n, tiles.tile_k, accumulator, element, platform.switch("tmem_strategy")
        )
        held = demand <= platform.value("tmem_per_cu")
        require_some(held, tile, "the tensor memory", platform)
    else:
        held = register_accumulators_fit(
            tiles.tile_m, tiles.tile_n, accumulator, platform.value("registers_per_cu")
        )
        require_some(held, tile, "the registers", platform)
    require_some(staged & held, tile, "shared memory and accumulators", platform)
    return tiles.keep(staged & held)


def stage_gemm(
    platform: Platform,
    m: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    batch: ArrayLike,
    precision: str,
    tile: tuple[int, ...] | None = None,
    as_published: bool | None = None,
    *,
    unit: str = "matrix",
    cache: str = "cold",
) -> GemmTime:
    """Stage-centric time of n matrix products `C[m,n] = A[m,k] B[k,n]` on NVIDIA parts, arXiv 2605.04178 Eqs. (2)-(8).

    m, n, k, batch: counts, scalars or arrays broadcast to shape (n,). `tile`: (tile_m, tile_n, tile_k[, split]) instead
    of the adaptive choice. `unit`: "matrix", or "vector" where a precision has no matrix unit. `cache`: "cold" takes
    every compulsory byte from HBM; "warm"/"unknown" takes what fits from L2.

    Default: Eq. (3) per K-step at the SM's share of the *sustained* rate (which already holds T_TMEM and its
    management: they were in the measured kernels), the pipelined steady state above Eq. (8) with the copy stage as the
    larger of port time and latency over the stages in flight, quantised waves, and HBM, L2 limits on the whole kernel.
    Terms: launch, compute (evenly shared waves), tail (what the last, partly filled wave adds), memory_exposed,
    writeback (the last tile's store, and the share 1 - alpha of the earlier ones), sync (pipeline fill likewise,
    closing barrier, split-K reduction), bound.

    Raises InputError for a tile that does not fit shared memory, tensor memory or registers.
    """
    _check(unit, cache)
    unit = resolve_unit(platform, precision, unit)
    shape = _rows(m, n, k, batch)
    as_published = platform.as_published if as_published is None else as_published
    mach = machine(platform, precision, unit, as_published)
    tiles = _fitting_tiles(platform, precision, unit, tile)
    if as_published:
        if tile is None:  # the printed equations have no cost for a split K loop
            tiles = tiles.keep(tiles.split == 1.0)
        in_tmem = _in_tmem(platform, precision, unit)
        return _in_chunks(
            lambda part: _fastest(*stage_terms_published(platform, mach, tiles, part, precision, in_tmem)), shape
        )
    element = element_byte(precision)
    compute_step = compute_time(tiles.tile_m, tiles.tile_n, tiles.tile_k, mach.unit_flop_per_s)
    step_byte = (tiles.tile_m + tiles.tile_n / mach.multicast) * tiles.tile_k * element
    port_step = step_byte / mach.port_byte_per_s
    stages = _stages(platform, tiles, element, _in_tmem(platform, precision, unit))

    def unit_step(waves: FloatArray, misses: FloatArray) -> tuple[FloatArray, FloatArray]:
        copy_step = np.maximum(port_step, _latency(mach, misses) / stages)
        return compute_step, waves * np.maximum(compute_step, copy_step)

    return _in_chunks(lambda part: _fastest(*_body_terms(mach, tiles, unit_step, part, precision, cache)), shape)


def wavefront_gemm(
    platform: Platform,
    m: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    batch: ArrayLike,
    precision: str,
    tile: tuple[int, ...] | None = None,
    as_published: bool | None = None,
    *,
    unit: str = "matrix",
    cache: str = "cold",
) -> GemmTime:
    """Wavefront-centric time of n matrix products on CDNA parts, arXiv 2605.04178 Eqs. (9)-(14); arguments, terms and
    errors as `stage_gemm`.

    Default: MFMA time at the CU's share of the sustained rate (Eq. 11, utilisation inside the rate), occupancy from
    VGPRs and LDS, latency hidden by the other wavefronts of the SIMD (the consistent form of Eqs. 9 and 12), quantised
    workgroups per CU, and HBM, LLC, L2 limits on the whole kernel with h(W) of the last cache.
    """
    _check(unit, cache)
    unit = resolve_unit(platform, precision, unit)
    shape = _rows(m, n, k, batch)
    as_published = platform.as_published if as_published is None else as_published
    mach = machine(platform, precision, unit, as_published)
    tiles = candidates(platform, precision, unit, tile)
    occupancy: GemmOccupancy = gemm_occupancy(
        platform, tiles.tile_m, tiles.tile_n, tiles.tile_k, element_byte(precision), accumulator_byte(precision)
    )
    fits = occupancy.workgroups >= 1.0
    require_some(fits, tile, "the VGPRs and LDS", platform)
    if as_published and tile is None:  # the printed equations have no cost for a split K loop
        fits = fits & (tiles.split == 1.0)
    tiles, occupancy = tiles.keep(fits), occupancy.keep(fits)
    if as_published:
        return _in_chunks(
            lambda part: _fastest(*wavefront_terms_published(platform, mach, tiles, occupancy, part, precision, cache)),
            shape,
        )
    compute_step = compute_time(tiles.tile_m, tiles.tile_n, tiles.tile_k, mach.unit_flop_per_s)
    load_step = (tiles.tile_m + tiles.tile_n) * tiles.tile_k * element_byte(precision) / mach.port_byte_per_s

    def unit_step(queued: FloatArray, misses: FloatArray) -> tuple[FloatArray, FloatArray]:
        latency = mach.llc_latency_s + misses * (mach.latency_s - mach.llc_latency_s)
        rounds = np.floor(queued / occupancy.workgroups)
        rest = queued - rounds * occupancy.workgroups
        full = wavefront_round_time(occupancy.workgroups, occupancy, compute_step, load_step, latency)
        last = wavefront_round_time(rest, occupancy, compute_step, load_step, latency)
        return compute_step, rounds * full + last

    return _in_chunks(lambda part: _fastest(*_body_terms(mach, tiles, unit_step, part, precision, cache)), shape)
