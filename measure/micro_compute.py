"""Arithmetic: vector and matrix rates per precision, short (clocks high) and steady (under the power limit)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .gpu import Gpu
from .micro_bench import Bench

# name: kernel, element type, operations of one step of one chain
VECTOR: dict[str, tuple[str, str, Any, float]] = {
    "fp32": ("micro_fma", "fp32", np.float32(0.999), 2.0),
    "fp64": ("micro_fma", "fp64", np.float64(0.999), 2.0),
    "fp16": ("micro_half2", "fp32", np.int32(1), 4.0),
    "int32": ("micro_imad", "fp32", np.int32(3), 2.0),
}
CHAINS, UNROLL = 8, 16  # as in micro.cu
MATRIX = ("bf16", "fp16", "fp8", "int8", "tf32", "fp32", "fp64")
REST_S = 0.4  # pause before a short measurement, so that the one before has not heated the card
STATE = ("clocks.sm", "power.draw", "temperature.gpu")


def vector_rates(g: Gpu, b: Bench) -> dict[str, dict[str, Any]]:
    """Operations a second of chains of multiply-adds, every unit full of threads."""
    found: dict[str, dict[str, Any]] = {}
    for name, (kernel, precision, seed, operations) in VECTOR.items():
        out, grid, steps = g.empty(4, precision=precision), b.units * 16, 256
        call = g.kernel("micro", kernel, precision)(grid, 256, np.int32(steps), seed, out)
        work = operations * CHAINS * UNROLL * steps * grid * 256
        steady, state = b.steady(call)
        found[name] = {"short_per_s": work / b.time_s(call), "steady_per_s": work / steady, **_pick(state)}
    return found


def matrix_rates(g: Gpu, b: Bench) -> dict[str, dict[str, Any]]:
    """Square products through the vendor's library on random operands."""
    from .families.dense import gemm_cublas

    found: dict[str, dict[str, Any]] = {precision: {} for precision in MATRIX}
    for precision in MATRIX:
        for n in (4096, 8192):
            time.sleep(REST_S)  # short: the card as an idle one meets a call
            row = found[precision]
            row[f"n{n}_s"] = b.time_s(gemm_cublas(g, {"m": n, "n": n, "k": n}, precision).call, 7)
            row[f"n{n}_flop_per_s"] = 2.0 * n**3 / row[f"n{n}_s"]
    for precision in MATRIX:
        steady, state = b.steady(gemm_cublas(g, {"m": 8192, "n": 8192, "k": 8192}, precision).call)
        found[precision] |= {"steady_flop_per_s": 2.0 * 8192**3 / steady, **_pick(state)}
    return found


def _pick(state: dict[str, str]) -> dict[str, str]:
    return {name: state[name] for name in STATE if name in state}
