"""Labels of a question that a model may know: whose kernel it is, what kind of input. Mistyped ones are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..analytic.errors import InputError, mistyped, nearest_names
from ..analytic.rules import ABSENT, plain
from ..features.implementation import canonical_labels
from ..training.hybrid.notes import Note
from .question import Question

if TYPE_CHECKING:
    from ..training.hybrid.model import Model
    from ..training.hybrid.protocol import LearnedFamily

MOST_SHOWN = 12


def judge_labels(question: Question, model: Model | None, analytic: bool = False) -> tuple[Note, ...]:
    """What is to be said of a question's labels: those the model knows, where it does not know the one given.

    InputError for an implementation that is a slip away from a known one, and for a kind of input (`Param.open`) that
    is neither among the family's words nor among those the model was trained on. A table may hold either.
    """
    _refuse_strange_words(question, model)
    known = [] if analytic else [name for name in _implementations(question, model) if name not in ABSENT]
    given = question.implementation
    if not known or given in ABSENT or str(canonical_labels(np.array([given]), known)[0]) in known:
        return ()
    family, names = question.family.name, ", ".join(sorted(known)[:MOST_SHOWN])
    meant = mistyped(plain(given), known)
    if meant:
        raise InputError(f"{family}: implementation {given!r} is unknown (did you mean {meant}?); known: {names}")
    return (Note("implementations_known", f"implementations known of {family}: {names}"),)


def _learned(question: Question, model: Model | None) -> LearnedFamily | None:
    return None if model is None or not question.known else model.families.get(question.family.name)


def _implementations(question: Question, model: Model | None) -> list[str]:
    learned = _learned(question, model) if question.implementation else None
    return [] if learned is None else [str(name) for name in learned.domain.implementations]


def _refuse_strange_words(question: Question, model: Model | None) -> None:
    for param in question.family.params:
        word = question.params.get(param.name)
        if not param.open or word is None or word in (*param.words, *ABSENT):
            continue
        learned = _learned(question, model)
        own = [] if learned is None else learned.encoder.labels.get(param.name, [])
        if word not in own:
            raise InputError(f"{question.kernel}: parameter {param.name!r} is {word[:40]!r}"
                             f"{nearest_names(word, {*param.words, *own})}; leave it out for any other")
