"""Conformal bands: normalised by a learned difficulty, Mondrian by class, pooled where a family has too few rows.

A class is a regime of a family (implementation and precision) where it has scores enough, else the family.

The arithmetic is that of crepes (Boström 2022), with which the tests compare. Scores are |residual| ÷ difficulty of
rows that neither the residual nor the difficulty has seen, so a band at level 1−α covers with probability at least
1−α for exchangeable rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..learners.residual import to_residual
from .encode import MISSING
from .family import Part, take
from .protocol import LearnedFamily

Floats = NDArray[np.float64]

FEWEST_SCORES = 40
"""A family with fewer calibration rows takes the pooled scores: its own quantile would be the luck of a few rows."""
FEWEST_OF_REGIME = 150
"""A regime with fewer rows takes its family's scores, which are about the same thing and more of them."""


@dataclass
class Bands:
    """Calibration scores, pooled and by class (`family` or `family|regime`), each sorted downwards."""

    pooled: Floats
    by_class: dict[str, Floats] = field(default_factory=dict)

    def half_width(self, sigma: Floats, family: NDArray[Any], level: float, regime: NDArray[Any] | None = None
                   ) -> tuple[Floats, NDArray[np.bool_]]:
        """Half-width of the log-time band of each row, and where the pooled scores were used.

        sigma: difficulty (n,); family, regime: labels (n,). Infinite where there are too few scores for the level.
        """
        labels, codes = np.unique(class_labels(family, regime), return_inverse=True)
        scores = [self.scores_of(str(label)) for label in labels]
        pooled = np.array([found is None for found in scores])
        quantile = np.array([self._quantile(self.pooled if found is None else found, level) for found in scores])
        return sigma * quantile[codes], pooled[codes]

    def scores_of(self, label: str) -> Floats | None:
        """Scores of a `family|regime` label: its own, else its family's, else None (the pooled ones)."""
        own = self.by_class.get(label)
        return own if own is not None else self.by_class.get(label.partition("|")[0])

    @staticmethod
    def _quantile(scores: Floats, level: float) -> float:
        """The least score that as many new ones as `level` says stay below, by one more score than there is.

        Infinite where no score is that high: too few were seen.
        """
        place = int((1.0 - level) * (scores.size + 1)) - 1
        return float(scores[place]) if place >= 0 else np.inf


FEWEST_GROUPS = 12
"""With fewer groups the one unseen group alone would weigh more than a 90 % band can leave out."""
OF_GROUP = 20
"""Order statistics that stand for a group's scores."""
MOST_SCORES = 4000


def midpoints(count: int) -> Floats:
    """Levels of `count` quantiles that stand for equal shares of a sample."""
    return np.asarray((np.arange(count) + 0.5) / count)


def sorted_scores(scores: Floats) -> Floats:
    """Scores downwards; of very many, evenly spaced order statistics: the quantiles stay, the file shrinks."""
    ordered = np.sort(scores)[::-1]
    keep = np.unique(np.linspace(0, len(ordered) - 1, min(len(ordered), MOST_SCORES)).round().astype(int))
    return np.asarray(ordered[keep])


def class_labels(family: NDArray[Any], regime: NDArray[Any] | None) -> NDArray[Any]:
    """`family|regime` of each row; the family alone where there is no regime."""
    names = family.astype(str)
    return names if regime is None else np.char.add(np.char.add(names, "|"), regime.astype(str))


def fit_bands(residual: Floats, sigma: Floats, family: NDArray[Any], regime: NDArray[Any] | None = None,
              group: NDArray[Any] | None = None) -> Bands:
    """Scores of calibration rows: out-of-fold residual and difficulty (n,), labels of family, regime and group (n,).

    With groups every group counts the same, however many rows it has, and one group more than was seen is taken to be
    as bad as can be (hierarchical conformal prediction, Lee, Barber and Willett 2023): what is promised is coverage on
    a group not seen before, and a dozen sizes of one site are not a dozen independent witnesses.
    """
    scores = np.abs(residual) / sigma
    own = _by_label(scores, family.astype(str), group, FEWEST_SCORES)
    if regime is not None:
        own |= _by_label(scores, class_labels(family, regime), group, FEWEST_OF_REGIME)
    return Bands(_class_scores(scores, group), own)


def _by_label(scores: Floats, labels: NDArray[Any], group: NDArray[Any] | None, fewest: int) -> dict[str, Floats]:
    out = {}
    for name, count in zip(*np.unique(labels, return_counts=True), strict=True):
        rows = labels == name
        if count >= fewest and (group is None or len(np.unique(group[rows])) >= FEWEST_GROUPS):
            out[str(name)] = _class_scores(scores[rows], None if group is None else group[rows])
    return out


def _class_scores(scores: Floats, group: NDArray[Any] | None) -> Floats:
    if group is None:
        return sorted_scores(scores)
    order = np.argsort(group, kind="stable")
    ends = np.flatnonzero(np.diff(np.unique(group[order], return_inverse=True)[1])) + 1
    at = midpoints(OF_GROUP)
    balanced = [np.quantile(part, at, method="inverted_cdf") for part in np.split(scores[order], ends)]
    return sorted_scores(np.concatenate([*balanced, np.full(OF_GROUP, np.inf)]))


UNKNOWN = "?"
"""A label that no model knows."""
OF_IMPLEMENTATION = 200
"""Order statistics that stand for one implementation: each counts the same, however many rows it has."""
MOST_ROWS = 4000


def unlabelled(part: Part) -> Part:
    """The same rows with an implementation that no model knows."""
    unknown = np.full(len(part.index), UNKNOWN)
    rows = replace(part.rows, categories={**part.rows.categories, "implementation": unknown})
    precision = np.char.partition(part.regime.astype(str), "|")[:, 2] if len(part.index) else unknown
    return replace(part, rows=rows, regime=np.char.add(f"{UNKNOWN}|", precision))


def _scores_without_label(model: LearnedFamily, parts: Sequence[Part], time_s: Floats) -> Floats:
    """|log(measured ÷ predicted without the label)| of one family, balanced over implementations; empty where one."""
    names = np.concatenate([part.rows.categories["implementation"].astype(str) for part in parts])
    known = [name for name in np.unique(names) if name not in MISSING]
    if len(known) < 2:
        return np.zeros(0)
    error = np.concatenate([
        to_residual(time_s[part.index], model.calibrated_s(masked)) - model.log_correction(masked)[0]
        for part in parts for masked in [unlabelled(part)]
    ])
    at = midpoints(OF_IMPLEMENTATION)
    return np.concatenate([np.quantile(np.abs(error[names == name]), at) for name in known])


def bands_without_label(learned: Iterable[tuple[LearnedFamily, Sequence[Part]]], time_s: Floats) -> Bands:
    """What a prediction is worth where somebody else's kernel ran: an implementation that no training row names.

    Rows are predicted as if their label were unknown and compared with what was measured, time_s (n,) [s]. Families
    with one implementation tell nothing of that; they take the pooled scores, to which every family adds alike.
    """
    own = {model.family: _scores_without_label(model, [_few(part) for part in parts], time_s)
           for model, parts in learned}
    own = {family: scores for family, scores in own.items() if len(scores) >= FEWEST_SCORES}
    pooled = [np.quantile(scores, midpoints(OF_IMPLEMENTATION)) for scores in own.values()]
    return Bands(sorted_scores(np.concatenate([*pooled, np.zeros(0)])),
                 {family: sorted_scores(scores) for family, scores in own.items()})


def _few(part: Part) -> Part:
    """Evenly spaced rows of a large part: quantiles do not need them all."""
    keep = np.zeros(len(part.index), dtype=bool)
    keep[:: max(1, len(keep) // MOST_ROWS)] = True
    return take(part, keep)
