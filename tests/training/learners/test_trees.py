"""The average of boosters is one booster: same predictions, same file format."""

from __future__ import annotations

import numpy as np
import pytest
from kernelcast.analytic.errors import InputError
from kernelcast.training.learners import trees
from kernelcast.training.learners.trees import ZERO_START, average, without_statistics

xgboost = pytest.importorskip("xgboost")


def rows(count: int = 600) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(count, 4))
    x[::7, 2] = np.nan
    return x, 0.3 * x[:, 0] + 0.2 * np.abs(x[:, 1]) + rng.normal(0.0, 0.05, count)


def fitted(objective: str, **start: float) -> object:
    x, y = rows()
    settings = {"objective": objective, "max_leaves": 8, "grow_policy": "lossguide", "max_depth": 0, **start}
    return xgboost.train(settings, xgboost.DMatrix(x, label=y), num_boost_round=20)


def test_the_average_predicts_the_mean_and_survives_its_file() -> None:
    data = xgboost.DMatrix(rows()[0])
    pair = [fitted(objective, **ZERO_START) for objective in ("reg:squarederror", "reg:absoluteerror")]
    joined = average(pair)
    expected = sum(booster.predict(data) for booster in pair) / 2.0
    assert joined.predict(data) == pytest.approx(expected, abs=1e-6)
    again = xgboost.Booster()
    again.load_model(bytearray(joined.save_raw("ubj")))
    assert again.predict(data) == pytest.approx(expected, abs=1e-6)
    assert joined.get_score(importance_type="total_gain").keys() >= {"f0", "f1"}


def test_boosters_that_start_elsewhere_are_refused() -> None:
    with pytest.raises(InputError, match="start from zero"):
        average([fitted("reg:squarederror", base_score=0.5), fitted("reg:squarederror", base_score=0.5)])


@pytest.mark.parametrize("large", [True, False])
def test_the_same_seed_gives_the_same_pair(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "PAIR_FROM", 100 if large else 10_000)
    monkeypatch.setattr(trees, "pair_rounds" if large else "small_rounds", lambda _: 20)
    x, y = rows()
    first, second = trees.fit_trees(x, y, 1), trees.fit_trees(x, y, 1)
    assert first.num_boosted_rounds() == 40
    data = xgboost.DMatrix(x)
    assert np.array_equal(first.predict(data), second.predict(data))
    assert np.abs(first.predict(data) - y).mean() < np.abs(y).mean() / 2


def test_trees_without_statistics_predict_the_same_to_the_bit() -> None:
    data = xgboost.DMatrix(rows()[0])
    whole = fitted("reg:absoluteerror")
    bare = without_statistics(whole)
    assert np.array_equal(whole.predict(data), bare.predict(data))
    assert not any(bare.get_score(importance_type="total_gain").values())
    parts, exact = (trees.predict(data, pred_contribs=True) for trees in (bare, whole))
    assert np.allclose(parts.sum(axis=1), whole.predict(data), atol=1e-4)
    assert np.abs(parts - exact).max() < 0.05 * np.abs(exact).max()
