"""One split scored: train on one part, predict the other, every method on the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...features.describe import describe
from ...training.hybrid.fit import fit_model
from ...training.hybrid.metrics import summary
from ...training.hybrid.model import Model
from ...training.hybrid.nearest import nearest_utilisation_s
from .checks import band_check

if TYPE_CHECKING:
    import pandas as pd

METHODS = {
    "naive_roofline": "naive roofline", "calibrated_analytic": "calibrated analytic",
    "nearest_utilisation": "nearest utilisation, k = 2", "hybrid": "hybrid",
}
FEWEST_FLAGGED = 20
Mask = Callable[["pd.DataFrame"], NDArray[np.bool_]]


@dataclass(frozen=True)
class Parts:
    """The two sides of a split, and rows of test conditions worth a line of their own."""

    train: pd.DataFrame
    test: pd.DataFrame
    subsets: Mapping[str, Mask] = field(default_factory=dict)
    class_of: tuple[str, ...] = ("kernel",)
    """Columns whose values together name the class a row is reported under."""
    fit: Callable[[pd.DataFrame], Model] | None = None
    """How the training rows become a model; None trains as anyone would (`fit_model`)."""


def classes_of(rows: pd.DataFrame, columns: tuple[str, ...]) -> NDArray[Any]:
    """Class label of each row."""
    return np.asarray(rows[list(columns)].astype(str).agg(" ".join, axis=1), dtype=object)


def predict_rows(train: pd.DataFrame, test: pd.DataFrame, level: float, model: Model | None = None) -> pd.DataFrame:
    """The test rows with a column for each method, the band, the domain flag and `fell_back` (no correction in use)."""
    seen, asked = describe(train), describe(test)
    model = model or fit_model(train, seen, name="evaluation")
    predicted = model.predict(asked, level)
    rows = test.assign(
        naive_roofline=asked.naive_s, analytic=asked.baseline_s, calibrated_analytic=predicted.calibrated_s,
        nearest_utilisation=nearest_utilisation_s(seen, train["time_s"], asked), hybrid=predicted.predicted_s,
        lower_s=predicted.lower_s, upper_s=predicted.upper_s, in_domain=predicted.in_domain,
        fell_back=np.isclose(predicted.predicted_s, predicted.calibrated_s, rtol=1e-9, atol=0.0),
    )
    return rows[np.isfinite(predicted.predicted_s)].reset_index(drop=True)


def errors(rows: pd.DataFrame, methods: Mapping[str, str] = METHODS) -> dict[str, dict[str, float]]:
    """{method: {mape, median_ape, p90_ape}} in percent."""
    return {name: summary(rows[name], rows["time_s"]) for name in methods if name in rows}


def score(folds: Sequence[Parts], level: float) -> dict[str, Any]:
    """The record of a split: sizes, errors of every method, by class and subset, bands, fall-backs, domain flag.

    folds: one split, or several whose test rows are pooled; sizes of the training side are those of the first.
    """
    import pandas as pd

    start = time.perf_counter()
    rows = []
    for parts in folds:
        model = None if parts.fit is None else parts.fit(parts.train)
        rows.append(predict_rows(parts.train, parts.test, level, model))
    whole = folds[0]
    if len(folds) > 1:
        whole = replace(whole, test=pd.concat([parts.test for parts in folds], ignore_index=True))
    found = record(pd.concat(rows, ignore_index=True), whole, level)
    return found | {"folds": len(folds), "seconds": time.perf_counter() - start}


def record(rows: pd.DataFrame, parts: Parts, level: float) -> dict[str, Any]:
    """The record of scored rows."""
    classes = classes_of(rows, parts.class_of)
    out: dict[str, Any] = {
        "n_train": len(parts.train), "n_test": len(rows), "n_refused": len(parts.test) - len(rows),
        "groups_train": int(parts.train["group"].nunique()), "groups_test": int(parts.test["group"].nunique()),
        "methods": errors(rows),
        "classes": [{"label": str(c), "n": int(np.sum(classes == c)), "methods": errors(rows[classes == c])}
                    for c in np.unique(classes.astype(str))],
        "subsets": [_subset(name, rows[mask(rows)]) for name, mask in parts.subsets.items() if mask(rows).any()],
        "fell_back": sorted(str(k) for k, kept in rows.groupby("kernel")["fell_back"].all().items() if kept),
        "bands": band_check(rows, classes, level),
        "domain": _domain(rows),
    }
    out["subset_bands"] = {
        name: band_check(rows[mask(rows)], classes[mask(rows)], level)["total"]
        for name, mask in parts.subsets.items()
        if mask(rows).any()
    }
    return out


def _subset(name: str, rows: pd.DataFrame) -> dict[str, Any]:
    return {"label": name, "n": len(rows), "methods": errors(rows)}


def _domain(rows: pd.DataFrame) -> dict[str, Any]:
    """Errors of rows flagged as outside the training domain beside those of the others."""
    flagged = ~np.asarray(rows["in_domain"], dtype=bool)
    line: dict[str, Any] = {"flagged": int(flagged.sum())}
    if flagged.sum() >= FEWEST_FLAGGED and (~flagged).any():
        line |= {"inside": errors(rows[~flagged], {"hybrid": ""})["hybrid"],
                 "outside": errors(rows[flagged], {"hybrid": ""})["hybrid"]}
    return line
