"""Conformal bands: normalised by a learned difficulty, Mondrian by family, pooled where a family has too few rows.

The arithmetic is crepes' (Boström 2022). Scores are |residual| ÷ difficulty of rows that neither the residual nor the
difficulty has seen, so a band at level 1−α covers with probability at least 1−α for exchangeable rows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEWEST_SCORES = 40
"""A family with fewer calibration rows takes the pooled scores: its own quantile would be the luck of a few rows."""


@dataclass
class Bands:
    """Calibration scores, pooled and by family, each sorted downwards (crepes' order)."""

    pooled: Floats
    by_family: dict[str, Floats] = field(default_factory=dict)

    def half_width(self, sigma: Floats, family: NDArray[Any], level: float) -> tuple[Floats, NDArray[np.bool_]]:
        """Half-width of the log-time band of each row, and where the pooled scores were used.

        sigma: difficulty (n,); infinite where there are too few scores for the level.
        """
        labels, codes = np.unique(family.astype(str), return_inverse=True)
        pooled = np.array([label not in self.by_family for label in labels])
        quantile = np.array([self._quantile(self.by_family.get(str(label), self.pooled), level) for label in labels])
        return sigma * quantile[codes], pooled[codes]

    @staticmethod
    def _quantile(scores: Floats, level: float) -> float:
        from crepes import ConformalRegressor

        if scores.size == 0:
            return np.inf
        regressor = ConformalRegressor().fit(scores)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # too few scores: crepes warns and answers ±inf, which is what we want
            interval = regressor.predict_int(np.zeros(1), confidence=level)
        return float(interval[0, 1])


MOST_SCORES = 3000


def _sorted_scores(scores: Floats) -> Floats:
    """Scores downwards; of very many, evenly spaced order statistics: the quantiles stay, the file shrinks."""
    ordered = np.sort(scores)[::-1]
    keep = np.unique(np.linspace(0, len(ordered) - 1, min(len(ordered), MOST_SCORES)).round().astype(int))
    return ordered[keep]


def fit_bands(residual: Floats, sigma: Floats, family: NDArray[Any]) -> Bands:
    """Scores of calibration rows: out-of-fold residual (n,), out-of-fold difficulty (n,), family (n,)."""
    scores = np.abs(residual) / sigma
    names, counts = np.unique(family.astype(str), return_counts=True)
    own = {
        str(name): _sorted_scores(scores[family == name])
        for name, count in zip(names, counts, strict=True)
        if count >= FEWEST_SCORES
    }
    return Bands(_sorted_scores(scores), own)
