"""Grids and images: stencils, hotspot, SRAD, pathfinder, convolution with a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..case import TOLERANCE, Case, Measured, Params, blocks, in_turn
from ..gpu import Gpu
from ..rough import cells, image, launches

I32 = np.int32


def stencil_5pt(g: Gpu, p: Params, precision: str) -> Case:
    """`block` is threads a block, in rows of 32."""
    width, height, rows = p["width"], p["height"], p["block"] // 32
    a, out = g.randn(height, width, precision=precision), g.empty(height, width, precision=precision)
    grid = (blocks(width, 32), blocks(height, rows))
    call = g.kernel("stencil", "stencil_5pt", precision)(grid, (32, rows), I32(width), I32(height), a, out)

    def check() -> float:
        call()
        d = a.double()
        around = d[1:-1, :-2] + d[1:-1, 2:] + d[:-2, 1:-1] + d[2:, 1:-1]
        return g.error(out[1:-1, 1:-1], 0.5 * d[1:-1, 1:-1] + 0.125 * around)

    return Case(call, check, TOLERANCE[precision])


def stencil_9pt(g: Gpu, p: Params, precision: str) -> Case:
    rows, cols = p["rows"], p["cols"]
    a, out = g.randn(rows + 2, cols + 2, precision=precision), g.empty(rows, cols, precision=precision)
    grid = (blocks(cols, 64), blocks(rows, 16))
    call = g.kernel("stencil", "stencil_9pt", precision)(grid, 64, I32(rows), I32(cols), a, out)

    def check() -> float:
        call()
        w = g.torch.tensor(
            [[0.025, 0.1, 0.025], [0.1, 0.5, 0.1], [0.025, 0.1, 0.025]], dtype=g.torch.float64, device="cuda"
        )
        d = a.double()
        want = sum(w[i, j] * d[i : i + rows, j : j + cols] for i in range(3) for j in range(3))
        return g.error(out, want)

    return Case(call, check, TOLERANCE[precision], params={**p, "points": 9})


def stencil_7pt(g: Gpu, p: Params, precision: str) -> Case:
    nx, ny, nz = p["nx"], p["ny"], p["nz"]
    a, out = g.randn(nz, ny, nx, precision=precision), g.empty(nz, ny, nx, precision=precision)
    grid = (blocks(nx, 32), blocks(ny, 8), nz)
    call = g.kernel("stencil", "stencil_7pt", precision)(grid, (32, 8), I32(nx), I32(ny), I32(nz), a, out)

    def check() -> float:
        call()
        d = a.double()
        mid = d[1:-1, 1:-1, 1:-1]
        around = (
            d[1:-1, 1:-1, :-2]
            + d[1:-1, 1:-1, 2:]
            + d[1:-1, :-2, 1:-1]
            + d[1:-1, 2:, 1:-1]
            + d[:-2, 1:-1, 1:-1]
            + d[2:, 1:-1, 1:-1]
        )
        return g.error(out[1:-1, 1:-1, 1:-1], 0.4 * mid + 0.1 * around)

    return Case(call, check, TOLERANCE[precision])


def _shifted(d: Any, torch: Any) -> tuple[Any, Any, Any, Any]:
    """North, south, west and east neighbours with the edge repeated."""
    north, south = torch.cat([d[:1], d[:-1]]), torch.cat([d[1:], d[-1:]])
    west, east = torch.cat([d[:, :1], d[:, :-1]], 1), torch.cat([d[:, 1:], d[:, -1:]], 1)
    return north, south, west, east


def hotspot(g: Gpu, p: Params, precision: str) -> Case:
    rows, cols, iterations = p["rows"], p["cols"], p["iterations"]
    start, power = 60 + 20 * g.rand(rows, cols, precision=precision), g.rand(rows, cols, precision=precision)
    pair = [start.clone(), g.empty(rows, cols, precision=precision)]
    kernel, grid = g.kernel("stencil", "hotspot_step", precision), (blocks(cols, 16), blocks(rows, 16))
    steps = [
        kernel(grid, (16, 16), I32(rows), I32(cols), pair[i % 2], power, pair[(i + 1) % 2]) for i in range(iterations)
    ]
    call = in_turn(steps)

    def check() -> float:
        pair[0].copy_(start)
        call()
        d = start.double()
        for _ in range(iterations):
            north, south, west, east = _shifted(d, g.torch)
            flow = (north + south - 2 * d) * 0.1 + (east + west - 2 * d) * 0.1 + (80 - d) * 0.001
            d = d + 0.5 * (power.double() + flow)
        return g.error(pair[iterations % 2], d)

    return Case(call, check, TOLERANCE[precision], reset=lambda: pair[0].copy_(start))


def srad(g: Gpu, p: Params, precision: str) -> Case:
    rows, cols, iterations = p["rows"], p["cols"], p["iterations"]
    real = np.float64 if precision == "fp64" else np.float32
    start = 0.5 + g.rand(rows, cols, precision=precision)
    pair, coefficient = (
        [start.clone(), g.empty(rows, cols, precision=precision)],
        g.empty(rows, cols, precision=precision),
    )
    grid, block, q0, rate = (blocks(cols, 16), blocks(rows, 16)), (16, 16), 0.05, 0.5
    steps = []
    for i in range(iterations):
        now, after = pair[i % 2], pair[(i + 1) % 2]
        steps.append(
            g.kernel("stencil", "srad_coefficient", precision)(
                grid, block, I32(rows), I32(cols), real(q0), now, coefficient
            )
        )
        steps.append(
            g.kernel("stencil", "srad_update", precision)(
                grid, block, I32(rows), I32(cols), real(rate), now, coefficient, after
            )
        )
    call = in_turn(steps)

    def check() -> float:
        pair[0].copy_(start)
        call()
        d = start.double()
        for _ in range(iterations):
            north, south, west, east = (s - d for s in _shifted(d, g.torch))
            slope, bend = (north**2 + south**2 + west**2 + east**2) / d**2, (north + south + west + east) / d
            q = (0.5 * slope - 0.0625 * bend**2) / (1 + 0.25 * bend) ** 2
            c = (1 / (1 + (q - q0) / (q0 * (1 + q0)))).clamp(0, 1)
            _, cs, _, ce = _shifted(c, g.torch)
            d = d + 0.25 * rate * (cs * south + c * north + ce * east + c * west)
        return g.error(pair[iterations % 2], d)

    return Case(call, check, TOLERANCE[precision] * 10, reset=lambda: pair[0].copy_(start))


def pathfinder(g: Gpu, p: Params, precision: str) -> Case:
    torch, rows, cols = g.torch, p["rows"], p["cols"]
    wall = g.integers(10, rows, cols)
    pair = [wall[0].clone(), torch.empty_like(wall[0])]
    kernel = g.kernel("stencil", "pathfinder_row")
    steps = [kernel(blocks(cols), 256, I32(cols), wall[r], pair[(r - 1) % 2], pair[r % 2]) for r in range(1, rows)]
    call = in_turn(steps)

    def check() -> float:
        pair[0].copy_(wall[0])
        call()
        best = wall[0].clone()
        for r in range(1, rows):
            left, right = torch.cat([best[:1], best[:-1]]), torch.cat([best[1:], best[-1:]])
            best = wall[r] + torch.minimum(best, torch.minimum(left, right))
        return g.equal(pair[(rows - 1) % 2], best)

    return Case(call, check, 0.0, reset=lambda: pair[0].copy_(wall[0]))


def simpleconvolution(g: Gpu, p: Params, precision: str) -> Case:
    torch, height, width, mask = g.torch, p["height"], p["width"], p["mask"]
    image, weight = g.integers(256, height + mask - 1, width + mask - 1), g.rand(mask, mask)
    out = torch.empty((height, width), dtype=torch.int32, device="cuda")
    call = g.kernel("stencil", "convolve_mask")(
        blocks(height * width, 64), 64, I32(height), I32(width), I32(mask), image, weight, out
    )

    def check() -> float:
        call()
        want = sum(
            weight[j, i].double() * image[j : j + height, i : i + width] for j in range(mask) for i in range(mask)
        )
        return float((out - want).abs().max() > 0.51)

    return Case(call, check, 0.0)


FAMILIES: tuple[Measured, ...] = (
    Measured("stencil_5pt", {"thread_cell": stencil_5pt}, cells(2, 6, "width", "height")),
    Measured("stencil2d", {"shared_tile": stencil_9pt}, cells(2, 11, "rows", "cols")),
    Measured("stencil_7pt", {"thread_cell": stencil_7pt}, cells(2, 8, "nx", "ny", "nz")),
    Measured("hotspot", {"thread_cell": hotspot}, cells(3, 15, "rows", "cols")),
    Measured("srad", {"two_kernels": srad}, cells(5, 40, "rows", "cols")),
    Measured("pathfinder", {"row_launch": pathfinder}, lambda p: launches(12.0 * p["cols"], p["rows"] - 1)),
    Measured("simpleconvolution", {"thread_pixel": simpleconvolution}, image),
)
