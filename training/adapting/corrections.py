"""Corrections that a few runs of a platform can carry, and which of them holds up with runs left out.

Each corrector fits the runs of one family given what was known beforehand. One that does not beat what it corrects with
runs left out is not shipped, or only as far as it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..learners.network import Network, fit_network
from ..learners.residual import fit_booster
from .adapted import joint_log
from .fewrows import PULL, PULL_SOURCE, UNSEEN, UNSEEN_SOURCE, FewProcess, fit_few_process, pulled_multipliers
from .fewterms import expected
from .transfer import NETWORK_FROM, TREES

Floats = NDArray[np.float64]
Index = NDArray[np.intp]

FEW = 10
"""Below so many runs of a family only strongly shrunk corrections compete."""
SHIFT_ROWS = 8.0
"""Runs that a scalar shift is shrunk by: half of it is believed after so many."""
JOINT_FROM = 10
JOINT_WEIGHT = 20
"""One run of the target counts like so many of the sources in the joint learners."""
ROUNDS = 250
EPOCHS = 12
"""Of the network that joins the joint trees."""
JOINT_SHARES = (0.5, 0.75, 1.0)
"""How much of the joint learners may go into the average with the process; runs left out choose."""
FOLDS = 5
LEAVE_ONE_OUT_UP_TO = 30
SHARES = np.linspace(1.0, 0.0, 21)
"""How far a correction may be shipped, from all the way to not at all."""
ALONE_PROCESS = 0.5
"""How much of the process is believed where the terms have no source: they and it see the same few rows."""
CLEARLY = 1.15
"""So much larger the preferred correction's left-out error may be before the best one takes its place."""
GAIN = {"few": 0.9, "many": 1.0}
"""A correction must reduce the left-out error of the un-adapted source to this share of it."""


@dataclass(frozen=True)
class Few:
    """The few runs of one family; `prior_log` is log [s] of the prior base, `carried` the sources' own correction."""

    terms: Floats
    prior: Floats
    prior_log: Floats
    carried: Floats
    x: Floats
    log_time: Floats
    group: NDArray[Any]
    scales: Floats
    source_x: Floats | None
    source_y: Floats | None
    has_source: bool
    like: FewProcess | None = None
    """Process whose hyper-parameters are kept while runs are left out."""


@dataclass(frozen=True)
class Fit:
    """One fitted correction: the fields of AdaptedFamily that it sets."""

    multipliers: Floats
    shift: float = 0.0
    process: FewProcess | None = None
    joint: Any = None
    network: Network | None = None
    joint_share: float = 0.0

    def log_time(self, few: Few, at: Index) -> Floats:
        """Predicted log time [s] of some of the rows."""
        base = np.log(np.maximum(few.terms[at] @ self.multipliers, 1e-9))
        smooth = base + few.carried[at] + self.shift
        if self.process is not None:
            smooth = smooth + self.process.predict(few.x[at])
        if self.joint is None:
            return np.asarray(smooth)
        joint = base + joint_log(self.joint, self.network, few.x[at])
        return np.asarray(smooth + self.joint_share * (joint - smooth))


Fitter = Callable[[Few, Index, int], Fit]


def _as_is(few: Few, at: Index, seed: int) -> Fit:
    return Fit(few.prior)


def shift_only(few: Few, at: Index, seed: int) -> Fit:
    left = few.log_time[at] - few.prior_log[at] - few.carried[at]
    return Fit(few.prior, shift=float(left.sum() / (len(at) + SHIFT_ROWS)))


def _terms(few: Few, at: Index, seed: int) -> Fit:
    time_s = np.exp(few.log_time[at])
    if not few.has_source:
        return Fit(pulled_multipliers(few.terms[at], time_s, expected(), PULL, UNSEEN))
    scaled = few.terms[at] * np.exp(few.carried[at])[:, None]
    return Fit(pulled_multipliers(scaled, time_s, few.prior, PULL_SOURCE, UNSEEN_SOURCE))


def _with_process(fit: Fit, few: Few, at: Index, search: bool) -> Fit:
    left = few.log_time[at] - fit.log_time(few, at)
    if few.like is not None:
        process = few.like.refit(few.x[at], left)
    else:
        process = fit_few_process(few.x[at], left, few.scales, search=search)
    if not few.has_source:
        process = replace(process, alpha=ALONE_PROCESS * process.alpha)
    return replace(fit, process=process)


def _process(few: Few, at: Index, seed: int) -> Fit:
    return _with_process(_as_is(few, at, seed), few, at, len(at) >= FEW)


def _terms_process(few: Few, at: Index, seed: int) -> Fit:
    return _with_process(_terms(few, at, seed), few, at, len(at) >= (5 if few.has_source else FEW))


def _joint(few: Few, at: Index, seed: int) -> Fit:
    assert few.source_x is not None and few.source_y is not None
    scaled = _terms(few, at, seed)  # the learners see what is left of each platform's own base
    base = np.log(np.maximum(few.terms[at] @ scaled.multipliers, 1e-9))
    x, y = np.concatenate([few.source_x, few.x[at]]), np.concatenate([few.source_y, few.log_time[at] - base])
    weight = np.concatenate([np.ones(len(few.source_y)), np.full(len(at), float(JOINT_WEIGHT))])
    trees = fit_booster(x, y, seed, ROUNDS, weight, **TREES)
    network = None
    if len(few.source_y) >= NETWORK_FROM:
        own = np.repeat(np.arange(len(few.source_y), len(y)), JOINT_WEIGHT - 1)
        network = fit_network(np.concatenate([x, x[own]]), np.concatenate([y, y[own]]), seed, epochs=EPOCHS)
    return replace(scaled, joint=trees, network=network, joint_share=1.0)


def _process_joint(few: Few, at: Index, seed: int) -> Fit:
    both = _joint(few, at, seed)
    return replace(_terms_process(few, at, seed), joint=both.joint, network=both.network, joint_share=JOINT_SHARES[0])


PROCESS = "term multipliers + Gaussian process"
JOINT = "joint learners"
ALL = f"{PROCESS} + {JOINT}"
FITTERS: dict[str, Fitter] = {
    "as it is": _as_is, "shift": shift_only, "term multipliers": _terms, "Gaussian process": _process,
    PROCESS: _terms_process, JOINT: _joint,
    ALL: _process_joint,
}  # fmt: skip


def _candidates(few: Few) -> list[str]:
    """Names of the corrections that compete, the preferred one first; 'as it is' is always judged beside them."""
    n = len(few.log_time)
    if not few.has_source:
        return [PROCESS, "term multipliers", "shift"]
    if n < FEW:
        return ["Gaussian process", "shift"]
    plain = ["Gaussian process", PROCESS, "term multipliers", "shift"]
    return ([ALL] if few.source_x is not None and n >= JOINT_FROM else []) + plain


def _folds(few: Few, seed: int) -> NDArray[np.intp]:
    """Fold of each row; rows of one group together. Every group is a fold of its own while there are few."""
    labels, codes = np.unique(few.group.astype(str), return_inverse=True)
    if len(labels) < 3:
        codes, labels = np.arange(len(codes)), np.arange(len(codes)).astype(str)
    if len(codes) <= LEAVE_ONE_OUT_UP_TO:
        return np.asarray(codes, dtype=np.intp)
    return np.asarray(np.random.default_rng(seed).permutation(len(labels))[codes] % (2 * FOLDS), dtype=np.intp)


def _left_out(name: str, few: Few, fold: NDArray[np.intp], seed: int) -> Floats:
    """log(measured ÷ predicted) of each row by a fit that saw none of its fold."""
    fit = FITTERS[name]
    if name == JOINT:  # seconds each: five folds must do
        fold = fold % FOLDS
    smooth = fit if "process" in name else _as_is
    few = replace(few, like=smooth(few, np.arange(len(fold)), seed).process)
    out = np.zeros(len(fold))
    for number in np.unique(fold):
        held = np.flatnonzero(fold == number)
        kept = np.flatnonzero(fold != number)
        out[held] = few.log_time[held] - fit(few, kept, seed).log_time(few, held)
    return out


def _inside(log_size: Floats) -> NDArray[np.bool_]:
    """Rows that others enclose in size: leaving out the smallest or the largest run asks for an extrapolation, which is
    not what a correction is used for (outside the box predictions fade and widen on their own account)."""
    inside = (log_size > log_size.min()) & (log_size < log_size.max())
    return inside if inside.sum() >= 3 else np.ones(len(log_size), dtype=bool)


def _mean(error: Floats) -> float:
    return float(np.mean(np.abs(np.expm1(-error))))


@dataclass(frozen=True)
class Judged:
    """Every competing correction of one family with runs left out: errors of its rows, and their mean inside."""

    errors: Mapping[str, Floats]
    scores: Mapping[str, float]
    joint_share: float = 0.0
    """Of JOINT_SHARES, the one with the smallest error."""


@dataclass(frozen=True)
class Chosen:
    name: str
    error: Floats
    scores: Mapping[str, float]
    refused: bool
    """No correction beat the un-adapted source."""
    share: float = 1.0
    """How far the correction is shipped."""
    joint_share: float = 0.0


def judge(few: Few, seed: int) -> Judged:
    fold = _folds(few, seed)
    names = _candidates(few)
    parts = [JOINT if name == ALL else name for name in names]
    errors = {name: _left_out(name, few, fold, seed) for name in ["as it is", *parts]}
    # physical terms without a source are meant to carry beyond the smallest and the largest run, too
    inside = _inside(few.prior_log) if few.has_source else np.ones(len(few.prior_log), dtype=bool)
    share = 0.0
    if ALL in names:  # in log time the error of an average is the average of the errors
        mixed = {s: errors[PROCESS] + s * (errors[JOINT] - errors[PROCESS]) for s in JOINT_SHARES}
        share = min(mixed, key=lambda s: _mean(mixed[s][inside]))
        errors[ALL] = mixed[share]
    return Judged(errors, {name: _mean(error[inside]) for name, error in errors.items()}, share)


def choose(few: Few, judged: Judged) -> Chosen:
    """The correction to ship. A preferred one that holds up is kept where few rows could only choose by luck."""
    names, scores = _candidates(few), judged.scores
    enough = len(few.log_time) >= FEW
    limit = scores["as it is"] * GAIN["many" if enough else "few"]
    best = min(names, key=lambda name: scores[name])
    # the average of several learners is the safer choice: it is left only for one that is clearly better
    first = names[0] if not enough or scores[names[0]] <= CLEARLY * scores[best] else best
    kept = first if scores[first] <= limit else best if scores[best] <= limit else "as it is"
    share = judged.joint_share if kept == ALL else 0.0
    return Chosen(kept, judged.errors[kept], scores, kept == "as it is", joint_share=share)


def choose_alone(few: Mapping[str, Few], judged: Mapping[str, Judged]) -> dict[str, Chosen]:
    """The correction of families that have no source and fewer than FEW runs: chosen for all of them together.

    Four of five runs say little about one family's choice, those of a dozen families together say enough. The one with
    the smallest median error over all left-out runs is taken, in each family as far as it does not lose there. Where
    none of them beats the parameter file over all families, only those families take it in which it clearly does.
    """
    names = _candidates(next(iter(few.values())))

    def typical(name: str) -> float:
        return float(np.median(np.abs(np.concatenate([item.errors[name] for item in judged.values()]))))

    pooled = {name: typical(name) for name in names}
    best = min(pooled, key=lambda name: pooled[name])
    together = names[0] if pooled[names[0]] <= 1.1 * pooled[best] else best
    enough = pooled[together] <= typical("as it is")
    return {family: as_far_as_it_holds(together, item, 1.0 if enough else GAIN["few"])
            for family, item in judged.items()}  # fmt: skip


def as_far_as_it_holds(name: str, judged: Judged, gain: float = 1.0) -> Chosen:
    """A correction by the largest of SHARES whose left-out error is at most `gain` times that of what it corrects.

    In log time the error of a share lies on the line between the two, so no fit is needed to try it.
    """
    plain, whole = judged.errors["as it is"], judged.errors[name]
    for share in SHARES:
        error = plain + share * (whole - plain)
        if share == 0.0 or _mean(error) <= gain * _mean(plain):
            break
    kept = "as it is" if share == 0.0 else name
    return Chosen(kept, error, {**judged.scores, name: _mean(error)}, kept == "as it is", float(share))
