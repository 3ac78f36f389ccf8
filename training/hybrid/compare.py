"""Pure-analytic against hybrid, on rows that trained neither: naive roofline, analytic, nearest-utilisation, hybrid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...analytic.errors import InputError
from ...features.describe import Described, describe
from ..tables.splits import holdout, split_note
from .fit import Progress, fit_model
from .metrics import coverage, relative_half_width, summary
from .model import Model, Predicted
from .nearest import nearest_utilisation_s

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
METHODS = ("naive_roofline", "analytic", "calibrated_analytic", "nearest_utilisation", "hybrid")
ALL = "all"


@dataclass(frozen=True)
class Comparison:
    """Records (one a kernel family and one in total, a platform) and the rows behind them."""

    records: list[dict[str, Any]]
    rows: pd.DataFrame
    """Test rows with predicted_s, lower_s, upper_s and each method's time."""
    models: dict[str, Model]
    """The model scored, by platform."""


def _frame_part(frame: pd.DataFrame, keep: NDArray[np.bool_]) -> pd.DataFrame:
    return frame[keep].reset_index(drop=True)


def compare_split(frame: pd.DataFrame, *, fraction: float = 0.2, seed: int = 0, level: float = 0.9,
                  quick: bool = False, progress: Progress | None = None) -> Comparison:
    """Train on four fifths of the groups of each platform, score every method on the fifth that was held out.

    frame: a validated run table with `group`. Baselines see the same training rows as the hybrid. InputError where
    all its groups fall on one side.
    """
    test = holdout(frame["group"], fraction, seed)
    if test.all() or not test.any():
        groups = frame["group"].nunique()
        raise InputError(f"{len(frame)} rows of {groups} group{'s' if groups > 1 else ''} are too few to hold a fifth "
                         "of the groups out and train on the rest; give more, or name a model to score")
    train, held = _frame_part(frame, ~test), _frame_part(frame, test)
    return _compare(train, held, split_note(fraction, seed), None, level, progress, quick)


def compare_model(frame: pd.DataFrame, model: Model, train: pd.DataFrame | None = None, *, level: float = 0.9,
                  split: str | None = None) -> Comparison:
    """Score a trained model on a table. Rows of groups it was trained on must be left out by the caller.

    train: the rows the nearest-utilisation baseline may look at; without them it is not reported.
    """
    return _compare(train, frame, split or f"rows that model {model.name} was not trained on", model, level, None)


def _compare(train: pd.DataFrame | None, test: pd.DataFrame, split: str, model: Model | None, level: float,
             progress: Progress | None, quick: bool = False) -> Comparison:
    import pandas as pd

    records: list[dict[str, Any]] = []
    tables: list[pd.DataFrame] = []
    models: dict[str, Model] = {}
    for platform in sorted(set(test["platform"].astype(str))):
        here = _frame_part(test, np.asarray(test["platform"].astype(str) == platform))
        seen = None if train is None else _frame_part(train, np.asarray(train["platform"].astype(str) == platform))
        used = model
        if used is None:
            assert seen is not None
            used = fit_model(seen, name="compare", quick=quick, progress=progress)
        models[platform] = used
        table = _methods(here, seen, used, level)
        tables.append(table)
        records += _records(table, platform, split, used.name, level)
    return Comparison(records, pd.concat(tables, ignore_index=True) if tables else test, models)


def _methods(test: pd.DataFrame, train: pd.DataFrame | None, model: Model, level: float) -> pd.DataFrame:
    described: Described = describe(test)
    predicted: Predicted = model.predict(described, level)
    nearest = np.full(len(test), np.nan)
    if train is not None and len(train):
        nearest = nearest_utilisation_s(describe(train), train["time_s"], described)
    table = test.assign(
        naive_roofline=described.naive_s, analytic=described.baseline_s, calibrated_analytic=predicted.calibrated_s,
        nearest_utilisation=nearest, hybrid=predicted.predicted_s, predicted_s=predicted.predicted_s,
        lower_s=predicted.lower_s, upper_s=predicted.upper_s, in_domain=predicted.in_domain, note=predicted.note,
    )
    return table[np.isfinite(predicted.predicted_s)].reset_index(drop=True)


def _records(table: pd.DataFrame, platform: str, split: str, model: str, level: float) -> list[dict[str, Any]]:
    kernels = [ALL, *sorted(set(table["kernel"]))]
    return [
        record(table if kernel == ALL else table[table["kernel"] == kernel], platform, kernel, split, model, level)
        for kernel in kernels
    ]


def record(rows: pd.DataFrame, platform: str, kernel: str, split: str, model: str, level: float) -> dict[str, Any]:
    """One line of the comparison over the given test rows."""
    out: dict[str, Any] = {"platform": platform, "kernel": kernel, "n": len(rows)}
    for method in METHODS:
        out[method] = {k: _number(v) for k, v in summary(rows[method], rows["time_s"]).items()}
    width = relative_half_width(rows["lower_s"], rows["upper_s"], rows["hybrid"])
    out["hybrid"] |= {
        "coverage": _number(coverage(rows["lower_s"], rows["upper_s"], rows["time_s"])),
        "level": level,
        "median_relative_width": _number(float(np.median(2.0 * width)) if len(width) else np.nan),
    }
    return out | {"split": split, "model": model}


def _number(value: float) -> float | None:
    """JSON has no NaN: what could not be computed is null."""
    return float(value) if np.isfinite(value) else None
