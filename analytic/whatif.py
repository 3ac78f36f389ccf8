"""Questions a person asks of a model: which tile, which platform, where does one overtake another.

Overridden parameters are `Platform.with_overrides`; fusion, concurrency and devices are fields of a workload
(`workload.fuse_segments`, `Workload.concurrent_kernels`, `Workload.devices`) and equations of `generic`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .equation_sets import equation_set, matrix_time
from .errors import InputError
from .gemm_common import resolve_unit
from .gemm_tiles import candidates
from .platform import Platform
from .units import parse_quantity
from .validity import FloatArray, positive

SWEEP_POINTS = 129
LARGEST = 1e15
BISECTIONS = 40
TOLERANCE = 1e-10


@dataclass(frozen=True)
class TileTime:
    """One candidate tile of a matrix product and its analytic time; without one, `reason` says why it does not fit."""

    tile: tuple[int, int, int, int]
    time_s: float | None
    terms: dict[str, float]
    waves: float
    wave_efficiency: float
    reason: str = ""


def tile_ranking(
    platform: Platform,
    m: float,
    n: float,
    k: float,
    batch: float = 1.0,
    precision: str = "bf16",
    *,
    cache: str = "warm",
    tile: tuple[int, ...] | None = None,
) -> list[TileTime]:
    """Every candidate tile of a platform with its time, fastest first, those that do not fit last.

    arXiv 2605.04178 section IV.B: evaluate the candidates, take the minimum. `tile` looks at one tile only. Raises
    InputError for a precision the platform has not, or for a tile asked for that does not fit.
    """
    gemm = matrix_time(platform)
    unit = resolve_unit(platform, precision, "matrix")
    listed = candidates(platform, precision, unit, tile)
    if tile is None and not equation_set(platform).splits:
        listed = listed.keep(listed.split == 1.0)
    rows = np.concatenate([listed.tile_m, listed.tile_n, listed.tile_k, listed.split], axis=1).astype(int)
    found = []
    for row in rows.tolist():
        shape = (row[0], row[1], row[2], row[3])
        try:
            asked = shape if shape[3] > 1 else shape[:3]
            result = gemm(platform, m, n, k, batch, precision, tile=asked, unit=unit, cache=cache)
        except InputError as error:
            if tile is not None or "does not fit" not in str(error):
                raise
            found.append(TileTime(shape, None, {}, 0.0, 0.0, str(error)))
            continue
        terms = {name: float(values[0]) for name, values in result.terms.items()}
        found.append(TileTime(shape, float(result.time_s[0]), terms, float(result.details["waves"][0]),
                              float(result.details["wave_efficiency"][0])))
    return sorted(found, key=lambda item: (item.time_s is None, item.time_s or 0.0))


def ratios(times_s: ArrayLike) -> FloatArray:
    """Times relative to the first: 2 is twice as slow, 0.5 twice as fast."""
    times = positive("times_s", times_s)
    return np.asarray(times / times[0])


Difference = Callable[[FloatArray], FloatArray]
"""Positions in [0, 1] → log(time of one ÷ time of the other)."""


def find_crossings(
    difference: Difference, points: int = SWEEP_POINTS, tolerance: float = TOLERANCE
) -> tuple[FloatArray, FloatArray]:
    """(position, sign before it) of every change of sign of `difference` on [0, 1]: a sweep, then bisection of all
    brackets together. The position is the far end of the last bracket: there the sign has changed.

    A difference of exactly 0 takes the sign before it, so a tie is no crossing of its own. Two crossings within one
    sweep step are missed.
    """
    grid = np.linspace(0.0, 1.0, points)
    signs = _filled(np.sign(difference(grid)))
    where = np.flatnonzero(signs[1:] * signs[:-1] < 0)
    low, high, before = grid[where], grid[where + 1], signs[where]
    for _ in range(BISECTIONS):
        if low.size == 0 or np.max(high - low) < tolerance:
            break
        middle = 0.5 * (low + high)
        same = np.sign(difference(middle)) * before >= 0
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return high, before


def _filled(signs: FloatArray) -> FloatArray:
    """Zeros replaced by the sign before them (the first non-zero one at the start)."""
    index = np.where(signs != 0, np.arange(signs.size), 0)
    filled = signs[np.maximum.accumulate(index)]
    nonzero = signs[signs != 0]
    return np.where(filled == 0, nonzero[0] if nonzero.size else 0.0, filled)


@dataclass(frozen=True)
class Range:
    """A parameter that runs from low to high in equal steps of its logarithm; whole numbers where it is a count."""

    name: str
    low: float
    high: float
    whole: bool = True

    def at(self, position: ArrayLike) -> FloatArray:
        """Values at positions in [0, 1]."""
        value = self.low * (self.high / self.low) ** np.asarray(position, dtype=np.float64)
        return np.rint(value) if self.whole else value


def parse_range(name: str, text: str, whole: bool = True, unit: str = "") -> Range | None:
    """`64..16384`, or `1 MB..2 GB` in `unit`, as a Range; None for text that is no range. InputError for a range that
    runs nowhere."""
    low_text, dots, high_text = text.partition("..")
    if not dots:
        return None
    try:
        low, high = (parse_quantity(part, unit) if unit else float(part) for part in (low_text, high_text))
    except (ValueError, InputError) as error:
        why = f" ({error})" if isinstance(error, InputError) else ""
        raise InputError(f"{name}={text}: write a range as LOW..HIGH, such as {name}=64..16384{why}") from None
    if not (np.isfinite(low) and np.isfinite(high) and 0 < low < high):
        raise InputError(f"{name}={text}: a range needs 0 < LOW < HIGH")
    if high > LARGEST:
        raise InputError(f"{name}={text}: {high:g} is too large for the size of anything")
    return Range(name, low, high, whole)


@dataclass(frozen=True)
class Crossing:
    """Where the faster one changes: the swept parameters there, and who is faster before and after."""

    values: dict[str, float]
    before: int
    after: int


def crossings(
    ranges: Sequence[Range], log_ratio: Difference, points: int = SWEEP_POINTS, tolerance: float = TOLERANCE
) -> list[Crossing]:
    """Sizes at which one of two candidates overtakes the other, along ranges that are swept together.

    `log_ratio(position)` is log(time of the first ÷ time of the second). A whole-number size is the first one at which
    the order has changed.
    """
    positions, before = find_crossings(log_ratio, points, tolerance)
    return [
        Crossing({item.name: float(item.at(position)) for item in ranges}, int(sign > 0), int(sign < 0))
        for position, sign in zip(positions, before, strict=True)
    ]
