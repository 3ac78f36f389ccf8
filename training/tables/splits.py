"""Train and test apart: by group, never by row, decided by a hash so that it is the same on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def group_draw(groups: Iterable[Any], seed: int = 0) -> NDArray[np.float64]:
    """A number in [0, 1) for each row, equal for equal groups: the first 8 bytes of a keyed BLAKE2 of the group."""
    labels, codes = np.unique(np.asarray([str(g) for g in groups], dtype=object), return_inverse=True)
    key = str(seed).encode()
    draws = [int.from_bytes(hashlib.blake2b(g.encode(), digest_size=8, key=key).digest(), "big") for g in labels]
    return (np.array(draws, dtype=np.float64) / 2.0**64)[codes] if len(draws) else np.zeros(0)


def holdout(groups: Iterable[Any], fraction: float = 0.2, seed: int = 0) -> NDArray[np.bool_]:
    """True for the rows of the test part: whole groups, `fraction` of them in expectation."""
    return group_draw(groups, seed) < fraction


def folds(groups: Iterable[Any], count: int, seed: int = 1) -> NDArray[np.intp]:
    """Fold number 0 … count−1 of each row; a group lies in one fold."""
    return np.floor(group_draw(groups, seed) * count).astype(np.intp)


def split_note(fraction: float, seed: int) -> str:
    """How the split was made, in words, for every table that reports it."""
    return f"held-out groups: {fraction:.0%} of the groups by hash (seed {seed}); no group on both sides"
