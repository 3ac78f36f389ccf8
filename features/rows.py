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
from .families import COLUMNS
from .numbers import alignment_log2, log2, tail

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


def family_rows(family: Family, a: Mapping[str, NDArray[Any]], base: Baseline, precision: str, cache: str,
                platform: Platform, implementation: NDArray[Any]) -> Rows:
    """Feature rows of n configurations of one family at one precision, cache state and platform.

    a: validated arguments of shape (n,). Unknown optional parameters are NaN, which the trees take as missing.
    """
    byte = element_byte(precision)
    n = base.time_s.size
    with np.errstate(invalid="ignore", divide="ignore"):
        columns = _sizes(family, a, byte)
        if family.name in COLUMNS:
            columns |= COLUMNS[family.name](a, base, byte, platform)
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
