"""A picture of each sweep with its fit, so that a person sees what a parameter stands on. Needs matplotlib (`plot`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analytic.errors import InputError
from .calibrate_rules import Results, columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Fits = dict[str, Any]
COLOURS = ("#0b6e99", "#b3261e", "#8a5a00", "#5aa9c9", "#7b8794")
MIB = 2.0**20


def _axes(ax: Axes, title: str, x: str, y: str, log_y: bool = False) -> None:
    ax.set(title=title, xlabel=x, ylabel=y, xscale="log")
    if log_y:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0.0)
    ax.grid(True, alpha=0.25)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False, fontsize=8)


def _line(x: np.ndarray) -> np.ndarray:
    return np.geomspace(x.min(), x.max(), 400)


def _read(ax: Axes, r: Results, fits: Fits) -> None:
    byte, rate = columns(r["read"], "byte", "byte_per_s")
    ax.plot(byte / MIB, rate / 1e12, "o", color=COLOURS[0], ms=4, label="measured")
    if "read" in fits:
        k, at = fits["read"], _line(byte)
        words = f"fit: {k.cache_byte_per_s / 1e12:.2f} to {k.memory_byte_per_s / 1e12:.2f} TB/s, " \
                f"{k.start_byte / 1e6:.1f} to {k.end_byte / 1e6:.1f} MB"
        ax.plot(at / MIB, k.byte_per_s(at) / 1e12, color=COLOURS[1], label=words)
    _axes(ax, "Repeated reads by working set", "working set [MiB]", "TB/s")


def _copy(ax: Axes, r: Results, fits: Fits) -> None:
    for number, cache in enumerate(("warm", "cold")):
        byte, rate = columns(r["copy"], "byte", f"{cache}_byte_per_s")
        ax.plot(byte / MIB, rate / 1e12, "o-", color=COLOURS[number], ms=3, label=f"{cache} cache")
    _axes(ax, "Copies, bytes read and written", "bytes [MiB]", "TB/s")


def _grid(ax: Axes, r: Results, fits: Fits) -> None:
    for number, kind in enumerate(("read", "write", "copy")):
        blocks, rate = columns(r["grid"], "blocks", f"{kind}_byte_per_s")
        ax.plot(blocks, rate / 1e12, "o", color=COLOURS[number], ms=4, label=f"{kind}, measured")
        if f"grid_{kind}" in fits:
            fit, at = fits[f"grid_{kind}"], _line(blocks)
            words = f"fit: {fit.limit / 1e12:.2f} TB/s, half-way scale {fit.blocks:.0f} blocks"
            ax.plot(at, fit.rate(at) / 1e12, color=COLOURS[number], lw=1, label=words)
    _axes(ax, "Memory bandwidth by grid size", "blocks of 256 threads", "TB/s", log_y=True)


def _chase(ax: Axes, r: Results, fits: Fits) -> None:
    for number, cache in enumerate(("warm", "cold")):
        byte, seconds = columns(r["chase"], "byte", f"latency_{cache}_s")
        ax.plot(byte / MIB, seconds * 1e9, "o-", color=COLOURS[number], ms=3, label=f"{cache} cache")
    _axes(ax, "Latency of a dependent load by footprint", "footprint [MiB]", "ns")


def _host_copy(ax: Axes, r: Results, fits: Fits) -> None:
    for number, way in enumerate(("to_device", "to_host")):
        byte, seconds = columns(r["host_copy"], "byte", f"{way}_queued_s")
        words = way.replace("_", " ")
        ax.plot(byte, seconds * 1e6, "o", color=COLOURS[number], ms=4, label=f"{words}, queued")
        if f"host_{way}" in fits:
            fit, at = fits[f"host_{way}"], _line(byte)
            label = f"fit: {fit.fixed_s * 1e6:.2f} µs + V / {fit.rate / 1e9:.1f} GB/s"
            ax.plot(at, fit.time_s(at) * 1e6, color=COLOURS[number], lw=1, label=label)
        byte, seconds = columns(r["host_copy"], "byte", f"{way}_sync_s")
        ax.plot(byte, seconds * 1e6, "x", color=COLOURS[number], ms=4, label=f"{words}, waited for")
    _axes(ax, "Pinned copies by size", "bytes", "µs", log_y=True)


def _concurrent(ax: Axes, r: Results, fits: Fits) -> None:
    count, seconds = columns(r["concurrent"], "kernels", "span_s")
    ax.plot(count, seconds * 1e6, "o", color=COLOURS[0], label="measured")
    if "concurrent" in fits:
        first, each = fits["concurrent"]
        words = f"fit: {first * 1e6:.1f} µs + (k - 1) · {each * 1e6:.2f} µs"
        ax.plot(count, (first + (count - 1) * each) * 1e6, color=COLOURS[1], label=words)
    _axes(ax, "Equal kernels side by side", "kernels", "first start to last end [µs]")


def _shared(ax: Axes, r: Results, fits: Fits) -> None:
    stride, rate = columns(r["shared"]["by_stride"], "stride", "byte_per_s_per_unit")
    ax.plot(stride, rate / 1e9, "o", color=COLOURS[0], label="measured")
    power = np.array([2.0**k for k in range(6)])
    ax.plot(power, rate[0] / power / 1e9, color=COLOURS[1], lw=1, label="unit stride ÷ conflicts, 32 banks")
    _axes(ax, "Shared memory by stride between lanes", "stride [4-byte words]", "GB/s a unit", log_y=True)


def _atomic(ax: Axes, r: Results, fits: Fits) -> None:
    for number, stride in enumerate((1.0, 33.0)):
        rows = [row for row in r["atomic"] if row["stride"] == stride]
        slots, rate = columns(rows, "slots", "atomic_per_s")
        words = "neighbours" if stride == 1.0 else f"{stride:.0f} words apart"
        ax.plot(slots, rate / 1e9, "o-", color=COLOURS[number], ms=4, label=words)
    _axes(ax, "Integer atomic additions by addresses", "addresses", "additions a second [1e9]", log_y=True)


def _rates(ax: Axes, r: Results, fits: Fits) -> None:
    bars = [
        (f"{n} matrix", row["n8192_flop_per_s"], row["steady_flop_per_s"]) for n, row in r.get("matrix", {}).items()
    ]
    bars += [(f"{n} vector", row["short_per_s"], row["steady_per_s"]) for n, row in r.get("vector", {}).items()]
    place = np.arange(len(bars))
    ax.barh(place - 0.2, [b[1] / 1e12 for b in bars], 0.38, color=COLOURS[0], label="short")
    ax.barh(place + 0.2, [b[2] / 1e12 for b in bars], 0.38, color=COLOURS[3], label="steady, under the power limit")
    ax.set(yticks=place, yticklabels=[b[0] for b in bars], xlabel="1e12 operations a second", xscale="log")
    ax.set_title("Arithmetic, short and steady")
    ax.legend(frameon=False, fontsize=8)
    ax.grid(True, axis="x", alpha=0.25)


PICTURES: dict[str, Callable[[Axes, Results, Fits], None]] = {
    "read": _read, "copy": _copy, "grid": _grid, "chase": _chase, "host_copy": _host_copy, "concurrent": _concurrent,
    "shared": _shared, "atomic": _atomic, "matrix": _rates,
}


def draw(results: Results, fits: Fits, stem: Path, suffix: str = ".svg") -> list[Path]:
    """Write `stem-SECTION.suffix` for each measured sweep. InputError: no matplotlib, or nowhere to write."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("pictures need matplotlib: pip install 'kernelcast[plot]', or ask for none") from None
    written = []
    for name, picture in PICTURES.items():
        if name not in results:
            continue
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        picture(figure.add_subplot(), results, fits)
        path = stem.with_name(f"{stem.name}-{name}{suffix}")
        try:
            with rc_context(
                {"svg.fonttype": "none", "svg.hashsalt": "kernelcast"}
            ):  # text stays text; same bytes each time
                figure.savefig(path, dpi=110, metadata={"Date": None} if suffix == ".svg" else None)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from None
        written.append(path)
    return written
