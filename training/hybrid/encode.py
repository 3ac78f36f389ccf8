"""Feature rows of several groups made one matrix: same columns in the same order, labels as indicator columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...features.rows import Rows

Floats = NDArray[np.float64]
MOST_LABELS = 64
MISSING = ("", "nan", "None", "<NA>")


@dataclass
class Encoder:
    """Column order and label vocabulary of one family, learned from training rows."""

    names: list[str] = field(default_factory=list)
    labels: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def fit(cls, parts: Sequence[Rows]) -> Encoder:
        names = list(dict.fromkeys(name for rows in parts for name in rows.names))
        labels: dict[str, list[str]] = {}
        for column in dict.fromkeys(name for rows in parts for name in rows.categories):
            seen, counts = np.unique(
                np.concatenate([rows.categories[column].astype(str) for rows in parts if column in rows.categories]),
                return_counts=True,
            )
            order = seen[np.argsort(-counts, kind="stable")][:MOST_LABELS]
            kept = [str(label) for label in order if label not in MISSING]
            if len(order) > 1:
                labels[column] = kept
        return cls(names, labels)

    @property
    def columns(self) -> list[str]:
        return [*self.names, *(f"{column}={label}" for column, known in self.labels.items() for label in known)]

    def matrix(self, rows: Rows) -> Floats:
        """Feature matrix (n, len(columns)); a column the rows lack is NaN, a label never seen is all zeros."""
        n = len(rows.values)
        at = {name: i for i, name in enumerate(rows.names)}
        numeric = [rows.values[:, at[name]] if name in at else np.full(n, np.nan) for name in self.names]
        marks = [
            (rows.categories[column].astype(str) == label).astype(np.float64) if column in rows.categories
            else np.zeros(n)
            for column, known in self.labels.items() for label in known
        ]
        return np.column_stack([*numeric, *marks]) if numeric or marks else np.zeros((n, 0))

    def to_json(self) -> dict[str, Any]:
        return {"names": self.names, "labels": self.labels}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Encoder:
        return cls(list(data["names"]), {k: list(v) for k, v in data["labels"].items()})
