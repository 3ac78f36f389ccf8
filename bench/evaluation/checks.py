"""Whether a band keeps its promise: coverage in total, by class and by fifth of time, against binomial intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...training.hybrid.metrics import relative_half_width

if TYPE_CHECKING:
    import pandas as pd

FIFTHS = 5


def binomial_interval(rows: int, level: float, confidence: float = 0.95) -> tuple[float, float]:
    """Where the share of covered rows falls with probability `confidence` if each is covered with probability `level`.

    Rows of one group are alike, so the true interval is wider: a class outside it is a question, not a verdict.
    """
    from scipy.stats import binom

    if rows == 0:
        return 0.0, 1.0
    low, high = binom.ppf([(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0], rows, level)
    return float(low) / rows, float(high) / rows


def covered(rows: pd.DataFrame) -> NDArray[np.bool_]:
    """Whether the measured time of each scored row lies in its band."""
    time_s = np.asarray(rows["time_s"], dtype=float)
    return (np.asarray(rows["lower_s"], dtype=float) <= time_s) & (time_s <= np.asarray(rows["upper_s"], dtype=float))


def coverage_line(label: str, inside: NDArray[np.bool_], level: float) -> dict[str, Any]:
    """{label, n, coverage, low, high, holds} of the rows in a class."""
    low, high = binomial_interval(inside.size, level)
    share = float(inside.mean()) if inside.size else float("nan")
    return {"label": label, "n": int(inside.size), "coverage": share, "low": low, "high": high,
            "holds": bool(low - 1e-9 <= share <= high + 1e-9)}


def band_check(rows: pd.DataFrame, classes: NDArray[Any], level: float) -> dict[str, Any]:
    """Coverage and width of scored rows (time_s, lower_s, upper_s, hybrid), by class label and by fifth of time."""
    inside = covered(rows)
    time_s = np.asarray(rows["time_s"], dtype=float)
    edges = np.quantile(time_s, np.linspace(0.0, 1.0, FIFTHS + 1)[1:-1])
    fifth = np.searchsorted(edges, time_s, side="right")
    bounds = np.concatenate([[time_s.min()], edges, [time_s.max()]])
    width = relative_half_width(rows["lower_s"], rows["upper_s"], rows["hybrid"])
    labels = classes.astype(str)
    return {
        "level": level,
        "total": coverage_line("all", inside, level),
        "classes": [coverage_line(str(c), inside[labels == c], level) for c in np.unique(labels)],
        "fifths": [
            coverage_line(f"{bounds[i] * 1e6:.3g} to {bounds[i + 1] * 1e6:.3g} us", inside[fifth == i], level)
            for i in range(FIFTHS) if (fifth == i).any()
        ],
        "median_half_width": float(np.median(width)),
        "unbounded": int(np.sum(~np.isfinite(width))),
    }
