"""What a reader of a prediction must know: rows of (code, words, factor), said of many predictions at once.

Words are joined only where they are shown. Whether a prediction is in the domain of its model follows from what is said
of it: nothing may put a row outside without saying so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Words = str | Callable[[NDArray[np.intp]], Any]
"""The same words for all rows, or words(i): those of the rows i (k,), as one text or an array of shape (k,)."""


@dataclass(frozen=True)
class Note:
    """One thing to know about a prediction.

    code: what kind of thing, for programs. words: for people. factor: by how much the half-width of the band, in log
    time, was widened for it. outside: whether it puts the prediction outside of what its model was trained for.
    """

    code: str
    words: str
    factor: float = 1.0
    outside: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe: code, words, factor."""
        return {"code": self.code, "words": self.words, "factor": self.factor}


def joined(texts: Iterable[Note | str]) -> str:
    """Notes as one line; empty ones are left out."""
    words = (text.words if isinstance(text, Note) else text for text in texts)
    return "; ".join(text for text in words if text)


@dataclass(frozen=True)
class Remark:
    """One thing to say of the flagged `rows` (n,), and by how much it widens their half-width: a number or (n,)."""

    code: str
    rows: Mask
    words: Words
    factor: float | Floats = 1.0
    outside: bool = False

    @property
    def widening(self) -> Floats:
        """Factor on the half-width of every row (n,)."""
        return np.where(self.rows, self.factor, 1.0)


@dataclass(frozen=True)
class _Said:
    """A remark on the rows `at` (k,) of a table, with words and factors of shape (k,)."""

    code: str
    at: NDArray[np.intp]
    words: NDArray[Any]
    factor: Floats
    outside: bool


class Notes:
    """What is said of n predictions, in the order in which it is to be read."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._said: list[_Said] = []

    def say(self, code: str, rows: Mask, words: Words, *, factor: float | Floats = 1.0, outside: bool = False,
            first: bool = False) -> None:
        """Say something of the flagged rows (n,), after what is said already, or before it (`first`)."""
        self.add(np.arange(self.size), [Remark(code, rows, words, factor, outside)], first=first)

    def add(self, index: NDArray[np.intp], remarks: Iterable[Remark], *, first: bool = False) -> None:
        """Remarks on k rows, which are the rows `index` (k,) of this table."""
        for remark in remarks:
            rows = np.flatnonzero(remark.rows)
            if not rows.size:
                continue
            words = np.empty(rows.size, dtype=object)
            words[:] = remark.words if isinstance(remark.words, str) else remark.words(rows)
            factor = np.broadcast_to(np.asarray(remark.factor, dtype=np.float64), remark.rows.shape)[rows]
            said = _Said(remark.code, index[rows], words, factor, remark.outside)
            self._said.insert(0 if first else len(self._said), said)

    def replace(self, code: str, rows: Mask, words: Words) -> None:
        """Take back what was said of the flagged rows (n,) and say this, which puts them outside."""
        kept = []
        for said in self._said:
            stays = ~rows[said.at]
            kept.append(_Said(said.code, said.at[stays], said.words[stays], said.factor[stays], said.outside))
        self._said = [said for said in kept if said.at.size]
        self.say(code, rows, words, outside=True)

    @property
    def outside(self) -> Mask:
        """Rows (n,) that something said of them puts outside of what was trained for."""
        out = np.zeros(self.size, dtype=bool)
        for said in self._said:
            out[said.at] |= said.outside
        return out

    @property
    def silent(self) -> Mask:
        """Rows (n,) of which nothing is said."""
        out = np.ones(self.size, dtype=bool)
        for said in self._said:
            out[said.at] = False
        return out

    def joined(self) -> NDArray[Any]:
        """One text a row (n,), for display."""
        out = np.full(self.size, "", dtype=object)
        for said in self._said:
            before = out[said.at]
            out[said.at] = before + np.where((before != "") & (said.words != ""), "; ", "").astype(object) + said.words
        return out

    def of(self, row: int) -> tuple[Note, ...]:
        """What is said of one row."""
        return tuple(
            Note(said.code, str(said.words[i]), float(said.factor[i]), said.outside)
            for said in self._said for i in np.flatnonzero(said.at == row)
        )
