"""A GPU the model never saw, and what 5 to 200 of its runs buy: the learning curve of `adapt`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...features.describe import describe
from ..adapt import adapt_model
from ..model import Model
from ..nearest import nearest_utilisation_s
from ..transfer import fit_transfer
from . import sources
from .score import Parts, predict_rows, record

if TYPE_CHECKING:
    import pandas as pd

CURVE = (5, 10, 20, 50, 100, 200)
DRAWS = 3
"""Random choices of the few runs at every count; the report gives the median of their errors."""


@dataclass(frozen=True)
class NewGpu:
    """Source rows (other GPUs), a pool the few runs are drawn from, and test rows: no group of test in either."""

    name: str
    title: str
    definition: str
    platform: str
    build: Callable[[dict[str, int | None]], tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]]
    class_of: tuple[str, ...] = ("implementation", "precision")


def _bf16(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["precision"] == "bf16"].reset_index(drop=True)


def _nvidia(target: str, others: Sequence[str]) -> Callable[..., tuple[Any, Any, Any]]:
    def build(limits: dict[str, int | None]) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        import pandas as pd

        share = None if limits["train"] is None else limits["train"] // len(others)
        parts = []
        for other in others:
            frame = _bf16(sources.nvidia(other, "gemm"))
            parts.append(sources.sample(frame[~sources.site_test(frame)], share))
        own = _bf16(sources.nvidia(target, "gemm"))
        test = sources.site_test(own)
        return (pd.concat(parts, ignore_index=True), sources.sample(own[~test], None),
                sources.sample(own[test], limits["test"]))  # fmt: skip

    return build


def _converted(corpus: str, family: str, target: str, others: Sequence[str]) -> Callable[..., tuple[Any, Any, Any]]:
    def build(limits: dict[str, int | None]) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        import pandas as pd

        own = sources.converted(corpus, target, family)
        test = sources.hash_test(own)
        seen = set(own.loc[test, "group"])
        rows = pd.concat([sources.converted(corpus, other, family) for other in others], ignore_index=True)
        rows = rows[~rows["group"].isin(seen)]
        return (sources.sample(rows, limits["train"]), sources.sample(own[~test], None),
                sources.sample(own[test], limits["test"]))  # fmt: skip

    return build


_WHERE = "no row of the target in training; the few runs come from sites outside the test; test sites unseen everywhere"
NEW_GPUS: dict[str, NewGpu] = {
    case.name: case
    for case in (
        NewGpu("gemm-b200-new", "B200 GEMM bf16: a GPU never seen, shapes unseen too",
               f"sources H200, H100, A100; {_WHERE}", "b200", _nvidia("b200", ("h200", "h100-sxm", "a100-sxm"))),
        NewGpu("gemm-h200-new", "H200 GEMM bf16: a GPU never seen, shapes unseen too", f"sources H100, A100; {_WHERE}",
               "h200", _nvidia("h200", ("h100-sxm", "a100-sxm"))),
        NewGpu("gemm-mi300x-new", "MI300X GEMM from MI355X", f"source MI355X; {_WHERE}",
               "mi300x", _converted("aiter", "gemm", "mi300x", ("mi355x",))),
        NewGpu("spmv-mi250x-new", "MI250X SpMV CSR from A100", f"source A100; {_WHERE} (groups are collections)",
               "mi250x-gcd", _converted("ginkgo", "spmv_csr", "mi250x-gcd", ("a100-sxm",)), ("implementation",)),
    )
}  # fmt: skip


def source_model(rows: pd.DataFrame) -> Model:
    """What is known before the first run: the model across platforms, or the single source platform's own model."""
    from ..train import fit_model

    return fit_transfer(rows) if rows["platform"].nunique() > 1 else fit_model(rows, name="source")


def score_new_gpu(case: NewGpu, limits: dict[str, int | None], level: float, *, curve: Sequence[int] = CURVE,
                  draws: int = DRAWS) -> dict[str, Any]:  # fmt: skip
    """The record without any run of the target, and for each count the median error over draws of so many runs."""
    start = time.perf_counter()
    rows, pool, test = case.build(limits)
    model = source_model(rows)
    scored = predict_rows(rows, test, level, model)
    out = record(scored, Parts(rows, test, class_of=case.class_of), level)
    measured, asked = np.asarray(test["time_s"], dtype=float), describe(test)
    points = []
    for count in (c for c in curve if c <= len(pool)):
        lines = []
        for draw in range(draws):
            few = sources.sample(pool, count, seed=draw + 1)
            found = adapt_model(few, case.platform, model, source_rows=rows, seed=draw).predict(asked, level)
            near = nearest_utilisation_s(describe(few), few["time_s"], asked)
            lines.append(_point(found.predicted_s, found.lower_s, found.upper_s, near, measured))
        points.append({"runs": count, "draws": draws, **{k: float(np.median([x[k] for x in lines])) for k in lines[0]}})
    return out | {"curve": points, "seconds": time.perf_counter() - start}


def _point(predicted: Any, lower: Any, upper: Any, near: Any, measured: Any) -> dict[str, float]:
    from ..metrics import coverage, relative_half_width, summary

    ok = np.isfinite(predicted)
    width = relative_half_width(lower[ok], upper[ok], predicted[ok])
    return {
        **summary(predicted[ok], measured[ok]),
        "nearest_mape": summary(near[ok], measured[ok])["mape"],
        "coverage": coverage(lower[ok], upper[ok], measured[ok]),
        "half_width": float(np.median(width)),
    }
