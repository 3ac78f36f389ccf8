"""Which rows a model was scored on without having seen them, so that two models meet on the same held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .promotion import Verdict, paired_better

if TYPE_CHECKING:
    import pandas as pd

    from ..training.hybrid.meta import Record
    from ..training.hybrid.model import Model

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]
FEWEST_SHARED = 10
"""With fewer rows in common no test says anything."""


def _hashes(texts: Any) -> Keys:
    from pandas.util import hash_array

    return np.asarray(hash_array(np.asarray(texts, dtype=object)), dtype=np.uint64)


def row_keys(frame: pd.DataFrame) -> Keys:
    """A 64-bit key of what was run, for each row: platform, kernel, precision, params, implementation, cache."""
    columns = [c for c in ("platform", "kernel", "precision", "params", "implementation", "cache") if c in frame]
    texts = frame[columns].astype(object).fillna("").astype(str).agg("\x1f".join, axis=1)
    return _hashes(texts)


def group_keys(frame: pd.DataFrame) -> Keys:
    """A 64-bit key of each row's split group."""
    return _hashes(frame["group"].astype(str))


@dataclass(frozen=True)
class Duel:
    """Mean absolute relative error [%] of a new model and of the champion on the same n held-out rows.

    `verdict`: paired test of the two, a pair a split group.
    """

    rows: int
    new_mape: float
    champion_mape: float
    verdict: Verdict


def record_of(train: pd.DataFrame, test: pd.DataFrame) -> Record:
    """What a model keeps for later duels: training groups, keys and relative errors of its held-out rows.

    test: comparison rows with `hybrid` and `time_s` from a model that saw none of their groups.
    """
    error = np.abs(np.asarray(test["hybrid"], dtype=np.float64) / np.asarray(test["time_s"], dtype=np.float64) - 1.0)
    return {"groups": np.unique(group_keys(train)), "rows": row_keys(test), "error": error.astype(np.float64)}


def duel(test: pd.DataFrame, champion: Model) -> Duel | None:
    """Compare on the held-out rows of a new model: `test` as in `record_of`. None where too few rows are fair.

    A row counts if the champion did not learn from it: it was in the champion's own held-out part (its error is on
    record), or its group is none of the champion's (its error is computed now).
    """
    from ..features.describe import describe

    error = np.full(len(test), np.nan)
    record = champion.meta.get("record")
    if record is None:
        return None
    known = dict(zip(record["rows"].tolist(), record["error"].tolist(), strict=True))
    keys = row_keys(test)
    error[:] = [known.get(key, np.nan) for key in keys.tolist()]
    unseen = np.isnan(error) & ~np.isin(group_keys(test), record["groups"])
    if unseen.any():
        rows = test[unseen].reset_index(drop=True)
        predicted = champion.predict(describe(rows)).predicted_s
        error[unseen] = np.abs(predicted / np.asarray(rows["time_s"], dtype=np.float64) - 1.0)
    new = np.abs(np.asarray(test["hybrid"], dtype=np.float64) / np.asarray(test["time_s"], dtype=np.float64) - 1.0)
    both = np.isfinite(error) & np.isfinite(new)
    if both.sum() < FEWEST_SHARED:
        return None
    verdict = paired_better(new[both], error[both], np.asarray(test["group"].astype(str))[both])
    return Duel(int(both.sum()), 100.0 * float(new[both].mean()), 100.0 * float(error[both].mean()), verdict)
