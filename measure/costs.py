"""What measuring costs: rough operations and bytes of every family, to spread and order sizes, and seconds of a suite.

Operations and bytes are at 4 bytes a value and never reported."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

# Seconds of the first check of a kind (building its kernels included) and of a configuration, from the two runs of this
# suite on fresh machines with an H200: 30,433 configurations of 155 kinds took 363.4 s, 600 of 139 kinds 24.4 s.
KIND_S, CONFIG_S = 0.127, 0.0113

Params = Mapping[str, Any]
Cost = tuple[float, float]


def _gemm(p: Params) -> Cost:
    m, n, k, batch = p["m"], p["n"], p["k"], p.get("batch", 1)
    return 2.0 * batch * m * n * k, 4.0 * batch * (m * k + k * n + m * n)


def _vector(arrays: int) -> Callable[[Params], Cost]:
    return lambda p: (float(p["n"]), 4.0 * arrays * p["n"])


def _grid(arrays: int, flop: int, *names: str) -> Callable[[Params], Cost]:
    def cost(p: Params) -> Cost:
        cells = math.prod(p[n] for n in names) * p.get("iterations", 1)
        return float(flop * cells), 4.0 * arrays * cells

    return cost


def _attention(p: Params) -> Cost:
    q, kv = p.get("seq", p.get("q_len")), p.get("seq", p.get("kv_len"))
    pairs = p["batch"] * p["heads"] * q * kv * (0.5 if p["causal"] else 1.0)
    kv_heads = p.get("kv_heads", p["heads"])
    return 4.0 * pairs * p["head_dim"], 4.0 * p["batch"] * p["head_dim"] * (2 * p["heads"] * q + 2 * kv_heads * kv)


def _conv2d(p: Params) -> Cost:
    out = p["batch"] * p["hw"] ** 2
    flop = 2.0 * out * p["cin"] * p["cout"] * p["ksize"] ** 2
    return flop, 4.0 * (out * (p["cin"] + p["cout"]) + p["cin"] * p["cout"] * p["ksize"] ** 2)


def _image(p: Params) -> Cost:
    taps = p["mask"] ** 2 if "mask" in p else p["kernel_h"] * p["kernel_w"]
    pixels = p["height"] * p["width"]
    return 2.0 * taps * pixels, 4.0 * pixels * (1 + (1 if "mask" in p else taps))


def _sparse(p: Params) -> Cost:
    nnz = p["rows"] * p["row_mean"]
    wide = p.get("cols_dense", 1)
    return 2.0 * nnz * wide, 8.0 * nnz + 4.0 * p["rows"] * (1 + 2 * wide)


def _graph(p: Params) -> Cost:
    # `hops`: a lattice needs hundreds of launches, so it counts for more than its bytes
    hops = math.sqrt(p["nodes"]) * 2e4 if p["structure"] in ("grid", "road") else 0.0
    return 0.0, (8.0 * p["nodes"] * p["degree"] + 16.0 * p["nodes"]) * p.get("iterations", 1) + hops


def _launches(p: Params, each: float, count: float) -> Cost:
    return 0.0, count * (each + 4e4)  # a launch that does nothing still takes its microsecond or two


def _log2(n: int) -> float:
    return math.log2(max(n, 2))


COSTS: dict[str, Callable[[Params], Cost]] = {
    "gemm": _gemm,
    "bmm": _gemm,
    "gemv": lambda p: (2.0 * p["m"] * p["n"], 4.0 * p["m"] * p["n"]),
    "vector_copy": _vector(2),
    "vector_scale": _vector(2),
    "vector_add": _vector(3),
    "triad": _vector(3),
    "relu": _vector(2),
    "reduction": _vector(1),
    "scan": _vector(2),
    "sort": _vector(16),
    "radix_sort": _vector(30),
    "transpose": lambda p: (0.0, 8.0 * p["m"] * p["n"]),
    "fft": lambda p: (5.0 * p["n"] * p["batch"] * _log2(p["n"]), 16.0 * p["n"] * p["batch"]),
    "softmax": _grid(2, 5, "rows", "cols"),
    "layernorm": _grid(2, 8, "rows", "cols"),
    "attention": _attention,
    "gather": lambda p: (0.0, 12.0 * p["n"] + 4.0 * p["table"]),
    "scatter_add": lambda p: (0.0, 12.0 * p["n"] + 4.0 * p["table"]),
    "histogram": lambda p: (0.0, 6.0 * p["n"] + 8.0 * p["bins"]),
    "hash_probe": lambda p: (0.0, 16.0 * p["n"] + 8.0 * p["table"]),
    "merge_sorted": lambda p: (0.0, 16.0 * (p["m"] + p["n"])),
    "segmented_scan": lambda p: (0.0, 8.0 * p["n"] + 64.0 * p["segments"]),
    "conv2d": _conv2d,
    "stencil_5pt": _grid(2, 6, "width", "height"),
    "stencil2d": _grid(2, 11, "rows", "cols"),
    "stencil_7pt": _grid(2, 8, "nx", "ny", "nz"),
    "hotspot": _grid(3, 15, "rows", "cols"),
    "srad": _grid(5, 40, "rows", "cols"),
    "pathfinder": lambda p: _launches(p, 12.0 * p["cols"], p["rows"] - 1),
    "simpleconvolution": _image,
    "im2col": _image,
    "spmv_csr": _sparse,
    "spmv_coo": _sparse,
    "spmv_ell": _sparse,
    "spmv_sellp": _sparse,
    "spmm_csr": _sparse,
    "sptrsv": lambda p: (0.0, 8.0 * p["rows"] * p["row_mean"] + 16.0 * p["rows"] + 4e4 * p["levels"]),
    "bfs": _graph,
    "pagerank": _graph,
    "mesh_gather_scatter": lambda p: (16.0 * p["nx"] * p["ny"], 60.0 * p["nx"] * p["ny"]),
    "kmeans": lambda p: (
        3.0 * p["points"] * p["features"] * p["clusters"],
        4.0 * p["points"] * (p["features"] + 1),
    ),
    "nbody": lambda p: (20.0 * p["bodies"] ** 2, 64.0 * p["bodies"]),
    "backprop": lambda p: (6.0 * p["inputs"] * p["hidden"], 20.0 * p["inputs"] * p["hidden"]),
    "streamcluster": lambda p: (3.0 * p["points"] * p["dims"], 4.0 * p["points"] * (p["dims"] + 2)),
    "lud": lambda p: _launches(p, 4.0 * p["n"] ** 2 / 3, 3.0 * p["n"] / 16),
    "nw": lambda p: _launches(p, 4.0 * p["n"] * 16, p["n"] / 8),
    "bicg": lambda p: (4.0 * p["m"] * p["n"], 8.0 * p["m"] * p["n"] + 2e4 * p["m"]),
    "floydwarshall": lambda p: _launches(p, 12.0 * p["nodes"] ** 2, p["nodes"]),
    "fastwalshtransform": lambda p: _launches(p, 8.0 * p["n"], _log2(p["n"])),
    "bitonicsort": lambda p: _launches(p, 8.0 * p["n"], _log2(p["n"]) * (_log2(p["n"]) + 1) / 2),
}


def planned_s(kinds: int, configurations: int) -> float:
    """About how long a suite takes [s] on an H200 with nothing built yet: its kinds' checks and its configurations."""
    return KIND_S * kinds + CONFIG_S * configurations
