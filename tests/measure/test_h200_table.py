"""The committed H200 table is a whole measured-runs table, and nothing in it beats the chip."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

RUNS = Path(str(resources.files("kernelcast.configs"))) / "runs"
# dense matrix peaks of the datasheet, operations a second
PEAK = {
    "fp64": 67e12,
    "fp32": 67e12,
    "tf32": 495e12,
    "fp16": 990e12,
    "bf16": 990e12,
    "fp8": 1979e12,
    "int8": 1979e12,
}
HBM_BYTE_PER_S = 4.8e12  # datasheet
COLUMNS = {
    "platform", "kernel", "precision", "params", "time_s", "statistic", "spread_s", "n_reps", "cache", "launches",
    "scope", "implementation", "group", "source", "license", "time_min_s",
}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return pd.read_parquet(RUNS / "h200.parquet")


def numbers(frame: pd.DataFrame, *names: str) -> list[np.ndarray]:
    params = [json.loads(p) for p in frame["params"]]
    return [np.array([p[name] for p in params], float) for name in names]


def test_columns_and_values(table: pd.DataFrame) -> None:
    assert set(table.columns) == COLUMNS
    assert len(table) >= 15_000
    assert table["kernel"].nunique() >= 40
    assert np.isfinite(table["time_s"]).all()
    assert (table["time_s"] > 0).all()
    assert (table["time_min_s"] <= table["time_s"] * 1.0001).all()
    assert set(table["platform"]) == {"h200"}
    assert not table.isna().any().any()


def test_every_configuration_has_both_cache_states(table: pd.DataFrame) -> None:
    counts = table["cache"].value_counts()
    assert counts["warm"] == counts["cold"] == len(table) // 2


def test_cold_is_not_faster_than_warm_on_the_whole(table: pd.DataFrame) -> None:
    by_family = table.pivot_table(index="kernel", columns="cache", values="time_s", aggfunc="median")
    assert (by_family["cold"] > 0.97 * by_family["warm"]).all()


def test_no_product_beats_the_matrix_units(table: pd.DataFrame) -> None:
    products = table[table["kernel"] == "gemm"]
    m, n, k = numbers(products, "m", "n", "k")
    rate = 2 * m * n * k / products["time_s"].to_numpy()
    assert (rate < products["precision"].map(PEAK).to_numpy()).all()


def test_no_cold_stream_beats_the_memory(table: pd.DataFrame) -> None:
    streams = table[(table["kernel"] == "triad") & (table["precision"] == "fp32") & (table["cache"] == "cold")]
    (n,) = numbers(streams, "n")
    rate = 3 * 4 * n / streams["time_s"].to_numpy()  # two arrays read, one written
    assert (rate[n > 1e8] < HBM_BYTE_PER_S).all()
    assert rate.max() > 0.85 * HBM_BYTE_PER_S


def test_meta_describes_the_table(table: pd.DataFrame) -> None:
    meta = json.loads((RUNS / "h200.meta.json").read_text())
    assert meta["rows"] == len(table)
    assert meta["families"] == table["kernel"].value_counts().sort_index().to_dict()
    assert meta["gpu"] == "NVIDIA H200"
    assert meta["failed_kinds"] == {}
    assert meta["lost_records"] == 0


@pytest.mark.parametrize("name", ["h200-more", "h200-kinds"])
def test_a_further_table_repeats_no_configuration_and_has_its_noise_floor(table: pd.DataFrame, name: str) -> None:
    more = pd.read_parquet(RUNS / f"{name}.parquet")
    key = ["kernel", "implementation", "precision", "params", "cache", "group"]
    assert set(more.columns) == COLUMNS | {"noise_floor_s"}
    assert not more.isna().any().any()
    assert set(more["kernel"]) < set(table["kernel"])
    assert not more.duplicated(key).any()
    assert more.merge(table, on=key).empty
    assert (more["noise_floor_s"] >= more["spread_s"]).all()
    meta = json.loads((RUNS / f"{name}.meta.json").read_text())
    assert (meta["rows"], meta["suite"], meta["failed_kinds"]) == (len(more), name, {})
    assert meta["families"] == more["kernel"].value_counts().sort_index().to_dict()


def test_the_published_noise_is_that_of_the_repeats(table: pd.DataFrame) -> None:
    key = ["kernel", "implementation", "precision", "params", "cache", "group"]
    first, second = (pd.read_parquet(RUNS / f"{name}.parquet") for name in ("h200-repeat", "h200-repeat-2"))
    both = first.merge(table, on=key, suffixes=("", "_table")).merge(second, on=key, suffixes=("", "_second"))
    again = np.abs(np.log(both["time_s"] / both["time_s_table"]))
    beside = np.abs(np.log(both["time_s_second"] / both["time_s"]))
    figures = [f"{100 * v:.1f} %" for x in (again, beside) for v in (x.median(), x.mean(), x.quantile(0.9))]
    page = (Path(__file__).parents[2] / "docs" / "measuring.md").read_text()
    (line,) = [text for text in page.splitlines() if text.startswith("| all | 1,198 |")]
    assert len(both) == 1198
    cells = [c.strip() for c in line.strip("|").split("|")]
    assert [cells[i] for i in (2, 3, 4, 6, 7, 8)] == figures
