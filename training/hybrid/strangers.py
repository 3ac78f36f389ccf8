"""What a prediction is worth where somebody else's kernel ran: an implementation that no training row names.

Rows are predicted as if their label were unknown and compared with what was measured. Families with one implementation
tell nothing of that; they take the scores of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..learners.residual import to_residual
from .bands import FEWEST_SCORES, Bands, midpoints, sorted_scores
from .encode import MISSING
from .family import FamilyModel, Part, take

Floats = NDArray[np.float64]
UNKNOWN = "?"
OF_IMPLEMENTATION = 200
"""Order statistics that stand for one implementation: each counts the same, however many rows it has."""
MOST_ROWS = 4000


def unlabelled(part: Part) -> Part:
    """The same rows with an implementation that no model knows."""
    unknown = np.full(len(part.index), UNKNOWN)
    rows = replace(part.rows, categories={**part.rows.categories, "implementation": unknown})
    precision = np.char.partition(part.regime.astype(str), "|")[:, 2] if len(part.index) else unknown
    return replace(part, rows=rows, regime=np.char.add(f"{UNKNOWN}|", precision))


def _scores(model: FamilyModel, parts: Sequence[Part], time_s: Floats) -> Floats:
    """|log(measured ÷ predicted without the label)| of one family, balanced over implementations; empty where one."""
    names = np.concatenate([part.rows.categories["implementation"].astype(str) for part in parts])
    known = [name for name in np.unique(names) if name not in MISSING]
    if len(known) < 2:
        return np.zeros(0)
    error = np.concatenate([
        to_residual(time_s[part.index], model.calibrated_s(masked)) - model.log_correction(masked)[0]
        for part in parts for masked in [unlabelled(part)]
    ])  # fmt: skip
    at = midpoints(OF_IMPLEMENTATION)
    return np.concatenate([np.quantile(np.abs(error[names == name]), at) for name in known])


def stranger_bands(learned: Iterable[tuple[FamilyModel, Sequence[Part]]], time_s: Floats) -> Bands:
    """Scores of unknown implementations by family and pooled (every family the same weight); time_s: (n,) [s]."""
    own = {model.family: _scores(model, [_few(part) for part in parts], time_s) for model, parts in learned}
    own = {family: scores for family, scores in own.items() if len(scores) >= FEWEST_SCORES}
    pooled = [np.quantile(scores, midpoints(OF_IMPLEMENTATION)) for scores in own.values()]
    return Bands(sorted_scores(np.concatenate([*pooled, np.zeros(0)])),
                 {family: sorted_scores(scores) for family, scores in own.items()})  # fmt: skip


def _few(part: Part) -> Part:
    """Evenly spaced rows of a large part: quantiles do not need them all."""
    keep = np.zeros(len(part.index), dtype=bool)
    keep[:: max(1, len(keep) // MOST_ROWS)] = True
    return take(part, keep)
