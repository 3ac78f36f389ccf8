"""What every way to time a matrix product shares: rows of a question, tiles that fit, the fastest of the candidates.

Used by our equations (`gemm`) and by those as printed (`published.gemm`); `equation_sets` says which are a platform's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .errors import InputError
from .gemm_tiles import MAX_STAGES, Tiles, accumulator_byte, candidates, require_some
from .occupancy import GemmOccupancy, gemm_occupancy
from .platform import Platform
from .stage import register_accumulators_fit, smem_per_step, tmem_demand
from .validity import BoolArray, FloatArray, at_least_one
from .work import element_byte

CHUNK_ROWS = 32768  # rows evaluated at a time: bounds memory at candidates x CHUNK_ROWS, not a loop over rows
CACHE_STATES = ("cold", "warm", "unknown")
GEMM_UNITS = ("matrix", "vector")

CandidateTerms = tuple[dict[str, FloatArray], dict[str, FloatArray], FloatArray]
"""Terms, details and physical bound of every candidate tile for every row, shape (candidates, rows)."""


@dataclass(frozen=True)
class GemmTime:
    """Time of n matrix products; every array has shape (n,). `terms` add up to `time_s` in their order."""

    time_s: FloatArray
    terms: dict[str, FloatArray]
    details: dict[str, FloatArray]
    guard: BoolArray
    """True where the modelled time lay below the physical bound and was lifted to it (term `bound`)."""


def problem_rows(*sizes: ArrayLike) -> list[FloatArray]:
    """m, n, k, batch as arrays of one shape (n,). InputError naming the one that is no count."""
    names = ("m", "n", "k", "batch")
    arrays = [np.atleast_1d(at_least_one(name, size)) for name, size in zip(names, sizes, strict=True)]
    return [np.array(array) for array in np.broadcast_arrays(*arrays)]


def check_words(unit: str, cache: str) -> None:
    """InputError for a unit or a state of the cache that does not exist."""
    if unit not in GEMM_UNITS:
        raise InputError(f"gemm unit {unit!r}: matrix or vector")
    if cache not in CACHE_STATES:
        raise InputError(f"cache {cache!r}: {', '.join(CACHE_STATES)}")


def resolve_unit(platform: Platform, precision: str, unit: str) -> str:
    """The unit that does the arithmetic: a precision without a matrix mode (fp32, fp64, int32 on some parts) falls back
    to the vector units, as `Platform.peak_flop_per_s` does; it raises where there is neither."""
    platform.peak_flop_per_s(precision, unit)
    return unit if platform.get(f"peak_{precision}_matrix") else "vector"


def in_tmem(platform: Platform, precision: str, unit: str) -> bool:
    """Whether accumulators live in tensor memory."""
    # fp64 does not use tcgen05: its accumulators stay in registers on every part
    return unit == "matrix" and precision != "fp64" and (platform.get("tmem_per_cu") or 0.0) > 0.0


def stages_held(platform: Platform, tiles: Tiles, element: float, tmem: bool) -> FloatArray:
    """K-steps of operands that shared memory holds at a time, shape (candidates, 1). `tmem`: see `in_tmem`."""
    strategy = platform.switch("tmem_strategy") if tmem else "A"
    step_byte = smem_per_step(tiles.tile_m, tiles.tile_n, tiles.tile_k, element, strategy)
    return np.minimum(np.floor(platform.value("shared_mem_per_cu") / step_byte), MAX_STAGES)


def stage_tiles(platform: Platform, precision: str, unit: str, tile: tuple[int, ...] | None) -> Tiles:
    """Candidates whose stages fit shared memory and whose accumulators fit. InputError where none does."""
    tiles = candidates(platform, precision, unit, tile)
    element, accumulator = element_byte(precision), accumulator_byte(precision)
    tmem = in_tmem(platform, precision, unit)
    staged = stages_held(platform, tiles, element, tmem) >= 2.0
    require_some(staged, tile, "two stages of shared memory", platform)
    if tmem:
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


def wavefront_tiles(
    platform: Platform, precision: str, unit: str, tile: tuple[int, ...] | None
) -> tuple[Tiles, GemmOccupancy]:
    """Candidates of which a CU holds one workgroup or more, and what it keeps resident. InputError where none fits."""
    tiles = candidates(platform, precision, unit, tile)
    occupancy = gemm_occupancy(
        platform, tiles.tile_m, tiles.tile_n, tiles.tile_k, element_byte(precision), accumulator_byte(precision)
    )
    fits = occupancy.workgroups >= 1.0
    require_some(fits, tile, "the VGPRs and LDS", platform)
    return tiles.keep(fits), occupancy.keep(fits)


def fastest(
    terms: dict[str, FloatArray], details: dict[str, FloatArray], bound: FloatArray
) -> GemmTime:
    """The fastest candidate of each row, lifted to the physical bound where it lies below."""
    total = sum(terms.values(), start=np.zeros(bound.shape))
    best = np.argmin(np.maximum(total, bound), axis=0)[None, :]

    def pick(array: FloatArray) -> FloatArray:
        return np.asarray(np.take_along_axis(np.broadcast_to(array, bound.shape), best, axis=0)[0])

    chosen = {name: pick(array) for name, array in terms.items()}
    floor = pick(bound)
    time = sum(chosen.values(), start=np.zeros(floor.shape))
    guard = time < floor
    # one part in 1e15 above, so that rounding in the sum never leaves the total under the bound
    chosen["bound"] = np.where(guard, floor * (1.0 + 4e-16) - time, 0.0)
    picked = {name: pick(array) for name, array in details.items()}
    picked["bound_s"] = floor
    return GemmTime(sum(chosen.values(), start=np.zeros(floor.shape)), chosen, picked, guard)


def fastest_of(evaluate: Callable[[list[FloatArray]], CandidateTerms], shape: list[FloatArray]) -> GemmTime:
    """The fastest candidate of each row, evaluated in pieces of CHUNK_ROWS rows. `shape`: m, n, k, batch."""
    count = shape[0].size
    parts = [
        fastest(*evaluate([size[start : start + CHUNK_ROWS] for size in shape]))
        for start in range(0, max(count, 1), CHUNK_ROWS)
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
