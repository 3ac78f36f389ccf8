"""The accuracy report: splits keep groups apart, checks count right, the page says only what the records say."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import InputError
from kernelcast.bench.evaluation import __main__ as command
from kernelcast.bench.evaluation import sources
from kernelcast.bench.evaluation.ablation import VARIANTS, ablation, analytic_columns
from kernelcast.bench.evaluation.cases import CASES
from kernelcast.bench.evaluation.checks import band_check, binomial_interval, covered
from kernelcast.bench.evaluation.newgpu import NEW_GPUS
from kernelcast.bench.evaluation.report import met, number, render, triple
from kernelcast.bench.evaluation.score import METHODS, Parts, score


def copies(count: int, seed: int = 0) -> pd.DataFrame:
    """Runs of a made-up device: a copy at 3 TB/s after 2 us, two implementations 20 % apart, 1 % noise."""
    rng = np.random.default_rng(seed)
    n = np.exp(rng.uniform(np.log(1e4), np.log(1e8), count)).astype(int)
    slow = rng.random(count) < 0.5
    time_s = (2e-6 + 8.0 * n / 3e12) * np.where(slow, 1.2, 1.0) * np.exp(rng.normal(0.0, 0.01, count))
    return pd.DataFrame(
        {
            "platform": "h200", "kernel": "vector_copy", "precision": "fp32", "params": [f'{{"n":{v}}}' for v in n],
            "implementation": np.where(slow, "slow", "fast"), "time_s": time_s, "cache": "cold", "scope": "kernel",
            "statistic": "median", "group": [f"vector_copy:n{v}" for v in n],
        }
    )


def banded(n: int, share: float) -> pd.DataFrame:
    inside = np.arange(n) < round(share * n)
    time_s = np.linspace(1e-6, 1e-3, n)
    return pd.DataFrame({"time_s": time_s, "hybrid": time_s, "lower_s": time_s * np.where(inside, 0.9, 1.1),
                         "upper_s": time_s * np.where(inside, 1.1, 1.2)})


@given(n=st.integers(30, 5000), level=st.floats(0.5, 0.99))  # below, the quantiles are too coarse to compare
@settings(max_examples=40, deadline=None)
def test_the_binomial_interval_holds_the_level_and_narrows(n: int, level: float) -> None:
    low, high = binomial_interval(n, level)
    assert 0.0 <= low <= high <= 1.0
    assert low - 1.0 / n <= level <= high + 1.0 / n
    wide, narrow = binomial_interval(n, level), binomial_interval(100 * n, level)
    assert narrow[1] - narrow[0] <= wide[1] - wide[0] + 1e-12


def test_the_binomial_interval_is_the_textbook_one() -> None:
    low, high = binomial_interval(100, 0.9)
    assert (low, high) == (pytest.approx(0.84), pytest.approx(0.95))


@pytest.mark.parametrize(("share", "holds"), [(0.9, True), (0.7, False), (1.0, False)])
def test_a_band_that_covers_too_little_or_too_much_is_found_out(share: float, holds: bool) -> None:
    check = band_check(banded(1000, share), np.full(1000, "copy"), 0.9)
    assert check["total"]["coverage"] == pytest.approx(share)
    assert check["total"]["holds"] is holds
    assert check["classes"][0]["label"] == "copy" and check["classes"][0]["holds"] is holds
    assert sum(line["n"] for line in check["fifths"]) == 1000


def test_a_good_total_does_not_hide_a_bad_class() -> None:
    rows = banded(1000, 0.9)  # the last hundred rows are all outside
    check = band_check(rows, np.where(covered(rows), "good", "bad"), 0.9)
    assert check["total"]["holds"]
    assert {line["label"]: line["coverage"] for line in check["classes"]} == {"good": 1.0, "bad": 0.0}
    assert check["fifths"][-1]["coverage"] == pytest.approx(0.5)


def test_an_unbounded_band_has_no_finite_width() -> None:
    rows = banded(40, 1.0).assign(lower_s=0.0, upper_s=math.inf)
    check = band_check(rows, np.full(40, "copy"), 0.9)
    assert check["unbounded"] == 40
    assert math.isinf(check["median_half_width"])
    assert check["total"]["coverage"] == 1.0


def test_scoring_learns_what_the_baselines_cannot() -> None:
    frame = copies(400)
    test = sources.hash_test(frame)
    parts = Parts(sources.sample(frame[~test], None), sources.sample(frame[test], None),
                  subsets={"large": lambda rows: np.asarray(rows["time_s"] > 1e-5)})
    found = score([parts], 0.9)
    assert found["n_train"] + found["n_test"] == 400 and found["n_refused"] == 0
    assert set(found["methods"]) == set(METHODS)
    hybrid = found["methods"]["hybrid"]["mape"]
    assert hybrid < 4.0
    assert hybrid < found["methods"]["naive_roofline"]["mape"]
    assert hybrid <= found["methods"]["calibrated_analytic"]["mape"] + 0.5
    assert found["subsets"][0]["n"] < found["n_test"]
    assert 0.75 < found["bands"]["total"]["coverage"] <= 1.0


def test_folds_are_pooled() -> None:
    frame = copies(160)
    half = sources.hash_test(frame, 0.5)
    pair = [Parts(sources.sample(frame[keep], None), sources.sample(frame[~keep], None)) for keep in (half, ~half)]
    found = score(pair, 0.9)
    assert found["folds"] == 2
    assert found["n_test"] == 160


def test_the_ablation_scores_every_variant_on_the_same_rows() -> None:
    frame = copies(300)
    test = sources.hash_test(frame)
    found = ablation(Parts(sources.sample(frame[~test], None), sources.sample(frame[test], None)))
    assert set(found["variants"]) == set(VARIANTS)
    assert all(math.isfinite(errors["mape"]) for errors in found["variants"].values())
    assert found["variants"]["hybrid_trees"]["mape"] < found["variants"]["analytic"]["mape"]


def test_only_what_the_problem_says_is_left_without_the_analytic_features() -> None:
    names = ["log2_m", "align_m", "pad_m_64", "log2_flop", "scheme=fp8", "log2_base", "share_launch", "log2_waves"]
    assert list(analytic_columns(names, ["m", "n", "k"])) == [False] * 5 + [True] * 3


@pytest.mark.parametrize("count", [2, 5, 8])
def test_few_runs_are_spread_over_the_sizes(count: int) -> None:
    frame = copies(30)
    size = frame["params"].map(lambda text: json.loads(text)["n"])
    chosen = sources.spread_choice(frame, count)
    assert chosen.sum() == count
    assert size[chosen].min() == size.min() and size[chosen].max() == size.max()


def test_every_split_is_described_and_configured() -> None:
    config = command.settings()
    known = command.jobs(0.9)
    assert set(config["splits"]) <= set(known)
    assert set(CASES) | set(NEW_GPUS) <= set(known)
    assert all(title and definition for title, definition, _ in known.values())


def test_a_split_whose_corpus_is_absent_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object) -> pd.DataFrame:
        raise InputError("corpus ginkgo: no data folder given")

    monkeypatch.setattr(sources, "converted", absent)
    said: list[str] = []
    found = command.run(["spmv-mi250x"], quick=True, config=command.settings(), say=said.append)
    assert found["spmv-mi250x"]["skipped"] == "corpus ginkgo: no data folder given"
    assert "no data folder given" in render(found)
    assert "no data folder given" in said[-1]


def test_a_new_skip_never_replaces_a_result(tmp_path: Path) -> None:
    path = tmp_path / "accuracy.json"
    path.write_text(json.dumps({"splits": {"b": {"n": 1}, "a": {"n": 2}}}))
    new = {"b": {"skipped": "absent"}, "c": {"skipped": "absent"}, "a": {"n": 3}}
    merged = command.merge(path, new, ["a", "b", "c"])
    assert merged == {"a": {"n": 3}, "b": {"n": 1}, "c": {"skipped": "absent"}}
    assert list(merged) == ["a", "b", "c"]


def test_an_unknown_split_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--only", "gemm-h20"]) == 2
    assert "gemm-h200" in capsys.readouterr().err


def test_the_page_says_whether_targets_were_met() -> None:
    errors = {"mape": 5.0, "median_ape": 3.0, "p90_ape": 11.0}
    assert met(errors, {"mape": 5.0, "median_ape": 2.0}) == "only mean"
    assert met(errors, {"mape": 5.0}) == "yes"
    assert met(errors, {"mape": 4.0}) == "no"
    assert met(errors, None) == "–"
    assert triple(errors) == "5.0 / 3.0 / 11.0"
    assert number(None) == number(float("nan")) == "–"


def test_json_gets_no_infinity() -> None:
    assert command.finite({"a": [1.0, math.inf, {"b": math.nan}]}) == {"a": [1.0, None, {"b": None}]}


def test_suggested_runs_are_shown_beside_random_ones_with_their_wins() -> None:
    line = {"n": 20, "seeds": 20, "suggested": 9.123, "random": 10.456, "wins": 14, "p_value": 0.0123}
    page = render({"s": {"title": "Suggested", "definition": "halves of a pool", "suggested": [line], "n_test": 1500}})
    assert "| 20 | 9.12 | 10.46 | 14 of 20 | 0.012 |" in page
    assert "1,500 test rows" in page
