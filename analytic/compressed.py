"""Compressed data on its way from the host into memory, at a platform's own parameters."""

from __future__ import annotations

from numpy.typing import ArrayLike

from .errors import InputError
from .platform import Platform
from .published.stage_io import decompression_engine_time, decompression_load_time, engine_input_rate, unpack_time
from .validity import FloatArray, at_least_one, non_negative


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
