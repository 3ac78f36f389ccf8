"""Stencils and image filters: each point reads its neighbours from cache, its own value from memory once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..work import Arguments, Family, Param, Work, make_work


def _plane(width: str, height: str, flop: float, reads: float = 1.0, writes: float = 1.0,
           reread: float = 2.0) -> Callable[[Arguments, float], Work]:
    """One sweep over a width × height grid; `reread` values a point come again out of the cache."""

    def work(a: Arguments, byte: float) -> Work:
        points = a[width] * a[height]
        return make_work(
            flop * points, reads * points * byte, writes * points * byte, threads=points,
            reread_byte=reread * points * byte, chain=2.0,
        )

    return work


def _stencil_7pt(a: Arguments, byte: float) -> Work:
    points = a["nx"] * a["ny"] * a["nz"]
    return make_work(8.0 * points, points * byte, points * byte, threads=points, reread_byte=4.0 * points * byte,
                     chain=2.0)


def _filter(a: Arguments, byte: float) -> Work:
    height, width, mask = a["height"], a["width"], a["mask"]
    points = height * width
    # each tap is a multiply, an add and an integer-to-float conversion; reuse goes through the cache
    return make_work(
        3.0 * mask * mask * points, (height + mask - 1.0) * (width + mask - 1.0) * byte + 4.0 * mask * mask,
        points * byte, threads=points, reread_byte=np.maximum(mask * mask - 1.0, 0.0) * points * byte / 8.0,
        chain=mask * mask,
    )


def _hotspot(a: Arguments, byte: float) -> Work:
    points, steps = a["rows"] * a["cols"], a["iterations"]
    # temperature and power in, temperature out; a launch a step
    return make_work(
        15.0 * points * steps, 2.0 * points * byte, points * byte, threads=points,
        working_set_byte=3.0 * points * byte, launches=steps, reread_byte=(3.0 * (steps - 1.0) + 2.0) * points * byte,
        chain=2.0 * steps,
    )


def _srad(a: Arguments, byte: float) -> Work:
    points, steps = a["rows"] * a["cols"], a["iterations"]
    # two kernels a step: derivatives and diffusion coefficient, then the update; six planes live between them
    return make_work(
        50.0 * points * steps, points * byte, points * byte, threads=points, working_set_byte=6.0 * points * byte,
        launches=2.0 * steps, reread_byte=12.0 * steps * points * byte, chain=4.0 * steps,
    )


def _pathfinder(a: Arguments, byte: float) -> Work:
    rows, cols = a["rows"], a["cols"]
    # dynamic programming row by row: one launch advances one row
    return make_work(
        3.0 * rows * cols, rows * cols * byte, cols * byte, threads=cols, working_set_byte=rows * cols * byte,
        launches=np.maximum(rows - 1.0, 1.0), reread_byte=2.0 * rows * cols * byte, chain=2.0 * rows,
    )


STEPS = Param("iterations", required=False, default=1.0, meaning="time steps", unit="steps")
BLOCK = Param("block", "real", required=False, meaning="threads of a block along a row", unit="threads")
GRID = (Param("rows", meaning="rows of the grid", unit="rows"),
        Param("cols", meaning="points of a row", unit="points"))
IMAGE = (Param("height", meaning="height of the image", unit="pixels"),
         Param("width", meaning="width of the image", unit="pixels"))
SQUARE = {"rows": 4096, "cols": 4096}

FAMILIES: tuple[Family, ...] = (
    Family("stencil_5pt", (Param("width", meaning="points of a row", unit="points"),
                           Param("height", meaning="rows of the grid", unit="points"), BLOCK),
           _plane("width", "height", 5.0), "stencil", meaning="5-point stencil, one sweep",
           example={"width": 4096, "height": 4096}),
    Family("stencil2d", GRID, _plane("cols", "rows", 11.0, reread=3.0), "stencil", meaning="9-point stencil, one sweep",
           example=SQUARE),
    Family("stencil_7pt", tuple(Param(name, meaning=f"points along {name[1]}", unit="points")
                                for name in ("nx", "ny", "nz")), _stencil_7pt, "stencil",
           meaning="7-point stencil in three dimensions, one sweep", example={"nx": 256, "ny": 256, "nz": 256}),
    Family("simpleconvolution", (*IMAGE, Param("mask", meaning="edge of the mask", unit="pixels")), _filter, "stencil",
           meaning="mask × mask weighted sum around each pixel", precision="int32",
           example={"height": 2048, "width": 2048, "mask": 5, "precision": "fp32"}),
    Family("hotspot", (*GRID, STEPS), _hotspot, "stencil", meaning="heat diffusion on a grid",
           example={"rows": 1024, "cols": 1024, "iterations": 10}),
    Family("srad", (*GRID, STEPS), _srad, "stencil", meaning="speckle-reducing diffusion",
           example={"rows": 1024, "cols": 1024, "iterations": 2}),
    Family("pathfinder", GRID, _pathfinder, "balanced", meaning="cheapest path down a grid, a launch a row",
           precision="int32", example={"rows": 100, "cols": 1_000_000}),
)
