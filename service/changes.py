"""What can be changed about a question by whoever asks it: sizes, layout, precision, implementation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.errors import KernelcastError
from ..analytic.platform import Platform
from ..analytic.work import element_byte
from ..features.counted import SEGMENT
from .plain import changed, sizes_to_pad
from .question import Question, ask

if TYPE_CHECKING:
    from ..features.describe import Described, Group
    from ..training.hybrid.model import Model

MULTIPLES = (8, 16, 64, 128)
MOST_PADDING = 1.5
"""A size is not padded by more than half, as that is another problem; but up to the least multiple, unless it is 1."""
NARROWER = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp6", "fp4")
"""Floating-point precisions, each with fewer bits of a number than those before it (bf16 and fp16 as many)."""
LAYOUTS = frozenset({"order", "layout"})
"""Parameters that say how the data lies in memory."""
ACCURACY = "whether the result is accurate enough is yours to judge"
LONGER = "the frequencies of a longer transform lie elsewhere"
ORDERING = "bringing the data into that order takes time, too"


@dataclass(frozen=True)
class Change:
    """One thing changed: `kind` is size, layout, precision or implementation; `words` say it, `caution` what it
    costs."""

    kind: str
    words: str
    question: Question
    caution: str = ""


def changes(question: Question, platform: Platform, model: Model | None) -> list[Change]:
    """Everything of a question on a platform that its asker can change; none for a kernel of no known family.

    Implementations and precisions are those the model has learned the family from. Changes that no question can be
    made of (contradictions with what else was given) are left out. All name the same parameters.
    """
    if not question.known or question.family.name == SEGMENT:
        return []
    found = [*_sizes(question), *_layouts(question), *_precisions(question, platform, model),
             *_implementations(question, model)]
    return [change for change in found if _can_be_asked(change.question)]


def _can_be_asked(question: Question) -> bool:
    try:
        ask(question.kernel, question.params, question.precision, question.cache, question.implementation)
    except KernelcastError:
        return False
    return True


def _up(size: float, multiple: int) -> int:
    return math.ceil(size / multiple) * multiple


def _worth(size: float, padded: int, multiple: int) -> bool:
    return size < padded <= MOST_PADDING * size or (multiple == MULTIPLES[0] and 1 < size < padded)


def _sizes(question: Question) -> Iterator[Change]:
    """Each size padded to the next multiples, and all of them together."""
    names = sizes_to_pad(question)
    steps: dict[tuple[tuple[str, int], ...], int] = {}
    for multiple in MULTIPLES:
        padded = {name: _up(float(question.params[name]), multiple) for name in names}
        padded = {name: size for name, size in padded.items() if _worth(question.params[name], size, multiple)}
        for one in [*({name: size} for name, size in padded.items()), padded]:
            if one:
                steps[tuple(one.items())] = multiple
    said = {sizes: f"a multiple of {multiple}" for sizes, multiple in steps.items()}
    caution = ""
    if question.family.name == "fft":
        power = 2 ** math.ceil(math.log2(float(question.params["n"])))
        said |= {(("n", power),): "a power of two"} if power > question.params["n"] else {}
        caution = LONGER
    for sizes, what in said.items():
        words = " ".join(f"{name}={size}" for name, size in sizes)
        each = "each " if len(sizes) > 1 else ""
        yield Change("size", f"{words} ({each}padded to {what})", changed(question, dict(sizes)), caution)


def _layouts(question: Question) -> Iterator[Change]:
    for param in question.family.params:
        if param.name not in LAYOUTS or param.name not in question.params:
            continue
        for word in param.words:
            if word != question.params[param.name]:
                yield Change("layout", f"{param.name}={word}", changed(question, {param.name: word}), ORDERING)


def _precisions(question: Question, platform: Platform, model: Model | None) -> Iterator[Change]:
    """Lower precisions that the platform has; where the family was learned, those with runs of it."""
    from ..training.hybrid.family import learned_as

    if question.precision not in NARROWER:
        return
    width = element_byte(question.precision)
    learned = model is not None and question.family.name in model.families
    family = model.families[question.family.name] if model is not None and learned else None
    for name in NARROWER[NARROWER.index(question.precision) + 1 :]:
        if element_byte(name) == width and name != "tf32":
            continue  # the other 16-bit one: not lower
        if family is not None and learned_as(name, family.domain.precisions) not in family.domain.precisions:
            continue
        same = question.implementation if question.implementation in _known(question, name, model) else ""
        lower = replace(question, precision=name, implementation=same)
        if _has(lower, platform):
            yield Change("precision", f"precision={name}", lower, ACCURACY)


def _has(question: Question, platform: Platform) -> bool:
    """Whether a platform computes in the precision of a question."""
    try:
        question.described(platform)
    except KernelcastError:
        return False
    return True


def _implementations(question: Question, model: Model | None) -> Iterator[Change]:
    for name in _known(question, question.precision, model):
        if name != question.implementation:
            yield Change("implementation", f"implementation={name}", replace(question, implementation=name))


def _known(question: Question, precision: str, model: Model | None) -> list[str]:
    """Implementations of which a model has seen runs of the family in a precision."""
    from ..training.hybrid.encode import MISSING
    from ..training.hybrid.family import FamilyModel

    if model is None or question.family.name not in model.families:
        return []
    family = model.families[question.family.name]
    calibrated = family.calibration.regimes if isinstance(family, FamilyModel) else ()
    regimes = {*calibrated, *(label.partition("|")[2] for label in model.typical
                              if label.startswith(f"{family.family}|"))}
    return [name for name in family.domain.implementations if name not in MISSING and f"{name}|{precision}" in regimes]


def described_together(questions: Sequence[Question], platform: Platform) -> Described:
    """Baselines and features of questions of one family, cache state and set of parameters, in one call a precision.

    Questions in a precision that the platform has not, or too large together, are refused: their rows are NaN.
    """
    from ..features.describe import Described, group_of

    n = len(questions)
    baseline, naive, bound = np.full((3, n), np.nan)
    route, guard = np.full(n, "", dtype=object), np.zeros(n, dtype=bool)
    groups: list[Group] = []
    refused: dict[int, str] = {}
    for precision in dict.fromkeys(question.precision for question in questions):
        at = np.array([i for i, question in enumerate(questions) if question.precision == precision], dtype=np.intp)
        some = [questions[i] for i in at.tolist()]
        first = some[0]
        raw = {name: _column([one.params[name] for one in some]) for name in first.params}
        labels = np.array([one.implementation for one in some], dtype=object)
        try:
            group = group_of(platform, first.family, first.kernel, precision, first.cache, at, raw, labels)
        except KernelcastError as error:
            refused |= dict.fromkeys(at.tolist(), str(error))
            continue
        base = group.baseline
        groups.append(group)
        baseline[at], naive[at], bound[at] = base.time_s, base.naive_s, base.bound.seconds
        route[at], guard[at] = base.route, base.guard
    return Described(baseline, naive, bound, route, guard, tuple(groups), refused)


def _column(values: Sequence[Any]) -> NDArray[Any]:
    """Values of one parameter as an array (n,); lists stay entries of their own."""
    if not isinstance(values[0], list):
        return np.array(values)
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells
