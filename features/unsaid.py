"""Which statistics a configuration leaves unsaid: what its time depends on beyond the sizes, and nobody can derive.

A model may have learned from runs that all say how long the longest row is. Asked without, it answers, but its band was
calibrated on runs that say it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.work import Family


def unsaid(family: Family, raw: Mapping[str, Any], n: int) -> dict[str, NDArray[np.bool_]]:
    """Where each number among the family's statistics is not given, before anything is filled in: arrays of shape (n,).

    Text is left to its label among the features, which says so itself.
    """
    numbers = {param.name for param in family.params if param.kind != "text"}
    return {name: absent(raw.get(name), n) for name in family.statistics if name in numbers}


def absent(values: Any, n: int) -> NDArray[np.bool_]:
    """Where a parameter of n rows is not given: None, NaN, or no column at all; shape (n,)."""
    if values is None:
        return np.ones(n, dtype=bool)
    cells = np.atleast_1d(np.asarray(values, dtype=object)).tolist()
    return np.broadcast_to(np.array([cell is None or cell != cell for cell in cells]), (n,))
