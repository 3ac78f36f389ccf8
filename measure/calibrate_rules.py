"""What each section of a microbenchmark report says about a parameter file: one rule a section."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..analytic.platform import Platform
from .fits import fit_knees, fit_line, fit_saturation, fit_slope, plateau

Results = Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """A measured value in SI and how it was got."""

    value: float
    note: str


def columns(rows: list[dict[str, float]], x: str, y: str) -> tuple[np.ndarray, np.ndarray]:
    """Two columns of the rows that have both."""
    whole = [r for r in rows if x in r and y in r]
    return np.array([r[x] for r in whole], dtype=np.float64), np.array([r[y] for r in whole], dtype=np.float64)


def _copy(r: Results, p: Platform, fits: dict[str, Any]) -> dict[str, Found]:
    byte, rate = columns(r["copy"], "byte", "warm_byte_per_s")
    value = plateau(byte, rate, 16.0 * p.value("l2_size"), np.inf)
    return {"sustained_hbm_bw": Found(value, "device copy of 1 GB and more, bytes read and written")}


def _grid(r: Results, p: Platform, fits: dict[str, Any]) -> dict[str, Found]:
    for kind in ("read", "write", "copy"):
        fits[f"grid_{kind}"] = fit_saturation(*columns(r["grid"], "blocks", f"{kind}_byte_per_s"))
    return {}


def _read(r: Results, p: Platform, fits: dict[str, Any]) -> dict[str, Found]:
    level = "llc" if (p.get("llc_size") or 0.0) > 0 else "l2"
    knees = fit_knees(*columns(r["read"], "byte", "byte_per_s"), p.value(f"{level}_size"))
    fits["read"] = knees
    how = f"fit of 1/BW = h/BW_cache + (1-h)/BW_mem to the read sweep, median error {knees.error:.1%}"
    return {
        f"{level}_bw": Found(knees.cache_byte_per_s, f"{how}; memory reads at {knees.memory_byte_per_s:.3g} B/s"),
        f"{level}_knee_start": Found(knees.start_byte, how),
        f"{level}_knee_end": Found(knees.end_byte, how),
    }


def _chase(r: Results, p: Platform, fits: dict[str, Any]) -> dict[str, Found]:
    warm, cold = columns(r["chase"], "byte", "latency_warm_s"), columns(r["chase"], "byte", "latency_cold_s")
    l1, l2 = p.get("l1_size") or 32768.0, p.value("l2_size")
    near = max(2.0 * l1, l2 / 60.0)
    values = {
        "l1": (plateau(*warm, 0.0, l1 / 4.0), "footprints to a quarter of the L1"),
        "l2": (plateau(*warm, near, l2 / 3.0), "footprints past the L1 to a third of the L2"),
        "hbm": (plateau(*cold, 0.0, np.inf), "first touch after a flush"),
    }
    clock, found = p.value("clock_boost"), {}
    for level, (seconds, where) in values.items():
        note = f"pointer chase by 4-byte index, {where}; the index arithmetic of a step is in it"
        found[f"latency_{level}_time"] = Found(seconds, note)
        found[f"latency_{level}"] = Found(seconds * clock, f"{note}; at the boost clock")
    return found


def _launch(r: Results, p: Platform, fits: dict[str, Any]) -> dict[str, Found]:
    host = r["host_launch"]
    return {
        "kernel_launch_latency": Found(host["pipelined_s"], "launches in a compiled loop, none waited for"),
        "kernel_launch_latency_event_bracketed": Found(host["event_bracketed_s"], "two events around a launch"),
        "kernel_launch_latency_sync": Found(host["sync_s"], "launch and wait, as the host sees it"),
        "sync_latency": Found(host["sync_s"] - host["pipelined_s"], "launch and wait, less a pipelined launch"),
    }


def _graph(r: Results, p: Platform, fits: dict[str, Any]) -> dict[str, Found]:
    note = "empty kernels in a captured graph, 1000 less 500 of them"
    return {"kernel_launch_latency_graph": Found(r["graph_launch"]["graph_s"], note)}


def _empty(r: Results, p: Platform, fits: dict[str, Any]) -> dict[str, Found]:
    """The floor of every kernel time is what the shortest kernel that touches memory takes, not one that does nothing.

    On an H200 the latter takes 0.61 to 0.64 us, which none of the shipped runs comes near."""
    e = r["empty_kernel"]
    nothing = (f"one block of 32 threads that do nothing {e['warm_s']:.3g} s, 64 blocks of 256 threads a unit "
               f"{e['full_grid_s']:.3g} s")
    byte, seconds = columns(r.get("copy") or [], "byte", "warm_s")
    if not seconds.size:
        return {"empty_kernel_duration": Found(e["warm_s"], nothing)}
    shortest = int(seconds.argmin())
    note = f"the shortest kernel that touches memory, a warm copy of {byte[shortest]:g} B; {nothing}"
    return {"empty_kernel_duration": Found(float(seconds[shortest]), note)}


def _barrier(r: Results, p: Platform, fits: dict[str, Any]) -> dict[str, Found]:
    b = r["barrier"]
    return {
        "grid_barrier_latency": Found(b["grid_barrier_s"], "one block of 256 threads a unit, counter in memory"),
        "barrier_latency": Found(b["block_barrier_s"] * p.value("clock_boost"), "256 threads, at the boost clock"),
    }


def _shared(r: Results, p: Platform, fits: dict[str, Any]) -> dict[str, Found]:
    s = r["shared"]
    best = max(row["byte_per_s_per_unit"] for row in s["by_stride"] if row["stride"] == 1.0)
    return {
        "shared_mem_bw_per_cu": Found(best, "4-byte reads without bank conflicts"),
        "latency_shared_mem": Found(s["latency_s"] * p.value("clock_boost"), "chase by index, at the boost clock"),
    }


def _host_copy(r: Results, p: Platform, fits: dict[str, Any]) -> dict[str, Found]:
    lines = {}
    for way in ("to_device", "to_host"):
        lines[way] = fits[f"host_{way}"] = fit_line(*columns(r["host_copy"], "byte", f"{way}_queued_s"))
    rate = min(line.rate for line in lines.values())
    fixed = max(line.fixed_s for line in lines.values())
    both = ", ".join(f"{way.replace('_', ' ')} {line.rate:.4g} B/s" for way, line in lines.items())
    note = f"fit of t = tau + V/B to pinned copies of 8 B to 256 MB, queued: {both}"
    return {name: Found(rate, f"{note}; the slower") for name in ("memcpy_bandwidth", "host_link_bw_measured")} | {
        "memcpy_latency": Found(fixed, f"{note}; the dearer direction's tau")
    }


def _concurrent(r: Results, p: Platform, fits: dict[str, Any]) -> dict[str, Found]:
    fits["concurrent"] = fit_slope(*columns(r["concurrent"], "kernels", "span_s"))
    note = "one-block kernels of 0.1 ms on 1 to 16 streams of one graph: slope of the span"
    return {"concurrent_kernel_overhead": Found(fits["concurrent"][1], note)}


def _devices(r: Results, p: Platform, fits: dict[str, Any]) -> dict[str, Found]:
    note = "1 ms of work on one device and on two of one host; launched from Python"
    return {"multi_device_overhead": Found(r["two_devices"]["second_device_s"], note)}


def _vector(r: Results, p: Platform, fits: dict[str, Any]) -> dict[str, Found]:
    return {
        f"sustained_{name}_vector": Found(
            row["short_per_s"],
            f"chains of multiply-adds; steady {row['steady_per_s']:.4g} at {row.get('clocks.sm', '?')}",
        )
        for name, row in r["vector"].items() if p.get(f"peak_{name}_vector")
    }


def product_rate_name(p: Platform, precision: str) -> str | None:
    """The parameter that the rate of large products belongs to: the vector units' where there is no matrix mode."""
    return next((f"sustained_{precision}_{unit}" for unit in ("matrix", "vector") if p.get(f"peak_{precision}_{unit}")),
                None)


def _matrix(r: Results, p: Platform, fits: dict[str, Any]) -> dict[str, Found]:
    """Rates of large products. One that runs on the vector units replaces the rate of `_vector`: a parameter is what
    large, tuned kernels reach, and chains of multiply-adds in registers feed no operands."""
    found = {}
    for precision, row in r["matrix"].items():
        name = product_rate_name(p, precision)
        if name is None:
            continue
        note = (f"8192^3 product on random data, short; under the power limit {row['steady_flop_per_s']:.4g} at "
                f"{row.get('clocks.sm', '?')}, {row.get('power.draw', '?')}")
        chains = r.get("vector", {}).get(precision)
        if name.endswith("_vector") and chains:
            note += f"; chains of multiply-adds in registers {chains['short_per_s']:.4g}"
        found[name] = Found(row["n8192_flop_per_s"], note)
    return found


Rule = Callable[[Results, Platform, dict[str, Any]], dict[str, Found]]
# section: rule; a rule also leaves its fits for the pictures
RULES: dict[str, Rule] = {
    "copy": _copy, "grid": _grid, "read": _read, "chase": _chase, "host_launch": _launch, "graph_launch": _graph,
    "empty_kernel": _empty, "barrier": _barrier, "shared": _shared, "host_copy": _host_copy, "concurrent": _concurrent,
    "two_devices": _devices, "vector": _vector, "matrix": _matrix,
}
