"""Sparse matrix-vector products of about 2,150 SuiteSparse matrices, by Ginkgo, hipSPARSE and cuSPARSE."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from .common import finished, keep_platforms, read_converted, rename_implementations, sample_rows, short_or_refuse

if TYPE_CHECKING:
    import pandas as pd

NAME = "ginkgo"
EXTREME_RATIO = 100.0
"""A vendor product slower than this many times Ginkgo's CSR on the same matrix is extreme (very unlike rows)."""


def short_implementation(raw: str) -> str:
    """`ginkgo_csr`, `ginkgo_csr_classical`, `ginkgo_hybrid_limit_25`, `hipsparse_csr`, `cusparse_csr_generic`, …"""
    return short_or_refuse(NAME, raw, "is none of Ginkgo, hipSPARSE, cuSPARSE")


def load(
    data_dir: str | Path | None = None,
    max_rows: int | None = None,
    platforms: Collection[str] | None = None,
    *,
    seed: int = 0,
    a100_run: Literal["branch", "commit", "both"] = "branch",
    keep_extremes: bool = True,
) -> pd.DataFrame:
    """The run table; `group` is the SuiteSparse collection (its matrices are alike), extra column `matrix`.

    The A100 was measured twice with different libraries and launch floors: one run only, unless `both` is asked for.
    `keep_extremes=False` drops vendor rows slower than EXTREME_RATIO times Ginkgo's CSR on that matrix and platform.
    """
    frame = keep_platforms(read_converted(NAME, data_dir), platforms)
    branch = frame["source"].str.endswith("(branch A100)")
    if a100_run != "both":
        frame = frame[(frame["platform"] != "a100-sxm") | (branch == (a100_run == "branch"))]
    frame = rename_implementations(frame, short_implementation)
    if not keep_extremes:
        frame = frame[~_extreme(frame)]
    frame = sample_rows(frame, max_rows, seed)
    return finished(frame.assign(matrix=frame["group"], group=frame["group"].str.partition("/")[0]), NAME)


def _extreme(frame: pd.DataFrame) -> np.ndarray:
    """Boolean per row; rows without a Ginkgo CSR time to compare with are never extreme."""
    key = frame["platform"].astype(object) + " " + frame["source"].astype(object) + " " + frame["group"].astype(object)
    own = frame["implementation"] == "ginkgo_csr"
    reference = key.map(dict(zip(key[own], frame.loc[own, "time_s"], strict=True))).to_numpy(dtype=np.float64)
    vendor = ~frame["implementation"].str.startswith("ginkgo_").to_numpy()
    return vendor & (frame["time_s"].to_numpy() > EXTREME_RATIO * np.where(np.isnan(reference), np.inf, reference))
