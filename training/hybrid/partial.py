"""Families learned a second time without statistics that a question may leave out.

A band calibrated on runs that say how long the longest row is does not hold for one that does not. So a family is
learned once more for each extent of what may be left out (`Family.asked_without`): the same runs described without
it, cross-fitted over the same folds, with scores of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...analytic.families import FAMILIES
from ...features.describe import Group
from ...features.unsaid import absent
from .encode import MISSING

if TYPE_CHECKING:
    from .bands import Bands
    from .protocol import LearnedFamily

MADE = "structure"
FEWEST_KINDS = 4
"""Kinds of inputs from which one can be left out."""
FEWEST_ROWS = 200
"""A family with fewer training rows keeps the one model it has, whose answers then say what was left out."""


@dataclass
class Judge:
    """What the band of a row hangs on beside its time: how hard it is, and the scores of rows nobody had seen."""

    difficulty: Any
    """XGBoost booster: log of the typical absolute residual of a row; None where too few rows were there."""
    typical: Mapping[str, float]
    """Median log |out-of-fold residual| by `label|regime`, by label, and '' for all."""
    bands: Bands
    hidden: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Parameters that a partial model does without, by its label; none for families learned whole."""


@dataclass(frozen=True)
class Asked:
    """Rows that one family model answers: its label among the judge's, and in words what each row leaves out."""

    group: Group
    label: str
    model: LearnedFamily
    judge: Judge
    missing: NDArray[Any]


def name_of(family: str, extent: int) -> str:
    """What a partial model is stored under."""
    return f"{family}_without_{extent}"


def masked(groups: Sequence[Group], hidden: Sequence[str]) -> list[Group]:
    """The groups as if nobody had given the parameters `hidden`."""
    return [group.leaving_out(np.ones(group.index.size, dtype=bool), hidden) for group in groups]


def extents(family: str, groups: Sequence[Group]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """(number, parameters left out) of every extent worth a model: most of these rows say what it newly leaves out."""
    before: set[str] = set()
    total = sum(group.index.size for group in groups)
    for number, hidden in enumerate(FAMILIES[family].asked_without):
        fresh = [name for name in hidden if name not in before]
        said = np.concatenate([~_all_absent(group, fresh) for group in groups])
        if total >= FEWEST_ROWS and said.mean() > 0.5:
            yield number, hidden
            before |= set(hidden)


def _all_absent(group: Group, names: Sequence[str]) -> NDArray[np.bool_]:
    return np.asarray(np.all([_missing(group, name) for name in names], axis=0))


def _missing(group: Group, name: str, known: Sequence[str] | None = None) -> NDArray[np.bool_]:
    """Where a parameter is not given, or is a label that training never saw."""
    labels = group.rows.categories.get(name)
    if labels is None:
        return absent(group.raw.get(name), group.index.size)
    given = labels.astype(str)
    return np.isin(given, MISSING) | (~np.isin(given, known) if known is not None else False)


def kinds(groups: Sequence[Group], fold: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """Folds by how inputs were made, shaped as `fold` (one of every row of the frame); None where that is not told.

    Who does not say how an input was made may have one that no generator of the training runs made. What a model does
    on a kind of input that it never saw is what its band has to know, so every kind is left out in turn.
    """
    made = [group.rows.categories[MADE].astype(str) for group in groups if MADE in group.rows.categories]
    labels = np.concatenate(made) if made else np.array([], dtype=str)
    known = sorted(set(labels.tolist()) - set(MISSING))
    if len(known) < FEWEST_KINDS:
        return None
    out = fold.copy()
    out[np.concatenate([group.index for group in groups])] = np.searchsorted(known, labels)
    return out


def _said(group: Group, name: str, row: Any) -> str:
    """A parameter that is as good as missing, in words."""
    label = str(group.rows.categories[name][row]) if name in group.rows.categories else ""
    return name if label in MISSING else f"{name} {label[:40]!r} (of no training run)"


def by_what_is_said(group: Group, model: LearnedFamily, judge: Judge, partials: Mapping[str, LearnedFamily],
                    partial_judge: Judge | None) -> Iterator[Asked]:
    """The rows of a group with the model that asks for no more than they say.

    Rows go to the whole model where they leave out nothing that matters to it, or where no other was learned."""
    silent = np.zeros(group.index.size, dtype=bool)
    for rows, _ in model.unsaid(group):
        silent |= rows
    hidden = partial_judge.hidden if partial_judge is not None else {}
    labels = [name_of(group.family, n) for n in range(len(FAMILIES[group.family].asked_without))]
    options = [name for name in labels if name in hidden]
    if partial_judge is None or not silent.any() or not options:
        yield Asked(group, group.family, model, judge, np.full(group.index.size, "", dtype=object))
        return
    lacks = {name: _missing(group, name, model.encoder.labels.get(name)) for name in hidden[options[-1]]}
    chosen = np.full(group.index.size, -1)
    for number, option in reversed(list(enumerate(options))):
        beyond = [rows for name, rows in lacks.items() if name not in hidden[option]]
        fits = ~np.any(beyond, axis=0) if beyond else np.ones(group.index.size, dtype=bool)
        chosen[silent & fits] = number
    for number in np.unique(chosen):
        rows, name = chosen == number, options[number] if number >= 0 else group.family
        left_out = hidden.get(name, ())
        words = [", ".join(_said(group, p, i) for p in left_out if lacks[p][i]) for i in np.flatnonzero(rows)]
        used = (partials[name], partial_judge) if number >= 0 else (model, judge)
        yield Asked(group.leaving_out(rows, left_out), name, *used, np.array(words, dtype=object))
