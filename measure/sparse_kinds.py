"""More kinds of sparse inputs, after what collections of real matrices and graphs hold: few are like another.

Each makes (rows, row of every entry, column of every entry) on the GPU from rows and entries a row, duplicates allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .gpu import Gpu

Pairs = tuple[int, Any, Any]


def entries(g: Gpu, lengths: Any) -> Any:
    """Row index of every entry, from entries a row."""
    return g.torch.repeat_interleave(g.torch.arange(lengths.numel(), device="cuda"), lengths)


def rmat(g: Gpu, nodes: int, degree: float) -> Pairs:
    """Recursive quadrants of weight 0.57, 0.19, 0.19, 0.05: heavy rows and heavy columns; 2^k nodes, degree/2 each."""
    torch = g.torch
    scale = max(1, round(nodes.bit_length() - 1))
    count = int(2**scale * degree / 2)
    u, v = (torch.zeros(count, dtype=torch.int64, device="cuda") for _ in range(2))
    for _ in range(scale):
        draw = torch.rand(count, device="cuda")
        right = ((draw >= 0.57) & (draw < 0.76)) | (draw >= 0.95)
        down = draw >= 0.76
        u, v = 2 * u + down, 2 * v + right
    return 2**scale, u, v


def banded(g: Gpu, rows: int, mean: float) -> Pairs:
    """Entries next to each other around the diagonal."""
    torch, width = g.torch, max(1, round(mean))
    row = torch.arange(rows, device="cuda").repeat_interleave(width)
    col = row + torch.arange(width, device="cuda").repeat(rows) - width // 2
    inside = (col >= 0) & (col < rows)
    return rows, row[inside], col[inside]


def clustered(g: Gpu, rows: int, mean: float) -> Pairs:
    """Rows of Poisson length around the diagonal, as far as a draw says: a mesh in an order good or bad."""
    torch = g.torch
    row = entries(g, torch.poisson(torch.full((rows,), float(mean), device="cuda")).clamp_min(1).long())
    reach = 10.0 ** (1.0 + float(torch.rand(1)) * max(0.0, math.log10(rows / 4.0) - 1.0))
    col = row + (torch.randn(row.shape, device="cuda", dtype=torch.float64) * reach).long()
    inside = (col >= 0) & (col < rows)
    return rows, row[inside], col[inside]


def arrow(g: Gpu, rows: int, mean: float) -> Pairs:
    """A band with dense first rows and columns: optimisation with shared constraints."""
    torch = g.torch
    cell = torch.arange(rows, device="cuda")
    _, row, col = banded(g, rows, round(mean) - 2)
    dense = [torch.full_like(cell, i) for i in range(1 + rows // 300_000)]
    along = [cell] * len(dense)
    return rows, torch.cat([row, *dense, *along]), torch.cat([col, *along, *dense])


def two_lengths(g: Gpu, rows: int, mean: float) -> Pairs:
    """Nine short rows to a long one, columns anywhere: circuits."""
    torch = g.torch
    long = torch.rand(rows, device="cuda") < 0.1
    lengths = torch.where(long, round(7.0 * mean), max(1, round(0.3 * mean)))
    row = entries(g, lengths)
    return rows, row, torch.randint(0, rows, row.shape, device="cuda")


def dense_rows(g: Gpu, rows: int, mean: float) -> Pairs:
    """Half of the entries near the diagonal, half in eight rows: linear programs."""
    torch = g.torch
    row = entries(g, torch.randint(1, max(2, int(mean)), (rows,), device="cuda"))
    col = row + (torch.randn(row.shape, device="cuda") * (2.0 + 2.0 * mean)).long()
    inside = (col >= 0) & (col < rows)
    heavy = torch.randint(0, rows, (8,), device="cuda").repeat_interleave(max(1, min(rows // 2, int(rows * mean / 16))))
    spread = torch.randint(0, rows, heavy.shape, device="cuda")
    return rows, torch.cat([row[inside], heavy]), torch.cat([col[inside], spread])


def permuted(g: Gpu, rows: int, mean: float) -> Pairs:
    """A band whose rows and columns were shuffled: equal rows without locality."""
    torch, width = g.torch, max(1, round(mean))
    row = torch.arange(rows, device="cuda").repeat_interleave(width)
    col = (row + torch.arange(width, device="cuda").repeat(rows)) % rows
    order = torch.randperm(rows, device="cuda")
    return rows, order[row], order[col]


def hypersparse(g: Gpu, rows: int, mean: float) -> Pairs:
    """Most rows empty: an eighth of the entries asked for, in a quarter of the rows."""
    torch = g.torch
    occupied = torch.randperm(rows, device="cuda")[: max(1, rows // 4)]
    count = max(1, int(rows * mean / 8))
    row = occupied[torch.randint(0, occupied.numel(), (count,), device="cuda")]
    return rows, row, torch.randint(0, rows, row.shape, device="cuda")


def geometric(g: Gpu, nodes: int, degree: float) -> Pairs:
    """Points of a square joined to near ones, numbered row by row."""
    torch, side = g.torch, max(3, int(nodes**0.5))
    node = torch.arange(side * side, device="cuda").repeat_interleave(max(1, round(degree / 2)))
    reach = max(1.0, 0.6 * degree**0.5)
    x, y = ((p + (torch.randn(node.shape, device="cuda") * reach).round().long()).clamp(0, side - 1)
            for p in (node % side, node // side))
    return side * side, node, y * side + x


def communities(g: Gpu, nodes: int, degree: float) -> Pairs:
    """Groups of a thousand that know each other and, of fifty edges, one stranger."""
    torch, size = g.torch, min(1000, nodes)
    node = torch.arange(nodes, device="cuda").repeat_interleave(max(1, round(degree / 2)))
    inside = (node // size * size + torch.randint(0, size, node.shape, device="cuda")).clamp_max(nodes - 1)
    away = torch.rand(node.shape, device="cuda") < 0.02
    return nodes, node, torch.where(away, torch.randint(0, nodes, node.shape, device="cuda"), inside)


def hubs(g: Gpu, nodes: int, degree: float) -> Pairs:
    """Half of all edges end in one of a few nodes, the first of them most often."""
    torch, few = g.torch, max(4, nodes // 2000)
    node = torch.arange(nodes, device="cuda").repeat_interleave(max(1, round(degree / 2)))
    hub = (torch.rand(node.shape, device="cuda", dtype=torch.float64) ** 3 * few).long().clamp_max(few - 1)
    other = torch.randint(0, nodes, node.shape, device="cuda")
    return nodes, node, torch.where(torch.rand(node.shape, device="cuda") < 0.5, hub, other)


Maker = Callable[[Gpu, int, float], Pairs]
MATRICES: dict[str, Maker] = {
    "rmat": lambda g, rows, mean: rmat(g, rows, 2.0 * mean),
    "clustered": clustered, "arrow": arrow, "two_lengths": two_lengths, "dense_rows": dense_rows,
    "permuted": permuted, "hypersparse": hypersparse,
}
GRAPHS: dict[str, Maker] = {"geometric": geometric, "communities": communities, "hubs": hubs}
