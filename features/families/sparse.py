"""Sparse matrices: how uneven their rows are, and what a row costs with several dense columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...analytic.baseline import Baseline
from ...analytic.platform import Platform
from ...analytic.work import FloatArray
from ..grid import Arguments, Columns
from ..numbers import log2, padding_log2, tail


def row_spread(a: Arguments, *_: Any) -> Columns:
    """How uneven the rows are, and how far apart their entries lie."""
    mean = np.maximum(np.asarray(a["row_mean"], dtype=np.float64), 1e-3)
    return {
        "row_std_over_mean": np.asarray(a["row_std"]) / mean,
        "row_max_over_mean": log2(np.asarray(a["row_max"]) / mean),
        "distance_over_cols": log2(np.asarray(a["mean_col_distance"]) / np.asarray(a["cols"])),
    }


def dense_columns(dense: FloatArray, row_mean: FloatArray, row_max: FloatArray) -> Columns:
    """A warp walks a sparse row once for every 32 dense columns: idle lanes, and the longest walk."""
    walks = np.ceil(dense / 32.0)
    return {"pad_dense_32": padding_log2(dense, 32.0), "log2_walks": log2(walks),
            "log2_row_walk": log2(row_mean * walks), "log2_longest_walk": log2(row_max * walks),
            "dense_of_fours": (dense % 4 == 0) * 1.0}


def dense_set(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """The rows of A with the dense columns each of them meets."""
    dense = np.asarray(a["cols_dense"], dtype=np.float64)
    return row_spread(a) | {
        "log2_dense_set": log2(a["cols"] * dense * byte), "log2_row_work": log2(a["row_mean"] * dense),
        "tail_rows": tail(a["rows"] / 8.0, platform.value("compute_units")),
        **dense_columns(dense, np.asarray(a["row_mean"]), np.asarray(a["row_max"])),
    }


COLUMNS = {
    **dict.fromkeys(("spmv_csr", "spmv_coo", "spmv_ell", "spmv_sellp", "spmv_hybrid", "sptrsv"), row_spread),
    "spmm_csr": dense_set,
}
