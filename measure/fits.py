"""Curves through sweeps: knees of a cache, saturation by grid size, fixed cost plus rate. SI arrays in, numbers out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..analytic.cachemodel import bandwidth_harmonic, knee_hit_rate
from ..analytic.errors import InputError

FloatArray = NDArray[np.float64]


def _points(what: str, x: ArrayLike, y: ArrayLike, least: int) -> tuple[FloatArray, FloatArray]:
    """Both as arrays (n,), checked: finite, positive, of one length and at least `least` different x. InputError."""
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"{what}: needs one value for each point, got shapes {a.shape} and {b.shape}")
    if not (np.isfinite(a).all() and np.isfinite(b).all() and (a > 0).all() and (b > 0).all()):
        raise InputError(f"{what}: every point must be finite and positive")
    if np.unique(a).size < least:
        raise InputError(f"{what}: needs {least} or more different points, got {np.unique(a).size}")
    return a, b


@dataclass(frozen=True)
class Knees:
    """1/BW = h/cache + (1 - h)/memory with h = clip((W2 - W)/(W2 - W1), 0, 1); `error` is the median |ln ratio|."""

    cache_byte_per_s: float
    memory_byte_per_s: float
    start_byte: float
    end_byte: float
    error: float

    def byte_per_s(self, working_set_byte: ArrayLike) -> FloatArray:
        hit = knee_hit_rate(working_set_byte, self.start_byte, self.end_byte)
        return bandwidth_harmonic(hit, self.cache_byte_per_s, self.memory_byte_per_s)


def fit_knees(working_set_byte: ArrayLike, byte_per_s: ArrayLike, cache_size_byte: float) -> Knees:
    """Fit a cache's plateau, the memory behind it and the two knees to a read sweep, by least squares in ln BW.

    Points below an eighth of the capacity are left out: there the launch and the grid limit, not the cache. Raises
    InputError for fewer than six points or a sweep that does not reach twice the capacity."""
    from scipy.optimize import least_squares

    w, rate = _points("read sweep", working_set_byte, byte_per_s, 6)
    used = w >= cache_size_byte / 8.0
    if used.sum() < 6 or w.max() < 2.0 * cache_size_byte or w.min() > 0.5 * cache_size_byte:
        raise InputError("read sweep: needs six or more sizes from half of the cache's capacity to twice of it")
    w, rate = w[used], rate[used]
    fast, slow = float(np.median(rate[w <= 0.5 * cache_size_byte])), float(np.median(rate[w >= 1.5 * cache_size_byte]))

    def curve(x: FloatArray) -> Knees:  # logs of cache, memory, W1 and of W2 - W1
        start = float(np.exp(x[2]))
        return Knees(float(np.exp(x[0])), float(np.exp(x[1])), start, start + float(np.exp(x[3])), 0.0)

    def error(x: FloatArray) -> FloatArray:
        return np.log(curve(x).byte_per_s(w) / rate)

    # the kinks make the error surface uneven in W1 and W2: several starts, the best one kept
    starts = [(a, b) for a in (0.5, 0.7, 0.85) for b in (0.2, 0.5)]
    size = np.log(cache_size_byte)
    low = [np.log(fast / 4.0), np.log(slow / 4.0), size + np.log(0.1), size + np.log(0.01)]
    high = [np.log(fast * 4.0), np.log(slow * 4.0), size + np.log(3.0), size + np.log(5.0)]
    found = [
        least_squares(
            error,
            np.log([fast, slow, a * cache_size_byte, b * cache_size_byte]),
            bounds=(low, high),
            loss="soft_l1",
            f_scale=0.02,
        )
        for a, b in starts
    ]
    best = min(found, key=lambda s: float(s.cost))
    fitted = curve(best.x)
    off = float(np.median(np.abs(error(best.x))))
    return Knees(fitted.cache_byte_per_s, fitted.memory_byte_per_s, fitted.start_byte, fitted.end_byte, off)


@dataclass(frozen=True)
class Saturation:
    """BW(g) = limit · u/(1 + u^p)^(1/p) with u = g/half: linear for a few blocks, flat for many."""

    limit: float
    blocks: float
    sharpness: float
    error: float

    def rate(self, blocks: ArrayLike) -> FloatArray:
        u = np.asarray(blocks, dtype=np.float64) / self.blocks
        return self.limit * u / (1.0 + u**self.sharpness) ** (1.0 / self.sharpness)


def fit_saturation(blocks: ArrayLike, rate: ArrayLike) -> Saturation:
    """Fit how a rate grows with the number of blocks, by least squares in ln rate. InputError below four points."""
    from scipy.optimize import least_squares

    g, y = _points("grid sweep", blocks, rate, 4)

    def curve(x: FloatArray) -> Saturation:
        return Saturation(float(np.exp(x[0])), float(np.exp(x[1])), float(np.exp(x[2])), 0.0)

    def error(x: FloatArray) -> FloatArray:
        return np.log(curve(x).rate(g) / y)

    first = [np.log(y.max()), np.log(y.max() / float(np.max(y / g))), np.log(3.0)]
    bounds = ([-np.inf, -np.inf, np.log(0.5)], [np.inf, np.inf, np.log(50.0)])
    x = least_squares(error, first, bounds=bounds).x
    fitted = curve(x)
    return Saturation(fitted.limit, fitted.blocks, fitted.sharpness, float(np.median(np.abs(error(x)))))


@dataclass(frozen=True)
class Line:
    """t = fixed + amount/rate."""

    fixed_s: float
    rate: float
    error: float

    def time_s(self, amount: ArrayLike) -> FloatArray:
        return self.fixed_s + np.asarray(amount, dtype=np.float64) / self.rate


def fit_line(amount: ArrayLike, time_s: ArrayLike) -> Line:
    """Fit a fixed cost and a rate to times over five decades, each point weighing the same (in ln t)."""
    from scipy.optimize import least_squares

    v, t = _points("copies by size", amount, time_s, 3)

    def error(x: FloatArray) -> FloatArray:
        return np.asarray(np.log((np.exp(x[0]) + v * np.exp(x[1])) / t), dtype=np.float64)

    largest = int(np.argmax(v))
    x = least_squares(error, np.log([t.min(), t[largest] / v[largest]]), loss="soft_l1", f_scale=0.1).x
    return Line(float(np.exp(x[0])), float(np.exp(-x[1])), float(np.median(np.abs(error(x)))))


def fit_slope(count: ArrayLike, time_s: ArrayLike) -> tuple[float, float]:
    """(first, each further): t = first + (count - 1) · each, by least squares. InputError below two counts."""
    n, t = _points("concurrent kernels", count, time_s, 2)
    each, first = np.polyfit(n - 1.0, t, 1)
    return float(first), float(each)


def plateau(x: ArrayLike, y: ArrayLike, low: float, high: float) -> float:
    """Median of y where low <= x <= high. InputError if the sweep has no point there."""
    a, b = _points("sweep", x, y, 1)
    inside = (a >= low) & (a <= high)
    if not inside.any():
        raise InputError(f"sweep: no point between {low:g} and {high:g}")
    return float(np.median(b[inside]))
