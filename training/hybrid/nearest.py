"""The baseline that needs no learning but data: nearest utilisation."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...features.describe import Described, Group
from .family import sizes_of

NEIGHBOURS = 2
FALLBACK_UTILISATION = 1.0  # no training row of the family and precision: the naive roofline itself

Floats = NDArray[np.float64]
Found = dict[Hashable, list[tuple[NDArray[np.intp], NDArray[np.float64]]]]


def _sizes(group: Group) -> NDArray[np.float64]:
    own = set(sizes_of(group.family))
    columns = [i for i, name in enumerate(group.rows.names) if name.startswith("log2_") and name[5:] in own]
    return np.nan_to_num(group.rows.values[:, columns])


def _labels(group: Group) -> NDArray[Any]:
    """Everything but sizes that tells rows apart: implementation, precision and text parameters such as the scheme."""
    columns = [values.astype(str) for _, values in sorted(group.rows.categories.items())]
    joined = columns[0]
    for column in columns[1:]:
        joined = np.char.add(np.char.add(joined, "|"), column)
    return joined


def _pools(described: Described) -> list[Found]:
    """Rows and their log₂ sizes, from the finest pool to the coarsest, over platforms.

    Alike in all labels and cache state; alike in labels; of the same family and precision.
    """
    pools: list[Found] = [{}, {}, {}]
    for group in described.groups:
        sizes, labels = _sizes(group), _labels(group)
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            part = (group.index[rows], sizes[rows])
            fine = (group.family, str(label))
            for pool, key in zip(pools, ((*fine, group.cache), fine, (group.family, group.precision)), strict=True):
                pool.setdefault(key, []).append(part)
    return pools


def mean_of_nearest(place: Floats, value: Floats) -> Callable[[Floats], Floats]:
    """A function from places (m, d) to the mean `value` (n,) of the NEIGHBOURS known places (n, d) nearest to each."""
    from sklearn.neighbors import NearestNeighbors

    finder = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(place))).fit(place)
    return lambda asked: np.asarray(value[finder.kneighbors(asked, return_distance=False)].mean(axis=1))


def nearest_utilisation_s(train: Described, train_time_s: Any, test: Described) -> NDArray[np.float64]:
    """Naive roofline ÷ mean utilisation of the two nearest training rows, for each test row [s].

    Utilisation = naive roofline ÷ measured time; nearest in log₂ of the family's parameters, among training rows with
    the same labels and cache state where there are any, else the same labels, else the same family and precision.
    Rows without such neighbours keep the naive roofline.
    """
    utilisation = train.naive_s / np.asarray(train_time_s, dtype=np.float64)
    out = test.naive_s / FALLBACK_UTILISATION
    open_rows = np.ones(out.size, dtype=bool)
    for known, wanted in zip(_pools(train), _pools(test), strict=True):
        for key, parts in wanted.items():
            if key not in known:
                continue
            rows = np.concatenate([index for index, _ in known[key]])
            near = mean_of_nearest(np.concatenate([sizes for _, sizes in known[key]]), utilisation[rows])
            for index, sizes in parts:
                left = open_rows[index]
                if left.any():
                    out[index[left]] = test.naive_s[index[left]] / near(sizes[left])
                    open_rows[index] = False
    return out
