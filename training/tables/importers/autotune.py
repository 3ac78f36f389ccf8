"""Two auto-tuned kernels in every valid configuration, with the repeats of each: what repeat noise looks like."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from ..schema import COLUMNS
from .common import finished, keep_platforms, read_converted, rename_implementations, sample_rows

if TYPE_CHECKING:
    import pandas as pd

NAME = "autotune"


def short_implementation(raw: str) -> str:
    """`kernel_tuner_hip` or `kernel_tuner_cuda`."""
    return "kernel_tuner_" + ("hip" if "(HIP" in raw else "cuda")


def load(
    data_dir: str | Path | None = None,
    max_rows: int | None = None,
    platforms: Collection[str] | None = None,
    *,
    seed: int = 0,
    with_repeats: bool = False,
) -> pd.DataFrame:
    """The run table; `with_repeats` adds times_s, the 32 repeats of a row in order (large)."""
    columns = [*COLUMNS, "time_min_s", *(["times_s"] if with_repeats else [])]
    frame = sample_rows(keep_platforms(read_converted(NAME, data_dir, columns), platforms), max_rows, seed)
    return finished(rename_implementations(frame, short_implementation), NAME)
