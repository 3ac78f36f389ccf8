"""What a parameter may be: one set of rules for a person's question, for a row of a table, and for the equations.

Every rule is a mask over n rows and the words that say what is wrong, so that a caller can refuse the first bad row or
leave out each of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from .errors import mistyped, nearest_names

Columns = Mapping[str, NDArray[Any]]

FLOOR = {"size": 1.0, "real": 0.0}
LARGEST = {"size": 2.0**53, "real": 1e30}
"""Beyond these a number is no size of anything: counts would not be exact, products would overflow."""
LARGEST_DOUBLE = float(np.finfo(np.float64).max)
ABSENT = ("", "nan", "None", "<NA>")
"""Words that say that nothing is said."""
_TRUTH = {"true": 1.0, "false": 0.0}


ParamKind = Literal["size", "real", "flag", "text", "list"]


@dataclass(frozen=True)
class Param:
    """One parameter. `size`: a count ≥ 1; `real`: a number ≥ 0; `flag`: true/false; `text`, `list`: as is."""

    name: str
    kind: ParamKind = "size"
    required: bool = True
    default: float | str | None = None
    meaning: str = ""
    unit: str = ""
    """What a number counts, or its SI unit; `1` for a ratio. Nothing for words and flags."""
    words: tuple[str, ...] = ()
    """The words a text may be, in their canonical spelling; any text where there are none."""
    follows: str = ""
    """What an absent value is taken from, in words: `edges / nodes`."""
    open: bool = False
    """Whether a table may bring words of its own: the parameter is a label, which changes no work."""


@dataclass(frozen=True)
class Contradiction:
    """Parameters that cannot hold together: what to say, and where it is so (NaN: not given, so no contradiction)."""

    words: str
    where: Callable[[Columns], NDArray[np.bool_]]


class Record(Protocol):
    """What the rules need to know of a family."""

    @property
    def params(self) -> tuple[Param, ...]: ...
    @property
    def usage(self) -> str: ...
    @property
    def contradictions(self) -> tuple[Contradiction, ...]: ...


@dataclass(frozen=True)
class Fault:
    """A rule that rows break: `parameter NAME` and `words` make the sentence; `where` has shape (n,)."""

    name: str
    where: NDArray[np.bool_]
    words: str

    @property
    def text(self) -> str:
        return f"parameter {self.name!r} {self.words}"

    def of(self, values: NDArray[Any]) -> str:
        """What is said of the first row that breaks the rule, its value included."""
        shown = f"is {values[int(np.argmax(self.where))]:g}; it " if self.words.startswith("must") else ""
        return f"parameter {self.name!r} {shown}{self.words}"


def is_word(param: Param) -> bool:
    """Whether its values are words (or lists), not numbers."""
    return param.kind in ("text", "list")


def numbers(raw: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(float64 values, where a cell is no number), flat. True and false are 1 and 0, absent cells NaN."""
    values = np.atleast_1d(np.asarray(raw))
    if values.dtype.kind in "biuf":
        return values.astype(np.float64), np.zeros(values.shape, dtype=bool)
    read = [_number(cell) for cell in values.tolist()]
    bad = np.array([value is None for value in read])
    return np.array([math.nan if value is None else value for value in read]), bad


def _number(cell: Any) -> float | None:
    """NaN for an absent cell, None for one that is no number."""
    if cell is None:
        return math.nan
    if isinstance(cell, str) and cell.strip().lower() in _TRUTH:
        return _TRUTH[cell.strip().lower()]
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def plain(word: str) -> str:
    """A word as it is compared: without case, with `_` for blanks and hyphens."""
    return re.sub(r"[\s-]+", "_", word.strip().lower())


def _distinct(cells: NDArray[Any]) -> set[Any]:
    try:
        found = set(cells.tolist())
    except TypeError:  # a list where a word belongs
        found = {str(cell) for cell in cells.tolist()}
    return {cell for cell in found if cell is not None and cell == cell and str(cell) not in ABSENT}


@cache
def _spellings(words: tuple[str, ...]) -> dict[str, str]:
    return {plain(word): word for word in words}


def spelt(param: Param, cells: NDArray[Any]) -> NDArray[Any]:
    """Words of shape (n,) in the spelling of `param.words`; unknown ones, and parameters with none, as they are."""
    if not param.words:
        return cells
    out = cells
    for cell in _distinct(cells).difference(param.words):
        word = _spellings(param.words).get(plain(str(cell)))
        if word is not None:
            out = out.copy() if out is cells else out
            out[cells == cell] = word
    return out


def word_faults(param: Param, cells: NDArray[Any]) -> list[Fault]:
    """Words that are none of `param.words`; of a parameter that is `open`, those that are nearly one."""
    if not param.words:
        return []
    known = _spellings(param.words)
    unknown = {str(cell) for cell in _distinct(cells).difference(param.words) if plain(str(cell)) not in known}
    return [
        Fault(param.name, np.array([str(cell) == word for cell in cells.tolist()]),
              f"is {word[:40]!r}{nearest_names(word, param.words)}")
        for word in sorted(unknown) if not param.open or mistyped(plain(word), param.words)
    ]


def number_faults(param: Param, values: NDArray[np.float64], whole: bool = False) -> list[Fault]:
    """Rules that numbers break; NaN (not given) breaks none. whole: sizes must be integers."""
    floor, largest = FLOOR.get(param.kind, -LARGEST_DOUBLE), LARGEST.get(param.kind, LARGEST_DOUBLE)
    out = []
    if not ((values >= floor) & (values <= largest) | np.isnan(values)).all():
        at_least = f" and at least {floor:g}" if param.kind in FLOOR else ""
        out = [Fault(param.name, np.isinf(values) | (values < floor), f"must be finite{at_least}"),
               Fault(param.name, values > largest, "is too large for the size of anything")]
    if whole and param.kind == "size":
        broken = np.isfinite(values) & (values != np.floor(values))
        out.append(Fault(param.name, broken, "must be a whole number, at least 1"))
    return [fault for fault in out if fault.where.any()]


def faults(family: Record, columns: Columns, *, whole: bool = False, complete: bool = True,
           given: Collection[str] = ()) -> list[Fault]:
    """The rules that n configurations break, parameter by parameter.

    columns: an array of shape (n,) for every parameter, `derive` applied, numbers with NaN where not given. complete:
    whether required parameters must be there. given: parameters whose NaN were written down as such.
    """
    out: list[Fault] = []
    with np.errstate(invalid="ignore"):
        for param in family.params:
            values = columns[param.name]
            if is_word(param):
                out += word_faults(param, values)
                continue
            missing = np.isnan(values) if complete and param.required else None
            if missing is not None and missing.any():
                what = "is not a number (NaN)" if param.name in given else "is missing"
                out.append(Fault(param.name, missing, f"{what}; {family.usage}"))
            out += number_faults(param, values, whole)
    return out


def contradictions(family: Record, columns: Columns) -> NDArray[Any]:
    """What cannot be true of each of n configurations, '' where nothing is.

    columns: one array of shape (n,) for every parameter of the family, before anything is filled in: numbers with NaN
    and text with None where a parameter is not given.
    """
    out = np.full(len(next(iter(columns.values()))), "", dtype=object)
    with np.errstate(invalid="ignore"):
        for item in family.contradictions:
            out[item.where(columns) & (out == "")] = f"parameter {item.words}"
    return out
