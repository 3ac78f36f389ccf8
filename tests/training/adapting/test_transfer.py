"""The model across platforms: no platform in it, bands from left-out GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from kernelcast.analytic.errors import InputError
from kernelcast.features.describe import describe
from kernelcast.registry.store import model_files, read_model, write_model
from kernelcast.training.adapting.transfer import ABSOLUTE, fit_transfer, unseen_platform
from kernelcast.training.hybrid.meta import TRANSFER
from kernelcast.training.hybrid.remarks import NEW_ARCHITECTURE
from kernelcast.training.tables.schema import validate_runs

if TYPE_CHECKING:
    from kernelcast.training.hybrid.model import Model


def made_up(platform: str, seed: int, factor: float, rows: int = 150) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sizes = np.exp2(rng.uniform(6, 13, (rows, 3))).astype(int)
    lines = [{"platform": platform, "kernel": "gemm", "precision": "bf16", "implementation": "cublas", "time_s": 1.0,
              "params": {"m": int(m), "n": int(n), "k": int(k)}, "cache": "warm"} for m, n, k in sizes]
    frame, _ = validate_runs(pd.DataFrame(lines), "made up")
    error = 0.2 * np.sin(np.log2(sizes[:, 2])) + np.log(factor) + 0.03 * rng.standard_normal(rows)
    return frame.assign(time_s=describe(frame).baseline_s * np.exp(error))


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    factors = {"a100-sxm": 1.0, "h100-sxm": 1.3, "h200": 1.15, "b200": 1.2}
    return pd.concat([made_up(p, i, f) for i, (p, f) in enumerate(factors.items())], ignore_index=True)


@pytest.fixture(scope="module")
def model(table: pd.DataFrame) -> Model:
    return fit_transfer(table, rounds=40)


def test_an_unseen_platform_is_covered(table: pd.DataFrame) -> None:
    found = unseen_platform(table, "b200")
    assert found["sources"] == ["a100-sxm", "h100-sxm", "h200"]
    assert found["coverage"] >= 0.85 and np.isfinite(found["median_half_width"])
    assert found["mape"] < found["analytic"]["mape"]


def test_rows_say_that_the_platform_was_never_seen(table: pd.DataFrame) -> None:
    model = fit_transfer(table[table["platform"] != "b200"].reset_index(drop=True), rounds=40)
    found = model.predict(describe(made_up("b200", 9, 1.0, 5)))
    assert not found.in_domain.any()
    assert "no run of this platform" in found.note[0] and "h200" in found.note[0]
    assert set(model.meta["left_out"]["gemm"]) == {"a100-sxm", "h100-sxm", "h200"}


def test_it_sees_no_absolute_column_and_no_platform(model: Model) -> None:
    columns = model.families["gemm"].encoder.columns
    assert not ABSOLUTE & set(columns)
    assert not any("platform" in name or "h200" in name for name in columns)


def test_small_and_stored(table: pd.DataFrame, model: Model, tmp_path: Path) -> None:
    assert sum(len(data) for data in model_files(model).values()) < 2e6
    write_model(model, tmp_path / TRANSFER)
    described = describe(table.head(20))
    again = read_model(tmp_path / TRANSFER).predict(described)
    np.testing.assert_allclose(again.predicted_s, model.predict(described).predicted_s)


def test_one_platform_is_not_enough() -> None:
    with pytest.raises(InputError, match="at least two"):
        fit_transfer(made_up("h200", 1, 1.0, 30))


def test_an_architecture_that_no_source_has_is_widened_and_named(table: pd.DataFrame) -> None:
    hopper = fit_transfer(table[table["platform"].isin(["h100-sxm", "h200"])].reset_index(drop=True), rounds=40)
    assert hopper.meta["architectures"] == {"gemm": ["hopper"]}
    rows = describe(made_up("b200", 9, 1.0, 40))
    foreign = hopper.predict(rows)
    hopper.meta["architectures"] = {"gemm": ["blackwell", "hopper"]}
    akin = hopper.predict(rows)
    np.testing.assert_allclose(np.log(foreign.upper_s / foreign.predicted_s),
                               NEW_ARCHITECTURE * np.log(akin.upper_s / akin.predicted_s))
    np.testing.assert_allclose(foreign.predicted_s, akin.predicted_s)
    assert "no run of a blackwell GPU in training" in foreign.note[0] and "blackwell" not in akin.note[0]
