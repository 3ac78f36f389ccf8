"""Rough operations and bytes, at 4 bytes a value, where a family's work is not known before its inputs are drawn.

They spread and order the sizes of a suite and are never reported. A shipped suite is drawn with them: another number
here is another suite."""

from __future__ import annotations

import math

from .case import Cost, Params

LAUNCH_BYTE = 4e4  # a launch that does nothing still takes its microsecond or two
LATTICES = ("grid", "road")


def vectors(arrays: int) -> Cost:
    """So many passes over n values."""
    return lambda p: (float(p["n"]), 4.0 * arrays * p["n"])


def cells(arrays: int, flop: int, *names: str) -> Cost:
    """So many arrays and operations a cell of a grid whose edges are `names`, in every iteration."""

    def cost(p: Params) -> tuple[float, float]:
        count = math.prod(p[name] for name in names) * p.get("iterations", 1)
        return float(flop * count), 4.0 * arrays * count

    return cost


def image(p: Params) -> tuple[float, float]:
    """Windows of an image: weighted sums, or unrolled."""
    taps = p["mask"] ** 2 if "mask" in p else p["kernel_h"] * p["kernel_w"]
    pixels = p["height"] * p["width"]
    return 2.0 * taps * pixels, 4.0 * pixels * (1 + (1 if "mask" in p else taps))


def graph_cost(p: Params) -> tuple[float, float]:
    """A pass over a graph an iteration; a lattice needs hundreds of launches, so it counts for more than its bytes."""
    hops = math.sqrt(p["nodes"]) * 2e4 if p["structure"] in LATTICES else 0.0
    return 0.0, (8.0 * p["nodes"] * p["degree"] + 16.0 * p["nodes"]) * p.get("iterations", 1) + hops


def launches(each: float, count: float) -> tuple[float, float]:
    """`count` launches that move `each` bytes."""
    return 0.0, count * (each + LAUNCH_BYTE)


def log2(n: int) -> float:
    return math.log2(max(n, 2))
