"""Every family of the shipped H200 champion, asked for measured rows: its mean error is the stored one.

shipped_h200.json holds mean |predicted − measured| ÷ measured [%] of ROWS rows of each family, drawn by hash from the
held-out runs, or from the training runs where the held-out ones have none. Made anew, after a champion was retrained,
by `python tests/training/hybrid/test_shipped.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

FIGURES = Path(__file__).with_name("shipped_h200.json")
ROWS = 12
TABLES = ("h200-holdout", "h200")
TOLERANCE = 0.02
"""Percentage points. Sums of 32-bit numbers differ between machines by less; a column that is lost moves points."""


def asked_rows() -> pd.DataFrame:
    """ROWS rows of every family by a seeded draw, with the table they come from."""
    from kernelcast.configs import folder
    from kernelcast.training.tables.splits import group_draw

    parts: list[pd.DataFrame] = []
    for table in TABLES:
        frame = pd.read_parquet(folder("runs", f"{table}.parquet"))
        frame = frame[~frame["kernel"].isin({name for part in parts for name in part["kernel"].unique()})]
        draw = group_draw(frame["params"], seed=11)
        drawn = frame.iloc[np.argsort(draw, kind="stable")].groupby("kernel", sort=True).head(ROWS)
        parts.append(drawn.assign(table=table))
    return pd.concat(parts, ignore_index=True)


def measure() -> dict[str, dict[str, Any]]:
    """Family → table, rows and mean error [%] of the shipped champion."""
    from kernelcast.configs import folder
    from kernelcast.features.describe import describe
    from kernelcast.registry.store import read_model
    from kernelcast.training.hybrid.metrics import relative_error

    rows = asked_rows()
    model = read_model(folder("champions", "h200"))
    rows = rows[rows["kernel"].isin(model.families)].reset_index(drop=True)
    error = 100.0 * relative_error(model.predict(describe(rows)).predicted_s, rows["time_s"])
    return {str(name): {"table": str(part["table"].iloc[0]), "rows": len(part),
                        "mape": round(float(error[part.index].mean()), 3)}
            for name, part in rows.groupby("kernel", sort=True)}


@pytest.fixture(scope="module")
def measured() -> dict[str, dict[str, Any]]:
    return measure()


def stored() -> dict[str, dict[str, Any]]:
    figures: dict[str, dict[str, Any]] = json.loads(FIGURES.read_text())
    return figures


def test_every_family_of_the_champion_is_asked(measured: dict[str, dict[str, Any]]) -> None:
    from kernelcast.configs import folder
    from kernelcast.registry.store import read_meta

    without_runs = set(read_meta(folder("champions", "h200"))["families"]) - set(measured)
    assert not without_runs
    assert set(stored()) == set(measured)


@pytest.mark.parametrize("family", sorted(stored()) if FIGURES.is_file() else [])
def test_the_error_of_a_shipped_family_is_the_stored_one(measured: dict[str, dict[str, Any]], family: str) -> None:
    then, now = stored()[family], measured[family]
    assert (now["table"], now["rows"]) == (then["table"], then["rows"])
    assert now["mape"] == pytest.approx(then["mape"], abs=TOLERANCE)


if __name__ == "__main__":
    FIGURES.write_text(json.dumps(measure(), indent=1) + "\n")
