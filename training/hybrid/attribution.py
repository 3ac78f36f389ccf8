"""What makes a learned correction what it is: Shapley values over groups of columns, against reference rows.

A residual is trees, a Gaussian process and a network blended, and a shipped model holds no covers of its trees. So the
whole correction is asked of rows that take some groups of their columns from the asked row and the others from a
reference (interventional Shapley values: Lundberg and Lee 2017, Janzing et al. 2020). Columns are grouped by
`words.word_of`: what a user can change is a size, and not the dozen columns that are made of it. Groups in which asked
and reference rows agree play no part. Every subset of few groups is asked, drawn orders of many; both add up exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from ...features.describe import Group
from ...features.rows import Rows
from ..learners.process import Process
from ..learners.residual import Blend
from .family import FamilyModel, Part, learned_as, part_of
from .model import Model
from .partial import by_what_is_said
from .protocol import LearnedFamily
from .words import WORK, word_of

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_ROWS, MOST_ROWS_OF_PROCESS = 2048, 512
"""Rows that one attribution may ask of a residual, for a fraction of a second: a process compares each with 3,000."""


@dataclass(frozen=True)
class Cause:
    """What one word adds to the log of the correction, and the columns by which it differs from the reference."""

    word: str
    log: float
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Attribution:
    """`total_log` = `reference_log` + the causes' logs: logs of the correction of the asked and the reference rows."""

    total_log: float
    reference_log: float
    causes: tuple[Cause, ...]

    def after(self, other: Attribution) -> Attribution:
        """This attribution, whose reference is what `other` asks about, with that of `other`: causes of a word add."""
        logs: dict[str, float] = {}
        columns: dict[str, list[str]] = {}
        for cause in (*other.causes, *self.causes):
            logs[cause.word] = logs.get(cause.word, 0.0) + cause.log
            columns.setdefault(cause.word, []).extend(cause.columns)
        return Attribution(self.total_log, other.reference_log, _sorted(
            [Cause(word, log, tuple(dict.fromkeys(columns[word]))) for word, log in logs.items()]
        ))


@dataclass(frozen=True)
class Learned:
    """The family model that answers one described row, the row as that model takes it, and what the row leaves out."""

    model: LearnedFamily
    part: Part
    hidden: tuple[str, ...]

    def taken(self, group: Group) -> Part:
        """Another described group as this model takes it, without what the row left out."""
        if self.hidden:
            group = group.leaving_out(np.ones(group.index.size, dtype=bool), self.hidden)
        return _part(group, self.model)


def _part(group: Group, model: LearnedFamily) -> Part:
    taken = learned_as(group.precision, model.domain.precisions)
    return part_of(group, model.reference, model.domain.implementations, taken)


def learned_of(model: Model, group: Group) -> Learned | None:
    """What answers the one row of `group`; None where the model has not learned its family."""
    if group.family not in model.families:
        return None
    asked = next(by_what_is_said(group, model.families[group.family], model.judge, model.partials, model.partial_judge))
    hidden = model.partial_judge.hidden.get(asked.label, ()) if model.partial_judge is not None else ()
    return Learned(asked.model, _part(asked.group, asked.model), hidden)


def shapley(value: Callable[[Mask], Floats], players: int, most: int, seed: int = 0) -> Floats:
    """Shapley values (players,) of a game by value(masks (r, players)) → (r,), asked once with at most `most` masks
    (more where a pair of orders alone takes them). Exact where all subsets are so few; else over drawn orders, each
    beside its reverse. Deterministic for a seed; the sum is the value of all players less that of none."""
    if players == 0:
        return np.zeros(0)
    if players <= 20 and 2**players <= most:
        masks = (np.arange(2**players)[:, None] >> np.arange(players)) & 1 == 1
        size = masks.sum(axis=1)
        weight = np.array([1.0 / (players * comb(players - 1, s)) if s < players else 0.0 for s in range(players + 1)])
        joined = np.where(masks, weight[np.maximum(size - 1, 0)][:, None], -weight[size][:, None])
        return np.asarray(joined.T @ value(masks))
    pairs = max(most // (2 * (players + 1)), 1)
    draw = np.random.default_rng(seed)
    orders = np.stack([draw.permutation(players) for _ in range(pairs)])
    rank = np.argsort(np.concatenate([orders, orders[:, ::-1]]), axis=1)
    masks = rank[:, None, :] < np.arange(players + 1)[None, :, None]
    values = value(masks.reshape(-1, players)).reshape(len(rank), players + 1)
    gains = np.diff(values, axis=1)
    return np.asarray(np.take_along_axis(gains, rank, axis=1).mean(axis=0))


def correction_log(model: LearnedFamily, part: Part) -> Floats:
    """Log of the learned correction (n,) of rows."""
    return model.log_correction(part)[0]


def attribute(model: LearnedFamily, asked: Part, reference: Part, most: int | None = None, seed: int = 0
              ) -> Attribution:
    """Which words make the correction of `asked` (one row) differ from that of `reference` (r rows, their mean).

    most: rows that the residual may be asked for.
    """
    n = len(reference.index)
    most = most or (MOST_ROWS_OF_PROCESS if _has_process(model) else MOST_ROWS)
    found = _players(model.family, asked, reference)
    words = list(found)

    def value(masks: Mask) -> Floats:
        rows = correction_log(model, _mixed(model.family, asked, reference, words, masks))
        return np.asarray(rows.reshape(n, len(masks)).mean(axis=0))

    logs = shapley(value, len(words), max(most // n, 2), seed)
    total, start = (float(correction_log(model, part).mean()) for part in (asked, reference))
    causes = [Cause(word, float(log), found[word]) for word, log in zip(words, logs, strict=True)]
    return Attribution(total, start, _sorted(causes))


def _sorted(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    return tuple(sorted(causes, key=lambda cause: (-abs(cause.log), cause.word)))


def _has_process(model: LearnedFamily) -> bool:
    # an adapted family has no residual of its own: it asks those of its sources, of which any may be one
    own = model.residual if isinstance(model, FamilyModel) else None
    return own is None or isinstance(own.process, Process | Blend)


def _aligned(asked: Part, reference: Part) -> tuple[Floats, Floats]:
    """Columns of both in the order of `asked`; NaN where the reference has none."""
    at = {name: i for i, name in enumerate(reference.rows.names)}
    nan = np.full(len(reference.index), np.nan)
    columns = [reference.rows.values[:, at[name]] if name in at else nan for name in asked.rows.names]
    return asked.rows.values, np.column_stack(columns) if columns else np.zeros((len(nan), 0))


def _players(family: str, asked: Part, reference: Part) -> dict[str, tuple[str, ...]]:
    """Word → columns that differ, for every word with any."""
    ours, theirs = _aligned(asked, reference)
    differs = ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs))).all(axis=0)
    names = [name for name, differ in zip(asked.rows.names, differs, strict=True) if differ]
    names += [name for name, labels in asked.rows.categories.items()
              if (labels.astype(str) != reference.rows.categories[name].astype(str)).any()]
    out: dict[str, list[str]] = {}
    for name in names:
        out.setdefault(word_of(name, family), []).append(name)
    # terms of the baseline move with the work: a model that scales another's needs them whole
    if WORK not in out and not np.array_equal(np.broadcast_to(asked.terms, reference.terms.shape), reference.terms):
        out[WORK] = []
    return {word: tuple(columns) for word, columns in out.items()}


def _mixed(family: str, asked: Part, reference: Part, words: Sequence[str], masks: Mask) -> Part:
    """Reference rows x masks (r, len(words)), masks fastest: each with the words of its mask taken from `asked`."""
    n = len(reference.index)
    ours, theirs = _aligned(asked, reference)
    back = np.repeat(np.arange(n), len(masks))
    # a last player that is never taken: what both rows agree in
    chosen = np.column_stack([np.tile(masks, (n, 1)), np.zeros(len(back), dtype=bool)])
    player = {word: i for i, word in enumerate(words)}

    def taken(name: str) -> Mask:
        return np.asarray(chosen[:, player.get(word_of(name, family), len(words))])

    of_column = np.array([player.get(word_of(name, family), len(words)) for name in asked.rows.names], dtype=np.intp)
    values = np.where(chosen[:, of_column], ours, theirs[back])
    labels = {name: np.where(taken(name), cells.astype(str), reference.rows.categories[name].astype(str)[back])
              for name, cells in asked.rows.categories.items()}
    work = chosen[:, player.get(WORK, len(words))]
    return Part(
        np.arange(len(back)), Rows(asked.rows.names, values, labels),
        np.where(work[:, None], asked.terms, reference.terms[back]),
        np.where(work, asked.analytic_s, reference.analytic_s[back]),
        np.char.add(np.char.add(labels["implementation"], "|"), labels["precision"]),
    )
