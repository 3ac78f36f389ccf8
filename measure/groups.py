"""Split keys: rows of one group never straddle train and test."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from .sparse_inputs import identity

Params = Mapping[str, Any]
MATRIX = ("rows", "row_mean", "structure")
GRAPH = ("nodes", "degree", "structure")


def _site(p: Params, _: int) -> str:
    return f"n{p['n']}k{p['k']}"


def _drawn(names: tuple[str, ...]) -> Callable[[Params, int], str]:
    return lambda p, seed: f"{p['structure']}:{identity({k: p[k] for k in names}, seed)}"


def _size(p: Params, _: int) -> str:
    text = "".join(f"{name}{value}" for name, value in sorted(p.items()) if name != "seed")
    return text if len(text) <= 40 else hashlib.sha1(text.encode()).hexdigest()[:12]


# family: (prefix, id from the drawn parameters and the seed); all others are <family>:<size>
SPECIAL: dict[str, tuple[str, Callable[[Params, int], str]]] = {
    "gemm": ("gemm", _site),
    "bmm": ("bmm", _site),
    **{f: ("spmv", _drawn(MATRIX)) for f in ("spmv_csr", "spmv_coo", "spmv_ell", "spmv_sellp", "spmm_csr")},
    **{f: ("bfs", _drawn(GRAPH)) for f in ("bfs", "pagerank")},
}


def group_key(family: str, params: Params, seed: int) -> str:
    """`gemm:n4096k11008`, `spmv:banded:<matrix>`, `bfs:rmat:<graph>`, else `<family>:<size>`: shared by both cache
    states and by every format, implementation and precision of the same inputs."""
    prefix, make = SPECIAL.get(family, (family, _size))
    return f"{prefix}:{make(params, seed)}"
