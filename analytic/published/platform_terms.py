"""A tile study at a platform's own parameters: all are looked up by name, so one that the file lacks raises with it."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..baseline import memory_of
from ..platform import Platform
from ..traffic import bandwidth_mix_of, hit_rate_of
from ..validity import FloatArray, at_least_one
from ..waves import cta_count
from ..work import element_byte
from .wavefront import tile_kernel_time, tile_step_time


def tile_study(
    platform: Platform,
    m: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    tile: ArrayLike,
    precision: str = "fp64",
    unit: str = "vector",
) -> FloatArray:
    """Matrix product without reuse beyond a square tile [s], by arXiv 2605.04178 Eq. (14).

    Each CTA reads `2·tile·k` elements for `2·tile²·k` FLOP, at one CU's share of the dense peak and of `BW_eff` with
    h(W) of the three matrices; Table III and the printed mix where the parameter set says so.
    """
    rows, columns, depth, side = (at_least_one(name, v) for name, v in (("m", m), ("n", n), ("k", k), ("tile", tile)))
    memory, element, units = memory_of(platform), element_byte(precision), platform.value("compute_units")
    working_set = (rows * depth + depth * columns + rows * columns) * element
    hit = hit_rate_of(platform, working_set, memory.knee_start_byte, memory.knee_end_byte)
    share = bandwidth_mix_of(platform)(hit, memory.cache_byte_per_s, memory.hbm_byte_per_s) / units
    peak = platform.peak_flop_per_s(precision, unit) / units
    step = tile_step_time(2.0 * side * side * depth, 2.0 * side * depth * element, peak, share)
    return tile_kernel_time(
        cta_count(rows, columns, side, side), step, units, platform.value("effective_warps_per_cu"),
        platform.value("cta_overhead"), platform.value("kernel_launch_latency"), side * side * element / share,
        platform.get("coherence_latency") or 0.0, platform.get("cross_xcd_latency") or 0.0,
    )
