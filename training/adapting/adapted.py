"""A family adapted to new hardware: what source models say of it, corrected by a few runs of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hybrid.calibration import TERMS
from ..hybrid.family import FamilyModel, Part
from ..learners.network import Network
from .fewrows import FewProcess
from .fewterms import few_terms, plain

Floats = NDArray[np.float64]


NETWORK_WEIGHT = 2.0
"""Network against trees among the joint learners: steps of trees carry over worse to shapes and chips not seen."""


def source_contributions(source: FamilyModel, part: Part) -> Floats:
    """What each physical term adds to a source's calibrated time [s], (n, len(TERMS)); they add up to that time."""
    whole = source.calibrated_s(part)
    one = np.eye(len(TERMS))
    columns = np.column_stack([source.calibration.predict_s(part.terms * row, part.regime) for row in one])
    return np.asarray(columns * (whole / columns.sum(axis=1))[:, None])


def contributions(sources: Sequence[FamilyModel], part: Part) -> Floats:
    """Terms that the few runs may scale, (n, terms) [s].

    With sources: the terms of their calibrated times (their mean), each scaled by 1 where nothing is learned.
    Without: `few_terms`.
    """
    if not sources:
        return few_terms(part.terms, part.rows)
    if any(isinstance(source, AdaptedFamily) for source in sources):
        return np.mean([source.calibrated_s(part) for source in sources], axis=0)[:, None]
    return np.asarray(np.mean([source_contributions(source, part) for source in sources], axis=0))


def prior_multipliers(sources: Sequence[FamilyModel], terms: int) -> Floats:
    """Multipliers before any run was seen: the sources' own terms as they are, or the plain baseline alone."""
    return np.ones(terms) if sources else plain()


def transferred_log(sources: Sequence[FamilyModel], part: Part) -> Floats:
    """Log of the time [s] the sources give, the mean of theirs; NaN-free only with at least one source."""
    return np.asarray(np.mean([np.log(s.calibrated_s(part)) + s.log_correction(part)[0] for s in sources], axis=0))


def joint_log(trees: Any, network: Network | None, x: Floats) -> Floats:
    """Correction (n,) by the learners of sources and few runs together: trees, and twice as much of the network."""
    from xgboost import DMatrix

    out = np.asarray(trees.predict(DMatrix(x)), dtype=np.float64)
    return out if network is None else (out + NETWORK_WEIGHT * network.predict(x)) / (1.0 + NETWORK_WEIGHT)


@dataclass
class AdaptedFamily(FamilyModel):
    """`encoder` spans the few runs (and the source rows); `calibration` and `residual` of the base class are unused.

    log T = (1 − share)·(log prior + carried) + share·[log base + (1 − joint_share)·(carried + shift + process)
    + joint_share·(joint learners)]: the base holds the multipliers, the prior is what it was before the runs, carried
    is the correction of the sources. share < 1 where the whole correction lost with runs left out. `kind` names what
    was chosen.
    """

    sources: list[FamilyModel] = field(default_factory=list)
    multipliers: Floats = field(default_factory=lambda: np.zeros(0))
    shift: float = 0.0
    process: FewProcess | None = None
    joint: Any = None
    network: Network | None = None
    joint_share: float = 0.0
    kind: str = ""
    share: float = 1.0

    def calibrated_s(self, part: Part) -> Floats:
        """The analytic terms as scaled by the few runs [s]."""
        terms = contributions(self.sources, part)
        base = np.log(np.maximum(terms[:, : len(self.multipliers)] @ self.multipliers, 1e-9))
        return np.asarray(np.exp(base + (1.0 - self.share) * (self._prior_log(terms) - base)))

    def _prior_log(self, terms: Floats) -> Floats:
        return np.log(np.maximum(terms @ prior_multipliers(self.sources, terms.shape[1]), 1e-9))

    def beyond_s(self, part: Part) -> Floats:
        """The scaled terms: pulled to the multipliers of the sources, whose range is wider than that of a few runs."""
        return self.calibrated_s(part)

    def log_correction(self, part: Part) -> tuple[Floats, Floats]:
        """(correction, disagreement of its members) of each row."""
        terms = contributions(self.sources, part)
        carried = np.zeros(len(terms))
        if self.sources:
            carried = transferred_log(self.sources, part) - self._prior_log(terms)
        x = self.encoder.matrix(part.rows)
        smooth = carried + self.shift + (self.process.predict(x) if self.process is not None else 0.0)
        if self.joint is None:
            return carried + self.share * (smooth - carried), np.abs(smooth - carried)
        joint = joint_log(self.joint, self.network, x)
        whole = smooth + self.joint_share * (joint - smooth)
        return carried + self.share * (whole - carried), np.abs(joint - smooth)
