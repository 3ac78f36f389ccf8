"""A family adapted to new hardware: what source models say of it, corrected by a few runs of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...analytic.unmeasured import NAMES, Asked, near_chain, unmeasured_terms
from ...features.describe import Group
from ...features.rows import Rows
from ..hybrid.calibration import TERMS
from ..hybrid.family import FamilyModel, KnownFamily, Part
from ..hybrid.protocol import LearnedFamily
from ..learners.network import Network
from ..learners.process import FewProcess
from ..learners.trees import Trees

Floats = NDArray[np.float64]

NETWORK_WEIGHT = 2.0
"""Network against trees among the joint learners: steps of trees carry over worse to shapes and chips not seen."""
OCTAVES, SHARE, LABEL = 2.5, 0.35, 1.5
"""Sizes are scaled by so many octaves, shares by SHARE, labels by LABEL: one length of a process serves all columns."""
_PHYSICAL = ("log2_base", "log2_ctas_128", "log2_intensity", "log2_set_over_cache", "log2_blocks")


def process_scales(names: list[str], sizes: list[str]) -> Floats:
    """Unit of each column of a family's feature matrix in the process; 0 where the process does not look at it."""
    wanted = {f"log2_{name}" for name in sizes} | set(_PHYSICAL)
    return np.array([
        OCTAVES if name in wanted else SHARE if name.startswith("share_") else LABEL if "=" in name else 0.0
        for name in names
    ])


def shares_of(terms: Floats) -> Floats:
    """Share of each term in the time they add up to, (n, terms)."""
    return np.asarray(terms / np.maximum(terms.sum(axis=1, keepdims=True), 1e-12))


def _asked(terms: Floats, rows: Rows) -> Asked:
    at = {name: i for i, name in enumerate(rows.names)}

    def two_to(name: str, least: float = -np.inf) -> Floats:
        return np.asarray(np.exp2(np.maximum(np.nan_to_num(rows.values[:, at[name]], nan=0.0), least)))

    launch, compute, memory, chain, baseline = (
        terms[:, TERMS.index(name)] for name in ("launch", "compute", "memory", "chain", "baseline")
    )
    return Asked(launch, compute, memory, chain, baseline, two_to("log2_flop", 0.0), two_to("log2_byte"),
                 two_to("log2_reread", 0.0), two_to("log2_working_set"), two_to("log2_set_over_cache"),
                 two_to("log2_threads_per_unit"))


def few_terms(terms: Floats, rows: Rows, compute_units: float) -> Floats:
    """Columns of `analytic.unmeasured`, then those of `terms` (n, len(TERMS)), all [s].

    The chain among the latter waits as long as its working set asks for.
    """
    asked = _asked(terms, rows)
    rest = terms.copy()
    rest[:, TERMS.index("chain")] = near_chain(asked)
    return np.column_stack([unmeasured_terms(asked, compute_units), rest])


def plain() -> Floats:
    """Multipliers that give the analytic time of the parameter file as it is."""
    at = np.arange(len(NAMES) + len(TERMS))
    return np.asarray(at == len(NAMES) + TERMS.index("baseline"), dtype=np.float64)


def expected() -> Floats:
    """Multipliers that few runs are pulled to: the terms one by one, so that one of them may be found wrong without the
    others."""
    out = np.zeros(len(NAMES) + len(TERMS))
    out[[len(NAMES) + TERMS.index(name) for name in ("launch", "compute", "memory", "chain")]] = 1.0
    return out


def source_contributions(source: FamilyModel, part: Part) -> Floats:
    """What each physical term adds to a source's calibrated time [s], (n, len(TERMS)); they add up to that time."""
    whole = source.calibrated_s(part)
    one = np.eye(len(TERMS))
    columns = np.column_stack([source.calibration.predict_s(part.terms * row, part.regime) for row in one])
    return np.asarray(columns * (whole / columns.sum(axis=1))[:, None])


def contributions(sources: Sequence[LearnedFamily], part: Part, compute_units: float) -> Floats:
    """Terms that the few runs may scale, (n, terms) [s].

    With sources: the terms of their calibrated times (their mean), each scaled by 1 where nothing is learned.
    Without: `few_terms` on a platform of so many compute units.
    """
    if not sources:
        return few_terms(part.terms, part.rows, compute_units)
    fitted = [source for source in sources if isinstance(source, FamilyModel)]
    if len(fitted) < len(sources):
        return np.asarray(np.mean([source.calibrated_s(part) for source in sources], axis=0)[:, None])
    return np.asarray(np.mean([source_contributions(source, part) for source in fitted], axis=0))


def prior_multipliers(sources: Sequence[LearnedFamily], terms: int) -> Floats:
    """Multipliers before any run was seen: the sources' own terms as they are, or the plain baseline alone."""
    return np.ones(terms) if sources else plain()


def transferred_log(sources: Sequence[LearnedFamily], part: Part) -> Floats:
    """Log of the time [s] the sources give, the mean of theirs; NaN-free only with at least one source."""
    return np.asarray(np.mean([np.log(s.calibrated_s(part)) + s.log_correction(part)[0] for s in sources], axis=0))


def joint_log(trees: Any, network: Network | None, x: Floats) -> Floats:
    """Correction (n,) by the learners of sources and few runs together: trees, and twice as much of the network."""
    out = Trees(trees).predict(x)
    return out if network is None else (out + NETWORK_WEIGHT * network.predict(x)) / (1.0 + NETWORK_WEIGHT)


@dataclass
class AdaptedFamily(KnownFamily):
    """What source families say, corrected by a few runs; `encoder` spans the few runs (and the source rows).

    log T = log prior + share·[log(base ÷ prior) + linear] + (1 − joint_share)·(carried + share·smooth)
    + joint_share·joint: the base holds the multipliers, the prior is what it was before the runs, carried is the
    correction of the sources, linear and smooth are the process's explicit basis and the rest of it, joint what
    learners of sources and few runs together say in place of both. share < 1 where all of the correction does worse
    with runs left out. `kind` names what was found to hold.

    The sources are held whole: a reference would make the answers of an adapted model change, or end, with the model it
    was made from, which a retraining or a new version replaces; and a source made of rows is stored nowhere else.
    """

    sources: list[LearnedFamily] = field(default_factory=list)
    compute_units: float = 1.0
    multipliers: Floats = field(default_factory=lambda: np.zeros(0))
    process: FewProcess | None = None
    joint: Any = None
    network: Network | None = None
    joint_share: float = 0.0
    kind: str = ""
    share: float = 1.0

    def unsaid(self, group: Group) -> list[tuple[NDArray[np.bool_], str]]:
        """Nothing: a few runs do not tell which statistics the time hangs on."""
        return []

    def _terms(self, part: Part) -> Floats:
        return contributions(self.sources, part, self.compute_units)

    def _shares(self, terms: Floats) -> Floats:
        """What the process's basis knows of terms: all of those of a source, none where the multipliers do."""
        return shares_of(terms) if self.sources else np.zeros((len(terms), 0))

    def _prior_log(self, terms: Floats) -> Floats:
        return np.asarray(np.log(np.maximum(terms @ prior_multipliers(self.sources, terms.shape[1]), 1e-9)))

    def calibrated_s(self, part: Part) -> Floats:
        """The analytic terms as scaled by the few runs [s]."""
        terms = self._terms(part)
        prior = self._prior_log(terms)
        base = np.log(np.maximum(terms[:, : len(self.multipliers)] @ self.multipliers, 1e-9))
        if self.process is not None:
            base = base + self.process.linear(self._shares(terms))
        return np.asarray(np.exp(prior + self.share * (base - prior)))

    def beyond_s(self, part: Part) -> Floats:
        """The scaled terms: pulled to the multipliers of the sources, whose range is wider than that of a few runs."""
        return self.calibrated_s(part)

    def log_correction(self, part: Part) -> tuple[Floats, Floats]:
        """(correction, disagreement of its members) of each row."""
        terms = self._terms(part)
        carried = np.zeros(len(terms))
        if self.sources:
            carried = transferred_log(self.sources, part) - self._prior_log(terms)
        x, shares = self.encoder.matrix(part.rows), self._shares(terms)
        smooth = np.zeros(len(terms))
        if self.process is not None:
            smooth = self.process.predict(x, shares) - self.process.linear(shares)
        own = carried + self.share * smooth
        if self.joint is None:
            return own, np.abs(smooth)
        joint = joint_log(self.joint, self.network, x)
        return own + self.joint_share * (joint - own), np.abs(joint - own)
