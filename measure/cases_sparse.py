"""Sparse matrices and graphs: products in five layouts, triangular solves, breadth-first search, PageRank."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from .case import TOLERANCE, Builder, Case, Params, blocks
from .gpu import Gpu, Skip
from .sparse_inputs import Pattern, cached, graph, identity, matrix

MAX_LEVELS = 3000


class _Operands:
    """Values, x, y and the reference product of a drawn matrix."""

    def __init__(self, g: Gpu, p: Params, precision: str) -> None:
        self.pattern: Pattern = matrix(g, p, p["seed"])
        self.val = g.randn(self.pattern.nnz, precision=precision)
        self.x = g.randn(self.pattern.cols, precision=precision)
        self.y = g.empty(self.pattern.rows, precision=precision)
        self._g = g

    def error(self) -> float:
        t, m = self._g.torch, self.pattern
        want = t.zeros(m.rows, dtype=t.float64, device="cuda")
        want.index_add_(0, m.row.long(), self.val.double() * self.x.double()[m.col.long()])
        return self._g.error(self.y, want)

    def case(self, call: Callable[[], Any], precision: str, **more: Any) -> Case:
        def check() -> float:
            self.y.fill_(float("nan"))
            call()
            return self.error()

        return Case(call, check, TOLERANCE[precision], params={**self.pattern.describe, **more}, keep=[self])


def _csr(g: Gpu, o: _Operands) -> Any:
    from cupyx.scipy.sparse import csr_matrix

    m, cp = o.pattern, g.cp
    a = csr_matrix((cp.asarray(o.val), cp.asarray(m.col), cp.asarray(m.start)), shape=(m.rows, m.cols), copy=False)
    a.has_canonical_format = True  # else the library re-sorts inside the timed call
    a.has_sorted_indices = True
    return a


def csr_cusparse(g: Gpu, p: Params, precision: str) -> Case:
    from cupyx import cusparse

    o = _Operands(g, p, precision)
    a, x, y = _csr(g, o), g.cp.asarray(o.x), g.cp.asarray(o.y)
    return o.case(lambda: cusparse.spmv(a, x, y, 1.0, 0.0), precision)


def coo_cusparse(g: Gpu, p: Params, precision: str) -> Case:
    from cupyx import cusparse
    from cupyx.scipy.sparse import coo_matrix

    o = _Operands(g, p, precision)
    m, cp = o.pattern, g.cp
    a = coo_matrix((cp.asarray(o.val), (cp.asarray(m.row), cp.asarray(m.col))), shape=(m.rows, m.cols), copy=False)
    a.has_canonical_format = True
    x, y = cp.asarray(o.x), cp.asarray(o.y)
    return o.case(lambda: cusparse.spmv(a, x, y, 1.0, 0.0), precision)


def csr_scalar(g: Gpu, p: Params, precision: str) -> Case:
    o = _Operands(g, p, precision)
    m = o.pattern
    call = g.kernel("sparse", "csr_scalar", precision)(blocks(m.rows), 256, np.int32(m.rows), m.start, m.col, o.val, o.x, o.y)
    return o.case(call, precision)


def csr_vector(g: Gpu, p: Params, precision: str) -> Case:
    o = _Operands(g, p, precision)
    m = o.pattern
    call = g.kernel("sparse", "csr_vector", precision)(
        blocks(m.rows * g.warp), 256, np.int32(m.rows), m.start, m.col, o.val, o.x, o.y
    )
    return o.case(call, precision)


def _zeroed(g: Gpu, o: _Operands, precision: str, body: Callable[[], None]) -> Callable[[], None]:
    rows = o.pattern.rows
    zero = g.kernel("sparse", "zero_real", precision)(blocks(rows), 256, np.int32(rows), o.y)

    def call() -> None:
        zero()
        body()

    return call


def csr_merge(g: Gpu, p: Params, precision: str) -> Case:
    o = _Operands(g, p, precision)
    m, span = o.pattern, 8
    body = g.kernel("sparse", "csr_merge", precision)(
        blocks(-(-(m.rows + m.nnz) // span)), 256, np.int32(m.rows), np.int32(m.nnz), np.int32(span), m.start, m.col, o.val, o.x, o.y
    )
    return o.case(_zeroed(g, o, precision, body), precision)


def coo_atomic(g: Gpu, p: Params, precision: str) -> Case:
    o = _Operands(g, p, precision)
    m = o.pattern
    body = g.kernel("sparse", "coo_atomic", precision)(blocks(m.nnz), 256, np.int32(m.nnz), m.row, m.col, o.val, o.x, o.y)
    return o.case(_zeroed(g, o, precision, body), precision)


def _slots(g: Gpu, m: Pattern) -> Any:
    """Position of every entry within its row."""
    return g.torch.arange(m.nnz, device="cuda") - m.start[m.row.long()].long()


def ell_row(g: Gpu, p: Params, precision: str) -> Case:
    torch, o = g.torch, _Operands(g, p, precision)
    m = o.pattern
    width = m.describe["row_max"]
    if width * m.rows > max(12 * m.nnz, 200_000) or width * m.rows > 2**29:
        raise Skip("ELL padding is more than twelve times the entries")
    at = _slots(g, m) * m.rows + m.row.long()
    col = torch.full((width * m.rows,), -1, dtype=torch.int32, device="cuda")
    val = torch.zeros(width * m.rows, dtype=o.val.dtype, device="cuda")
    col[at], val[at] = m.col, o.val
    call = g.kernel("sparse", "ell_row", precision)(blocks(m.rows), 256, np.int32(m.rows), np.int32(width), col, val, o.x, o.y)
    return o.case(call, precision)


def sellp_row(g: Gpu, p: Params, precision: str) -> Case:
    torch, o, edge = g.torch, _Operands(g, p, precision), 32
    m = o.pattern
    slices = -(-m.rows // edge)
    counts = torch.zeros(slices * edge, dtype=torch.int64, device="cuda")
    counts[: m.rows] = (m.start[1:] - m.start[:-1]).long()
    widths = counts.reshape(slices, edge).amax(1)
    start = torch.zeros(slices + 1, dtype=torch.int64, device="cuda")
    torch.cumsum(widths * edge, 0, out=start[1:])
    total = int(start[-1])
    if total > 2**29:
        raise Skip("sliced ELL padding does not fit")
    row = m.row.long()
    at = start[row // edge] + _slots(g, m) * edge + row % edge
    col = torch.full((total,), -1, dtype=torch.int32, device="cuda")
    val = torch.zeros(total, dtype=o.val.dtype, device="cuda")
    col[at], val[at] = m.col, o.val
    call = g.kernel("sparse", "sellp_row", precision)(blocks(m.rows), 256, np.int32(m.rows), start, col, val, o.x, o.y)
    return o.case(call, precision, stored=total)


def _spmm(cusparse_way: bool) -> Builder:
    def build(g: Gpu, p: Params, precision: str) -> Case:
        torch, o, wide = g.torch, _Operands(g, p, precision), p["cols_dense"]
        m = o.pattern
        if (m.cols + m.rows) * wide > 2**30:
            raise Skip("the dense operands do not fit")
        if cusparse_way:
            from cupyx import cusparse

            b, c = g.randn(wide, m.cols, precision=precision), g.empty(wide, m.rows, precision=precision)
            a, bt, ct = _csr(g, o), g.cp.asarray(b).T, g.cp.asarray(c).T  # column-major operands

            def call() -> None:
                cusparse.spmm(a, bt, ct, 1.0, 0.0)

            left, got = b.t(), c.t()
        else:
            left, got = g.randn(m.cols, wide, precision=precision), g.empty(m.rows, wide, precision=precision)
            call = g.kernel("sparse", "spmm_row_warp", precision)(
                blocks(m.rows * g.warp), 256, np.int32(m.rows), np.int32(wide), m.start, m.col, o.val, left, got
            )

        def check() -> float:
            call()
            want = torch.zeros(m.rows, wide, dtype=torch.float64, device="cuda")
            want.index_add_(0, m.row.long(), o.val.double()[:, None] * left.double()[m.col.long()])
            return g.error(got, want)

        return Case(call, check, TOLERANCE[precision], params={**m.describe, "cols_dense": wide}, keep=[o])

    return build


def _triangle(g: Gpu, p: Params) -> tuple[Pattern, list[int]]:
    """A strictly lower triangle of known depth: each row leans on one of the level before and on earlier ones."""
    torch, rows, levels = g.torch, p["rows"], min(p["levels"], p["rows"])

    def make() -> tuple[Pattern, list[int]]:
        g.seed(p["seed"])
        bounds = [rows * i // levels for i in range(levels + 1)]
        edge = torch.tensor(bounds, device="cuda")
        row = torch.arange(bounds[1], rows, device="cuda")
        level = torch.searchsorted(edge, row, right=True) - 1
        low, high = edge[level - 1], edge[level]
        first = low + (torch.rand(row.shape, device="cuda", dtype=torch.float64) * (high - low)).long()
        rr, cc = [row], [first]
        for _ in range(max(0, p["row_mean"] - 1)):
            rr.append(row)
            cc.append((torch.rand(row.shape, device="cuda", dtype=torch.float64) * high).long())
        return from_levels(g, rows, torch.cat(rr), torch.cat(cc)), bounds

    return cached(g, "triangle" + identity({k: p[k] for k in ("rows", "row_mean", "levels")}, p["seed"]), make)


def from_levels(g: Gpu, rows: int, row: Any, col: Any) -> Pattern:
    from .sparse_inputs import from_pairs

    return from_pairs(g, rows, rows, row, col, "levels")


def _sptrsv(syncfree: bool) -> Builder:
    def build(g: Gpu, p: Params, precision: str) -> Case:
        torch = g.torch
        m, bounds = _triangle(g, p)
        val = g.randn(max(m.nnz, 1), precision=precision) * (0.5 / max(1.0, m.describe["row_mean"]))
        b, x = g.randn(m.rows, precision=precision), g.empty(m.rows, precision=precision)
        if syncfree:
            done, epoch = torch.zeros(m.rows, dtype=torch.int32, device="cuda"), [0]
            bind = g.kernel("sparse", "sptrsv_syncfree", precision)

            def call() -> None:
                epoch[0] += 1
                bind(blocks(m.rows * g.warp), 256, np.int32(m.rows), np.int32(epoch[0]), m.start, m.col, val, b, x, done)()
        else:
            kernel = g.kernel("sparse", "sptrsv_level", precision)
            steps = [
                kernel(blocks(last - first), 256, np.int32(first), np.int32(last), m.start, m.col, val, b, x)
                for first, last in itertools.pairwise(bounds)
            ]

            def call() -> None:
                for step in steps:
                    step()

        def check() -> float:
            x.fill_(float("nan"))
            call()
            back = x.double().clone()  # (I + L) x must give b
            back.index_add_(0, m.row.long(), val.double()[: m.nnz] * x.double()[m.col.long()])
            return g.error(back, b)

        return Case(call, check, TOLERANCE[precision] * 5, params={**m.describe, "levels": len(bounds) - 1}, keep=[m])

    return build


def _degrees(m: Pattern) -> dict[str, Any]:
    d = m.describe
    return {
        "nodes": m.rows, "edges": m.nnz, "avg_degree": d["row_mean"], "max_degree": d["row_max"],
        "std_degree": d["row_std"], "structure": d["structure"],
    }  # fmt: skip


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
            g.kernel("graph", "bfs_reset")(blocks(max(m.rows, slots)), 256, nodes, np.int32(root), np.int32(slots), level, queues[0], size)
        ]
        ups = _bottom_up(sizes, edges, m.rows, m.nnz) if way == "direction_optimising" else [False] * depth_count
        for depth in range(depth_count):
            now, following, d = queues[depth % 2], queues[(depth + 1) % 2], np.int32(depth)
            if way == "level_scan":
                step = g.kernel("graph", "bfs_scan")(blocks(m.rows), 256, nodes, d, m.start, m.col, level)
            elif ups[depth]:
                step = g.kernel("graph", "bfs_bottom_up")(blocks(m.rows), 256, nodes, d, m.start, m.col, level, following, size)
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

        described = {**_degrees(m), "levels": depth_count}
        if depth_count <= 128:
            described["frontier"] = sizes
        return Case(call, check, 0.0, params=described, keep=[m])

    return build


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
            sums = torch.zeros(m.rows, dtype=torch.float64, device="cuda").index_add_(0, m.row.long(), part[m.col.long()])
            want = (1 - damping) / m.rows + damping * sums
        return g.error(rank, want)

    return Case(call, check, TOLERANCE[precision] * 5, params={**_degrees(m), "iterations": p["iterations"]}, keep=[m])


BUILDERS: dict[tuple[str, str], Builder] = {
    ("spmv_csr", "cusparse"): csr_cusparse,
    ("spmv_csr", "csr_scalar"): csr_scalar,
    ("spmv_csr", "csr_vector"): csr_vector,
    ("spmv_csr", "csr_merge"): csr_merge,
    ("spmv_coo", "cusparse"): coo_cusparse,
    ("spmv_coo", "coo_atomic"): coo_atomic,
    ("spmv_ell", "ell_row"): ell_row,
    ("spmv_sellp", "sellp_row"): sellp_row,
    ("spmm_csr", "cusparse"): _spmm(True),
    ("spmm_csr", "row_warp"): _spmm(False),
    ("sptrsv", "level"): _sptrsv(False),
    ("sptrsv", "syncfree"): _sptrsv(True),
    ("bfs", "level_scan"): _bfs("level_scan"),
    ("bfs", "top_down"): _bfs("top_down"),
    ("bfs", "direction_optimising"): _bfs("direction_optimising"),
    ("pagerank", "pull_warp"): pagerank_pull,
}
