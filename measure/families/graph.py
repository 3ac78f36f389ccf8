"""Graphs: breadth-first search in three ways, PageRank and all-pairs paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..case import TOLERANCE, Builder, Case, Measured, Params, blocks, in_turn
from ..gpu import Gpu, Skip
from ..groups import graph_group
from ..rough import graph_cost, launches
from ..sparse_inputs import Pattern, degrees, graph

I32 = np.int32
MAX_LEVELS = 3000


def _levels(g: Gpu, m: Pattern) -> tuple[int, Any, list[int], list[int]]:
    """Root (a vertex of highest degree), level of every vertex, frontier sizes and frontier edges, by plain sweeps."""
    torch = g.torch
    if "bfs" not in m.extra:
        degree = (m.start[1:] - m.start[:-1]).long()
        root = int(degree.argmax())
        level = torch.full((m.rows,), -1, dtype=torch.int32, device="cuda")
        level[root] = 0
        scan = g.kernel("graph", "bfs_scan")
        for depth in range(MAX_LEVELS + 1):
            scan(blocks(m.rows), 256, np.int32(m.rows), np.int32(depth), m.start, m.col, level)()
            if depth % 16 == 15 and int(level.max()) < depth + 1:
                break
        else:
            raise Skip(f"the search has more than {MAX_LEVELS} levels")
        seen = level >= 0
        sizes = torch.bincount(level[seen]).tolist()
        edges = torch.bincount(level[seen], weights=degree[seen].double()).tolist()
        m.extra["bfs"] = (root, level, sizes, [int(e) for e in edges])
    return m.extra["bfs"]  # type: ignore[no-any-return]


def _valid_levels(g: Gpu, m: Pattern, level: Any, root: int) -> float:
    """0 when levels are a breadth-first search's: the root alone is 0, edges span at most one level, every other
    vertex reached has a neighbour one level up, and nothing reached touches something unreached."""
    torch = g.torch
    a, b = level[m.row.long()], level[m.col.long()]
    spans = bool(((a - b).abs() <= 1).all()) and not bool(((a < 0) != (b < 0)).any())
    parent = torch.zeros(m.rows, dtype=torch.bool, device="cuda")
    parent[m.row[(b == a - 1) & (a > 0)].long()] = True
    parents = bool((parent | (level <= 0)).all())
    single = int((level == 0).sum()) == 1 and int(level[root]) == 0
    return 0.0 if spans and parents and single else 1.0


def _bottom_up(sizes: list[int], edges: list[int], nodes: int, total: int) -> list[bool]:
    """Which levels go bottom-up: in when the frontier's edges pass 1/14 of those unexplored, out when the frontier
    falls under 1/24 of the vertices (Beamer, Asanović and Patterson 2012)."""
    ways, up, unexplored = [], False, total
    for size, edge in zip(sizes, edges, strict=True):
        unexplored -= edge
        up = size > nodes / 24 if up else edge > max(unexplored, 0) / 14
        ways.append(up)
    return ways


def _bfs(way: str) -> Builder:
    def build(g: Gpu, p: Params, precision: str) -> Case:
        torch = g.torch
        m = graph(g, p, p["seed"])
        root, _, sizes, edges = _levels(g, m)
        depth_count = len(sizes)
        level = torch.empty(m.rows, dtype=torch.int32, device="cuda")
        queues = [torch.empty(m.rows, dtype=torch.int32, device="cuda") for _ in range(2)]
        slots = depth_count + 2
        size = torch.zeros(slots, dtype=torch.int32, device="cuda")
        nodes = np.int32(m.rows)
        steps = [
            g.kernel("graph", "bfs_reset")(
                blocks(max(m.rows, slots)), 256, nodes, np.int32(root), np.int32(slots), level, queues[0], size
            )
        ]
        ups = _bottom_up(sizes, edges, m.rows, m.nnz) if way == "direction_optimising" else [False] * depth_count
        for depth in range(depth_count):
            now, following, d = queues[depth % 2], queues[(depth + 1) % 2], np.int32(depth)
            if way == "level_scan":
                step = g.kernel("graph", "bfs_scan")(blocks(m.rows), 256, nodes, d, m.start, m.col, level)
            elif ups[depth]:
                step = g.kernel("graph", "bfs_bottom_up")(
                    blocks(m.rows), 256, nodes, d, m.start, m.col, level, following, size
                )
            else:
                step = g.kernel("graph", "bfs_top_down")(
                    blocks(sizes[depth] * g.warp), 256, d, m.start, m.col, level, now, following, size
                )
            steps.append(step)

        def call() -> None:
            for step in steps:
                step()

        def check() -> float:
            call()
            return _valid_levels(g, m, level, root)

        described = {**degrees(m), "levels": depth_count}
        if depth_count <= 128:
            described["frontier"] = sizes
        return Case(call, check, 0.0, params=described, keep=[m])

    return build


def floydwarshall(g: Gpu, p: Params, precision: str) -> Case:
    torch, n = g.torch, p["nodes"]
    start = g.integers(1000, n, n, low=1)
    dist, via = start.clone(), torch.zeros_like(start)
    grid = (blocks(n, 8), blocks(n, 8))
    kernel = g.kernel("dense", "floyd_step")
    call = in_turn([kernel(grid, (8, 8), I32(n), I32(k), dist, via) for k in range(n)])

    def check() -> float:
        dist.copy_(start)
        call()
        want = start.clone()
        for k in range(n):
            want = torch.minimum(want, want[:, k : k + 1] + want[k : k + 1])
        return g.equal(dist, want)

    return Case(call, check, 0.0, reset=lambda: dist.copy_(start))


def pagerank_pull(g: Gpu, p: Params, precision: str) -> Case:
    torch, m, damping = g.torch, graph(g, p, p["seed"]), 0.85
    real = np.float64 if precision == "fp64" else np.float32
    rank, share = g.rand(m.rows, precision=precision), g.empty(m.rows, precision=precision)
    first = g.kernel("graph", "pagerank_share", precision)(blocks(m.rows), 256, np.int32(m.rows), m.start, rank, share)
    second = g.kernel("graph", "pagerank_pull", precision)(
        blocks(m.rows * g.warp), 256, np.int32(m.rows), real(damping), m.start, m.col, share, rank
    )

    def call() -> None:
        for _ in range(p["iterations"]):
            first()
            second()

    def check() -> float:
        rank.copy_(g.rand(m.rows, precision=precision))
        want, degree = rank.double().clone(), (m.start[1:] - m.start[:-1]).double()
        call()
        for _ in range(p["iterations"]):
            part = torch.where(degree > 0, want / degree.clamp_min(1), 0.0)
            sums = torch.zeros(m.rows, dtype=torch.float64, device="cuda").index_add_(
                0, m.row.long(), part[m.col.long()]
            )
            want = (1 - damping) / m.rows + damping * sums
        return g.error(rank, want)

    return Case(call, check, TOLERANCE[precision] * 5, params={**degrees(m), "iterations": p["iterations"]}, keep=[m])


FAMILIES: tuple[Measured, ...] = (
    Measured("bfs", {way: _bfs(way) for way in ("level_scan", "top_down", "direction_optimising")}, graph_cost,
             graph_group, "bfs", launches_vary=True),
    Measured("pagerank", {"pull_warp": pagerank_pull}, graph_cost, graph_group, "bfs", launches_vary=True),
    Measured("floydwarshall", {"step_launch": floydwarshall}, lambda p: launches(12.0 * p["nodes"] ** 2, p["nodes"])),
)
