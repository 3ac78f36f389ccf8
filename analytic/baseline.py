"""The analytic baseline of any family on any platform: seconds, terms that add up to them, and the physical bound.

Three routes: *stage* (matrix products on NVIDIA, Eqs. 2–8), *wavefront* (matrix products on CDNA, Eqs. 9–14) and
*generic* (everything else: the roofline of Eq. 1 with working-set-aware bandwidth). Route and guard are in the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .cachemodel import KNEE_END_PER_CAPACITY, KNEE_START_PER_CAPACITY
from .equation_sets import equation_set, launch_floor_parameter, matrix_time
from .errors import InputError
from .families import family as find_family
from .gemm_common import resolve_unit
from .gemm_serial import serial_times
from .generic import effective_bandwidth
from .platform import Platform
from .roofline import guard_bound, naive_roofline
from .traffic import hit_rate_of, traffic_time
from .work import Family, FloatArray, Work, arguments, element_byte

CACHE_STATES = ("warm", "cold", "unknown")


@dataclass(frozen=True)
class Bound:
    """The physical lower bound: the largest of FLOP ÷ dense peak and, for each boundary, bytes ÷ peak bandwidth.

    Arrays of shape (n,). `limit` names what binds ("matrix FLOP", "HBM bytes", …), `work` its amount [FLOP or B],
    `rate` the rate [1/s], `seconds` = work ÷ rate.
    """

    limit: NDArray[np.str_]
    work: FloatArray
    rate: FloatArray
    seconds: FloatArray


@dataclass(frozen=True)
class Baseline:
    """Analytic time of n configurations; `terms` add up to `time_s`. `details` are by-products used as features."""

    time_s: FloatArray
    terms: dict[str, FloatArray]
    bound: Bound
    naive_s: FloatArray
    """Naive roofline from datasheet peaks: max(FLOP ÷ peak, compulsory bytes ÷ peak HBM bandwidth)."""
    route: str
    guard: NDArray[np.bool_]
    """Where the time would have beaten the bound and was lifted to it."""
    work: Work
    details: dict[str, FloatArray]


@dataclass(frozen=True)
class Memory:
    """The cache in front of memory that a working set may live in: L2 on NVIDIA and CDNA 1/2, LLC on CDNA 3/4."""

    cache_byte_per_s: float
    hbm_byte_per_s: float
    hbm_peak_byte_per_s: float
    knee_start_byte: float
    knee_end_byte: float
    latency_s: float
    level: Literal["L2", "LLC"]


def memory_of(platform: Platform) -> Memory:
    """Bandwidths and knees of the platform's last-level cache. Raises InputError for a parameter it lacks."""
    level = "llc" if (platform.get("llc_size") or 0.0) > 0 and (platform.get("llc_bw") or 0.0) > 0 else "l2"
    size = platform.value(f"{level}_size")
    hbm, hbm_peak = platform.sustained_hbm_byte_per_s(), platform.value("hbm_peak_bw")
    # a cache is never slower than the memory behind it; where its rate is unknown the memory's is the safe one
    cache = max(platform.get(f"{level}_bw") or hbm, hbm)
    start = platform.get(f"{level}_knee_start") or KNEE_START_PER_CAPACITY * size
    end = platform.get(f"{level}_knee_end") or KNEE_END_PER_CAPACITY * size
    latency = platform.latency_s("latency_hbm") if platform.get("latency_hbm") else 0.0
    return Memory(cache, hbm, hbm_peak, start, end, latency, "LLC" if level == "llc" else "L2")


def launch_floor_s(platform: Platform) -> float:
    """Shortest duration of one kernel [s]: that of an empty one where measured, else the launch latency."""
    return platform.value(launch_floor_parameter(platform))


def hit_rate(work: Work, platform: Platform, memory: Memory, cache: str) -> tuple[FloatArray, FloatArray]:
    """(h of compulsory bytes, h of re-read bytes) in the last-level cache, each in [0, 1].

    Warm: a working set below the knee is found in the cache. Cold: compulsory bytes come from memory, re-reads may hit.
    """
    resident = hit_rate_of(platform, work.working_set_byte, memory.knee_start_byte, memory.knee_end_byte)
    return (np.zeros_like(resident) if cache == "cold" else resident), resident


def hbm_rate(platform: Platform, memory: Memory, working_set_byte: ArrayLike) -> FloatArray:
    """Memory bandwidth of a working set [B/s], Eq. (16): between peak and sustained, or sustained where w0 is 0."""
    peak = max(memory.hbm_peak_byte_per_s, memory.hbm_byte_per_s)
    w0 = platform.get("working_set_scale") or 0.0
    return effective_bandwidth(working_set_byte, memory.hbm_byte_per_s, peak, w0)


def arithmetic_rate(platform: Platform, precision: str, unit: str) -> float:
    """Sustained arithmetic rate on the generic path [FLOP/s], times the precision's efficiency (section IV.F)."""
    precision = arithmetic_precision(precision)
    efficiency = platform.get(f"precision_efficiency_{precision}") or 1.0
    return platform.sustained_flop_per_s(precision, unit) * efficiency


def _bound(work: Work, hbm_byte: FloatArray, peak: float, memory: Memory) -> Bound:
    names = np.array([f"{work.unit} FLOP", "HBM bytes", "cache bytes"])
    amounts = np.stack([work.flop, hbm_byte, work.compulsory_byte])
    rates = np.array([peak, memory.hbm_peak_byte_per_s, memory.cache_byte_per_s])
    seconds = amounts / rates[:, None]
    index = np.argmax(seconds, axis=0)
    rows = np.arange(index.size)
    return Bound(names[index], amounts[index, rows], rates[index], seconds[index, rows])


def naive_roofline_s(work: Work, platform: Platform, precision: str) -> FloatArray:
    """Naive roofline [s] of the work, from the datasheet peaks of the platform."""
    peak = platform.peak_flop_per_s(precision, work.unit)
    return naive_roofline(work.flop, work.compulsory_byte, peak, platform.value("hbm_peak_bw"))


def _generic(family: Family, work: Work, precision: str, platform: Platform, cache: str
             ) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Generic path: launch floor + the longest of arithmetic, traffic and the chain of dependent accesses."""
    memory = memory_of(platform)
    h_first, h_again = hit_rate(work, platform, memory, cache)
    hbm_byte = work.compulsory_byte * (1.0 - h_first) + work.reread_byte * (1.0 - h_again)
    cache_byte = work.compulsory_byte * h_first + work.reread_byte * h_again
    scale = platform.get(f"class_scale_{family.kind}") or 1.0
    hbm_byte_per_s = hbm_rate(platform, memory, work.working_set_byte)
    cache_byte_per_s = np.maximum(memory.cache_byte_per_s, hbm_byte_per_s)
    memory_s = traffic_time(platform, hbm_byte, cache_byte, hbm_byte_per_s, cache_byte_per_s) * scale
    compute_s = work.flop / arithmetic_rate(platform, precision, work.unit)
    chain_s = work.chain * memory.latency_s
    longest = np.maximum(np.maximum(memory_s, compute_s), chain_s)
    launch = work.launches * launch_floor_s(platform)
    zero = np.zeros_like(longest)
    # the binding term is shown whole, what it hides is not: the terms add up to the time
    is_memory = (memory_s >= compute_s) & (memory_s >= chain_s)
    is_compute = ~is_memory & (compute_s >= chain_s)
    terms = {
        "launch": launch,
        "compute": np.where(is_compute, longest, zero),
        "memory": np.where(is_memory, longest, zero),
        "latency": np.where(~is_memory & ~is_compute, longest, zero),
    }
    details = {
        "compute_s": compute_s, "memory_s": memory_s, "chain_s": chain_s, "launch_s": launch, "hit_rate": h_first,
        "hbm_byte": hbm_byte, "cache_byte": cache_byte, "cache_s": cache_byte / memory.cache_byte_per_s,
    }
    return terms, details


COLD_START_S = 1e-6
BLOCK_THREADS, BLOCKS_PER_UNIT = 256.0, 8.0
"""A usual block, and how many of them fill a compute unit's 2,048 threads."""


def _occupied(work: Work, platform: Platform, memory: Memory, cache: str) -> dict[str, FloatArray]:
    """By-products a calibration may weigh in: none of them is part of the analytic time. Each of shape (n,) [s].

    `cold_start_s`: a microsecond where code, parameters and page tables have left the caches, too. `rounds_s`: all
    dependent accesses over those in flight on a full machine, a latency each (Little 1961); of a matrix product its K
    steps one after the other (`tile_time`). `unit_s`: the bytes of one occupied compute unit at its share of the
    cache bandwidth, longer than `memory_s` where the grid leaves units idle.
    """
    units = platform.value("compute_units")
    resident = platform.value("warp_size") * platform.value("max_warps_per_cu") * units
    busy = np.clip(work.threads / BLOCK_THREADS, 1.0, units * BLOCKS_PER_UNIT) / BLOCKS_PER_UNIT
    return {
        "cold_start_s": np.full(work.flop.shape, COLD_START_S if cache == "cold" else 0.0),
        "rounds_s": work.chain * memory.latency_s * work.threads / resident,
        "unit_s": work.cache_byte * units / (busy * memory.cache_byte_per_s),
    }


def _matrix(work: Work, precision: str, platform: Platform, cache: str, tile: Any
            ) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    assert work.gemm is not None
    m, n, k, batch = work.gemm
    result = matrix_time(platform)(platform, m, n, k, batch, precision, tile=tile, cache=cache)
    mach = equation_set(platform).machine(platform, precision, resolve_unit(platform, precision, "matrix"))
    return dict(result.terms), {**result.details, **serial_times(mach, m, n, k, batch, precision)}


def baseline(
    family_name: str,
    params: Mapping[str, Any],
    precision: str,
    platform: Platform,
    *,
    cache: str = "warm",
    tile: tuple[int, int, int] | None = None,
) -> Baseline:
    """Analytic time of n configurations of one family at one precision on one platform.

    params: scalars or arrays of shape (n,). cache: warm, cold or unknown (taken as warm). Raises InputError for an
    unknown family, a bad parameter or a precision the platform has not.
    """
    family = find_family(family_name)
    if cache not in CACHE_STATES:
        raise InputError(f"cache is {cache!r}; it must be one of {', '.join(CACHE_STATES)}")
    work = family.work(arguments(family, params), element_byte(precision))
    return baseline_of_work(family, work, precision, platform, cache=cache, tile=tile)


def baseline_of_work(
    family: Family,
    work: Work,
    precision: str,
    platform: Platform,
    *,
    cache: str = "warm",
    tile: tuple[int, int, int] | None = None,
) -> Baseline:
    """As `baseline`, for work that is already known."""
    memory = memory_of(platform)
    peak = platform.peak_flop_per_s(arithmetic_precision(precision), work.unit)
    precision = arithmetic_precision(precision)
    h_first, _ = hit_rate(work, platform, memory, cache)
    bound = _bound(work, work.compulsory_byte * (1.0 - h_first), peak, memory)
    if work.gemm is not None:
        route: str = platform.architecture.matrix_route
        terms, details = _matrix(work, precision, platform, cache, tile)
    else:
        route = "generic"
        terms, details = _generic(family, work, precision, platform, cache)
    details = {**_occupied(work, platform, memory, cache), **details}
    time_s = np.sum(list(terms.values()), axis=0)
    lifted, guard = guard_bound(time_s, bound.seconds)
    terms["guard"] = lifted - time_s
    return Baseline(
        lifted, terms, bound, naive_roofline_s(work, platform, precision), route, guard, work, details,
    )


# Copies and mixed arithmetic have no peak of their own: they are timed against the fp32 rate.
_ARITHMETIC = {"mixed": "fp32", "none": "fp32", "int64": "int32", "int16": "int32"}


def arithmetic_precision(precision: str) -> str:
    """The precision whose rate limits the arithmetic of `precision`."""
    return _ARITHMETIC.get(precision, precision)
