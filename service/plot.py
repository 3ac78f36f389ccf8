"""The roofline picture: a platform's ceilings and a kernel under them. Needs matplotlib (the extra `plot`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analytic.baseline import arithmetic_precision, memory_of
from ..analytic.errors import InputError
from ..analytic.platform import Platform
from ..analytic.units import format_quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIXES = (".svg", ".png", ".pdf")
INK, MUTED, MATRIX, VECTOR, MEMORY, CACHE, INNER_CACHE, POINT = (
    "#1f2933", "#7b8794", "#0b6e99", "#5aa9c9", "#8a5a00", "#c69a3f", "#dcc48a", "#b3261e"
)


@dataclass(frozen=True)
class Roof:
    """A ceiling: FLOP/s (flat) or B/s (slope)."""

    label: str
    rate: float
    sloped: bool
    colour: str
    dashed: bool = False


@dataclass(frozen=True)
class Point:
    """A kernel: FLOP, compulsory bytes HBM ↔ cache, seconds; the band may be None."""

    label: str
    flop: float
    byte: float
    time_s: float
    lower_s: float | None = None
    upper_s: float | None = None

    @property
    def intensity(self) -> float:
        """FLOP per byte of compulsory traffic."""
        return self.flop / self.byte


def roofs(platform: Platform, precision: str) -> list[Roof]:
    """Ceilings of a platform at one precision: matrix and vector units, HBM, last-level cache; sustained and peak."""
    precision = arithmetic_precision(precision)
    memory = memory_of(platform)
    found = []
    for unit, colour in (("matrix", MATRIX), ("vector", VECTOR)):
        own = platform.get(f"peak_{precision}_{unit}")
        if not own and (unit == "matrix" or precision not in platform.precisions(unit)):
            continue
        peak, sustained = (rate(precision, unit) for rate in (platform.peak_flop_per_s, platform.sustained_flop_per_s))
        found.append(Roof(f"{precision} {unit} peak", peak, False, colour, True))
        found.append(Roof(f"{precision} {unit} sustained", sustained, False, colour))
    level = memory.level
    found.append(Roof("HBM peak", memory.hbm_peak_byte_per_s, True, MEMORY, True))
    found.append(Roof("HBM sustained", memory.hbm_byte_per_s, True, MEMORY))
    if memory.cache_byte_per_s > memory.hbm_byte_per_s:
        found.append(Roof(level, memory.cache_byte_per_s, True, CACHE))
    l2 = platform.get("l2_bw") or 0.0
    if level == "LLC" and l2 > memory.cache_byte_per_s:
        found.append(Roof("L2", l2, True, INNER_CACHE))
    return found


def check_file(path: str | Path) -> Path:
    """The path if its suffix and folder will do. InputError otherwise."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: a picture is {', '.join(SUFFIXES)}, by the suffix of its name")
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no folder {target.parent}")
    return target


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise InputError("a picture needs matplotlib: install it, or the extra kernelcast[plot]") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _limits(ceilings: Sequence[Roof], points: Sequence[Point]) -> tuple[float, float, float, float]:
    flat = [roof.rate for roof in ceilings if not roof.sloped]
    slopes = [roof.rate for roof in ceilings if roof.sloped]
    ridge = max(flat) / min(slopes)
    x = [point.intensity for point in points]
    low, high = min([*x, min(flat) / max(slopes)]) / 8.0, max([*x, ridge]) * 12.0
    y = [point.flop / point.time_s for point in points]
    return low, high, min([*y, low * min(slopes) * 2.0]) / 2.0, max(flat) * 4.0


def roofline(platform: Platform, precision: str, points: Sequence[Point], path: str | Path) -> Path:
    """Draw the ceilings and the kernels under them; returns the file written.

    Raises InputError for a file that is no picture, missing matplotlib, or a kernel without FLOP or bytes.
    """
    target = check_file(path)
    for point in points:
        if point.flop <= 0.0 or point.byte <= 0.0:
            raise InputError(f"{point.label}: a roofline shows FLOP over bytes, and this kernel has no "
                             f"{'FLOP' if point.flop <= 0.0 else 'bytes'}")
    pyplot = _pyplot()
    ceilings = roofs(platform, precision)
    figure, axes = pyplot.subplots(figsize=(9.2, 5.4), constrained_layout=True)
    try:
        left, right, bottom, top = _limits(ceilings, points)
        axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
        _draw_roofs(axes, ceilings, left, right)
        if len(points) == 1:
            _draw_point(axes, points[0])
        else:
            _draw_points(axes, points)
        _dress(axes, platform)
        with pyplot.rc_context({"svg.hashsalt": "kernelcast"}):
            metadata = {"Date": None} if target.suffix.lower() == ".svg" else None
            figure.savefig(target, dpi=160, metadata=metadata)
    finally:
        pyplot.close(figure)
    return target


def _draw_roofs(axes: Axes, ceilings: Sequence[Roof], left: float, right: float) -> None:
    flat = max(roof.rate for roof in ceilings if not roof.sloped)
    steep = max(roof.rate for roof in ceilings if roof.sloped)
    for roof in ceilings:
        style: dict[str, Any] = {"color": roof.colour, "lw": 1.1 if roof.dashed else 2.0,
                                 "ls": (0, (4, 3)) if roof.dashed else "-", "zorder": 2}
        if roof.sloped:
            x = np.array([left, flat / roof.rate])
            axes.plot(x, roof.rate * x, **style)
        else:
            x = np.array([roof.rate / steep, right])
            axes.plot(x, np.full(2, roof.rate), **style)
    _label_flat(axes, [roof for roof in ceilings if not roof.sloped])
    _label_sloped(axes, [roof for roof in ceilings if roof.sloped])


LABEL_STEP = 0.045
"""Least distance between two labels, as a share of the axis."""


def _label_flat(axes: Axes, ceilings: Sequence[Roof]) -> None:
    """Labels right of the axes, beside their lines, pushed apart where lines lie close together."""
    low, high = axes.get_ylim()
    ordered = sorted(ceilings, key=lambda roof: roof.rate)
    wanted = [float(np.log(roof.rate / low) / np.log(high / low)) for roof in ordered]
    for roof, place in zip(ordered, _apart(wanted), strict=True):
        axes.annotate(f"{roof.label}\n{format_quantity(roof.rate, 'FLOP/s')}", (1.01, place),
                      xycoords="axes fraction", ha="left", va="center", fontsize=7.5, color=roof.colour,
                      linespacing=1.05, annotation_clip=False)


def _apart(places: list[float], step: float = 1.6 * LABEL_STEP) -> list[float]:
    """Sorted positions moved little so that they lie a step apart: clusters are spread about their middle."""
    clusters = [[place] for place in places]
    while True:
        spread = [_spread(cluster, step) for cluster in clusters]
        close = next((k for k in range(len(spread) - 1) if spread[k + 1][0] - spread[k][-1] < step), None)
        if close is None:
            return [place for cluster in spread for place in cluster]
        clusters[close : close + 2] = [clusters[close] + clusters[close + 1]]


def _spread(cluster: list[float], step: float) -> list[float]:
    middle, count = sum(cluster) / len(cluster), len(cluster)
    return [middle + (k - (count - 1) / 2.0) * step for k in range(count)]


def _label_sloped(axes: Axes, ceilings: Sequence[Roof]) -> None:
    """Slopes lie close together: one legend for them, in their order from the top."""
    from matplotlib.lines import Line2D

    ordered = sorted(ceilings, key=lambda roof: -roof.rate)
    handles = [Line2D([], [], color=r.colour, lw=1.1 if r.dashed else 2.0, ls=(0, (4, 3)) if r.dashed else "-")
               for r in ordered]
    words = [f"{roof.label}  {format_quantity(roof.rate, 'B/s')}" for roof in ordered]
    legend = axes.legend(handles, words, loc="lower right", fontsize=8, frameon=False, title="memory ceilings")
    legend.get_title().set_fontsize(8)
    legend.get_title().set_color(MUTED)
    for text in legend.get_texts():
        text.set_color(INK)


def _draw_point(axes: Axes, point: Point) -> None:
    rate = point.flop / point.time_s
    if point.lower_s and point.upper_s:
        axes.vlines(point.intensity, point.flop / point.upper_s, point.flop / point.lower_s, color=POINT, lw=1.2,
                    zorder=4)
    axes.plot([point.intensity], [rate], "o", ms=7, mfc=POINT, mec="white", mew=1.0, zorder=5)
    words = (f"{point.label}\n{format_quantity(point.time_s, 's')}, {format_quantity(rate, 'FLOP/s')}\n"
             f"{format_quantity(point.intensity, '')} FLOP a byte")
    left, right = axes.get_xlim()
    share = np.log(point.intensity / left) / np.log(right / left)
    side, align = (10, "left") if share < 0.45 else (-10, "right")
    axes.annotate(words, (point.intensity, rate), xytext=(side, -12), textcoords="offset points", ha=align, va="top",
                  fontsize=8.5, color=INK, zorder=6,
                  bbox={"boxstyle": "round,pad=0.25", "fc": "white", "ec": "none", "alpha": 0.85})


TOGETHER = 0.03
"""Marks closer than this share of the axes are drawn as one."""


def _groups(axes: Axes, points: Sequence[Point]) -> list[list[int]]:
    """Indices of points that would lie on each other."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    places = [
        (np.log(p.intensity / left) / np.log(right / left), np.log(p.flop / p.time_s / bottom) / np.log(top / bottom))
        for p in points
    ]
    groups: list[list[int]] = []
    for i, (x, y) in enumerate(places):
        near = [g for g in groups if abs(places[g[0]][0] - x) < TOGETHER and abs(places[g[0]][1] - y) < TOGETHER]
        if near:
            near[0].append(i)
        else:
            groups.append([i])
    return groups


def _draw_points(axes: Axes, points: Sequence[Point]) -> None:
    """Numbered marks, and a list of them in the free corner above the slopes."""
    for group in _groups(axes, points):
        point = points[group[0]]
        rate = point.flop / point.time_s
        axes.plot([point.intensity], [rate], "o", ms=7, mfc=POINT, mec="white", mew=1.0, zorder=5)
        axes.annotate(", ".join(str(i + 1) for i in group), (point.intensity, rate), xytext=(8, -8), fontsize=8.5,
                      textcoords="offset points", ha="left", va="center", color=INK, zorder=6,
                      bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.85})
    lines = [f"{number}  {point.label}, {format_quantity(point.time_s, 's')}" for number, point in enumerate(points, 1)]
    axes.text(0.02, 0.98, "\n".join(lines), transform=axes.transAxes, va="top", fontsize=8, color=INK,
              linespacing=1.35)


def _dress(axes: Axes, platform: Platform) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.set_xlabel("arithmetic intensity: FLOP a byte crossing HBM ↔ cache (each operand once)", color=INK)
    axes.set_ylabel("FLOP/s", color=INK)
    axes.set_title(f"{platform.id}: {platform.description}", loc="left", fontsize=10.5, color=INK)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_quantity(float(f"{value:.3g}"), "FLOP/s")))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(True, which="major", color="#e4e7eb", lw=0.7, zorder=0)
    axes.tick_params(colors=MUTED, which="both", labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(MUTED)
