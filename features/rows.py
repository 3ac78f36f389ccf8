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

CACHE_CODE = {"cold": 1.0, "warm": 0.0, "unknown": 0.0}
_TINY = 1e-30


@dataclass(frozen=True)
class Rows:
    """n configurations of one family as numbers: `values` (n, len(names)), `categories` name → labels of shape (n,)."""

    names: tuple[str, ...]
    values: FloatArray
    categories: dict[str, NDArray[Any]]


def log2(x: Any) -> FloatArray:
    """log₂, with zero taken as a number far below anything that occurs."""
    return np.asarray(np.log2(np.maximum(np.asarray(x, dtype=np.float64), _TINY)))


def alignment_log2(size: FloatArray, byte: float, cap: float = 7.0) -> FloatArray:
    """log₂ of the largest power of two that divides size · byte, at most `cap` (2⁷ B: a cache line)."""
    whole = np.where(np.isfinite(size), np.maximum(np.round(size * byte), 1.0), 1.0).astype(np.int64)
    lowest = (whole & -whole).astype(np.float64)
    return np.asarray(np.minimum(np.log2(lowest), cap))


def padding_log2(size: FloatArray, tile: float) -> FloatArray:
    """log₂ of padded over given size for a tile edge: 0 where it divides, 1 where half of the work is padding."""
    return np.asarray(np.log2(np.ceil(size / tile) * tile / size))


def tail(units: FloatArray, slots: float) -> FloatArray:
    """How much longer a quantised number of waves takes than a smooth one: ceil(u/s) ÷ (u/s), as log₂, at most 6."""
    waves = np.maximum(units / slots, _TINY)
    return np.asarray(np.minimum(np.log2(np.ceil(waves) / waves), 6.0))


def rough_part_log2(n: FloatArray) -> FloatArray:
    """log₂ of what remains of n after dividing out 2, 3, 5 and 7: transforms of such lengths take another algorithm."""
    rest = np.round(n).astype(np.int64)
    for prime in (2, 3, 5, 7):
        for _ in range(40):
            divides = (rest % prime == 0) & (rest > 1)
            if not divides.any():
                break
            rest = np.where(divides, rest // prime, rest)
    return log2(rest)


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


def largest_prime_log2(n: FloatArray) -> FloatArray:
    """log₂ of the largest prime factor of n, found among divisors below 4096: what picks a transform's radix."""
    rest = np.round(n).astype(np.int64)
    largest = np.ones(n.shape)
    for divisor in (2, *range(3, 4096, 2)):
        if divisor * divisor > rest.max(initial=1):
            break
        while (divides := (rest % divisor == 0) & (rest > 1)).any():
            rest = np.where(divides, rest // divisor, rest)
            largest = np.where(divides, float(divisor), largest)
    return log2(np.maximum(largest, rest))


def exponent_of(n: FloatArray, prime: int) -> FloatArray:
    """How often `prime` divides n."""
    rest, count = np.round(n).astype(np.int64), np.zeros(n.shape)
    for _ in range(40):
        divides = (rest % prime == 0) & (rest > 0)
        if not divides.any():
            break
        rest, count = np.where(divides, rest // prime, rest), count + divides
    return count


def _fft_features(a: Mapping[str, NDArray[Any]], *_: Any) -> dict[str, FloatArray]:
    n = np.asarray(a["n"], dtype=np.float64)
    powers = {f"power_{prime}": exponent_of(n, prime) for prime in (2, 3, 5, 7)}
    factors = {"rough_part": rough_part_log2(n), "largest_prime": largest_prime_log2(n)}
    return {**factors, "log2_points": log2(n * a["batch"]), **powers}


def _matrix_vector(a: Mapping[str, NDArray[Any]], base: Baseline, byte: float, platform: Platform
                   ) -> dict[str, FloatArray]:  # fmt: skip
    slots = platform.value("compute_units")
    return {"log2_n_over_m": log2(a["n"] / a["m"]), "tail_rows": tail(a["m"], slots),
            "tail_rows_4": tail(a["m"] / 4.0, slots),
            "align_row": alignment_log2(np.asarray(a["n"], dtype=np.float64), byte)}  # fmt: skip


def _segment_length(a: Mapping[str, NDArray[Any]], base: Baseline, byte: float, platform: Platform
                    ) -> dict[str, FloatArray]:  # fmt: skip
    slots = platform.value("compute_units")
    return {"log2_length": log2(a["n"] / a["segments"]), "tail_segments": tail(a["segments"] / 64.0, slots),
            "log2_segments_per_unit": log2(a["segments"] / slots)}  # fmt: skip


def _graph(a: Mapping[str, NDArray[Any]], *_: Any) -> dict[str, FloatArray]:
    return {"max_over_avg_degree": log2(a["max_degree"] / a["avg_degree"]),
            "std_over_avg_degree": np.asarray(a["std_degree"] / a["avg_degree"])}  # fmt: skip


def _spmm_features(a: Mapping[str, NDArray[Any]], base: Baseline, byte: float, platform: Platform
                   ) -> dict[str, FloatArray]:  # fmt: skip
    dense = np.asarray(a["cols_dense"], dtype=np.float64)
    return _row_spread(a) | {
        "log2_dense_set": log2(a["cols"] * dense * byte), "log2_row_work": log2(a["row_mean"] * dense),
        "tail_rows": tail(a["rows"] / 8.0, platform.value("compute_units")),
    }  # fmt: skip


def _conv_features(a: Mapping[str, NDArray[Any]], base: Baseline, byte: float, platform: Platform
                   ) -> dict[str, FloatArray]:  # fmt: skip
    cin, cout = (np.asarray(a[name], dtype=np.float64) for name in ("cin", "cout"))
    return _gemm_features(a, base, byte, platform) | {
        "align_cin": alignment_log2(cin, byte), "align_cout": alignment_log2(cout, byte),
        "log2_pixels": log2(a["height"] * a["width"]),
        "log2_image_set": log2(a["batch"] * cin * a["height"] * a["width"]),
        "log2_window": log2(cin * a["kernel_h"] * a["kernel_w"]), "odd_pixels": np.asarray(a["height"] % 4.0),
    }  # fmt: skip


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


def _attention_features(a: Mapping[str, NDArray[Any]], base: Baseline, byte: float, platform: Platform
                        ) -> dict[str, FloatArray]:  # fmt: skip
    blocks = a["batch"] * a["heads"] * np.ceil(a["q_len"] / 128.0)
    slots = platform.value("compute_units")
    return {
        "log2_blocks": log2(blocks / slots), "tail_blocks": tail(blocks, slots),
        "tail_blocks_2": tail(blocks, 2.0 * slots), "log2_group": log2(a["heads"] / a["kv_heads"]),
        "log2_kv_over_q": log2(a["kv_len"] / a["q_len"]), "log2_bh": log2(a["batch"] * a["heads"]),
        "log2_batch_kv_heads": log2(a["batch"] * a["kv_heads"]),
    }  # fmt: skip


def _row_blocks(a: Mapping[str, NDArray[Any]], base: Baseline, byte: float, platform: Platform
                ) -> dict[str, FloatArray]:  # fmt: skip
    slots = platform.value("compute_units")
    return {"log2_rows_per_unit": log2(a["rows"] / slots), "tail_rows": tail(a["rows"], slots)}


def _table_density(a: Mapping[str, NDArray[Any]], base: Baseline, *_: Any) -> dict[str, FloatArray]:
    table = a["table"] if "table" in a else a["bins"]
    return {"log2_draws_per_entry": log2(a["n"] / table)}


EXTRA = {
    "gemm": _gemm_features, "bmm": _gemm_features, "conv2d": _conv_features, "fft": _fft_features,
    "gemv": _matrix_vector, "bicg": _matrix_vector, "segmented_scan": _segment_length, "pagerank": _graph,
    "spmm_csr": _spmm_features,
    "spmv_csr": _row_spread, "spmv_coo": _row_spread, "spmv_ell": _row_spread, "spmv_sellp": _row_spread,
    "spmv_hybrid": _row_spread, "sptrsv": _row_spread, "bfs": _frontier, "attention": _attention_features,
    "softmax": _row_blocks, "layernorm": _row_blocks, "gather": _table_density, "scatter_add": _table_density,
    "histogram": _table_density,
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
