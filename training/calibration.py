"""The calibrated analytic model: how much of each physical term a family really pays, by non-negative least squares.

T ≈ Σ cⱼ·termⱼ with cⱼ ≥ 0, fitted to relative errors (each row divided by its measured time). One set of cⱼ a regime
(implementation and precision) where it has rows enough, else a family's. The multipliers are stored and disclosed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.baseline import Baseline

Floats = NDArray[np.float64]
MICROSECOND = 1e-6
FEWEST_ROWS = 12
"""A regime with fewer rows takes the family's multipliers: six terms want at least two rows each."""
TERMS = ("constant", "launch", "compute", "memory", "cache", "chain", "baseline")


def term_matrix(base: Baseline) -> Floats:
    """Physical terms of n configurations [s], shape (n, len(TERMS)), each non-negative."""
    n = base.time_s.size
    zero = np.zeros(n)
    details, launch = base.details, base.terms.get("launch", zero)
    memory = details.get("memory_s", base.terms.get("memory", zero))
    compute = details.get("compute_s", base.terms.get("compute", zero))
    columns = (
        np.full(n, MICROSECOND), launch, compute, memory, details.get("cache_s", zero), details.get("chain_s", zero),
        base.time_s,
    )  # fmt: skip
    return np.column_stack([np.broadcast_to(c, (n,)) for c in columns])


@dataclass
class Calibration:
    """Multipliers of a family: `whole` for any row, `regimes` by regime label; each of shape (len(TERMS),)."""

    whole: Floats
    regimes: dict[str, Floats] = field(default_factory=dict)

    def predict_s(self, terms: Floats, regime: NDArray[Any]) -> Floats:
        """Calibrated analytic time [s] of rows with `terms` (n, len(TERMS)) in `regime` (n,)."""
        labels, codes = np.unique(regime.astype(str), return_inverse=True)
        table = np.stack([self.regimes.get(str(label), self.whole) for label in labels])
        return np.asarray(np.maximum(np.einsum("ij,ij->i", terms, table[codes]), 1e-9))


def _solve(terms: Floats, time_s: Floats) -> Floats:
    from scipy.optimize import nnls

    scaled = terms / time_s[:, None]
    # a faint pull towards the plain baseline keeps few rows from switching terms off by accident
    pull = 0.03 * np.sqrt(len(time_s)) * np.eye(len(TERMS)) * np.maximum(np.median(scaled, axis=0), 1e-9)
    target = np.zeros(len(TERMS))
    target[TERMS.index("baseline")] = pull[-1, -1]
    solution, _ = nnls(np.vstack([scaled, pull]), np.concatenate([np.ones(len(time_s)), target]))
    return np.asarray(solution)


def fit_calibration(terms: Floats, regime: NDArray[Any], time_s: Floats) -> Calibration:
    """Fit multipliers to measured rows of one family: terms (n, len(TERMS)) [s], regime (n,), time_s (n,) [s]."""
    regime = regime.astype(str)
    whole = _solve(terms, time_s)
    regimes = {
        str(label): _solve(terms[regime == label], time_s[regime == label])
        for label, count in zip(*np.unique(regime, return_counts=True), strict=True)
        if count >= FEWEST_ROWS
    }
    return Calibration(whole, regimes)
