"""Training: measured runs of one platform in, a hybrid model with honest bands out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...analytic.errors import InputError
from ...features.describe import Described, Group, describe
from ..learners.residual import FEWEST_ROWS, LEARN_FROM, smooth_for, to_residual
from ..learners.trees import Trees, fit_booster
from ..profiled.segment import fit_segments
from ..tables.splits import folds
from .bands import Bands, bands_without_label, fit_bands
from .encode import Encoder
from .family import FamilyModel, Part, by_family, fit_family, part_of, reference_implementations, take
from .meta import Meta
from .metrics import mape_of_log
from .model import COMMON, SMALLEST_SIGMA, Model, difficulty_rows, typical_of
from .partial import Judge, extents, kinds, masked, name_of
from .settings import settings

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Progress = Callable[[str, int, int], None]
T = TypeVar("T")

FOLDS = 5
FEW_FOLDS = 3
MANY_ROWS = 30_000
"""In a family above this, three folds leave each fit rows enough, and two fits are saved."""
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of a smooth member (process, network or both) tried; the one with the least out-of-fold error is kept."""
FEWEST_TOTAL = 8


@dataclass(frozen=True)
class _Choice:
    """Members of a residual by out-of-fold error: kind and share of the smooth one, and whether there is a residual."""

    smooth: str
    share: float
    learn: bool


@dataclass
class _CrossFit:
    """One family judged: what models that never saw a row's group said of it, and the members that did best."""

    label: str
    """The family, or what it is called where it was learned without some of its statistics."""
    family: str
    reference: dict[str, str]
    encoder: Encoder
    choice: _Choice
    index: NDArray[np.intp]
    parts: list[Part]
    fold: NDArray[np.intp]
    error: Floats
    """Out-of-fold log(measured ÷ predicted)."""
    disagreement: Floats
    correction: Floats
    scored: NDArray[np.bool_] | None = None
    """Rows whose scores make the band; all where not given."""


@dataclass(frozen=True)
class _Learned:
    """One family fitted to all of its rows, and how models fitted like it did on rows that they had not seen."""

    model: FamilyModel
    judged: _CrossFit


def _cross_fit(label: str, groups: Sequence[Group], time_s: Floats, fold: NDArray[np.intp], seed: int,
               quick: bool) -> _CrossFit:
    """Fit one family without each of the folds in turn, and choose its members by the errors on the fold left out."""
    name = groups[0].family
    reference = reference_implementations(groups)
    parts = [part_of(group, reference) for group in groups]
    encoder = Encoder.fit([part.rows for part in parts])
    index = np.concatenate([part.index for part in parts])
    starts = np.cumsum([0] + [len(part.index) for part in parts])
    n = len(index)
    base, trees = np.zeros(n), np.zeros(n)
    members: dict[str, Floats] = {}
    for number in np.unique(fold[index]):
        kept = [take(p, fold[p.index] != number) for p in parts]
        kept = [p for p in kept if len(p.index)]
        if not kept:
            kept = parts  # one group only: nothing can be held out, and its error is that of the fit itself
        model = fit_family(name, kept, [time_s[p.index] for p in kept], reference, seed=seed, learn=n >= LEARN_FROM,
                           smooth=smooth_for(n), quick=quick, encoder=encoder)
        for part, start in zip(parts, starts, strict=False):
            out = fold[part.index] == number
            if not out.any():
                continue
            held, where = take(part, out), start + np.flatnonzero(out)
            base[where] = model.calibrated_s(held)
            if model.residual is not None:
                trees[where], said = model.residual.candidates(encoder.matrix(held.rows))
                for member, values in said.items():
                    members.setdefault(member, np.zeros(n))[where] = values
    target = to_residual(time_s[index], base)
    choice = _choose(target, trees, members)
    smooth = members.get(choice.smooth, trees)
    correction, disagreement = trees + choice.share * (smooth - trees), np.abs(smooth - trees)
    if not choice.learn:
        correction, disagreement = np.zeros(n), np.zeros(n)
    return _CrossFit(label, name, reference, encoder, choice, index, parts, fold[index], target - correction,
                     disagreement, correction)


def _final_fit(judged: _CrossFit, time_s: Floats, seed: int, quick: bool) -> FamilyModel:
    """Fit a family to all of its rows, with the members that did best on rows left out."""
    choice = judged.choice
    model = fit_family(judged.family, judged.parts, [time_s[p.index] for p in judged.parts], judged.reference,
                       seed=seed, learn=choice.learn, smooth=choice.smooth, quick=quick,
                       encoder=judged.encoder)
    if model.residual is not None:
        model.residual.smooth_share = choice.share
    elif model.rows >= LEARN_FROM:
        model.note = "calibrated analytic: the residual did not improve on it out of fold"
    return model


def _choose(target: Floats, trees: Floats, members: Mapping[str, Floats]) -> _Choice:
    """The members with the least mean out-of-fold error, learned where they beat the calibrated baseline.

    The kind is empty where trees do best alone. `members`: what each kind says, residuals of shape (n,)."""
    scores = {("", 0.0): mape_of_log(target - trees)}
    scores |= {(kind, w): mape_of_log(target - (trees + w * (smooth - trees)))
               for kind, smooth in members.items() if kind for w in WEIGHTS if w}
    best = min(scores, key=lambda choice: scores[choice])
    return _Choice(*best, scores[best] < mape_of_log(target))


def _fit_difficulty(learned: Sequence[_CrossFit], group: NDArray[Any], seed: int
                    ) -> tuple[Any, dict[str, float], Bands]:
    """Difficulty of a row, cross-fitted over the same folds, and the conformal scores it normalises."""
    magnitude = np.concatenate([np.log(np.abs(item.error) + SMALLEST_SIGMA / 2.0) for item in learned])
    fold = np.concatenate([item.fold for item in learned])
    family = np.concatenate([np.full(len(item.index), item.label) for item in learned])
    typical = _typical(learned) | {"": float(np.median(magnitude))}
    x = np.concatenate([
        difficulty_rows(part.rows, typical_of(typical, item.label, part.regime), item.disagreement[a:b],
                        item.correction[a:b])
        for item in learned for part, a, b in _slices(item)
    ])
    error = np.concatenate([item.error for item in learned])
    regime = np.concatenate([part.regime for item in learned for part in item.parts])
    groups = np.concatenate([group[item.index] for item in learned])
    scored = np.concatenate([np.ones(len(i.index), dtype=bool) if i.scored is None else i.scored for i in learned])

    def bands(sigma: Floats) -> Bands:
        labels = (family[scored], regime[scored], groups[scored])
        return fit_bands(error[scored], np.maximum(sigma, SMALLEST_SIGMA)[scored], *labels)

    if len(x) < 10 * FEWEST_ROWS:
        return None, typical, bands(np.exp(x[:, len(COMMON)]))

    def fit(keep: NDArray[np.bool_]) -> Any:
        # the median of |error| is what scales a band; extreme rows must not decide it
        return fit_booster(x[keep], magnitude[keep], seed, rounds=150, max_depth=5, learning_rate=0.05,
                           min_child_weight=10, subsample=0.7)

    sigma = np.zeros(len(x))
    for number in np.unique(fold):
        held = fold == number
        sigma[held] = np.exp(Trees(fit(~held)).predict(x[held])) if (~held).any() else np.exp(typical[""])
    return fit(np.ones(len(x), dtype=bool)), typical, bands(sigma)


def _slices(item: _CrossFit) -> list[tuple[Part, int, int]]:
    ends = np.cumsum([len(part.index) for part in item.parts])
    return [(part, int(end) - len(part.index), int(end)) for part, end in zip(item.parts, ends, strict=True)]


def _typical(learned: Sequence[_CrossFit]) -> dict[str, float]:
    """Median log |out-of-fold error| by family and, where it has rows enough, by `family|regime`."""
    out: dict[str, float] = {}
    for item in learned:
        size = np.log(np.abs(item.error) + SMALLEST_SIGMA / 2.0)
        regime = np.concatenate([part.regime for part in item.parts]).astype(str)
        out[item.label] = float(np.median(size))
        labels, counts = np.unique(regime, return_counts=True)
        out |= {
            f"{item.label}|{label}": float(np.median(size[regime == label]))
            for label, count in zip(labels, counts, strict=True)
            if count >= FEWEST_ROWS
        }
    return out


def _each(families: Mapping[str, list[Group]], work: Callable[[str, list[Group]], T], progress: Progress | None
          ) -> list[T]:
    """work(family, groups) for every family, side by side on the cores there are, results in the order of the names.

    Large families start first so that none is left alone at the end; every fit is seeded, so order changes nothing.
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    names = sorted(families)
    largest_first = sorted(names, key=lambda name: -sum(len(group.index) for group in families[name]))
    done = 0
    # warning filters are one for all threads, so they are set here and not in each fit
    # families run side by side: matrix products with threads of their own would only wait for each other
    with warnings.catch_warnings(), threadpool_limits(1), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        warnings.simplefilter("ignore", ConvergenceWarning)  # a length scale at its bound only says "not needed"
        futures = {name: pool.submit(work, name, families[name]) for name in largest_first}
        waiting = {future: name for name, future in futures.items()}
        for future in as_completed(waiting):
            future.result()
            done += 1
            if progress is not None:
                progress(waiting[future], done, len(names))
    return [futures[name].result() for name in names]


def fit_model(frame: pd.DataFrame, described: Described | None = None, *, name: str = "model", seed: int = 0,
              quick: bool = False, progress: Progress | None = None) -> Model:
    """Fit the hybrid of one platform to measured runs (columns of the run table, `group` included).

    Every group lies in one fold; residual, difficulty and scores of a row come from models that never saw its group.
    quick: fewer trees and no Gaussian process.
    Raises InputError where the frame holds several platforms or too few usable rows.
    """
    platforms = sorted(set(frame["platform"].astype(str)))
    if len(platforms) != 1:
        raise InputError(f"one model is for one platform; the table holds {', '.join(platforms) or 'none'}")
    described = described or describe(frame)
    time_s = np.asarray(frame["time_s"], dtype=np.float64)
    fold = folds(frame["group"], FOLDS, seed + 1)
    few = folds(frame["group"], FEW_FOLDS, seed + 1)
    families = by_family(described.groups)
    usable = sum(len(g.index) for groups in families.values() for g in groups)
    if usable < FEWEST_TOTAL:
        raise InputError(f"{usable} usable rows for {platforms[0]}; at least {FEWEST_TOTAL} are needed to train")

    def learn(label: str, groups: list[Group]) -> _Learned:
        many = sum(len(group.index) for group in groups) > MANY_ROWS
        judged = _cross_fit(label, groups, time_s, few if many else fold, seed, quick)
        model = _final_fit(judged, time_s, seed, quick)
        made = None if label == groups[0].family else kinds(families[groups[0].family], fold)
        if made is not None:
            judged = _both_ways(judged, _cross_fit(label, groups, time_s, made, seed, quick))
        return _Learned(model, judged)

    learned = _each(families, learn, progress)
    group = np.unique(np.asarray(frame["group"], dtype=str), return_inverse=True)[1]
    difficulty, typical, bands = _fit_difficulty([item.judged for item in learned], group, seed)
    ok = np.isfinite(described.baseline_s)
    analytic = np.sort(np.abs(to_residual(time_s[ok], described.baseline_s[ok])))[::-1]
    models = {item.model.family: item.model for item in learned}
    meta: Meta = {"rows": usable, **refusals(described), "seed": seed, "folds": FOLDS, "quick": quick,
            "out_of_fold": {item.model.family: _scores(item.judged) for item in learned}}
    meta["settings"] = settings()
    model = Model(platforms[0], name, models, difficulty, typical, bands, analytic[:: max(1, len(analytic) // 2000)],
                  meta, bands_without_label([(item.model, item.judged.parts) for item in learned], time_s),
                  fit_segments(frame, described, seed=seed, quick=quick))
    # what a quick look left out is said, not learned
    hidden = {} if quick else _hidden(families, [name for name, known in models.items() if known.residual])
    without = _each({name: masked(families[family], left_out) for name, (family, left_out) in hidden.items()},
                    learn, progress)
    if not without:
        return model
    judge = Judge(*_fit_difficulty([item.judged for item in without], group, seed),
                  {name: left_out for name, (_, left_out) in hidden.items()})
    return replace(model, partials={item.judged.label: item.model for item in without}, partial_judge=judge)


def _both_ways(known: _CrossFit, strange: _CrossFit) -> _CrossFit:
    """A family judged on inputs of kinds it knows and of kinds it does not.

    From both is learned which rows are hard; the scores are those of the strange ones, for nobody said which to expect.
    """
    both: dict[str, Any] = {
        name: np.concatenate([getattr(known, name), getattr(strange, name)])
        for name in ("index", "error", "disagreement", "correction")
    }
    scored = np.arange(len(both["error"])) >= len(known.error)
    return replace(known, **both, parts=[*known.parts, *strange.parts], fold=np.concatenate([known.fold, known.fold]),
                   scored=scored)


def _hidden(groups: Mapping[str, list[Group]], families: Iterable[str]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Name → (family, parameters left out) of every partial model worth having."""
    return {name_of(family, number): (family, left_out)
            for family in families for number, left_out in extents(family, groups[family])}


def refusals(described: Described) -> Meta:
    """How many rows could not be described, and why the first of them: for a model's meta."""
    first = min(described.refused, default=None)
    found: Meta = {"refused": len(described.refused)}
    return found if first is None else {**found, "refused_why": described.refused[first]}


def refit_model(frame: pd.DataFrame, checked: Model, described: Described | None = None, *, name: str | None = None,
                seed: int = 0, progress: Progress | None = None) -> Model:
    """Fit the families again on all rows, with the choices and the bands of a model that was checked on held-out rows.

    `checked` was cross-fitted on a part of `frame`: which members a family has, the difficulty and the conformal scores
    come from there. More rows make the refitted residual no worse, so its bands stay valid (a little wide).
    """
    described = described or describe(frame)
    time_s = np.asarray(frame["time_s"], dtype=np.float64)

    def again(label: str, groups: list[Group]) -> FamilyModel:
        family = groups[0].family
        known = checked.families.get(label) if label == family else checked.partials[label]
        reference = reference_implementations(groups)
        parts = [part_of(group, reference) for group in groups]
        judged = known.residual if isinstance(known, FamilyModel) else None
        smooth = judged.smooth if judged is not None else ""
        model = fit_family(family, parts, [time_s[p.index] for p in parts], reference, seed=seed, smooth=smooth,
                           quick=bool(checked.meta.get("quick")),
                           learn=judged is not None)
        if model.residual is not None and judged is not None:
            model.residual.smooth_share = judged.smooth_share
        model.note = known.note if known is not None else "calibrated analytic: no held-out row to check a residual on"
        return model

    whole = by_family(described.groups)
    judge = checked.partial_judge
    without = {name: masked(whole[checked.partials[name].family], hidden)
               for name, hidden in (judge.hidden if judge is not None else {}).items()}
    fitted = dict(zip(sorted(whole | without), _each(whole | without, again, progress), strict=True))
    rows = int(np.isfinite(described.baseline_s).sum())
    quick = bool(checked.meta.get("quick"))
    segments = checked.segments if quick else fit_segments(frame, described, seed=seed)
    meta: Meta = {**checked.meta, "rows": rows, **refusals(described)}
    return replace(checked, name=name or checked.name, families={name: fitted[name] for name in whole}, meta=meta,
                   segments=segments, partials={name: fitted[name] for name in without})


def _scores(item: _CrossFit) -> dict[str, float]:
    error = np.abs(np.expm1(-item.error))
    return {"rows": len(error), "mape": 100.0 * mape_of_log(item.error), "median_ape": 100.0 * float(np.median(error))}
