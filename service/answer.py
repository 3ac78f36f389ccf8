"""Predictions as a service: one configuration or a whole table, hybrid where a model exists, analytic where not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analytic.errors import InputError
from ..analytic.families import FAMILIES
from ..analytic.platform import Platform, load_platform
from ..analytic.units import format_quantity
from ..features.counted import SEGMENT
from ..registry import index
from ..registry.origin import parameters_digest
from ..training.hybrid.encode import MISSING
from ..training.hybrid.html import html_table
from ..training.hybrid.meta import TRANSFER
from ..training.hybrid.notes import Note, joined
from .labels import judge_labels
from .question import Question, ask
from .recorded import changed_parameters, used_parameters

if TYPE_CHECKING:
    from ..features.describe import Described
    from ..training.hybrid.model import Model, Predicted

ANALYTIC = "analytic"


@dataclass(frozen=True, repr=False)
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
    notes: tuple[Note, ...]
    """What a reader must know, one thing each: code for programs, words for people, factor on the band's half-width."""
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

    @property
    def in_domain(self) -> bool:
        """Whether nothing is noted that puts it outside of what its model was trained for."""
        return not any(note.outside for note in self.notes)

    @property
    def note(self) -> str:
        """The notes in one line."""
        return joined(self.notes)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe dictionary: no NaN, no infinity. `notes` as code, words and factor, and joined in `note`."""
        out: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            if name == "notes":
                out |= {"in_domain": self.in_domain, "note": self.note, name: [note.to_dict() for note in self.notes]}
            else:
                out[name] = getattr(self, name)
        return {name: _json_safe(value) for name, value in out.items()}

    def band_words(self) -> str:
        """`1.42 ms (90 % band 1.4 ms … 1.45 ms)`."""
        shown = format_quantity(self.predicted_s, "s")
        if self.lower_s is None or self.upper_s is None:
            return f"{shown} (no band)"
        lower, upper = format_quantity(self.lower_s, "s"), format_quantity(self.upper_s, "s")
        return f"{shown} ({100 * self.level:g} % band {lower} … {upper})"

    def __repr__(self) -> str:
        """`<Prediction gemm on h200: 1.42 ms (90 % band 1.4 ms … 1.45 ms)>`."""
        return f"<Prediction {self.kernel} on {self.platform}: {self.band_words()}>"

    def _repr_html_(self) -> str:
        """The prediction as a table, for a notebook."""
        sizes = " ".join(f"{name}={value}" for name, value in self.params.items())
        rows = [
            ("question", f"{self.precision} {sizes}, cache {self.cache}"), ("predicted", self.band_words()),
            ("analytic", f"{format_quantity(self.baseline_s, 's')} ({self.route})"),
            ("physical bound", f"{format_quantity(self.bound['seconds'], 's')} ({self.bound['limit']})"),
            ("model", self.model), ("implementation", self.implementation or "-"),
            ("in domain", "yes" if self.in_domain else "no"), *(("note", note.words) for note in self.notes),
        ]
        return html_table(f"{self.kernel} on {self.platform}", (), rows)


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
    if model.platform not in (platform.id, TRANSFER):
        raise InputError(f"model {model.name} is for {model.platform}, not for {platform.id}")
    return model


@dataclass
class Answer:
    """Predictions of n described rows on one platform, and the model they are of."""

    predicted: Predicted
    model: str


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
    from ..training.hybrid.model import nothing_predicted

    size = described.baseline_s.size
    half = np.full(size, np.inf)
    if model is not None:
        half = Bands(model.analytic_scores).half_width(np.ones(size), np.full(size, ANALYTIC), level)[0]
    implementation = np.full(size, "", dtype=object)
    for group in described.groups:
        implementation[group.index] = group.rows.categories["implementation"]
    out = nothing_predicted(size)
    base = described.baseline_s
    out.put(np.arange(size), base, half, base, np.full(size, np.nan), implementation)
    return out


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
    found = resolve_model(platform, model)
    plain = analytic or found is None
    if plain or found is None:
        predicted = _analytic(described, found, level)
        label = ANALYTIC
    else:
        predicted, label = found.predict(described, level, left_open=left_open), index.label(found)
    _name_reference(described, predicted, platform)
    every, say = np.isfinite(predicted.predicted_s), predicted.notes.say
    if found is None:
        say("analytic_only", every, f"analytic only: no model for {platform.id}, so no band", outside=True)
    elif plain:
        say("analytic_only", every, "analytic only, band from the analytic errors on the runs of "
            f"{index.label(found)}", outside=True)
    if overridden:
        say("set_by_hand", every, f"with {', '.join(overridden)} set by hand: the band was not measured for that",
            outside=True)
    elif found is not None and found.meta.get("parameters_digest", "") not in ("", parameters_digest(platform)):
        say("parameters_changed", every,
            f"the parameters of {platform.id} have changed since {index.label(found)} was trained", outside=True)
    say("guard", described.guard & every, "guard: the analytic time was below the physical bound and was lifted to it")
    return Answer(predicted, label)


@dataclass(frozen=True)
class Answered:
    """A question, what it was turned into on the way, and its prediction: for what explains or ranks it."""

    question: Question
    platform: Platform
    """As changed for the question."""
    described: Described
    prediction: Prediction
    model: Model | None = None
    """The opened model that answered, or whose runs made the band of an analytic answer; None where there is none."""
    overridden: tuple[str, ...] = ()
    """Platform parameters that were set by hand for the question."""


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
    """Time [s] of one kernel call on one platform, with a band that holds it at `level`.

    family: a kernel family (`gemm`), or any name where `flops` and `bytes` are given. platform: id, alias, path of a
    parameter file, or a Platform. precision: the family's usual one where left out. level: between 0 and 1. cache:
    `warm` or `cold`, the last-level cache before the call. implementation: whose kernel; else the vendor's library.
    model: a Model, or NAME, NAME@VERSION or a folder; the platform's champion where left out. analytic: the physical
    baseline alone. overrides: platform parameters to change for this prediction ({"hbm_peak_bw": "6 TB/s"}; numbers
    are SI). params: the family's parameters, counts and SI numbers. Raises InputError for bad input, RefusedError where
    no honest prediction is possible.
    """
    asked = answered(family, platform=platform, precision=precision, level=level, cache=cache, model=model,
                     implementation=implementation, analytic=analytic, overrides=overrides, **params)
    return asked.prediction


def answered(
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
) -> Answered:
    """`predict`, with what the prediction was made from."""
    level = check_level(level)
    target = platform if isinstance(platform, Platform) else load_platform(platform)
    if overrides:
        target = target.with_overrides(overrides)
    question = ask(family, params, precision, cache, implementation)
    described, used = question.described(target)
    found = resolve_model(target, model)
    said, set_by_hand = judge_labels(question, found, analytic), tuple(overrides or ())
    given = answer(described, target, level=level, model=found, analytic=analytic, overridden=set_by_hand)
    prediction = _prediction(question, target, described, given, level, used, said)
    return Answered(question, target, described, prediction, found, set_by_hand)


def _prediction(question: Question, platform: Platform, described: Described, given: Answer, level: float,
                used: tuple[str, ...], said: tuple[Note, ...]) -> Prediction:
    base, predicted = described.groups[0].baseline, given.predicted
    bounded = bool(np.isfinite(predicted.upper_s[0]))
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
        notes=(*question.notes, *predicted.notes.of(0), *said),
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
    )
