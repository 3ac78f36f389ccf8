"""The baseline that needs no learning but data: nearest utilisation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..features.describe import Described

NEIGHBOURS = 2
FALLBACK_UTILISATION = 1.0  # no training row of the family and precision: the naive roofline itself


def _sizes(described: Described) -> dict[tuple[str, str], list[tuple[NDArray[np.intp], NDArray[np.float64]]]]:
    """Rows of each (family, precision) with their log₂ sizes, over platforms and cache states."""
    out: dict[tuple[str, str], list[tuple[NDArray[np.intp], NDArray[np.float64]]]] = {}
    for group in described.groups:
        columns = [i for i, name in enumerate(group.rows.names) if name.startswith("log2_")]
        sizes = group.rows.values[:, [c for c in columns if group.rows.names[c][5:] in _own(group)]]
        out.setdefault((group.family, group.precision), []).append((group.index, np.nan_to_num(sizes)))
    return out


def _own(group: Any) -> set[str]:
    from ..analytic.families import FAMILIES

    return {p.name for p in FAMILIES[group.family].params if p.kind in ("size", "real")}


def nearest_utilisation_s(train: Described, train_time_s: Any, test: Described) -> NDArray[np.float64]:
    """Naive roofline ÷ mean utilisation of the two nearest training rows, for each test row [s].

    Utilisation = naive roofline ÷ measured time; nearest in log₂ of the family's parameters, among training rows of
    the same family and precision. Rows without such neighbours keep the naive roofline.
    """
    from sklearn.neighbors import NearestNeighbors

    measured = np.asarray(train_time_s, dtype=np.float64)
    utilisation = train.naive_s / measured
    known = _sizes(train)
    out = test.naive_s / FALLBACK_UTILISATION
    for key, parts in _sizes(test).items():
        if key not in known:
            continue
        rows = np.concatenate([index for index, _ in known[key]])
        points = np.concatenate([sizes for _, sizes in known[key]])
        finder = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(rows))).fit(points)
        for index, sizes in parts:
            near = rows[finder.kneighbors(sizes, return_distance=False)]
            out[index] = test.naive_s[index] / utilisation[near].mean(axis=1)
    return out
