"""Predictions as a service: one configuration or a whole table, hybrid where a model exists, analytic where not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.errors import InputError
from ..analytic.families import FAMILIES
from ..analytic.platform import Platform, load_platform
from ..registry import index
from ..training.hybrid.encode import MISSING
from .labels import judge_labels
from .question import SEGMENT, Question, ask
from .recorded import changed_parameters, used_parameters

if TYPE_CHECKING:
    from ..features.describe import Described
    from ..training.hybrid.model import Model, Predicted

ANALYTIC = "analytic"


@dataclass(frozen=True)
class Prediction:
    """One predicted time with its band, and everything it rests on. Times in seconds; an unbounded band is None."""

    platform: str
    kernel: str
    precision: str
    params: dict[str, Any]
    implementation: str
    cache: str
    baseline_s: float
    predicted_s: float
    lower_s: float | None
    upper_s: float | None
    level: float
    in_domain: bool
    note: str
    route: str
    model: str
    naive_s: float
    """Naive roofline from datasheet peaks."""
    calibrated_s: float
    """Baseline with the family's fitted multipliers, before the residual; the baseline itself without a model."""
    terms: dict[str, float]
    bound: dict[str, Any]
    """The physical bound: limit, work, rate, seconds."""
    parameters: list[dict[str, Any]] = field(default_factory=list)
    """Platform parameters that the baseline looked up: name, value, unit, kind, source, date, note."""
    characterisation: str = "first-principles"
    """Where FLOP and bytes come from: counted by the family from its sizes, or `as given` with the question."""
    changed: list[dict[str, Any]] = field(default_factory=list)
    """Those set by hand, and those that followed: name, value, unit, source, note (what it was), used or not."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe dictionary: no NaN, no infinity."""
        return {name: _json_safe(getattr(self, name)) for name in self.__dataclass_fields__}


def _json_safe(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_safe(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_level(level: float) -> float:
    """`level` if it lies strictly between 0 and 1, else InputError."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0.0 < level < 1.0:
        raise InputError(f"level is {level!r}; it must be a number between 0 and 1, such as 0.9 for a 90 % band")
    return float(level)


def resolve_model(platform: Platform, model: Model | str | None) -> Model | None:
    """The model to use on a platform: a given one, a named one, the champion, else the model across platforms.

    None where none of them is there, and for a parameter set as a paper prints it: what was learned is not of that.
    """
    if model is None:
        found = index.open_champion(platform.id)
        return found if found is not None or platform.as_published else index.open_transfer()
    if isinstance(model, str):
        return index.open_model(platform.id, model)
    if model.platform not in (platform.id, index.TRANSFER):
        raise InputError(f"model {model.name} is for {model.platform}, not for {platform.id}")
    return model


@dataclass
class Answer:
    """Predictions of n described rows on one platform; arrays of shape (n,)."""

    predicted: Predicted
    model: str
    note: NDArray[Any]


def _join(notes: NDArray[Any], where: NDArray[np.bool_], text: str) -> None:
    for i in np.flatnonzero(where):
        notes[i] = f"{notes[i]}; {text}" if notes[i] else text


def _name_reference(described: Described, predicted: Predicted, platform: Platform) -> None:
    """Name the usual implementation where none was asked for and nothing was learned of the family (NaN difficulty)."""
    for group in described.groups:
        usual = FAMILIES[group.family].reference.get(platform.vendor, "")
        names = predicted.implementation[group.index].astype(str)
        unsaid = np.isnan(predicted.sigma[group.index]) & np.isin(names, MISSING)
        predicted.implementation[group.index] = np.where(unsaid, usual, names).astype(object)


def _analytic(described: Described, model: Model | None, level: float) -> Predicted:
    """The baseline itself; its band is that of the analytic errors on the model's training rows, if there is one."""
    from ..training.hybrid.bands import Bands
    from ..training.hybrid.model import Predicted
    from ..training.learners.residual import to_time

    n = described.baseline_s.size
    base = described.baseline_s
    half = np.full(n, np.inf)
    if model is not None:
        half = Bands(model.analytic_scores).half_width(np.ones(n), np.full(n, ANALYTIC), level)[0]
    implementation = np.full(n, "", dtype=object)
    for group in described.groups:
        implementation[group.index] = group.rows.categories["implementation"]
    return Predicted(base.copy(), to_time(-half, base), to_time(half, base), base.copy(), np.full(n, np.nan),
                     np.zeros(n, dtype=bool), np.full(n, "", dtype=object), implementation)  # fmt: skip


def answer(
    described: Described,
    platform: Platform,
    *,
    level: float,
    model: Model | str | None = None,
    analytic: bool = False,
    overridden: tuple[str, ...] = (),
    left_open: bool = False,
) -> Answer:
    """Predict described rows of one platform and say in the notes what a reader must know.

    left_open: see `Model.predict`.
    """
    from .train import parameters_digest

    found = resolve_model(platform, model)
    plain = analytic or found is None
    if plain or found is None:
        predicted = _analytic(described, found, level)
        label = ANALYTIC
    else:
        predicted, label = found.predict(described, level, left_open=left_open), index.label(found)
    _name_reference(described, predicted, platform)
    every = np.isfinite(predicted.predicted_s)
    notes = predicted.note
    if found is None:
        _join(notes, every, f"analytic only: no model for {platform.id}, so no band")
    elif plain:
        _join(notes, every, f"analytic only, band from the analytic errors on the runs of {index.label(found)}")
    if overridden:
        _join(notes, every, f"with {', '.join(overridden)} set by hand: the band was not measured for that")
        predicted.in_domain[:] = False
    elif found is not None and found.meta.get("parameters_digest", "") not in ("", parameters_digest(platform)):
        _join(notes, every, f"the parameters of {platform.id} have changed since {index.label(found)} was trained")
        predicted.in_domain[:] = False
    _join(notes, described.guard & every, "guard: the analytic time was below the physical bound and was lifted to it")
    return Answer(predicted, label, notes)


def predict(
    family: str,
    *,
    platform: str | Platform,
    precision: str | None = None,
    level: float = 0.9,
    cache: str = "warm",
    implementation: str | None = None,
    model: Model | str | None = None,
    analytic: bool = False,
    overrides: Mapping[str, str | float] | None = None,
    **params: Any,
) -> Prediction:
    """Time of one configuration on one platform, with a band at `level`.

    params: the family's parameters as SI numbers. precision: the family's usual one where left out. model: a Model, or
    NAME, NAME@VERSION or a folder; the platform's champion where left out. overrides: platform parameters to change
    for this prediction ({"hbm_peak_bw": "6 TB/s"}). Raises InputError for bad input, RefusedError where no honest
    prediction is possible.
    """
    level = check_level(level)
    target = platform if isinstance(platform, Platform) else load_platform(platform)
    if overrides:
        target = target.with_overrides(overrides)
    question = ask(family, params, precision, cache, implementation)
    described, used = question.described(target)
    found = resolve_model(target, model)
    notes = judge_labels(question, found, analytic)
    given = answer(described, target, level=level, model=found, analytic=analytic, overridden=tuple(overrides or ()))
    return _prediction(question, target, described, given, level, used, notes)


def _prediction(question: Question, platform: Platform, described: Described, given: Answer, level: float,
                used: tuple[str, ...], said: tuple[str, ...]) -> Prediction:  # fmt: skip
    group = described.groups[0]
    base, predicted = group.baseline, given.predicted
    bounded = bool(np.isfinite(predicted.upper_s[0]))
    notes = [text for text in (*question.notes, str(given.note[0]), *said) if text]
    bound = base.bound
    return Prediction(
        platform=platform.id,
        kernel=question.kernel,
        precision=question.precision,
        params=question.params,
        implementation=str(predicted.implementation[0]),
        cache=question.cache,
        baseline_s=float(described.baseline_s[0]),
        predicted_s=float(predicted.predicted_s[0]),
        lower_s=float(predicted.lower_s[0]) if bounded else None,
        upper_s=float(predicted.upper_s[0]) if bounded else None,
        level=level,
        in_domain=bool(predicted.in_domain[0]) and question.known,
        note="; ".join(notes),
        route=base.route,
        model=given.model,
        naive_s=float(described.naive_s[0]),
        calibrated_s=float(predicted.calibrated_s[0]),
        terms={name: float(values[0]) for name, values in base.terms.items()},
        bound={"limit": str(bound.limit[0]), "work": float(bound.work[0]), "rate": float(bound.rate[0]),
               "seconds": float(bound.seconds[0])},
        parameters=used_parameters(platform, used),
        characterisation="as given" if question.family.name == SEGMENT else "first-principles",
        changed=changed_parameters(platform, used),
    )  # fmt: skip
