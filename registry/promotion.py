"""A challenger becomes champion only if it is better on held-out rows by a paired test.

`paired_better` is what the registry asks: both models' errors on the same rows that neither has seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SIGNIFICANCE = 0.05
FEWEST_PAIRS = 6
"""With five pairs even five wins of five are no better than p = 0.03 one-sided, and one tie undoes it."""


@dataclass(frozen=True)
class Verdict:
    """Whether the challenger is better, the one-sided p-value of that claim (NaN: not tested), and why in words."""

    better: bool
    p_value: float
    words: str


def paired_better(challenger_error: Any, champion_error: Any, group: Any = None, *,
                  significance: float = SIGNIFICANCE) -> Verdict:
    """Wilcoxon's signed-rank test (1945) on |log(predicted ÷ measured)| or relative errors of the same rows.

    challenger_error, champion_error: (n,), either sign; rows where either is not finite are left out. group: split
    group of each row; the rows of a group are alike, so they are averaged into one pair. Better means a smaller mean
    error and p below `significance`.
    """
    new, old = np.abs(np.asarray(challenger_error, dtype=float)), np.abs(np.asarray(champion_error, dtype=float))
    if new.shape != old.shape:
        raise ValueError(f"errors of the same rows are compared: {new.shape} against {old.shape}")
    ok = np.isfinite(new) & np.isfinite(old)
    unit = "rows"
    if group is not None and len(np.unique(np.asarray(group).astype(str)[ok])) >= FEWEST_PAIRS:
        _, codes = np.unique(np.asarray(group).astype(str)[ok], return_inverse=True)
        count = np.bincount(codes)
        new, old = np.bincount(codes, new[ok]) / count, np.bincount(codes, old[ok]) / count
        unit = f"groups ({int(ok.sum())} rows)"
    else:
        new, old = new[ok], old[ok]
    n = len(new)
    if n < FEWEST_PAIRS:
        why = f"not tested: {n} held-out {unit} in common, at least {FEWEST_PAIRS} needed"
        return Verdict(False, float("nan"), why)
    p = _p_value(new, old)
    scores = f"mean error {100 * new.mean():.2f} % against {100 * old.mean():.2f} % on {n} held-out {unit}, p = {p:.2g}"
    if new.mean() >= old.mean():
        return Verdict(False, p, f"not better: {scores}")
    if p >= significance:
        return Verdict(False, p, f"lower, but within chance: {scores} (needs p < {significance:g})")
    return Verdict(True, p, f"better: {scores}")


def _p_value(new: Floats, old: Floats) -> float:
    from scipy.stats import wilcoxon

    if np.all(new == old):
        return 1.0
    return float(wilcoxon(new, old, alternative="less", zero_method="zsplit").pvalue)
