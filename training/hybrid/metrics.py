"""Errors as people in this field report them: absolute relative error in percent; coverage and width of bands."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def relative_error(predicted_s: Any, measured_s: Any) -> Floats:
    """|predicted − measured| ÷ measured of each row."""
    predicted, measured = np.asarray(predicted_s, dtype=float), np.asarray(measured_s, dtype=float)
    return np.asarray(np.abs(predicted - measured) / measured)


def summary(predicted_s: Any, measured_s: Any) -> dict[str, float]:
    """{mape, median_ape, p90_ape} in percent; NaN where there is no row."""
    error = relative_error(predicted_s, measured_s)
    error = error[np.isfinite(error)]
    if error.size == 0:
        return {"mape": np.nan, "median_ape": np.nan, "p90_ape": np.nan}
    return {
        "mape": 100.0 * float(error.mean()),
        "median_ape": 100.0 * float(np.median(error)),
        "p90_ape": 100.0 * float(np.quantile(error, 0.9)),
    }


def coverage(lower_s: Any, upper_s: Any, measured_s: Any) -> float:
    """Share of rows whose measured time lies inside the band; an unbounded side always covers."""
    lower, upper = np.asarray(lower_s, dtype=float), np.asarray(upper_s, dtype=float)
    lower, upper = np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper)
    measured = np.asarray(measured_s, dtype=float)
    return float(np.mean((lower <= measured) & (measured <= upper))) if measured.size else np.nan


def relative_half_width(lower_s: Any, upper_s: Any, predicted_s: Any) -> Floats:
    """(upper − lower) ÷ 2 ÷ predicted of each row; infinite where the band is unbounded."""
    width = (np.asarray(upper_s, dtype=float) - np.asarray(lower_s, dtype=float)) / 2.0
    relative = width / np.asarray(predicted_s, dtype=float)
    return np.asarray(np.where(np.isnan(relative), np.inf, relative))


def mape_of_log(error: Floats) -> float:
    """Mean |predicted − measured| ÷ measured, as a share, of errors log(measured ÷ predicted) (n,)."""
    return float(np.mean(np.abs(np.expm1(-error))))
