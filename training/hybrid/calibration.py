"""The calibrated analytic model: how much of each physical term a family really pays, by non-negative least squares.

T ≈ Σ cⱼ·termⱼ with cⱼ ≥ 0, fitted to relative errors (each row divided by its measured time). One set of cⱼ a regime
(implementation and precision) where it has rows enough, else a family's. The multipliers are stored and disclosed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...analytic.baseline import Baseline

Floats = NDArray[np.float64]
MICROSECOND = 1e-6
FEWEST_ROWS = 12
"""A regime with fewer rows takes the family's multipliers: six terms want at least two rows each."""
TERMS = ("constant", "launch", "compute", "memory", "cache", "chain", "baseline", "cold_start", "rounds", "unit")
"""What a multiplier is fitted to. New terms come last: a model stored before a term was added has no multiplier for it,
and takes it as zero."""

IN_BASELINE = np.array([float(name in ("launch", "compute", "memory", "cache", "chain", "baseline")) for name in TERMS])
"""Multiplier that the plain analytic time gives each term: 1 for what it is made of, 0 for what only a fit may add."""
LEVEL = [TERMS.index("constant"), TERMS.index("launch")]


def term_matrix(base: Baseline) -> Floats:
    """Physical terms of n configurations [s], shape (n, len(TERMS)), each non-negative."""
    n = base.time_s.size
    zero = np.zeros(n)
    details, launch = base.details, base.terms.get("launch", zero)
    memory = details.get("memory_s", base.terms.get("memory", zero))
    compute = details.get("compute_s", base.terms.get("compute", zero))
    columns = (
        np.full(n, MICROSECOND), launch, compute, memory, details.get("cache_s", zero), details.get("chain_s", zero),
        base.time_s, details.get("cold_start_s", zero), details.get("rounds_s", zero), details.get("unit_s", zero),
    )
    return np.column_stack([np.broadcast_to(c, (n,)) for c in columns])


@dataclass
class Calibration:
    """Multipliers of a family: `whole` for any row, `regimes` by regime label; each of shape (len(TERMS),)."""

    whole: Floats
    regimes: dict[str, Floats] = field(default_factory=dict)
    known_whole: Floats = field(default_factory=lambda: np.zeros(len(TERMS)))
    known: dict[str, Floats] = field(default_factory=dict)
    """How well the training rows tell each multiplier, 0 to 1, by regime like the multipliers: see `_known`."""

    def predict_s(self, terms: Floats, regime: NDArray[Any]) -> Floats:
        """Calibrated analytic time [s] of rows with `terms` (n, len(TERMS)) in `regime` (n,)."""
        multipliers = _of_rows(self.whole, self.regimes, regime)
        return np.asarray(np.maximum(np.einsum("ij,ij->i", terms[:, : multipliers.shape[1]], multipliers), 1e-9))

    def known_share(self, terms: Floats, regime: NDArray[Any]) -> Floats:
        """Share of each row's time (n,) that rests on multipliers which the training rows tell, 0 to 1."""
        multipliers = _of_rows(self.whole, self.regimes, regime)
        count = multipliers.shape[1]
        parts = np.maximum(multipliers, IN_BASELINE[:count]) * terms[:, :count]
        known = _of_rows(self.known_whole, self.known, regime)[:, :count]
        return np.asarray(np.einsum("ij,ij->i", parts, known) / np.maximum(parts.sum(axis=1), 1e-12))


def _of_rows(whole: Floats, regimes: dict[str, Floats], regime: NDArray[Any]) -> Floats:
    """Row i's entry of a table by regime (n, terms), the family's where its regime has none."""
    labels, codes = np.unique(regime.astype(str), return_inverse=True)
    return np.stack([regimes.get(str(label), whole) for label in labels])[codes]


def _known(multipliers: Floats, terms: Floats, time_s: Floats) -> Floats:
    """How well rows tell each multiplier: 1 where the term, as large as the analytic model or the fit has it, would
    make up all of the measured time in a twentieth of the rows; less where it stays in the shade of the others."""
    share = np.maximum(multipliers, IN_BASELINE) * terms / time_s[:, None]
    share[:, LEVEL] = share[:, LEVEL].sum(axis=1, keepdims=True)  # these move together: only their sum is told
    return np.asarray(np.clip(np.quantile(share, 0.95, axis=0), 0.0, 1.0))


def _solve(terms: Floats, time_s: Floats) -> Floats:
    from scipy.optimize import nnls

    scaled = terms / time_s[:, None]
    # a faint pull towards the plain baseline keeps few rows from switching terms off by accident
    pull = 0.03 * np.sqrt(len(time_s)) * np.eye(len(TERMS)) * np.maximum(np.median(scaled, axis=0), 1e-9)
    target = np.zeros(len(TERMS))
    at = TERMS.index("baseline")
    target[at] = pull[at, at]
    solution, _ = nnls(np.vstack([scaled, pull]), np.concatenate([np.ones(len(time_s)), target]))
    return np.asarray(solution)


def fit_calibration(terms: Floats, regime: NDArray[Any], time_s: Floats) -> Calibration:
    """Fit multipliers to measured rows of one family: terms (n, len(TERMS)) [s], regime (n,), time_s (n,) [s]."""
    regime = regime.astype(str)
    whole = _solve(terms, time_s)
    enough = [str(label) for label, count in zip(*np.unique(regime, return_counts=True), strict=True)
              if count >= FEWEST_ROWS]
    rows = {label: (terms[regime == label], time_s[regime == label]) for label in enough}
    regimes = {label: _solve(*own) for label, own in rows.items()}
    known = {label: _known(regimes[label], *own) for label, own in rows.items()}
    return Calibration(whole, regimes, _known(whole, terms, time_s), known)
