"""What a family model says of the rows it predicts, by how much it widens their band, and which it takes outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...analytic.errors import nearest_names
from ...features.describe import Group
from ...features.implementation import canonical_labels, spelling
from .encode import MISSING
from .family import Part
from .notes import Floats, Mask, Remark
from .partial import Asked
from .protocol import LearnedFamily

SAME_LIBRARY = 1.6
UNKNOWN_PRECISION = 2.0
TWIN_PRECISION = 1.3
"""Widening of the half-width where a label was never seen; chosen, not fitted, and named in the note."""
NEW_ARCHITECTURE = 1.8
"""Widening for a GPU of an architecture that no GPU of the training rows has: what the A100 wants when predicted from
two Hopper GPUs, whose bands only know of each other."""


def of_sizes(distance: Floats, column: NDArray[Any]) -> Remark:
    """Rows whose sizes lie `distance` octaves (n,) outside the training box, furthest in `column` (n,)."""
    widened = 1.0 + distance

    def words(i: NDArray[np.intp]) -> NDArray[Any]:
        name = np.char.replace(column[i].astype(str), "log2_", "", count=1).astype(object)
        factor = np.char.mod("%.3g", widened[i]).astype(object)
        where: NDArray[Any] = "outside the training range (" + name + "), faded towards the analytic time"
        return np.asarray(where + ", band widened x" + factor)

    return Remark("outside_range", distance > 0, words, widened, outside=True)


@dataclass(frozen=True)
class Named:
    """Whose kernels the rows are: `strange` where the band is that of anybody's."""

    strange: Mask
    remarks: tuple[Remark, ...]


def of_implementation(group: Group, part: Part, model: LearnedFamily, left_open: bool) -> Named:
    """What the implementation of each row is to the model."""
    learned = model.domain.implementations
    names = part.rows.categories["implementation"].astype(str)
    given = canonical_labels(group.rows.categories["implementation"]).astype(str)
    # a table that names no implementation at all says nothing about which ones it holds
    unnamed = set(learned) <= set(MISSING)
    unknown = ~(np.isin(names, learned) | unnamed)
    renamed = ~unknown & ~np.isin(given, MISSING) & (spelling(given) != spelling(names))
    unsaid = np.isin(given, MISSING) & model.ambiguous & left_open
    shown, asked = names.astype(object), _quoted(given)

    def never_seen(i: NDArray[np.intp]) -> Any:
        hints = {name: _meant(name, learned) for name in set(names[i].tolist())}
        meant = np.array([hints[name] for name in names[i].tolist()], dtype=object)
        return ("implementation " + _quoted(names[i]) + " not in training" + meant
                + ", band from how far those that are differ")

    return Named(unknown | unsaid, (
        Remark("implementation_renamed", renamed, lambda i: "implementation " + asked[i] + " taken for " + shown[i]
               + f", band widened x{SAME_LIBRARY:g}", SAME_LIBRARY),
        Remark("implementation_not_given", unsaid, lambda i: "implementation not given, taken for " + shown[i]
               + ", band from how far apart they are"),
        Remark("implementation_unknown", unknown, never_seen, outside=True),
    ))


def _quoted(names: NDArray[Any]) -> NDArray[Any]:
    """Each name as Python quotes it."""
    labels, codes = np.unique(names, return_inverse=True)
    return np.array([repr(label) for label in labels.tolist()], dtype=object)[codes]


def _meant(name: str, known: Sequence[str]) -> str:
    """` (did you mean …?)` for an implementation that is spelt nearly like a known one, else nothing."""
    hint = nearest_names(name, known)
    return hint if "did you mean" in hint else ""


def of_platform(group: Group, taken: str, seen: bool, learned_from: Sequence[str]) -> list[Remark]:
    """What is to be said where precision or architecture are not those of the training rows.

    taken: the precision it is taken for. seen: whether its own was in training. learned_from: architectures, if known.
    """
    foreign = bool(learned_from) and group.platform.arch not in learned_from
    twin = taken != group.precision
    factor = TWIN_PRECISION if twin else UNKNOWN_PRECISION
    every = np.ones(group.index.size, dtype=bool)
    return [
        Remark("precision_not_in_training", every & (not seen), f"precision {group.precision} not in training for "
               f"{group.family}{f', taken for {taken}' if twin else ''}, band widened x{factor:g}", factor,
               outside=True),
        Remark("architecture_not_in_training", every & foreign, f"no run of a {group.platform.arch} GPU in training, "
               f"band widened x{NEW_ARCHITECTURE:g}", NEW_ARCHITECTURE),
    ]


def of_band(family: str, half: Floats, pooled: Mask, level: float) -> list[Remark]:
    """Rows whose band is everybody's (`pooled`), and rows that have none: `half` (n,) is infinite."""
    return [
        Remark("band_pooled", pooled, f"band from the pooled scores: {family} has too few calibration rows"),
        unbounded(half, level, "calibration rows"),
    ]


def unbounded(half: Floats, level: float, lacking: str) -> Remark:
    """Rows for whose band too few errors are known: `half` (n,) is infinite."""
    return Remark("unbounded", ~np.isfinite(half), f"unbounded: too few {lacking} for a {100 * level:g} % band")


def of_what_is_left_out(asked: Asked) -> list[Remark]:
    """What rows leave out, what is done without it, and where the band does not know of it."""
    left_out = asked.model.unsaid(asked.group) if asked.label == asked.group.family else []
    silent = np.any([np.zeros(asked.group.index.size, dtype=bool), *(rows for rows, _ in left_out)], axis=0)
    return [
        *(Remark("statistic_not_given", rows, words, outside=True) for rows, words in left_out),
        Remark("partial_model", asked.missing != "", lambda i: "by a model and a band that do without "
               + asked.missing[i]),
        Remark("band_too_narrow", silent, "the band is of runs that say so, and too narrow for one that does not",
               outside=True),
    ]


def of_model(model: LearnedFamily, size: int, unseen_platform: bool) -> Remark:
    """What is to be said of every answer of a family model."""
    words = model.note or ("no run of this platform in training" if unseen_platform else "")
    code = "platform_not_in_training" if unseen_platform else "family_model"
    return Remark(code, np.full(size, bool(words)), words, outside=unseen_platform)
