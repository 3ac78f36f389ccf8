"""How a platform's file has hit rates and bandwidths combined: fitted knees or Table III, times added or rates.

The one place that asks for `llc_hit_form` and `bandwidth_mix`; kernel families, counted segments and matrix products
take both from here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from .cachemodel import bandwidth_harmonic, knee_hit_rate
from .platform import Platform
from .published.cache import bandwidth_arithmetic, hit_rate_table_iii_printed
from .validity import FloatArray

Mix = Callable[[ArrayLike, ArrayLike, ArrayLike], FloatArray]
"""(hit rate, cache, memory) -> effective bandwidth [B/s]."""


def _knees(platform: Platform, working_set: ArrayLike, start: ArrayLike, end: ArrayLike) -> FloatArray:
    return knee_hit_rate(working_set, start, end)


def _table_iii(platform: Platform, working_set: ArrayLike, start: ArrayLike, end: ArrayLike) -> FloatArray:
    alpha, beta = platform.get("llc_transition_alpha") or 1.0, platform.get("llc_streaming_beta") or 1.0
    return hit_rate_table_iii_printed(working_set, alpha, beta, start, end)


HIT_FORMS: dict[str, Callable[[Platform, ArrayLike, ArrayLike, ArrayLike], FloatArray]] = {
    "knees": _knees, "table3": _table_iii
}
MIXES: dict[str, Mix] = {"harmonic": bandwidth_harmonic, "arithmetic": bandwidth_arithmetic}


def hit_rate_of(
    platform: Platform, working_set_byte: ArrayLike, knee_start_byte: ArrayLike, knee_end_byte: ArrayLike
) -> FloatArray:
    """h(W) of a cache between its knees, in the form the platform asks for (`llc_hit_form`)."""
    return HIT_FORMS[platform.switch("llc_hit_form")](platform, working_set_byte, knee_start_byte, knee_end_byte)


def bandwidth_mix_of(platform: Platform) -> Mix:
    """The platform's mix of two bandwidths (`bandwidth_mix`), under Eq. (10)."""
    return MIXES[platform.switch("bandwidth_mix")]


def mixes_rates(platform: Platform) -> bool:
    """Whether two levels' bandwidths combine as printed under Eq. (10), rates added, and not times."""
    return bandwidth_mix_of(platform) is bandwidth_arithmetic


def mixed_rate(
    platform: Platform, hbm_byte: ArrayLike, cache_byte: ArrayLike, hbm: ArrayLike, cache: ArrayLike
) -> FloatArray:
    """Bandwidth [B/s] of bytes of which `cache_byte` hit, by the platform's mix; memory's where nothing moves."""
    hits, total = np.asarray(cache_byte, dtype=np.float64), np.add(hbm_byte, cache_byte)
    share = np.divide(hits, total, out=np.zeros_like(total), where=total > 0.0)
    return bandwidth_mix_of(platform)(share, cache, hbm)


def traffic_time(
    platform: Platform, hbm_byte: FloatArray, cache_byte: FloatArray, hbm: FloatArray, cache: FloatArray
) -> FloatArray:
    """Time [s] of bytes over memory and over the cache at their rates [B/s], by the platform's mix."""
    if mixes_rates(platform):
        return np.asarray((hbm_byte + cache_byte) / mixed_rate(platform, hbm_byte, cache_byte, hbm, cache))
    return np.asarray(hbm_byte / hbm + cache_byte / cache)
