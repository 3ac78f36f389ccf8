"""Suggested runs: no times needed, spread over the sizes, better than chance where structure is to be found."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from kernelcast.analytic.errors import InputError
from kernelcast.features.describe import describe
from kernelcast.registry.promotion import paired_better
from kernelcast.training.adapting.suggest import suggest, suggestion_gain
from kernelcast.training.tables.schema import validate_runs

PLATFORM = "b200"


def pool_of(rows: int, seed: int) -> pd.DataFrame:
    """Mostly tiny products with a few large ones: what chance would miss."""
    rng = np.random.default_rng(seed)
    size = np.where(rng.uniform(size=rows) < 0.85, rng.uniform(5, 7, rows), rng.uniform(7, 13, rows))
    sizes = np.exp2(size[:, None] + rng.uniform(-0.5, 0.5, (rows, 3))).astype(int)
    lines = [{"platform": PLATFORM, "kernel": "gemm", "precision": "bf16", "implementation": "cublas", "time_s": 1.0,
              "params": {"m": int(m), "n": int(n), "k": int(k)}, "cache": "warm"} for m, n, k in sizes]
    frame, _ = validate_runs(pd.DataFrame(lines), "made up")
    error = 0.4 * np.sin(size) + 0.02 * rng.standard_normal(rows)
    return frame.assign(time_s=describe(frame).baseline_s * np.exp(error))


def test_spread_over_the_sizes_and_ordered() -> None:
    pool = pool_of(300, 1)
    found = suggest(PLATFORM, 8, candidates=pool)
    assert len(found) == 8 and not found.duplicated("params").any()
    base = found["expected_s"]
    assert base.max() / base.min() > 20.0
    assert "time_s" not in found
    pd.testing.assert_frame_equal(found.head(3), suggest(PLATFORM, 3, candidates=pool))


def test_measured_runs_are_not_asked_for_again() -> None:
    pool = pool_of(60, 2)
    first = suggest(PLATFORM, 10, candidates=pool)
    done = pool[pool["params"].isin(first["params"])]
    rest = suggest(PLATFORM, 10, candidates=pool[~pool["params"].isin(first["params"])], measured=done)
    assert not set(rest["params"]) & set(first["params"])


def test_no_more_than_there_are() -> None:
    assert len(suggest(PLATFORM, 50, candidates=pool_of(20, 3))) <= 20


def test_nothing_to_choose_from_is_said() -> None:
    with pytest.raises(InputError, match="at least one"):
        suggest(PLATFORM, 0, candidates=pool_of(5, 1))
    with pytest.raises(InputError, match="no candidate can run"):
        suggest("a100-sxm", 3, candidates=pool_of(5, 1).assign(precision="fp4"))


def test_beats_chance_at_equal_count() -> None:
    whole = pool_of(400, 4)
    found = suggestion_gain(whole.iloc[:200], whole.iloc[200:].reset_index(drop=True), PLATFORM, 8, seeds=8)
    assert found["seeds"] == 8 and found["suggested"] < found["random"]
    assert len(found["scores"]["random"]) == 8 and 0.0 <= found["p_value"] <= 1.0


def test_paired_verdicts() -> None:
    rng = np.random.default_rng(0)
    old = np.abs(rng.normal(0.1, 0.03, 40))
    assert paired_better(old * 0.8, old).better
    same = paired_better(old, old)
    assert not same.better and "not better" in same.words
    chance = paired_better(old + rng.normal(-0.0005, 0.05, 40), old)
    assert not chance.better and chance.p_value > 0.01
    few = paired_better(old[:3] * 0.5, old[:3])
    assert not few.better and "not tested" in few.words and np.isnan(few.p_value)
    grouped = paired_better(old * 0.8, old, np.repeat(np.arange(8), 5))
    assert grouped.better and "8 held-out groups (40 rows)" in grouped.words
    with pytest.raises(ValueError, match="same rows"):
        paired_better(old, old[:2])
