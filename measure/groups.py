"""Split keys: rows of one group never straddle train and test. The rules families share; each names its own."""

from __future__ import annotations

import hashlib

from .case import Params
from .sparse_inputs import identity

MATRIX = ("rows", "row_mean", "structure")
GRAPH = ("nodes", "degree", "structure")


def weights(p: Params, _: int) -> str:
    """A product's weights, whatever its tokens."""
    return f"n{p['n']}k{p['k']}"


def _drawn(p: Params, names: tuple[str, ...], seed: int) -> str:
    return f"{p['structure']}:{identity({k: p[k] for k in names}, seed)}"


def matrix_group(p: Params, seed: int) -> str:
    """One group a drawn matrix, in every format."""
    return _drawn(p, MATRIX, seed)


def graph_group(p: Params, seed: int) -> str:
    """One group a drawn graph, searched or ranked."""
    return _drawn(p, GRAPH, seed)


def size(p: Params, _: int) -> str:
    """The sizes, in letters while they are short."""
    text = "".join(f"{name}{value}" for name, value in sorted(p.items()) if name != "seed")
    return text if len(text) <= 40 else hashlib.sha1(text.encode()).hexdigest()[:12]
