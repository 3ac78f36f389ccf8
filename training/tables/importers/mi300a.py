"""Twenty small HIP benchmarks over a size sweep on MI300A (mgpusim's measurement scripts)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from .common import finished, keep_platforms, read_converted, rename_implementations, sample_rows

if TYPE_CHECKING:
    import pandas as pd

NAME = "mi300a"


def short_implementation(raw: str) -> str:
    """`mgpusim` for every row: the family already says which of its benchmarks ran."""
    return raw.partition(" ")[0]


def load(
    data_dir: str | Path | None = None,
    max_rows: int | None = None,
    platforms: Collection[str] | None = None,
    *,
    seed: int = 0,
    use_minimum: bool = True,
    kernels_only: bool = False,
) -> pd.DataFrame:
    """The run table, extra column time_mean_s.

    `use_minimum`: time_s is the fastest repeat, because the mean of many rows holds one outlier of tens of ms.
    `kernels_only`: leave out the families whose timed region also holds copies, and the copies themselves.
    """
    frame = keep_platforms(read_converted(NAME, data_dir), platforms)
    if kernels_only:
        frame = frame[(frame["scope"] == "kernel") & ~frame["kernel"].str.startswith("memcopy")]
    frame = frame.assign(time_mean_s=frame["time_s"])
    if use_minimum:
        frame = frame.assign(time_s=frame["time_min_s"], statistic="min")
    frame = rename_implementations(sample_rows(frame, max_rows, seed), short_implementation)
    return finished(frame, NAME)
