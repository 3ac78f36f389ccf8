"""Where an equation may be trusted, as data beside the formula, and which inputs leave that range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InputError

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Validity:
    """One input of an equation and the closed interval `[low, high]` (SI `unit`) it was published or checked for."""

    name: str
    low: float
    high: float
    unit: str


def outside(ranges: Iterable[Validity], values: Mapping[str, ArrayLike]) -> dict[str, BoolArray]:
    """Return, per named input, a boolean array that is True where the input leaves its range (NaN counts as outside).

    Inputs absent from `values` are not reported; a name in `values` that no range knows is an InputError.
    """
    known = {item.name: item for item in ranges}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise InputError(f"validity: no range named {', '.join(unknown)}; valid: {', '.join(sorted(known))}")
    report: dict[str, BoolArray] = {}
    for name, value in values.items():
        array = np.asarray(value, dtype=np.float64)
        report[name] = ~((array >= known[name].low) & (array <= known[name].high))
    return report


def as_float(value: ArrayLike) -> FloatArray:
    """Return `value` as a float64 array."""
    return np.asarray(value, dtype=np.float64)


def _first_bad(array: FloatArray, ok: BoolArray) -> str:
    flat = np.flatnonzero(~np.atleast_1d(ok))
    return f"{np.atleast_1d(array).ravel()[flat[0]]:g} at position {flat[0]}"


def fraction(name: str, value: ArrayLike) -> FloatArray:
    """Return `value` as floats in [0, 1] (an overlap factor, a hit rate), or raise InputError."""
    array = as_float(value)
    ok = (array >= 0.0) & (array <= 1.0)
    if not ok.all():
        raise InputError(f"{name} is {_first_bad(array, ok)}; a fraction between 0 and 1 is needed")
    return array


def positive(name: str, value: ArrayLike) -> FloatArray:
    """Return `value` as finite floats > 0 (a rate, a size), or raise InputError."""
    array = as_float(value)
    ok = np.isfinite(array) & (array > 0.0)
    if not ok.all():
        raise InputError(f"{name} is {_first_bad(array, ok)}; a finite number above 0 is needed")
    return array


def non_negative(name: str, value: ArrayLike) -> FloatArray:
    """Return `value` as finite floats >= 0 (a latency, a byte count), or raise InputError."""
    array = as_float(value)
    ok = np.isfinite(array) & (array >= 0.0)
    if not ok.all():
        raise InputError(f"{name} is {_first_bad(array, ok)}; a finite number, 0 or more, is needed")
    return array


def at_least_one(name: str, value: ArrayLike) -> FloatArray:
    """Return `value` as finite floats >= 1 (a count), or raise InputError."""
    array = as_float(value)
    ok = np.isfinite(array) & (array >= 1.0)
    if not ok.all():
        raise InputError(f"{name} is {_first_bad(array, ok)}; a count of 1 or more is needed")
    return array
