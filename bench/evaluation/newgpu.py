"""A GPU the model never saw, and what 5 to 200 of its runs buy: the learning curve of `adapt`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...features.describe import describe
from ...training.adapting.adapt import SOURCE_ROWS
from ...training.adapting.transfer import across_platforms, fit_across, fit_transfer
from ...training.hybrid.bands import Bands
from ...training.hybrid.metrics import summary
from ...training.hybrid.model import Model
from ...training.hybrid.nearest import nearest_utilisation_s
from ..adapt_curve import SETTING_COUNTS, Setting, adapt_curve, settings_of
from . import sources
from .score import Parts, predict_rows, record

if TYPE_CHECKING:
    import pandas as pd

DRAWS = 3
"""Random choices of the few runs at every count, or one for each split; the report gives the median of their errors."""


@dataclass(frozen=True)
class NewGpu:
    """A named setting of `adapt_curve` under a title; `class_of` as in Parts."""

    name: str
    title: str
    setting: str
    class_of: tuple[str, ...] = ("implementation", "precision")

    @property
    def definition(self) -> str:
        """What was held out, in words."""
        return (f"{self.setting}: no row of the target in training; the few runs come from groups outside the test, "
                "test groups are unseen on every platform")


NEW_GPUS: dict[str, NewGpu] = {
    case.name: case
    for case in (
        NewGpu("gemm-b200-new", "B200 GEMM bf16: a GPU never seen, shapes too", "b200 gemm bf16 from h100, h200"),
        NewGpu("gemm-h200-new", "H200 GEMM bf16: a GPU never seen, shapes too", "h200 gemm bf16 from h100, a100"),
        NewGpu("gemm-mi300x-new", "MI300X GEMM from MI355X", "mi300x gemm fp8 from mi355x"),
        NewGpu("spmv-mi250x-new", "MI250X SpMV CSR from A100", "mi250x spmv_csr (Ginkgo) from a100"),
    )
}


def source_model(rows: pd.DataFrame) -> Model:
    """What is known before the first run: the model across platforms.

    With a single source platform no error on an unseen GPU can be measured, so its bands are unbounded.
    """
    if rows["platform"].nunique() > 1:
        return fit_transfer(rows)
    families = {family: fit_across(part) for family, part in across_platforms(rows, most=SOURCE_ROWS).items()}
    return Model("", "source", families, None, {"": 0.0}, Bands(np.zeros(0)), np.zeros(0), {"unseen_platform": True})


def score_new_gpu(case: NewGpu, limits: dict[str, int | None], level: float) -> dict[str, Any]:
    """The record without any run of the target (first split), and the learning curve over all splits of the setting."""
    start = time.perf_counter()
    splits = settings_of(case.setting, most=limits["test"] or 1_000_000)
    first = splits[0]
    assert first.source_rows is not None
    rows = sources.sample(first.source_rows, limits["train"])
    scored = predict_rows(rows, first.test, level, source_model(rows))
    out = record(scored, Parts(rows, first.test, class_of=case.class_of), level)
    curve = adapt_curve(splits, SETTING_COUNTS[case.setting], draws=DRAWS, level=level)
    for point in curve:
        point["nearest_mape"] = _nearest(first, int(point["runs"]))
    return out | {"curve": curve, "seconds": time.perf_counter() - start}


def _nearest(setting: Setting, count: int) -> float:
    """Mean error [%] of the nearest-utilisation baseline with the same number of runs, median over draws."""
    if count == 0:
        return float("nan")
    asked, measured = describe(setting.test), setting.test["time_s"]
    found = []
    for draw in range(DRAWS):
        few = setting.pool.sample(min(count, len(setting.pool)), random_state=draw).reset_index(drop=True)
        found.append(summary(nearest_utilisation_s(describe(few), few["time_s"], asked), measured)["mape"])
    return float(np.median(found))
