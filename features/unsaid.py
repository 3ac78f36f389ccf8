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

_PRODUCTS = ("spmv_csr", "spmv_coo", "spmv_ell", "spmv_sellp", "spmv_hybrid", "spmm_csr")
_ROWS = ("row_std", "row_max", "structure")
STATISTICS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_PRODUCTS, _ROWS),
    "sptrsv": (*_ROWS, "levels", "row_median", "row_q3", "mean_col_distance"),
    "bfs": ("max_degree", "std_degree", "structure"),
    "pagerank": ("std_degree", "structure"),
    "gather": ("order",),
    "mesh_gather_scatter": ("order",),
}
"""Those without which a band learned from runs that say them covers markedly fewer of the H200's hold-out runs than it
says: of 90 % 59 % of the searches without max_degree and 53 % without structure, 33 % of the ELL products without
row_max."""

_MADE = ("structure", "mean_col_distance", "row_min", "row_q1", "row_median", "row_q3")
_SPREAD = (*_MADE, "row_std", "row_max")
HIDDEN: dict[str, tuple[tuple[str, ...], ...]] = {
    **dict.fromkeys(_PRODUCTS, (_MADE, _SPREAD)),
    "sptrsv": (_MADE, (*_SPREAD, "levels")),
    "bfs": (("structure", "frontier"), ("structure", "frontier", "max_degree", "std_degree")),
    "pagerank": (("structure",), ("structure", "max_degree", "std_degree")),
    "gather": (("order",),),
    "mesh_gather_scatter": (("order",),),
}
"""What questions leave out together, from little to all: first what other people's tables lack (our generator's label,
where the entries of a row lie, the quartiles of their number), then all that may be left out. Each is learned apart,
see `training.partial`. Steps between the two cost a file each and gained 0.2 % of error at most."""


def unsaid(family: Family, raw: Mapping[str, Any], n: int) -> dict[str, NDArray[np.bool_]]:
    """Where each number among the family's statistics is not given, before anything is filled in: arrays of shape (n,).

    Text is left to its label among the features, which says so itself.
    """
    numbers = {param.name for param in family.params if param.kind != "text"}
    return {name: absent(raw.get(name), n) for name in STATISTICS.get(family.name, ()) if name in numbers}


def absent(values: Any, n: int) -> NDArray[np.bool_]:
    """Where a parameter of n rows is not given: None, NaN, or no column at all; shape (n,)."""
    if values is None:
        return np.ones(n, dtype=bool)
    cells = np.atleast_1d(np.asarray(values, dtype=object)).tolist()
    return np.broadcast_to(np.array([cell is None or cell != cell for cell in cells]), (n,))
