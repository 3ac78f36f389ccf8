"""Random sparse matrices and graphs, made on the GPU with torch, and the numbers that describe them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from . import sparse_kinds
from .gpu import Gpu, Skip

LIMIT_NNZ = 140_000_000
Made = TypeVar("Made")
KEPT = 3  # matrices or graphs kept at a time


@dataclass
class Pattern:
    """CSR pattern: int32 `start` (rows + 1) and `col` (nnz), sorted within rows, no duplicates."""

    rows: int
    cols: int
    start: Any
    col: Any
    row: Any  # int32, row of every entry
    describe: dict[str, Any]
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def nnz(self) -> int:
        return int(self.col.numel())


def identity(params: Mapping[str, Any], seed: int) -> str:
    """Short name of a drawn matrix or graph: equal for every format, implementation and precision of the draw."""
    return hashlib.sha1(json.dumps([dict(params), seed], sort_keys=True).encode()).hexdigest()[:10]


def cached(g: Gpu, name: str, make: Callable[[], Made]) -> Made:
    """What `make` makes, made once while it is among the last few; `name` tells one draw from another."""
    if name not in g.cache:
        while len(g.cache) >= KEPT:
            g.cache.pop(next(iter(g.cache)))
        g.cache[name] = make()
    return cast(Made, g.cache[name])


def from_pairs(g: Gpu, rows: int, cols: int, row: Any, col: Any, structure: str) -> Pattern:
    """CSR from (row, column) pairs in any order, duplicates dropped."""
    torch = g.torch
    key = torch.unique(row.long() * cols + col.long())
    if key.numel() > LIMIT_NNZ:
        raise Skip(f"{key.numel()} entries are more than {LIMIT_NNZ}")
    row, col = (key // cols).int(), (key % cols).int()
    counts = torch.bincount(row, minlength=rows)
    start = torch.zeros(rows + 1, dtype=torch.int64, device="cuda")
    torch.cumsum(counts, 0, out=start[1:])
    ordered = counts.double().sort()[0]
    at = [int(q * (rows - 1)) for q in (0, 0.25, 0.5, 0.75, 1)]
    low, q1, median, q3, high = (float(v) for v in ordered[at].cpu())
    describe = {
        "rows": rows, "cols": cols, "nnz": int(key.numel()), "row_mean": float(ordered.mean()),
        "row_std": float(ordered.std(correction=0)), "row_max": int(high), "row_min": int(low), "row_q1": q1,
        "row_median": median, "row_q3": q3,
        "mean_col_distance": float((col.double() - row.double()).abs().mean()) if key.numel() else 0.0,
        "structure": structure,
    }
    return Pattern(rows, cols, start.int(), col, row, describe)


def _uniform(g: Gpu, rows: int, mean: float) -> tuple[int, Any, Any]:
    torch = g.torch
    row = torch.randint(0, rows, (int(rows * mean),), device="cuda")
    return rows, row, torch.randint(0, rows, row.shape, device="cuda")


def _powerlaw(g: Gpu, rows: int, mean: float) -> tuple[int, Any, Any]:
    torch = g.torch
    weight = torch.rand(rows, device="cuda").clamp_min(1e-6) ** -0.6  # Pareto tail of index 5/3
    lengths = (weight * (mean / float(weight.mean()))).clamp(1, max(1, rows // 4)).long()
    row = sparse_kinds.entries(g, lengths)
    return (
        rows,
        row,
        (torch.rand(row.shape, device="cuda", dtype=torch.float64) ** 2.5 * rows).long().clamp_max(rows - 1),
    )


def _near(g: Gpu, rows: int, mean: float) -> tuple[int, Any, Any]:
    """Entries scattered within 4 rows-means of the diagonal: a reordered mesh."""
    torch = g.torch
    row = sparse_kinds.entries(g, torch.randint(1, max(2, int(2 * mean)), (rows,), device="cuda"))
    reach = max(2.0, 4 * mean)
    col = row + (torch.randn(row.shape, device="cuda") * reach).long()
    inside = (col >= 0) & (col < rows)
    return rows, row[inside], col[inside]


def _block(g: Gpu, rows: int, mean: float) -> tuple[int, Any, Any]:
    torch, edge = g.torch, 8
    across = max(1, rows // edge)
    count = max(1, int(across * max(1.0, mean / edge)))
    brow, bcol = (torch.randint(0, across, (count,), device="cuda") for _ in range(2))
    offset = torch.arange(edge * edge, device="cuda")
    row = (brow[:, None] * edge + offset // edge).reshape(-1)
    return across * edge, row, (bcol[:, None] * edge + offset % edge).reshape(-1)


def _poisson(g: Gpu, rows: int, dims: int) -> tuple[int, Any, Any]:
    torch = g.torch
    edge = max(3, round(rows ** (1 / dims)))
    total = edge**dims
    cell = torch.arange(total, device="cuda")
    rr, cc = [cell], [cell]
    for d in range(dims):
        place = (cell // edge**d) % edge
        for step, inside in ((-1, place > 0), (1, place < edge - 1)):
            rr.append(cell[inside])
            cc.append(cell[inside] + step * edge**d)
    return total, torch.cat(rr), torch.cat(cc)


MATRICES: dict[str, Callable[[Gpu, int, float], tuple[int, Any, Any]]] = {
    "uniform": _uniform,
    "powerlaw": _powerlaw,
    "banded": sparse_kinds.banded,
    "near_diagonal": _near,
    "block": _block,
    "poisson2d": lambda g, rows, _: _poisson(g, rows, 2),
    "poisson3d": lambda g, rows, _: _poisson(g, rows, 3),
    **sparse_kinds.MATRICES,
}


def matrix(g: Gpu, params: Mapping[str, Any], seed: int) -> Pattern:
    def make() -> Pattern:
        g.seed(seed)
        rows, row, col = MATRICES[params["structure"]](g, params["rows"], params["row_mean"])
        return from_pairs(g, rows, rows, row, col, params["structure"])

    return cached(g, identity({k: params[k] for k in ("rows", "row_mean", "structure")}, seed), make)


def _lattice(g: Gpu, nodes: int, keep: float) -> tuple[int, Any, Any]:
    torch = g.torch
    total, row, col = _poisson(g, nodes, 2)
    up = row < col
    row, col = row[up], col[up]
    kept = torch.rand(row.shape, device="cuda") < keep
    return total, row[kept], col[kept]


def _random_graph(g: Gpu, nodes: int, degree: float) -> tuple[int, Any, Any]:
    return _uniform(g, nodes, degree / 2)


def _small_world(g: Gpu, nodes: int, degree: float) -> tuple[int, Any, Any]:
    torch = g.torch
    half = max(1, round(degree / 2))
    row = torch.arange(nodes, device="cuda").repeat_interleave(half)
    col = (row + torch.arange(1, half + 1, device="cuda").repeat(nodes)) % nodes
    moved = torch.rand(row.shape, device="cuda") < 0.05
    return nodes, row, torch.where(moved, torch.randint(0, nodes, row.shape, device="cuda"), col)


GRAPHS: dict[str, Callable[[Gpu, int, float], tuple[int, Any, Any]]] = {
    "uniform": _random_graph,
    "rmat": sparse_kinds.rmat,
    "grid": lambda g, nodes, _: _lattice(g, nodes, 1.0),
    "road": lambda g, nodes, _: _lattice(g, nodes, 0.62),
    "small_world": _small_world,
    **sparse_kinds.GRAPHS,
}


def graph(g: Gpu, params: Mapping[str, Any], seed: int) -> Pattern:
    """An undirected graph as CSR, every edge stored in both directions, no self loops."""

    def make() -> Pattern:
        torch = g.torch
        g.seed(seed)
        nodes, u, v = GRAPHS[params["structure"]](g, params["nodes"], params["degree"])
        apart = u != v
        u, v = u[apart], v[apart]
        return from_pairs(g, nodes, nodes, torch.cat([u, v]), torch.cat([v, u]), params["structure"])

    return cached(g, "graph" + identity({k: params[k] for k in ("nodes", "degree", "structure")}, seed), make)


def degrees(m: Pattern) -> dict[str, Any]:
    """A graph's parameters, as its families take them."""
    d = m.describe
    return {
        "nodes": m.rows, "edges": m.nnz, "avg_degree": d["row_mean"], "max_degree": d["row_max"],
        "std_degree": d["row_std"], "structure": d["structure"],
    }
