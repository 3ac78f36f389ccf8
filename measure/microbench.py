"""Microbenchmarks: the numbers a parameter file holds, measured. Times are kernel durations, as in the tables."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .gpu import Gpu, card_state, require_platform
from .meta import commit, versions
from .trace import Tracer, assign_codes, cut, open_tracer


class Bench:
    """Times one call at a time: median kernel time [s] over repeats, warm or cold."""

    def __init__(self, gpu: Gpu, tracer: Tracer) -> None:
        self.gpu, self.tracer = gpu, tracer

    def time_s(self, call: Callable[[], Any], repeats: int = 9, cold: bool = False) -> float:
        gpu, codes = self.gpu, []
        call()
        gpu.sync()
        self.tracer.drain()
        for _ in range(repeats):
            if cold:
                gpu.mark(1)
                gpu.flush()
                codes.append(1)
            gpu.mark(2)
            codes.append(2)
            call()
        gpu.mark(1)
        codes.append(1)
        gpu.sync()
        return float(np.median([s.time_s for s in assign_codes(cut(self.tracer.drain()), codes) if s.code == 2]))


def copy_sweep(g: Gpu, b: Bench) -> list[dict[str, float]]:
    rows = []
    for power in range(12, 33):
        n = 2**power // 4
        a, out = g.randn(n), g.empty(n)
        call = g.kernel("vector", "vec_copy_wide")(-(-n // 1024), 256, np.int64(n // 4), a, out)
        row: dict[str, float] = {"byte": 8.0 * n}  # read and written
        for cache in ("warm", "cold"):
            taken = b.time_s(call, cold=cache == "cold")
            row[f"{cache}_s"], row[f"{cache}_byte_per_s"] = taken, 8.0 * n / taken
        rows.append(row)
    return rows


def read_sweep(g: Gpu, b: Bench) -> list[dict[str, float]]:
    """Bandwidth of repeated reads by buffer size: the last-level cache's plateau and its knee."""
    rows, out = [], g.empty(4)
    for size_mb in (
        0.25,
        0.5,
        1,
        2,
        4,
        8,
        12,
        16,
        20,
        24,
        28,
        32,
        36,
        40,
        48,
        56,
        64,
        80,
        96,
        128,
        192,
        256,
        512,
        1024,
        4096,
    ):
        n = int(size_mb * 2**20) // 16
        a, rounds = g.randn(4 * n), max(2, min(512, int(4e9 / (16 * n))))
        taken = [
            b.time_s(g.kernel("micro", "micro_read")(132 * 8, 256, np.int64(n), np.int32(r), a, out), 5)
            for r in (rounds, 2 * rounds)
        ]
        rows.append({"byte": 16.0 * n, "byte_per_s": 16.0 * n * rounds / (taken[1] - taken[0])})
    return rows


def chase_sweep(g: Gpu, b: Bench) -> list[dict[str, float]]:
    """Latency of a dependent load by footprint: one link a 128-byte line, in random order.

    Warm: a footprint within reach of 131,072 links is walked whole. Cold: after a flush, so from device memory."""
    torch, rows = g.torch, []
    for power in range(13, 31):
        lines = 2**power // 128
        order = torch.randperm(lines, device="cuda").int()
        chain = torch.zeros(lines * 32, dtype=torch.int32, device="cuda")
        chain[order.long() * 32] = order.roll(-1) * 32
        out = torch.empty(1, dtype=torch.int32, device="cuda")
        kernel, row = g.kernel("micro", "micro_chase"), {"byte": float(2**power)}
        if lines <= 2**19:
            steps = max(4096, lines)
            few, many = (b.time_s(kernel(1, 1, np.int32(s), chain, out), 3) for s in (steps, 2 * steps))
            row["latency_warm_s"] = (many - few) / steps
        if lines >= 12288:
            few, many = (b.time_s(kernel(1, 1, np.int32(s), chain, out), 5, cold=True) for s in (4096, 12288))
            row["latency_cold_s"] = (many - few) / 8192
        rows.append(row)
    return rows


def fma_rates(g: Gpu, b: Bench) -> dict[str, float]:
    rates = {}
    for precision, real in (("fp32", np.float32), ("fp64", np.float64)):
        out, grid, steps = g.empty(1, precision=precision), 132 * 16, 4096
        call = g.kernel("micro", "micro_fma", precision)(grid, 256, np.int32(steps), real(0.999), out)
        rates[precision] = 2.0 * 8 * steps * grid * 256 / b.time_s(call)
    return rates


def matrix_rates(g: Gpu, b: Bench) -> dict[str, dict[str, float]]:
    from .cases_dense import gemm_cublas

    found: dict[str, dict[str, float]] = {}
    for precision in ("bf16", "fp16", "fp8", "int8", "tf32", "fp32", "fp64"):
        for n in (4096, 8192):
            call = gemm_cublas(g, {"m": n, "n": n, "k": n}, precision).call
            taken = b.time_s(call, 7)
            found.setdefault(precision, {})[f"n{n}_s"] = taken
            found[precision][f"n{n}_flop_per_s"] = 2.0 * n**3 / taken
    return found


def launch_interval_s(g: Gpu) -> float:
    """Time from launch to launch when the host launches as fast as this harness can."""
    call = g.kernel("micro", "micro_empty")(1, 32, np.int32(0))
    g.sync()
    begun = time.perf_counter()
    for _ in range(5000):
        call()
    g.sync()
    return (time.perf_counter() - begun) / 5000


def measure(platform_id: str) -> dict[str, Any]:
    g = Gpu()
    require_platform(platform_id, g.name)
    b = Bench(g, open_tracer(g.torch))
    before = card_state()
    empty = g.kernel("micro", "micro_empty")
    results = {
        "empty_kernel_warm_s": b.time_s(empty(1, 32, np.int32(0)), 31),
        "empty_kernel_cold_s": b.time_s(empty(1, 32, np.int32(0)), 31, cold=True),
        "empty_kernel_full_grid_s": b.time_s(empty(132 * 64, 256, np.int32(0)), 31),
        "launch_interval_s": launch_interval_s(g),
        "copy": copy_sweep(g, b),
        "read": read_sweep(g, b),
        "chase": chase_sweep(g, b),
        "fma_flop_per_s": fma_rates(g, b),
        "matrix": matrix_rates(g, b),
    }
    return {
        "platform": platform_id, "gpu": g.name, "versions": versions(g), "commit": commit(), "tracer": b.tracer.name,
        "card_before": before, "card_after": card_state(), "results": results,
    }  # fmt: skip


def main(arguments: list[str]) -> int:
    platform_id, out = arguments
    Path(out).write_text(json.dumps(measure(platform_id), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
