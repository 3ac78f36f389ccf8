"""Where the training data was: the box of sizes, the precisions and the implementations a family was learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...analytic.families import FAMILIES
from ...features.rows import Rows

Floats = NDArray[np.float64]
MARGIN = 0.25
"""log₂ units a size may lie outside the box before it counts as outside: 19 %."""


SMALLEST = -1.0
"""log₂ of the smallest size told apart: zero spread (a regular matrix) is next to a half, not infinitely far away."""


@dataclass
class Domain:
    """Box of one family: log₂ sizes between `low` and `high` of `names`; known `precisions` and `implementations`."""

    names: list[str]
    low: Floats
    high: Floats
    precisions: list[str]
    implementations: list[str]

    def outside(self, rows: Rows) -> tuple[Floats, NDArray[Any]]:
        """(distance outside the box in log₂ units, the column that is furthest out) of each row; 0 inside."""
        at = {name: i for i, name in enumerate(rows.names)}
        names = [name for name in self.names if name in at]
        if not names:
            return np.zeros(len(rows.values)), np.full(len(rows.values), "", dtype=object)
        keep = [self.names.index(name) for name in names]
        values = np.maximum(rows.values[:, [at[name] for name in names]], SMALLEST)
        beyond = np.maximum(self.low[keep] - values, values - self.high[keep]) - MARGIN
        beyond = np.nan_to_num(np.maximum(beyond, 0.0), nan=0.0)
        worst = np.argmax(beyond, axis=1)
        return beyond[np.arange(len(worst)), worst], np.array(names, dtype=object)[worst]


def boxed(family: str, names: tuple[str, ...]) -> list[str]:
    """The columns the box is made of: the family's own sizes and the amounts of work, nothing of a platform."""
    own = {f"log2_{p.name}" for p in FAMILIES[family].params} | {"log2_flop", "log2_byte"}
    return [name for name in names if name in own]


def fit_domain(family: str, parts: list[Rows]) -> Domain:
    """The box around training rows of one family."""
    names = boxed(family, parts[0].names)
    stacks = [rows.values[:, [rows.names.index(name) for name in names]] for rows in parts]
    values = np.maximum(np.concatenate(stacks), SMALLEST)
    with np.errstate(all="ignore"):
        known = ~np.isnan(values).all(axis=0)  # an optional size that no training row gave bounds nothing
        low = np.where(known, np.min(np.where(np.isnan(values), np.inf, values), axis=0), -np.inf)
        high = np.where(known, np.max(np.where(np.isnan(values), -np.inf, values), axis=0), np.inf)

    def seen(column: str) -> list[str]:
        return sorted({str(v) for rows in parts for v in np.unique(rows.categories[column].astype(str))})

    return Domain(names, low, high, seen("precision"), seen("implementation"))
