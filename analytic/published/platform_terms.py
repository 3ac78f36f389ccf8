"""Single equations at a platform's own parameters, for questions beside a kernel's time: a tile study, compressed data.
Everything is looked up by name, so a parameter that the file lacks raises with that name."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..baseline import memory_of
from ..errors import InputError
from ..platform import Platform
from ..traffic import bandwidth_mix_of, hit_rate_of
from ..validity import FloatArray, at_least_one, non_negative
from ..waves import cta_count
from ..work import element_byte
from .stage_io import decompression_engine_time, decompression_load_time, engine_input_rate, unpack_time
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
    )  # fmt: skip


def compressed_load_time(
    platform: Platform, uncompressed_byte: ArrayLike, compression_ratio: ArrayLike, form: str = "engine"
) -> FloatArray:
    """Compressed data from the host to its uncompressed place in memory [s]. arXiv 2605.04178 Eq. (5) and around it.

    `form`: "link", Eq. (5) with `decompression_efficiency`; "engine", the slower of link and engine, which puts out
    `decompression_output_rate` whatever the ratio; "unpack", the link and then a stage on the SMs at
    `decompression_unpack_rate`. The link is that of Eq. (15), `memcpy_bandwidth`.
    """
    link, ratio = platform.value("memcpy_bandwidth"), at_least_one("compression_ratio", compression_ratio)
    plain = non_negative("uncompressed_byte", uncompressed_byte)

    def by_link() -> FloatArray:
        return decompression_load_time(plain, ratio, link, platform.value("decompression_efficiency"))

    def by_engine() -> FloatArray:
        rate = engine_input_rate(platform.value("decompression_output_rate"), ratio)
        return decompression_engine_time(plain / ratio, link, rate)

    def by_unpacking() -> FloatArray:
        setup = platform.get("decompression_setup_latency") or 0.0
        stage = unpack_time(plain / ratio, platform.value("decompression_unpack_rate"), setup)
        return decompression_load_time(plain, ratio, link) + stage

    forms = {"link": by_link, "engine": by_engine, "unpack": by_unpacking}
    if form not in forms:
        raise InputError(f"form {form!r}: {', '.join(forms)}")
    return forms[form]()
