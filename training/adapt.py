"""Retrain on new hardware from a few runs of it.

For each family several corrections of what is known beforehand (source models of other platforms, or the baseline of
the parameter file alone) are fitted and judged by leaving runs out; one that does not beat the un-adapted source there
is not shipped. With ten runs or more the best one is taken; below that only strongly shrunk ones compete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.errors import InputError
from ..analytic.families import FAMILIES
from ..analytic.platform import Platform, load_platform
from ..features.describe import Group, describe
from .adapted import AdaptedFamily, contributions, prior_multipliers, transferred_log
from .bands import fit_bands
from .calibration import TERMS, Calibration
from .domain import Domain, fit_domain
from .encode import Encoder
from .family import FamilyModel, Part, part_of, reference_implementations
from .fewrows import PULL, PULL_SOURCE, FewProcess, fit_few_process, process_scales, pulled_multipliers
from .model import SMALLEST_SIGMA, Model
from .residual import fit_booster, to_residual
from .transfer import TREES, Across, across_platforms, fit_across

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Index = NDArray[np.intp]

FEW = 10
"""Below so many runs of a family only strongly shrunk corrections compete."""
SHIFT_ROWS = 8.0
"""Runs that a scalar shift is shrunk by: half of it is believed after so many."""
JOINT_FROM = 10
JOINT_WEIGHT = 20.0
"""One run of the target counts like so many of the sources in the joint trees."""
SOURCE_ROWS = 6000
ROUNDS = 250
FOLDS = 5
LEAVE_ONE_OUT_UP_TO = 30
VETO = 2.0
GAIN = {"few": 0.9, "many": 1.0}
"""A correction must reduce the left-out error of the un-adapted source to this share of it."""


@dataclass(frozen=True)
class _Few:
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
class _Fit:
    """One fitted correction: the fields of AdaptedFamily that it sets."""

    multipliers: Floats
    shift: float = 0.0
    process: FewProcess | None = None
    joint: Any = None
    joint_share: float = 0.0

    def log_time(self, few: _Few, at: Index) -> Floats:
        """Predicted log time [s] of some of the rows."""
        base = np.log(np.maximum(few.terms[at] @ self.multipliers, 1e-9))
        smooth = base + few.carried[at] + self.shift
        if self.process is not None:
            smooth = smooth + self.process.predict(few.x[at])
        if self.joint is None:
            return np.asarray(smooth)
        from xgboost import DMatrix

        trees = base + np.asarray(self.joint.predict(DMatrix(few.x[at])), dtype=np.float64)
        return np.asarray(smooth + self.joint_share * (trees - smooth))


Fitter = Callable[[_Few, Index, int], _Fit]


def _as_is(few: _Few, at: Index, seed: int) -> _Fit:
    return _Fit(few.prior)


def _shift(few: _Few, at: Index, seed: int) -> _Fit:
    left = few.log_time[at] - few.prior_log[at] - few.carried[at]
    return _Fit(few.prior, shift=float(left.sum() / (len(at) + SHIFT_ROWS)))


def _terms(few: _Few, at: Index, seed: int) -> _Fit:
    pull = PULL_SOURCE if few.has_source else PULL
    scaled = few.terms[at] * np.exp(few.carried[at])[:, None]
    return _Fit(pulled_multipliers(scaled, np.exp(few.log_time[at]), few.prior, pull))


def _with_process(fit: _Fit, few: _Few, at: Index, search: bool) -> _Fit:
    left = few.log_time[at] - fit.log_time(few, at)
    if few.like is not None:
        return replace(fit, process=few.like.refit(few.x[at], left))
    return replace(fit, process=fit_few_process(few.x[at], left, few.scales, search=search))


def _process(few: _Few, at: Index, seed: int) -> _Fit:
    return _with_process(_as_is(few, at, seed), few, at, len(at) >= FEW)


def _terms_process(few: _Few, at: Index, seed: int) -> _Fit:
    return _with_process(_terms(few, at, seed), few, at, len(at) >= 5)


def _joint(few: _Few, at: Index, seed: int) -> _Fit:
    assert few.source_x is not None and few.source_y is not None
    scaled = _terms(few, at, seed)  # trees see what is left of each platform's own base
    base = np.log(np.maximum(few.terms[at] @ scaled.multipliers, 1e-9))
    x = np.concatenate([few.source_x, few.x[at]])
    y = np.concatenate([few.source_y, few.log_time[at] - base])
    weight = np.concatenate([np.ones(len(few.source_y)), np.full(len(at), JOINT_WEIGHT)])
    trees = fit_booster(x, y, seed, ROUNDS, weight, **TREES)
    return replace(scaled, joint=trees, joint_share=1.0)


def _process_joint(few: _Few, at: Index, seed: int) -> _Fit:
    trees = _joint(few, at, seed)
    return replace(_terms_process(few, at, seed), joint=trees.joint, joint_share=0.5)


ALL = "term multipliers + Gaussian process + joint trees"
FITTERS: dict[str, Fitter] = {
    "as it is": _as_is, "shift": _shift, "term multipliers": _terms, "Gaussian process": _process,
    "term multipliers + Gaussian process": _terms_process, "joint trees": _joint,
    ALL: _process_joint,
}  # fmt: skip


def _candidates(few: _Few) -> list[str]:
    """Names of the corrections that compete, the preferred one first; 'as it is' is always judged beside them."""
    n = len(few.log_time)
    if not few.has_source:
        return ["term multipliers + Gaussian process", "term multipliers", "shift"]
    if n < FEW:
        return ["Gaussian process", "shift"]
    plain = ["Gaussian process", "term multipliers + Gaussian process", "term multipliers", "shift"]
    return ([ALL] if few.source_x is not None and n >= JOINT_FROM else []) + plain


def _folds(few: _Few, seed: int) -> NDArray[np.intp]:
    """Fold of each row; rows of one group together. Every group is a fold of its own while there are few."""
    labels, codes = np.unique(few.group.astype(str), return_inverse=True)
    if len(labels) < 3:
        codes, labels = np.arange(len(codes)), np.arange(len(codes)).astype(str)
    if len(codes) <= LEAVE_ONE_OUT_UP_TO:
        return np.asarray(codes, dtype=np.intp)
    return np.asarray(np.random.default_rng(seed).permutation(len(labels))[codes] % (2 * FOLDS), dtype=np.intp)


def _left_out(name: str, few: _Few, fold: NDArray[np.intp], seed: int) -> Floats:
    """log(measured ÷ predicted) of each row by a fit that saw none of its fold."""
    fit = FITTERS[name]
    if "joint" in name:  # seconds each: five folds must do
        fold = fold % FOLDS
    smooth = FITTERS[name.removesuffix(" + joint trees")] if "process" in name else _as_is
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
class _Judged:
    """Every competing correction of one family with runs left out: errors of its rows, and their mean inside."""

    errors: Mapping[str, Floats]
    scores: Mapping[str, float]


@dataclass(frozen=True)
class _Chosen:
    name: str
    error: Floats
    scores: Mapping[str, float]
    refused: bool
    """No correction beat the un-adapted source."""


def _judge(few: _Few, seed: int) -> _Judged:
    fold = _folds(few, seed)
    errors = {name: _left_out(name, few, fold, seed) for name in ["as it is", *_candidates(few)]}
    inside = _inside(few.prior_log)
    return _Judged(errors, {name: _mean(error[inside]) for name, error in errors.items()})


def _choose(few: _Few, judged: _Judged) -> _Chosen:
    """The correction to ship. A preferred one that holds up is kept where few rows could only choose by luck."""
    names, scores = _candidates(few), judged.scores
    enough = len(few.log_time) >= FEW
    limit = scores["as it is"] * GAIN["many" if enough else "few"]
    best = min(names, key=lambda name: scores[name])
    # the average of two learners is the safer choice: it is left only for one that is clearly better
    first = names[0] if not enough or scores[names[0]] <= 1.05 * scores[best] else best
    kept = first if scores[first] <= limit else best if scores[best] <= limit else "as it is"
    return _Chosen(kept, judged.errors[kept], scores, kept == "as it is")


def _choose_alone(few: Mapping[str, _Few], judged: Mapping[str, _Judged]) -> dict[str, _Chosen]:
    """The correction of families that have no source and fewer than FEW runs: chosen for all of them together.

    Four of five runs say little about one family's choice, those of a dozen families together say enough. The one with
    the smallest median error over all left-out runs is taken; a family where it does VETO times worse than its
    plain baseline takes its own best.
    """
    names = _candidates(next(iter(few.values())))

    def typical(name: str, items: Iterable[_Judged]) -> float:
        return float(np.median(np.abs(np.concatenate([item.errors[name] for item in items]))))

    pooled = {name: typical(name, judged.values()) for name in ["as it is", *names]}
    best = min(pooled, key=lambda name: pooled[name])
    together = names[0] if pooled[names[0]] <= min(1.1 * pooled[best], pooled["as it is"]) else best
    out = {}
    for family, item in judged.items():
        own = {name: typical(name, [item]) for name in pooled}
        name = together if own[together] <= VETO * own["as it is"] else min(own, key=lambda key: own[key])
        out[family] = _Chosen(name, item.errors[name], item.scores, name == "as it is")
    return out


def _merged(domains: Sequence[Domain], own: Domain) -> Domain:
    """The box of sources and own runs together; precisions and implementations of the own runs only."""
    low = {name: float(v) for name, v in zip(own.names, own.low, strict=True)}
    high = {name: float(v) for name, v in zip(own.names, own.high, strict=True)}
    for domain in domains:
        for name, a, b in zip(domain.names, domain.low, domain.high, strict=True):
            if name in low:
                low[name], high[name] = min(low[name], float(a)), max(high[name], float(b))
    return Domain(own.names, np.array([low[n] for n in own.names]), np.array([high[n] for n in own.names]),
                  own.precisions, own.implementations)  # fmt: skip


def _few_of(parts: Sequence[Part], times: Sequence[Floats], groups: NDArray[Any], sources: Sequence[FamilyModel],
            family: str, encoder: Encoder, rows: Across | None) -> _Few:  # fmt: skip
    terms = np.concatenate([contributions(sources, part) for part in parts])
    prior = prior_multipliers(sources, terms.shape[1])
    prior_log = np.log(np.maximum(terms @ prior, 1e-9))
    carried = np.zeros(len(prior_log))
    if sources:
        carried = np.concatenate([transferred_log(sources, part) for part in parts]) - prior_log
    source_x = source_y = None
    if rows is not None and sources:
        source_x = np.concatenate([encoder.matrix(part.rows) for part in rows.parts])
        base = [contributions(sources, part) @ prior for part in rows.parts]
        source_y = to_residual(np.concatenate(rows.times), np.maximum(np.concatenate(base), 1e-9))
    sizes = [p.name for p in FAMILIES[family].params if p.kind in ("size", "real")]
    return _Few(terms, prior, prior_log, carried, np.concatenate([encoder.matrix(p.rows) for p in parts]),
                np.log(np.concatenate(list(times))), groups, process_scales(encoder.columns, sizes), source_x, source_y,
                bool(sources))  # fmt: skip


@dataclass(frozen=True)
class _Task:
    """One family to adapt."""

    family: str
    parts: list[Part]
    few: _Few
    encoder: Encoder
    reference: dict[str, str]
    sources: list[FamilyModel]
    origin: str


@dataclass(frozen=True)
class _Adapted:
    model: AdaptedFamily
    parts: list[Part]
    error: Floats
    scores: Mapping[str, float]
    analytic: Floats


def _task(family: str, groups: Sequence[Group], time_s: Floats, group: NDArray[Any], sources: list[FamilyModel],
          origin: str, rows: Across | None) -> _Task:  # fmt: skip
    reference = reference_implementations(groups)
    parts = [part_of(g, reference) for g in groups]
    encoder = Encoder.fit([*(p.rows for p in parts), *(p.rows for p in (rows.parts if rows else ()))])
    index = np.concatenate([part.index for part in parts])
    few = _few_of(parts, [time_s[p.index] for p in parts], group[index], sources, family, encoder, rows)
    return _Task(family, parts, few, encoder, reference, sources, origin)


def _finish(task: _Task, chosen: _Chosen, seed: int) -> _Adapted:
    few, every = task.few, np.arange(len(task.few.log_time))
    fit = FITTERS[chosen.name](few, every, seed)
    if chosen.refused and chosen.scores["shift"] < chosen.scores["as it is"]:
        fit = _shift(few, every, seed)  # nothing clearly beats the source: a shrunk scalar is all that may be shipped
    domain = _merged([s.domain for s in task.sources], fit_domain(task.family, [p.rows for p in task.parts]))
    model = AdaptedFamily(task.family, task.encoder, Calibration(np.zeros(len(TERMS))), None, domain, task.reference,
                          len(every), _words(len(every), task.origin, chosen), sources=task.sources,
                          multipliers=fit.multipliers, shift=fit.shift, process=fit.process, joint=fit.joint,
                          joint_share=fit.joint_share, kind=chosen.name)  # fmt: skip
    analytic = few.log_time - np.log(np.concatenate([p.analytic_s for p in task.parts]))
    return _Adapted(model, task.parts, chosen.error, chosen.scores, analytic)


def _adapt_all(tasks: Sequence[_Task], seed: int) -> list[_Adapted]:
    judged = {task.family: _judge(task.few, seed) for task in tasks}
    alone = {t.family: t.few for t in tasks if not t.sources and len(t.few.log_time) < FEW}
    chosen = {task.family: _choose(task.few, judged[task.family]) for task in tasks}
    if alone:
        chosen |= _choose_alone(alone, {family: judged[family] for family in alone})
    return [_finish(task, chosen[task.family], seed) for task in tasks]


def _words(rows: int, origin: str, chosen: _Chosen) -> str:
    before, after = 100.0 * chosen.scores["as it is"], 100.0 * chosen.scores[chosen.name]
    head = f"adapted from {origin} with {rows} run{'s' * (rows != 1)}"
    if chosen.refused:
        return f"{head}: no correction beat it with runs left out ({before:.1f} %), kept as it is"
    return f"{head}: {chosen.name}, error with runs left out {after:.1f} % ({before:.1f} % un-adapted)"


def adapt_model(few: pd.DataFrame, platform: Platform | str, source: Model | Sequence[Model] | None = None, *,
                source_rows: pd.DataFrame | None = None, platforms: Mapping[str, Platform] | None = None,
                name: str | None = None, seed: int = 0) -> Model:  # fmt: skip
    """A model of `platform` from a few runs of it.

    few: run table (rows of other platforms are left out). source: models of other platforms (or the one across
    platforms); None starts from source_rows, else from the parameter file alone. source_rows: runs of other platforms
    for the joint trees. platforms: parameter sets to use instead of the shipped ones, by id.
    Raises InputError where no row of the platform can be used.
    """
    target = load_platform(platform) if isinstance(platform, str) else platform
    known = {**(platforms or {}), target.id: target}
    here = few[few["platform"].astype(str) == target.id].reset_index(drop=True)
    if here.empty:
        held = ", ".join(sorted(set(few["platform"].astype(str)))) or "none"
        raise InputError(f"the table has no run of {target.id}; it holds {held}")
    models = [source] if isinstance(source, Model) else list(source or ())
    rows = _source_rows(source_rows, target.id, known, seed)
    described = describe(here, known)
    time_s = np.asarray(here["time_s"], dtype=np.float64)
    group = np.asarray(here["group"].astype(str)) if "group" in here else np.arange(len(here)).astype(str)
    by_family: dict[str, list[Group]] = {}
    for part in described.groups:
        by_family.setdefault(part.family, []).append(part)
    if not by_family:
        raise InputError(f"no run of {target.id} can be used: {next(iter(described.refused.values()))}")
    tasks = [
        _task(family, groups, time_s, group, *_sources(family, models, rows, seed), rows.get(family))
        for family, groups in sorted(by_family.items())
    ]
    done = _adapt_all(tasks, seed)
    return _assemble(target.id, name or f"{target.id}-adapted", done, models, len(described.refused), seed)


def _source_rows(frame: pd.DataFrame | None, target: str, known: Mapping[str, Platform], seed: int
                 ) -> dict[str, Across]:  # fmt: skip
    if frame is None:
        return {}
    other = frame[frame["platform"].astype(str) != target]
    count = max(other["platform"].nunique(), 1)
    return across_platforms(other, known, most=SOURCE_ROWS // count, seed=seed) if len(other) else {}


def _sources(family: str, models: Sequence[Model], rows: Mapping[str, Across], seed: int
             ) -> tuple[list[FamilyModel], str]:  # fmt: skip
    having = [model for model in models if family in model.families]
    if having:
        return [model.families[family] for model in having], " and ".join(model.name for model in having)
    if family in rows:
        return [fit_across(rows[family], seed)], " and ".join(sorted(set(rows[family].platforms)))
    return [], "the parameter file alone"


def _assemble(platform: str, name: str, done: Sequence[_Adapted], models: Sequence[Model], refused: int, seed: int
              ) -> Model:  # fmt: skip
    """Families, the sources' families that no run was made of, and bands from the errors of left-out runs."""
    families: dict[str, FamilyModel] = {item.model.family: item.model for item in done}
    for model in models:
        for family in model.families:
            if family not in families:
                families[family] = replace(
                    model.families[family], note=f"no run of {family} on {platform}: as {model.name} has it"
                )
    size = {item.model.family: np.log(np.abs(item.error) + SMALLEST_SIGMA / 2.0) for item in done}
    whole = float(np.median(np.concatenate(list(size.values()))))
    # a handful of errors tells little of a family's typical one: half of it is believed after eight
    typical = {f: float((np.median(v) * len(v) + whole * SHIFT_ROWS) / (len(v) + SHIFT_ROWS)) for f, v in size.items()}
    typical[""] = max(whole, *typical.values())
    error = np.concatenate([item.error for item in done])
    label = np.concatenate([np.full(len(item.error), item.model.family) for item in done])
    analytic = np.sort(np.abs(np.concatenate([item.analytic for item in done])))[::-1]
    difficulty = models[0].difficulty if len(models) == 1 else None
    left_out = {item.model.family: {"kind": item.model.kind, "rows": len(item.error),
                                    **{name: 100.0 * value for name, value in item.scores.items()}}
                for item in done}  # fmt: skip
    at = np.concatenate([part.index for item in done for part in item.parts])
    meta = {"rows": len(error), "refused": refused, "seed": seed, "folds": 0, "left_out": left_out,
            "adapted_from": [m.name for m in models], "left_out_rows": {"at": at, "error": error}}  # fmt: skip
    bands = fit_bands(error, np.ones(len(error)), label)
    model = Model(platform, name, families, difficulty, typical, bands, analytic, meta)
    sigma = [model.sigma(item.model.family, part, *reversed(item.model.log_correction(part)))
             for item in done for part in item.parts]  # fmt: skip
    model.bands = fit_bands(error, np.concatenate(sigma), label)
    return model
