"""What a few runs of a platform correct in what was known beforehand.

With a source: one Gaussian process with an explicit basis on the source's residual. A common shift, multipliers of the
physical terms, a smooth error and "as it is" are its corners, its prior is what shrinks it, and its left-out errors
have a closed form. From JOINT_FROM runs on the learners of sources and few runs together are averaged in.

Without a source: multipliers that cannot be negative, and a process on what they leave. They end far from where they
start, so that the shares of a basis are no small change: on the MI300A's own 5 and 8 runs a family the process with a
basis alone errs by 13.0 and 13.2 %, these by 7.6 and 5.9 %. Either is shipped as far as runs left out say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hybrid.metrics import mape_of_log
from ..learners.network import Network, fit_network
from ..learners.process import FewProcess, believed, fit_few_process
from ..learners.trees import fit_booster
from .adapted import expected, joint_log, shares_of
from .transfer import NETWORK_FROM, TREES

Floats = NDArray[np.float64]
Index = NDArray[np.intp]

FEW = 10
"""Below so many runs of a family without a source the process keeps its prior's hyper-parameters."""
PULL, UNSEEN = 0.1, 0.3
"""Strength of the pull of a family's multipliers to the expected ones where there is no source (times √rows), and the
share of the time that a term which the rows hardly show counts for in it: unseen terms stay as they are."""
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
"""So much larger than the process's the left-out error with the joint learners may be before they are left out: the
average of several learners is the safer choice."""
DOUBTFUL = 0.9
"""Where corrections without a source lose over all families, one must reduce its own family's error to this share."""

AS_IS = "as it is"
PROCESS = "Gaussian process"
JOINT = f"{PROCESS} + joint learners"
ALONE = f"term multipliers + {PROCESS}"


@dataclass(frozen=True)
class Few:
    """The few runs of one family; `prior_log` is log [s] of the prior base, `carried` the sources' own correction.

    terms (n, terms) [s] with the multipliers `prior` (terms,) before any run was seen; x (n, columns) and scales
    (columns,) as `fit_few_process` takes them; log_time, group (n,); source_x, source_y: rows of the sources for the
    joint learners, if any.
    """

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

    @property
    def as_is(self) -> Floats:
        """log(measured ÷ predicted) of each run before any was seen."""
        return self.log_time - self.prior_log - self.carried

    @property
    def witnesses(self) -> NDArray[Any]:
        """Label of what is left out together: the group, or the run where there are too few groups."""
        return self.group if len(np.unique(self.group)) >= 3 else np.arange(len(self.group))


@dataclass(frozen=True)
class Correction:
    """What is shipped: the fields of AdaptedFamily, and log(measured ÷ predicted) of each run left out."""

    kind: str
    error: Floats
    scores: Mapping[str, float]
    multipliers: Floats
    process: FewProcess
    joint: Any = None
    network: Network | None = None
    joint_share: float = 0.0
    share: float = 1.0


def pulled_multipliers(terms: Floats, time_s: Floats, prior: Floats, pull: float = PULL, unseen: float = UNSEEN
                       ) -> Floats:
    """Non-negative u of T ≈ Σ uⱼ·termⱼ by relative least squares, pulled to `prior` (terms,).

    terms: (n, terms) [s]; one that the rows do not show stays at its prior. The pull is as strong as the term's mean
    share of the time, and at least as for a share of `unseen`.
    """
    from scipy.optimize import nnls

    relative = terms / time_s[:, None]
    weight = pull * np.sqrt(len(time_s)) * np.maximum(relative.mean(axis=0), unseen)
    solution, _ = nnls(np.vstack([relative, np.diag(weight)]), np.concatenate([np.ones(len(time_s)), weight * prior]))
    return np.asarray(solution)


def correct(few: Few, seed: int) -> Correction:
    """The correction of a family that has a source.

    In log time the error of an average is the average of the errors, so no fit is needed to try a share.
    """
    plain, shares = few.as_is, shares_of(few.terms)
    target, process, error = _process(few, shares)
    share, smooth = _best_share(plain, error)
    scores = {AS_IS: mape_of_log(plain), PROCESS: mape_of_log(smooth)}
    found = Correction(PROCESS if share else AS_IS, smooth, scores, few.prior, process, share=share)
    if few.source_x is None or len(plain) < JOINT_FROM:
        return found

    def fit(at: Index) -> tuple[Floats, _Joint]:
        """(base of every run [log s], learners of what is left of it) by some of the runs."""
        base = few.prior_log + share * process.refit(few.x[at], shares[at], target[at]).linear(shares)
        return base, _joint(few, at, base, seed)

    def predict(kept: Index, held: Index) -> Floats:
        base, learners = fit(kept)
        return np.asarray(base[held] + learners(few.x[held]))

    joint = _left_out(few, seed, predict, FOLDS)
    mixed = {of: smooth + of * (joint - smooth) for of in JOINT_SHARES}
    of = min(mixed, key=lambda of: mape_of_log(mixed[of]))
    scores[JOINT] = mape_of_log(mixed[of])
    if scores[JOINT] > min(scores[AS_IS], CLEARLY * scores[PROCESS]):
        return found
    every = fit(np.arange(len(plain)))[1]
    return replace(found, kind=JOINT, error=mixed[of], joint=every.trees, network=every.network, joint_share=of)


def _best_share(plain: Floats, whole: Floats) -> tuple[float, Floats]:
    """(share, errors) of the share of a correction with the smallest left-out error, the largest of equals."""
    share = min(SHARES, key=lambda share: mape_of_log(plain + share * (whole - plain)))
    return float(share), plain + share * (whole - plain)


def _process(few: Few, shares: Floats) -> tuple[Floats, FewProcess, Floats]:
    """(targets, process on them, its left-out errors): the source's residual, runs that no other bears out believed in
    part."""
    y = few.as_is
    _, error = fit_few_process(few.x, shares, y, few.scales, group=few.witnesses)
    target = believed(y, error)
    process, error = fit_few_process(few.x, shares, target, few.scales, group=few.witnesses)
    return target, process, error + y - target


@dataclass(frozen=True)
class _Joint:
    trees: Any
    network: Network | None

    def __call__(self, x: Floats) -> Floats:
        return joint_log(self.trees, self.network, x)


def _joint(few: Few, at: Index, base: Floats, seed: int) -> _Joint:
    """Trees, and a network where there are rows enough for one, on what sources and few runs leave of their bases."""
    assert few.source_x is not None and few.source_y is not None
    own_y = (few.log_time - base)[at]
    x, y = np.concatenate([few.source_x, few.x[at]]), np.concatenate([few.source_y, own_y])
    weight = np.concatenate([np.ones(len(few.source_y)), np.full(len(at), float(JOINT_WEIGHT))])
    trees = fit_booster(x, y, seed, ROUNDS, weight, **TREES)
    network = None
    if len(few.source_y) >= NETWORK_FROM:
        own = np.repeat(np.arange(len(few.source_y), len(y)), JOINT_WEIGHT - 1)
        network = fit_network(np.concatenate([x, x[own]]), np.concatenate([y, y[own]]), seed, epochs=EPOCHS)
    return _Joint(trees, network)


def _left_out(few: Few, seed: int, predict: Callable[[Index, Index], Floats], most: int = 2 * FOLDS) -> Floats:
    """log(measured ÷ predicted) of each run; predict(kept, held) gives log times [s] of held rows by a fit on others.

    Every witness is a fold of its own while there are few runs, at most `most` folds where a fit takes seconds.
    """
    labels, fold = np.unique(few.witnesses.astype(str), return_inverse=True)
    if len(fold) > LEAVE_ONE_OUT_UP_TO or most < 2 * FOLDS:
        fold = np.random.default_rng(seed).permutation(len(labels))[fold] % most
    out = np.zeros(len(fold))
    for number in np.unique(fold):
        held, kept = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        out[held] = few.log_time[held] - predict(kept, held)
    return out


def correct_alone(few: Mapping[str, Few], seed: int) -> dict[str, Correction]:
    """The corrections of families that have no source, of one platform: how far each is shipped.

    Four of five runs say little about one family, those of a dozen families together say enough. Where the corrections
    do not lower the median left-out error over all families, only those families take one in which it clearly helps.
    """
    whole = {family: _alone(item, seed) for family, item in few.items()}
    typical = [float(np.median(np.abs(np.concatenate(list(errors))))) for errors in
               ((item.as_is for item in few.values()), (item.error for item in whole.values()))]
    gain = 1.0 if typical[1] <= typical[0] else DOUBTFUL
    return {family: as_far_as_it_holds(item, few[family].as_is, gain) for family, item in whole.items()}


def as_far_as_it_holds(whole: Correction, plain: Floats, gain: float = 1.0) -> Correction:
    """A correction by the largest of SHARES whose left-out error is at most `gain` times that of `plain` (n,)."""
    for share in SHARES:
        error = plain + share * (whole.error - plain)
        if share == 0.0 or mape_of_log(error) <= gain * mape_of_log(plain):
            break
    kind = whole.kind if share else AS_IS
    scores = {AS_IS: mape_of_log(plain), whole.kind: mape_of_log(error)}
    return replace(whole, kind=kind, error=error, scores=scores, share=float(share))


def _alone(few: Few, seed: int) -> Correction:
    """Multipliers and a process on what they leave, all the way."""
    bare = np.zeros((len(few.x), 0))

    def scaled(at: Index) -> tuple[Floats, Floats]:
        multipliers = pulled_multipliers(few.terms[at], np.exp(few.log_time[at]), expected())
        return multipliers, np.log(np.maximum(few.terms @ multipliers, 1e-9))

    def predict(kept: Index, held: Index) -> Floats:
        base = scaled(kept)[1]
        smooth = process.refit(few.x[kept], bare[kept], (few.log_time - base)[kept])
        return np.asarray(base[held] + ALONE_PROCESS * smooth.predict(few.x[held], bare[held]))

    multipliers, base = scaled(np.arange(len(few.x)))
    process, _ = fit_few_process(few.x, bare, few.log_time - base, few.scales, search=len(few.x) >= FEW)
    error = _left_out(few, seed, predict)
    return Correction(ALONE, error, {AS_IS: mape_of_log(few.as_is), ALONE: mape_of_log(error)}, multipliers,
                      replace(process, alpha=ALONE_PROCESS * process.alpha))
