"""Why a time is what it is, in words with units: the bound, the terms, the parameters, and what would change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..analytic.errors import KernelcastError
from ..analytic.explain import Explanation, explain_baseline
from ..analytic.platform import Platform, load_platform
from ..analytic.units import format_quantity
from .advice import advice
from .answer import Prediction
from .question import ask

if TYPE_CHECKING:
    from ..training.hybrid.model import Model

STEP = 1.1
"""A parameter is raised by a tenth to see what it does."""
SMALLEST_CHANGE = 0.001


@dataclass(frozen=True)
class Sensitivity:
    """What raising one platform parameter by a tenth does to the baseline: relative change, negative is faster."""

    parameter: str
    change: float


def unit_of(limit: str) -> tuple[str, str]:
    """(unit of the work, unit of the rate) of a bound's limit."""
    return ("FLOP", "FLOP/s") if "FLOP" in limit else ("B", "B/s")


def bound_words(prediction: Prediction) -> str:
    """`1.1 TFLOP ÷ 989.4 TFLOP/s = 1.111 ms (matrix FLOP)`."""
    work, rate = unit_of(prediction.bound["limit"])
    amount = format_quantity(prediction.bound["work"], work, binary=False)
    speed = format_quantity(prediction.bound["rate"], rate)
    return f"{amount} ÷ {speed} = {format_quantity(prediction.bound['seconds'], 's')} ({prediction.bound['limit']})"


def sensitivities(
    prediction: Prediction, overrides: Mapping[str, str | float] | None = None, platform_name: str | None = None
) -> list[Sensitivity]:
    """Change of the baseline for each number that it looked up, raised by a tenth; largest effects first.

    platform_name: the id or parameter file that the prediction was made for, where it is not `prediction.platform`.
    """
    platform = load_platform(platform_name or prediction.platform).with_overrides(dict(overrides or {}))
    question = ask(prediction.kernel, prediction.params, prediction.precision, prediction.cache,
                   prediction.implementation)  # fmt: skip
    return moved_by(platform, prediction.parameters,
                    lambda changed: float(question.described(changed)[0].baseline_s[0]))  # fmt: skip


def moved_by(platform: Platform, used: Sequence[Mapping[str, Any]], time_s: Callable[[Platform], float]
             ) -> list[Sensitivity]:  # fmt: skip
    """What each used number, raised by a tenth, does to `time_s(platform)`; largest effects first."""
    base = time_s(platform)
    out = []
    for row in used:
        if isinstance(row["value"], str) or not row["value"]:
            continue
        try:
            change = time_s(platform.with_overrides({row["name"]: float(row["value"]) * STEP})) / base - 1.0
        except KernelcastError:
            continue  # a ratio cannot be raised above 1, a word cannot be raised at all
        if abs(change) >= SMALLEST_CHANGE:
            out.append(Sensitivity(row["name"], change))
    return sorted(out, key=lambda s: -abs(s.change))


def as_rows(found: Sequence[Sensitivity]) -> list[dict[str, Any]]:
    """Sensitivities as JSON-safe rows."""
    return [{"parameter": s.parameter, "step": STEP, "change": s.change} for s in found]


def steps_of(
    prediction: Prediction, overrides: Mapping[str, str | float] | None = None, platform_name: str | None = None
) -> Explanation:
    """The baseline under a prediction, step by step: amount ÷ rate = time, what binds, what would move it."""
    platform = load_platform(platform_name or prediction.platform).with_overrides(dict(overrides or {}))
    question = ask(prediction.kernel, prediction.params, prediction.precision, prediction.cache,
                   prediction.implementation)  # fmt: skip
    base = question.described(platform)[0].groups[0].baseline
    return explain_baseline(base, platform, prediction.precision)


def picture(
    prediction: Prediction, path: str | Path, overrides: Mapping[str, str | float] | None = None,
    platform_name: str | None = None,
) -> Path:  # fmt: skip
    """Draw the roofline picture of a prediction. InputError for a file that is no picture, or without matplotlib."""
    from .plot import Point, roofline

    platform = load_platform(platform_name or prediction.platform).with_overrides(dict(overrides or {}))
    question = ask(prediction.kernel, prediction.params, prediction.precision, prediction.cache,
                   prediction.implementation)  # fmt: skip
    work = question.described(platform)[0].groups[0].baseline.work
    point = Point(f"{prediction.kernel} {prediction.precision}", float(work.flop[0]), float(work.compulsory_byte[0]),
                  prediction.predicted_s, prediction.lower_s, prediction.upper_s)  # fmt: skip
    return roofline(platform, prediction.precision, [point], path)


def said_words(said: Explanation) -> dict[str, Any]:
    """Steps, bound, equations and guard of an explanation, JSON-safe."""
    return {
        "steps": [{"name": step.name, "words": step.words, "seconds": step.time_s, "equation": step.equation}
                  for step in said.steps],
        "binding": said.binding,
        "to_move": said.to_move,
        "equations": list(said.equations),
        "guard": said.guard,
    }  # fmt: skip


def explanation(
    prediction: Prediction, overrides: Mapping[str, str | float] | None = None, platform_name: str | None = None,
    model: Model | str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """A prediction with what `explain` adds to it, JSON-safe. model: as `predict` was given it."""
    terms = prediction.terms
    total = sum(terms.values()) or 1.0
    said = steps_of(prediction, overrides, platform_name)
    return prediction.to_dict() | {
        **said_words(said),
        "bound_words": bound_words(prediction),
        "shares": {name: value / total for name, value in terms.items()},
        "hybrid_factor": prediction.predicted_s / prediction.baseline_s,
        "residual_factor": prediction.predicted_s / prediction.calibrated_s,
        "over_bound": prediction.predicted_s / prediction.bound["seconds"] if prediction.bound["seconds"] else None,
        "sensitivity": as_rows(sensitivities(prediction, overrides, platform_name)),
        **advice(prediction, overrides, platform_name, model),
    }  # fmt: skip
