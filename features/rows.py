"""Feature rows: one configuration described by its sizes, their alignment, its work and its baseline.

Two views of the same rows. *Family features* carry the family's own parameters and are learned from within one family.
*Common features* are dimensionless (ratios of the baseline's terms, occupancy of the machine) and mean the same for
every family and platform.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.baseline import Baseline
from ..analytic.platform import Platform
from ..analytic.work import Family, FloatArray, element_byte
from . import blocking as cuts
from .numbers import alignment_log2, log2, padding_log2, tail
from .product import cut_columns

CACHE_CODE = {"cold": 1.0, "warm": 0.0, "unknown": 0.0}


@dataclass(frozen=True)
class Rows:
    """n configurations of one family as numbers: `values` (n, len(names)), `categories` name → labels of shape (n,)."""

    names: tuple[str, ...]
    values: FloatArray
    categories: dict[str, NDArray[Any]]


def _sizes(family: Family, a: Mapping[str, NDArray[Any]], byte: float) -> dict[str, FloatArray]:
    out: dict[str, FloatArray] = {}
    for param in family.params:
        if param.kind in ("size", "real"):
            values = np.asarray(a[param.name], dtype=np.float64)
            out[f"log2_{param.name}"] = np.where(np.isnan(values), np.nan, log2(values))
            if param.kind == "size" and param.required:
                out[f"align_{param.name}"] = alignment_log2(values, byte)
                out[f"pow2_{param.name}"] = alignment_log2(values, 1.0, 12.0)
        elif param.kind == "flag":
            out[param.name] = np.asarray(a[param.name], dtype=np.float64)
    return out


def _gemm_features(a: Mapping[str, NDArray[Any]], base: Baseline, byte: float, platform: Platform
                   ) -> dict[str, FloatArray]:  # fmt: skip
    if base.work.gemm is None:
        return {}
    m, n, k, batch = base.work.gemm
    slots = platform.value("compute_units")
    out = {
        "align_min": np.minimum(np.minimum(alignment_log2(n, byte), alignment_log2(k, byte)), 4.0),
        "log2_mn": log2(m * n), "log2_n_over_m": log2(n / m), "log2_k_over_mn": log2(k / np.sqrt(m * n)),
        "tail_128x256": tail(np.ceil(m / 128) * np.ceil(n / 256) * batch, slots),
        "tail_256x128": tail(np.ceil(m / 256) * np.ceil(n / 128) * batch, slots),
        "tail_128x128": tail(np.ceil(m / 128) * np.ceil(n / 128) * batch, slots),
        "tail_64x64": tail(np.ceil(m / 64) * np.ceil(n / 64) * batch, slots),
        "log2_ctas_128": log2(np.ceil(m / 128) * np.ceil(n / 128) * batch / slots),
    }  # fmt: skip
    out |= {f"pad_{name}_{tile}": padding_log2(size, tile) for name, size in (("m", m), ("n", n)) for tile in (64, 128)}
    out["pad_m_256"], out["pad_n_256"] = padding_log2(m, 256.0), padding_log2(n, 256.0)
    details = ("waves", "wave_efficiency", "tile_m", "tile_n", "split_k")
    out |= {f"log2_{name}": log2(base.details[name]) for name in details if name in base.details}
    return out


def _product_features(a: Mapping[str, NDArray[Any]], base: Baseline, byte: float, platform: Platform
                      ) -> dict[str, FloatArray]:  # fmt: skip
    return _gemm_features(a, base, byte, platform) | cut_columns(base, byte, platform)


def _graph(a: Mapping[str, NDArray[Any]], *_: Any) -> dict[str, FloatArray]:
    return {"max_over_avg_degree": log2(a["max_degree"] / a["avg_degree"]),
            "std_over_avg_degree": np.asarray(a["std_degree"] / a["avg_degree"])}  # fmt: skip


def _spmm_features(a: Mapping[str, NDArray[Any]], base: Baseline, byte: float, platform: Platform
                   ) -> dict[str, FloatArray]:  # fmt: skip
    dense = np.asarray(a["cols_dense"], dtype=np.float64)
    return _row_spread(a) | {
        "log2_dense_set": log2(a["cols"] * dense * byte), "log2_row_work": log2(a["row_mean"] * dense),
        "tail_rows": tail(a["rows"] / 8.0, platform.value("compute_units")),
        **cuts.dense_columns(dense, np.asarray(a["row_mean"]), np.asarray(a["row_max"])),
    }  # fmt: skip


def _batched_features(a: Mapping[str, NDArray[Any]], base: Baseline, byte: float, platform: Platform
                      ) -> dict[str, FloatArray]:  # fmt: skip
    return _gemm_features(a, base, byte, platform) | cuts.batched(a, base, byte, platform)


def _conv_features(a: Mapping[str, NDArray[Any]], base: Baseline, byte: float, platform: Platform
                   ) -> dict[str, FloatArray]:  # fmt: skip
    return _gemm_features(a, base, byte, platform) | cuts.convolution(a, base, byte, platform)


def _row_spread(a: Mapping[str, NDArray[Any]], *_: Any) -> dict[str, FloatArray]:
    mean = np.maximum(np.asarray(a["row_mean"], dtype=np.float64), 1e-3)
    return {
        "row_std_over_mean": np.asarray(a["row_std"]) / mean,
        "row_max_over_mean": log2(np.asarray(a["row_max"]) / mean),
        "distance_over_cols": log2(np.asarray(a["mean_col_distance"]) / np.asarray(a["cols"])),
    }


def _frontier(a: Mapping[str, NDArray[Any]], *_: Any) -> dict[str, FloatArray]:
    levels = np.asarray(a["levels"], dtype=np.float64)
    return _graph(a) | {
        "log2_nodes_per_level": log2(a["nodes"] / levels), "log2_edges_per_level": log2(a["edges"] / levels),
    }  # fmt: skip


EXTRA = {
    "gemm": _product_features, "bmm": _batched_features, "conv2d": _conv_features, "fft": cuts.transform,
    "gemv": cuts.matrix_vector, "bicg": cuts.matrix_vector, "segmented_scan": cuts.segment_length, "pagerank": _graph,
    "spmm_csr": _spmm_features,
    "spmv_csr": _row_spread, "spmv_coo": _row_spread, "spmv_ell": _row_spread, "spmv_sellp": _row_spread,
    "spmv_hybrid": _row_spread, "sptrsv": _row_spread, "bfs": _frontier, "attention": cuts.attention,
    "softmax": cuts.normalised_rows, "layernorm": cuts.normalised_rows, "gather": cuts.table_density,
    "scatter_add": cuts.table_density, "histogram": cuts.bins, "hash_probe": cuts.probes,
    "backprop": cuts.weighted_sums, "stencil_7pt": cuts.grid_blocks("nx", "ny", 32.0, 8.0, "nz"),
    "stencil2d": cuts.grid_blocks("cols", "rows", 64.0, 16.0), "hotspot": cuts.grid_blocks("cols", "rows", 16.0, 16.0),
    "srad": cuts.grid_blocks("cols", "rows", 16.0, 16.0), "transpose": cuts.grid_blocks("n", "m", 32.0, 32.0),
    **dict.fromkeys(("vector_copy", "vector_scale", "vector_add", "triad", "relu"), cuts.stream),
    "stencil_5pt": cuts.grid_blocks("width", "height", 32.0, 8.0),
}  # fmt: skip


def family_rows(family: Family, a: Mapping[str, NDArray[Any]], base: Baseline, precision: str, cache: str,
                platform: Platform, implementation: NDArray[Any]) -> Rows:  # fmt: skip
    """Feature rows of n configurations of one family at one precision, cache state and platform.

    a: validated arguments of shape (n,). Unknown optional parameters are NaN, which the trees take as missing.
    """
    byte = element_byte(precision)
    n = base.time_s.size
    with np.errstate(invalid="ignore", divide="ignore"):
        columns = _sizes(family, a, byte)
        columns |= EXTRA.get(family.name, lambda *_: {})(a, base, byte, platform)
        columns |= common_columns(base, platform)
    columns["log2_flop"] = log2(base.work.flop)
    columns["log2_byte"] = log2(base.work.compulsory_byte)
    columns["log2_reread"] = log2(base.work.reread_byte)
    columns["log2_working_set"] = log2(base.work.working_set_byte)
    columns["element_byte"] = np.full(n, byte)
    columns["cold"] = np.full(n, CACHE_CODE[cache])
    texts = {p.name: np.asarray([str(v) for v in a[p.name]]) for p in family.params if p.kind == "text"}
    categories = {"precision": np.full(n, precision), "implementation": implementation.astype(str), **texts}
    return Rows(tuple(columns), np.column_stack([np.broadcast_to(c, (n,)) for c in columns.values()]), categories)


def common_columns(base: Baseline, platform: Platform) -> dict[str, FloatArray]:
    """Dimensionless columns that mean the same for every family and platform; each of shape (n,)."""
    work, time_s = base.work, base.time_s
    slots = platform.value("compute_units")
    cache_size = max(platform.get("llc_size") or 0.0, platform.get("l2_size") or 0.0, 1.0)
    intensity = work.flop / np.maximum(work.compulsory_byte, 1.0)
    columns = {f"share_{name}": base.terms.get(name, np.zeros_like(time_s)) / time_s for name in SHARES}
    columns |= {
        "log2_base_over_naive": log2(time_s / np.maximum(base.naive_s, 1e-12)),
        "log2_base_over_bound": log2(time_s / np.maximum(base.bound.seconds, 1e-12)),
        "log2_intensity": log2(intensity),
        "log2_set_over_cache": log2(work.working_set_byte / cache_size),
        "log2_threads_per_unit": log2(work.threads / slots),
        "tail_threads": tail(np.ceil(work.threads / 256.0), slots * 8.0),
        "log2_launches": log2(work.launches),
        "log2_chain": log2(work.chain),
        "log2_reread_ratio": log2((work.reread_byte + 1.0) / np.maximum(work.compulsory_byte, 1.0)),
        "log2_base": log2(time_s),
    }
    return columns


SHARES = ("launch", "compute", "memory", "latency", "tail", "writeback", "sync", "guard")
