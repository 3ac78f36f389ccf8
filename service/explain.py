"""Why a time is what it is, in words with units: the bound, the terms, the parameters, and what would change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..analytic.errors import KernelcastError
from ..analytic.explain import Explanation, explain_baseline
from ..analytic.platform import Platform
from ..analytic.units import format_quantity
from .advice import advice
from .answer import Answered, Prediction

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


def sensitivities(asked: Answered) -> list[Sensitivity]:
    """Change of the baseline for each number that it looked up, raised by a tenth; largest effects first."""
    return moved_by(asked.platform, asked.prediction.parameters, asked.prediction.baseline_s,
                    lambda changed: float(asked.question.described(changed)[0].baseline_s[0]))


def moved_by(platform: Platform, used: Sequence[Mapping[str, Any]], base_s: float, time_s: Callable[[Platform], float]
             ) -> list[Sensitivity]:
    """What each used number, raised by a tenth, does to `time_s(platform)`, which is `base_s`; largest effects first.
    """
    out = []
    for row in used:
        if isinstance(row["value"], str) or not row["value"]:
            continue
        try:
            change = time_s(platform.with_overrides({row["name"]: float(row["value"]) * STEP})) / base_s - 1.0
        except KernelcastError:
            continue  # a ratio cannot be raised above 1, a word cannot be raised at all
        if abs(change) >= SMALLEST_CHANGE:
            out.append(Sensitivity(row["name"], change))
    return sorted(out, key=lambda s: -abs(s.change))


def as_rows(found: Sequence[Sensitivity]) -> list[dict[str, Any]]:
    """Sensitivities as JSON-safe rows."""
    return [{"parameter": s.parameter, "step": STEP, "change": s.change} for s in found]


def steps_of(asked: Answered) -> Explanation:
    """The baseline under a prediction, step by step: amount ÷ rate = time, what binds, what would move it."""
    return explain_baseline(asked.described.groups[0].baseline, asked.platform, asked.question.precision)


def picture(asked: Answered, path: str | Path) -> Path:
    """Draw the roofline picture of a prediction. InputError for a file that is no picture, or without matplotlib."""
    from .plot import Point, roofline

    found, work = asked.prediction, asked.described.groups[0].baseline.work
    point = Point(f"{found.kernel} {found.precision}", float(work.flop[0]), float(work.compulsory_byte[0]),
                  found.predicted_s, found.lower_s, found.upper_s)
    return roofline(asked.platform, found.precision, [point], path)


def said_words(said: Explanation) -> dict[str, Any]:
    """Steps, bound, equations and guard of an explanation, JSON-safe."""
    return {
        "steps": [{"name": step.name, "words": step.words, "seconds": step.time_s, "equation": step.equation}
                  for step in said.steps],
        "binding": said.binding,
        "to_move": said.to_move,
        "equations": list(said.equations),
        "guard": said.guard,
    }


def explanation(asked: Answered) -> dict[str, Any]:
    """A prediction with what `explain` adds to it, JSON-safe."""
    prediction = asked.prediction
    terms = prediction.terms
    total = sum(terms.values()) or 1.0
    return prediction.to_dict() | {
        **said_words(steps_of(asked)),
        "bound_words": bound_words(prediction),
        "shares": {name: value / total for name, value in terms.items()},
        "hybrid_factor": prediction.predicted_s / prediction.baseline_s,
        "residual_factor": prediction.predicted_s / prediction.calibrated_s,
        "over_bound": prediction.predicted_s / prediction.bound["seconds"] if prediction.bound["seconds"] else None,
        "sensitivity": as_rows(sensitivities(asked)),
        **advice(asked),
    }
