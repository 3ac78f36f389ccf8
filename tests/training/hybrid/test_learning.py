"""Splits, calibration, residual, bands and domain on made-up data whose truth is known."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import InputError
from kernelcast.features.describe import describe
from kernelcast.training.adapting.adapted import AdaptedFamily
from kernelcast.training.hybrid.bands import FEWEST_SCORES, Bands, fit_bands
from kernelcast.training.hybrid.calibration import TERMS, fit_calibration
from kernelcast.training.hybrid.compare import Comparison, compare_split
from kernelcast.training.hybrid.domain import fit_domain
from kernelcast.training.hybrid.family import FamilyModel, by_family, sizes_of
from kernelcast.training.hybrid.fit import fit_model, refit_model
from kernelcast.training.hybrid.metrics import coverage, mape_of_log, summary
from kernelcast.training.hybrid.model import Model
from kernelcast.training.hybrid.nearest import nearest_utilisation_s
from kernelcast.training.hybrid.protocol import LearnedFamily
from kernelcast.training.learners.residual import to_residual, to_time
from kernelcast.training.tables.splits import folds, holdout


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=5), min_size=1, max_size=60), st.integers(0, 1000))
def test_no_group_straddles_a_split(groups: list[str], seed: int) -> None:
    for part in (holdout(groups, 0.3, seed), folds(groups, 4, seed)):
        sides = pd.Series(part).groupby(np.asarray(groups, dtype=object)).nunique()
        assert (sides == 1).all()


def test_the_share_of_held_out_groups_is_the_one_asked_for() -> None:
    groups = [f"g{i}" for i in range(20_000)]
    assert holdout(groups, 0.2).mean() == pytest.approx(0.2, abs=0.01)
    assert np.bincount(folds(groups, 5)) / 20_000 == pytest.approx([0.2] * 5, abs=0.01)


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-9, 10.0), st.floats(1e-9, 10.0))
def test_time_and_residual_are_inverses(time_s: float, base_s: float) -> None:
    assert to_time(to_residual(time_s, base_s), base_s) == pytest.approx(time_s, rel=1e-9)


def test_metrics_against_numbers_done_by_hand() -> None:
    # errors 10 %, 20 %, 50 %
    scores = summary([1.1, 0.8, 3.0], [1.0, 1.0, 2.0])
    assert scores["mape"] == pytest.approx(80.0 / 3)
    assert scores["median_ape"] == pytest.approx(20.0)
    assert coverage([0.0, np.nan], [1.0, np.nan], [2.0, 5.0]) == 0.5  # an unbounded band covers


def test_calibration_finds_the_multipliers_that_made_the_times() -> None:
    rng = np.random.default_rng(0)
    terms = np.exp(rng.uniform(-12, -6, (400, len(TERMS))))
    truth = np.array([1.0, 2.0, 1.3, 0.7, 0.0, 0.4, 0.0, 0.5, 0.0, 0.2])
    fitted = fit_calibration(terms, np.full(400, "a"), terms @ truth)
    predicted = fitted.predict_s(terms, np.full(400, "a"))
    assert summary(predicted, terms @ truth)["mape"] < 3.0
    assert np.all(fitted.whole >= 0.0)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_coverage_lies_between_the_level_and_the_finite_sample_excess(level: float) -> None:
    n, tests, trials = 99, 400, 60
    rng = np.random.default_rng(1)
    seen = []
    for _ in range(trials):
        bands = fit_bands(rng.normal(size=n), np.ones(n), np.full(n, "f"))
        half, _ = bands.half_width(np.ones(tests), np.full(tests, "f"), level)
        seen.append(np.mean(np.abs(rng.normal(size=tests)) <= half))
    # theory: level <= E[coverage] <= level + 1/(n+1); the margin is three standard errors of the mean over trials
    error = 3.0 * np.std(seen) / np.sqrt(trials)
    assert level - error <= np.mean(seen) <= level + 1.0 / (n + 1) + error


def test_bands_cover_a_group_not_seen_before_and_not_only_more_rows_of_known_ones() -> None:
    rng = np.random.default_rng(2)
    plain, grouped = [], []
    for _ in range(150):
        # 15 sites of 40 rows: a site has an offset of its own, which its rows share
        group = np.repeat(np.arange(15), 40)
        errors = rng.normal(size=15)[group] + 0.2 * rng.normal(size=600)
        fresh = rng.normal() + 0.2 * rng.normal(size=40)
        one, family = np.ones(600), np.full(600, "f")
        for out, bands in ((plain, fit_bands(errors, one, family)),
                           (grouped, fit_bands(errors, one, family, None, group))):
            half, _ = bands.half_width(np.ones(1), np.array(["f"]), 0.9)
            out.append(np.mean(np.abs(fresh) <= half[0]))
    error = 2.0 * np.std(grouped) / np.sqrt(150)
    assert np.mean(grouped) >= 0.9 - error
    assert np.mean(plain) < np.mean(grouped)


def test_few_scores_give_an_unbounded_band_and_few_of_a_family_the_pooled_one() -> None:
    assert np.isinf(Bands(np.array([1.0, 0.5])).half_width(np.ones(1), np.array(["x"]), 0.9)[0][0])
    family = np.array(["big"] * 200 + ["small"] * (FEWEST_SCORES - 1))
    bands = fit_bands(np.linspace(0.01, 1.0, len(family)), np.ones(len(family)), family)
    _, pooled = bands.half_width(np.ones(2), np.array(["big", "small"]), 0.9)
    assert pooled.tolist() == [False, True]


def quantile_of_crepes(scores: np.ndarray, level: float) -> float:
    from crepes import ConformalRegressor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too few scores: it warns, and answers that the band is unbounded
        return float(ConformalRegressor().fit(scores).predict_int(np.zeros(1), confidence=level)[0, 1])


@pytest.mark.parametrize("level", [0.5, 0.68, 0.8, 0.9, 0.95, 0.99])
def test_half_widths_are_those_of_crepes_to_the_bit(level: float) -> None:
    rng = np.random.default_rng(5)
    for count in [*range(1, 40), 99, 100, 999, 4000]:
        scores = np.sort(np.abs(rng.standard_t(3, count)))[::-1]
        half, _ = Bands(scores).half_width(np.ones(1), np.array(["f"]), level)
        assert half[0] == quantile_of_crepes(scores, level), count
    assert np.isinf(Bands(np.zeros(0)).half_width(np.ones(1), np.array(["f"]), level)[0][0])


def test_a_mean_of_log_errors_is_the_mean_relative_error() -> None:
    predicted, measured = np.array([1.1, 0.8, 3.0]), np.array([1.0, 1.0, 2.0])
    # errors 10 %, 20 %, 50 %
    assert mape_of_log(np.log(measured / predicted)) == pytest.approx(0.8 / 3)


def test_groups_come_by_family_in_their_order() -> None:
    described = describe(made_up(40))
    found = by_family(described.groups)
    assert set(found) == {"vector_add", "vector_copy"}
    assert [g for groups in found.values() for g in groups if g.family == "vector_add"] == found["vector_add"]
    assert sum(len(g.index) for groups in found.values() for g in groups) == 40
    assert sizes_of("vector_add") == ["n"]


def test_families_however_learned_answer_what_a_model_asks() -> None:
    asked = [name for name in (*vars(LearnedFamily), *LearnedFamily.__annotations__) if not name.startswith("_")]
    assert {"calibrated_s", "beyond_s", "log_correction", "unsaid", "domain", "reference"} <= set(asked)
    for kind in (FamilyModel, AdaptedFamily):
        assert all(hasattr(kind, name) or name in kind.__dataclass_fields__ for name in asked), kind


def made_up(rows: int = 500, seed: int = 0) -> pd.DataFrame:
    """Runs whose time is the baseline times a factor that depends on the size, with 2 % noise."""
    rng = np.random.default_rng(seed)
    n = np.exp(rng.uniform(np.log(1e4), np.log(3e8), rows)).astype(int)
    kernel = rng.choice(["vector_add", "vector_copy"], rows)
    frame = pd.DataFrame({
        "platform": "h200", "kernel": kernel, "precision": "fp32", "cache": rng.choice(["warm", "cold"], rows),
        "params": [json.dumps({"n": int(v)}) for v in n], "implementation": "made_up",
        "group": [f"{k}:{v}" for k, v in zip(kernel, n, strict=True)],
    })
    factor = 1.3 + 0.3 * np.sin(np.log2(n)) + np.where(kernel == "vector_add", 0.2, 0.0)
    return frame.assign(time_s=describe(frame).baseline_s * factor * np.exp(rng.normal(0, 0.02, rows)))


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return made_up()


@pytest.fixture(scope="module")
def comparison(frame: pd.DataFrame) -> Comparison:
    """A model of seven tenths of the frame, scored on the rest: fitted once, and not to be changed."""
    return compare_split(frame, fraction=0.3)


@pytest.fixture(scope="module")
def model(comparison: Comparison) -> Model:
    return comparison.models["h200"]


def test_the_hybrid_learns_what_the_equations_miss_and_its_band_covers(
    frame: pd.DataFrame, comparison: Comparison
) -> None:
    total = comparison.records[0]
    assert total["kernel"] == "all"
    assert total["n"] == len(comparison.rows)
    assert total["hybrid"]["mape"] < 0.5 * total["analytic"]["mape"]
    assert total["hybrid"]["mape"] < 8.0
    # 150 rows at 90 %: a binomial 99.9 % interval is about +-8 points
    assert 0.82 <= total["hybrid"]["coverage"] <= 0.98
    trained = set(frame["group"]) - set(comparison.rows["group"])
    assert trained and not trained & set(comparison.rows["group"])


def test_training_is_deterministic(frame: pd.DataFrame) -> None:
    small = frame.head(120)
    described = describe(small)
    first, second = (fit_model(small, seed=3).predict(described).predicted_s for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_refit_keeps_the_bands_of_the_checked_model(frame: pd.DataFrame, model: Model) -> None:
    again = refit_model(frame, model)
    assert again.bands is model.bands
    assert again.families["vector_add"].rows > model.families["vector_add"].rows


def test_out_of_domain_rows_are_flagged_widened_and_explained(frame: pd.DataFrame, model: Model) -> None:
    row = frame.iloc[:1].drop(columns="time_s")
    far = row.assign(params=json.dumps({"n": 40_000_000_000}))
    new_code = row.assign(implementation="never_seen")
    other = row.assign(kernel="softmax", params=json.dumps({"rows": 100, "cols": 100}))
    near_p, far_p, code_p, other_p = (model.predict(describe(part)) for part in (row, far, new_code, other))
    assert near_p.in_domain[0] and not far_p.in_domain[0] and not code_p.in_domain[0] and not other_p.in_domain[0]

    def width(p: object) -> float:
        return float(np.log(p.upper_s[0] / p.lower_s[0]))  # type: ignore[attr-defined]

    assert width(far_p) > width(near_p)
    assert width(other_p) > width(near_p)
    assert "outside the training range" in far_p.note[0]
    assert "'never_seen' not in training" in code_p.note[0]
    assert "no measured run" in other_p.note[0]


def test_a_size_of_zero_is_next_to_a_small_one_and_not_infinitely_far() -> None:
    rows = [{"rows": 1000, "cols": 1000, "nnz": 5000, "row_std": std} for std in (0.0, 4.0)]
    frame = pd.DataFrame({"platform": "h200", "kernel": "spmv_csr", "precision": "fp64", "cache": "warm",
                          "params": [json.dumps(row) for row in rows]})
    one, both = (describe(part).groups[0].rows for part in (frame.head(1), frame))
    distance, column = fit_domain("spmv_csr", [one]).outside(both)
    assert column[1] == "log2_row_std"
    assert 0.0 < distance[1] < 4.0
    assert distance[0] == 0.0


def test_a_precision_known_only_by_its_twin_is_taken_for_it_and_widened() -> None:
    rng = np.random.default_rng(3)
    sizes = [json.dumps({"m": int(m), "n": int(m), "k": int(m)}) for m in np.exp(rng.uniform(5, 9, 60))]
    frame = pd.DataFrame({"platform": "b200", "kernel": "gemm", "precision": "bf16", "cache": "warm", "params": sizes,
                          "implementation": "made_up", "group": sizes})
    frame["time_s"] = describe(frame).baseline_s * 1.5
    model = fit_model(frame)
    known, twin, other = (model.predict(describe(frame.assign(precision=p))) for p in ("bf16", "fp16", "fp4"))
    np.testing.assert_allclose(twin.predicted_s, known.predicted_s, rtol=0.02)
    assert "fp16 not in training for gemm, taken for bf16, band widened x1.3" in twin.note[0]
    assert not twin.in_domain.any() and "taken for" not in other.note[0]
    assert np.all(twin.upper_s / twin.lower_s > known.upper_s / known.lower_s)


def test_a_family_never_gets_a_residual_that_loses_out_of_fold() -> None:
    rng = np.random.default_rng(5)
    frame = made_up(120, seed=5)
    # pure noise around the baseline: nothing to learn, whatever a tree finds is luck
    frame["time_s"] = describe(frame).baseline_s * np.exp(rng.normal(0, 0.3, len(frame)))
    model = fit_model(frame)
    for family in model.families.values():
        assert family.residual is None or model.meta["out_of_fold"][family.family]["mape"] < 35.0
    assert any("did not improve" in family.note for family in model.families.values())


def test_several_platforms_or_too_few_rows_are_refused(frame: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="one model is for one platform"):
        fit_model(pd.concat([frame.head(20), frame.head(20).assign(platform="b200")], ignore_index=True))
    with pytest.raises(InputError, match="3 usable rows"):
        fit_model(frame.head(3))


def test_nearest_utilisation_is_exact_on_a_row_measured_twice_and_naive_without_neighbours() -> None:
    frame = pd.concat([made_up(1)] * 2, ignore_index=True)
    train = describe(frame)
    again = nearest_utilisation_s(train, frame["time_s"], describe(frame.head(1)))
    assert again[0] == pytest.approx(frame["time_s"].iloc[0], rel=1e-9)
    other = describe(frame.head(1).assign(kernel="triad"))
    assert nearest_utilisation_s(train, frame["time_s"], other)[0] == other.naive_s[0]
