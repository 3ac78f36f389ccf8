"""Sparse matrices and meshes: products in five layouts, with many vectors, triangular solves, corners."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..case import TOLERANCE, Builder, Case, Measured, Params, blocks
from ..gpu import Gpu, Skip
from ..groups import matrix_group
from ..sparse_inputs import Pattern, cached, from_pairs, identity, matrix


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
    call = g.kernel("sparse", "csr_scalar", precision)(
        blocks(m.rows), 256, np.int32(m.rows), m.start, m.col, o.val, o.x, o.y
    )
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
        blocks(-(-(m.rows + m.nnz) // span)),
        256,
        np.int32(m.rows),
        np.int32(m.nnz),
        np.int32(span),
        m.start,
        m.col,
        o.val,
        o.x,
        o.y,
    )
    return o.case(_zeroed(g, o, precision, body), precision)


def coo_atomic(g: Gpu, p: Params, precision: str) -> Case:
    o = _Operands(g, p, precision)
    m = o.pattern
    body = g.kernel("sparse", "coo_atomic", precision)(
        blocks(m.nnz), 256, np.int32(m.nnz), m.row, m.col, o.val, o.x, o.y
    )
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
    call = g.kernel("sparse", "ell_row", precision)(
        blocks(m.rows), 256, np.int32(m.rows), np.int32(width), col, val, o.x, o.y
    )
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
        return from_pairs(g, rows, rows, torch.cat(rr), torch.cat(cc), "levels"), bounds

    return cached(g, "triangle" + identity({k: p[k] for k in ("rows", "row_mean", "levels")}, p["seed"]), make)


def _sptrsv(syncfree: bool) -> Builder:
    def build(g: Gpu, p: Params, precision: str) -> Case:
        torch = g.torch
        m, bounds = _triangle(g, p)
        val = g.randn(max(m.nnz, 1), precision=precision) * (0.5 / max(1.0, m.describe["row_mean"]))
        b, x = g.randn(m.rows, precision=precision), g.empty(m.rows, precision=precision)
        reset = None
        if syncfree:
            done = torch.zeros(m.rows, dtype=torch.int32, device="cuda")
            # flags are cleared outside the call: a count of calls kept here would stand still in a replayed graph
            reset = done.zero_
            call = g.kernel("sparse", "sptrsv_syncfree", precision)(
                blocks(m.rows * g.warp), 256, np.int32(m.rows), m.start, m.col, val, b, x, done
            )
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
            if reset:
                reset()
            call()
            back = x.double().clone()  # (I + L) x must give b
            back.index_add_(0, m.row.long(), val.double()[: m.nnz] * x.double()[m.col.long()])
            return g.error(back, b)

        params = {**m.describe, "levels": len(bounds) - 1}
        return Case(call, check, TOLERANCE[precision] * 5, reset=reset, params=params, keep=[m])

    return build


def mesh_gather_scatter(g: Gpu, p: Params, precision: str) -> Case:
    """Quadrilateral zones of an nx by ny mesh: area from point positions, a quarter of it added to each corner."""
    torch, nx, ny = g.torch, p["nx"], p["ny"]
    zones, points = nx * ny, (nx + 1) * (ny + 1)
    y, x = torch.meshgrid(torch.arange(ny, device="cuda"), torch.arange(nx, device="cuda"), indexing="ij")
    low = (y * (nx + 1) + x).reshape(-1)
    corner = torch.stack([low, low + 1, low + nx + 2, low + nx + 1], 1)
    if p["order"] == "random":
        corner = torch.randperm(points, device="cuda")[corner]
    corner = corner.int().contiguous()
    px, py = g.rand(points, precision=precision), g.rand(points, precision=precision)
    area, mass = g.empty(zones, precision=precision), g.empty(points, precision=precision)
    steps = (
        g.kernel("irregular", "mesh_gather", precision)(blocks(zones), 256, np.int32(zones), corner, px, py, area),
        g.kernel("sparse", "zero_real", precision)(blocks(points), 256, np.int32(points), mass),
        g.kernel("irregular", "mesh_scatter", precision)(blocks(zones), 256, np.int32(zones), corner, area, mass),
    )

    def call() -> None:
        for step in steps:
            step()

    def check() -> float:
        call()
        c = corner.long()
        xs, ys = px.double()[c], py.double()[c]
        want = 0.5 * (xs * ys.roll(-1, 1) - xs.roll(-1, 1) * ys).sum(1)
        sums = torch.zeros(points, dtype=torch.float64, device="cuda")
        sums.index_add_(0, c.reshape(-1), (0.25 * want).repeat_interleave(4))
        return max(g.error(area, want), g.error(mass, sums))

    return Case(call, check, TOLERANCE[precision] * 10)


def _entries(p: Params) -> tuple[float, float]:
    """What is drawn is rows and their mean: how many entries there are is known once the matrix is."""
    nnz, wide = p["rows"] * p["row_mean"], p.get("cols_dense", 1)
    return 2.0 * nnz * wide, 8.0 * nnz + 4.0 * p["rows"] * (1 + 2 * wide)


def _product(name: str, builders: dict[str, Builder]) -> Measured:
    return Measured(name, builders, _entries, matrix_group, "spmv")


FAMILIES: tuple[Measured, ...] = (
    _product("spmv_csr", {"cusparse": csr_cusparse, "csr_scalar": csr_scalar, "csr_vector": csr_vector,
                          "csr_merge": csr_merge}),
    _product("spmv_coo", {"cusparse": coo_cusparse, "coo_atomic": coo_atomic}),
    _product("spmv_ell", {"ell_row": ell_row}),
    _product("spmv_sellp", {"sellp_row": sellp_row}),
    _product("spmm_csr", {"cusparse": _spmm(True), "row_warp": _spmm(False)}),
    Measured("sptrsv", {"level": _sptrsv(False), "syncfree": _sptrsv(True)},
             lambda p: (0.0, 8.0 * p["rows"] * p["row_mean"] + 16.0 * p["rows"] + 4e4 * p["levels"]),
             launches_vary=True),
    Measured("mesh_gather_scatter", {"zone_thread": mesh_gather_scatter},
             lambda p: (16.0 * p["nx"] * p["ny"], 60.0 * p["nx"] * p["ny"])),
)
