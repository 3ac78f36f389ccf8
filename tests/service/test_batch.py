"""A whole table: the same answers as one by one, and a bad row that spoils no other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from kernelcast.analytic.errors import InputError
from kernelcast.features.checks import row_faults
from kernelcast.service.answer import predict
from kernelcast.service.batch import COLUMNS, predict_runs

if TYPE_CHECKING:
    from kernelcast.training.hybrid.model import Model


def table(*rows: tuple[str, str, str], **columns: list[object]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["kernel", "precision", "params"])
    frame.insert(0, "platform", "t4")
    return frame.assign(**columns)


GOOD = ("gemm", "fp16", '{"m":1024,"n":2048,"k":512}')


def test_rows_come_back_with_the_predictions_of_single_calls(stored: Path) -> None:
    frame = table(GOOD, ("vector_add", "fp32", '{"n":5000000}'), ("softmax", "fp32", '{"rows":64,"cols":64}'))
    frame.index = pd.Index([7, 3, 5])
    frame["mine"] = ["a", "b", "c"]
    done = predict_runs(frame)
    assert done.index.tolist() == [7, 3, 5] and done["mine"].tolist() == ["a", "b", "c"]
    assert set(COLUMNS) <= set(done.columns) and "time_s" not in done
    single = [
        predict("gemm", platform="t4", precision="fp16", m=1024, n=2048, k=512),
        predict("vector_add", platform="t4", precision="fp32", n=5_000_000),
        predict("softmax", platform="t4", precision="fp32", rows=64, cols=64),
    ]
    for name in ("baseline_s", "predicted_s", "lower_s", "upper_s"):
        assert done[name].tolist() == [getattr(p, name) for p in single], name
    for name in ("in_domain", "route", "model", "cache", "note"):
        assert done[name].tolist() == [getattr(p, name) for p in single], name
    assert done["implementation"].tolist()[:2] == ["cublas", "hand-written"]


def test_a_bad_row_says_why_and_spoils_no_other(stored: Path) -> None:
    frame = table(
        GOOD, ("gemm", "fp16", '{"m":0,"n":2,"k":2}'), ("gemm", "fp16", '{"m":4,"n":2}'),
        ("gemm", "fp16", '{"m":"many","n":2,"k":2}'), ("gemm", "fp8", '{"m":4,"n":2,"k":2}'),
        ("what", "fp32", "{}"), ("what", "fp32", '{"bytes":1000000}'), ("segment", "fp32", '{"name":"k"}'),
        ("gemm", "fp12", '{"m":4,"n":2,"k":2}'), ("gemm", "fp16", '{"m":1e200,"n":1e200,"k":2}'),
    )
    done = predict_runs(frame)
    assert done["predicted_s"].notna().tolist() == [True, *[False] * 5, True, *[False] * 3]
    assert done["upper_s"].notna().tolist() == done["predicted_s"].notna().tolist()
    for row, words in {1: "'m'", 2: "'k' is missing", 3: "not a number", 4: "fp8", 5: "no counted bytes", 7: "refused",
                       8: "fp12", 9: "too large"}.items():
        assert words in done["note"].iloc[row], (row, done["note"].iloc[row])
    assert not done["in_domain"].iloc[1:].any()
    assert done["predicted_s"].iloc[0] == predict_runs(table(GOOD))["predicted_s"].iloc[0]


def test_faults_are_those_that_a_single_question_raises(home: Path) -> None:
    frame = table(*[("gemm", "fp16", f'{{"m":{m},"n":8,"k":8}}') for m in ("1", "0", "-3", "null", '"x"', "1e16")])
    faults = row_faults(frame.assign(bytes=np.nan, flops=np.nan))
    assert [bool(fault) for fault in faults] == [False, True, True, True, True, True]


def test_counts_may_lie_in_the_params_or_in_columns_of_their_own(home: Path, unshipped: None) -> None:
    done = predict_runs(table(("k", "fp32", "{}"), ("k", "fp32", '{"bytes":1e8,"flops":1e6}'), bytes=[1e8, None],
                              flops=[1e6, None]))
    assert done["predicted_s"].iloc[0] == done["predicted_s"].iloc[1] > 0


def test_platforms_replace_the_column(home: Path) -> None:
    frame = table(GOOD).drop(columns="platform")
    done = predict_runs(frame, platforms=["t4", "h200-sxm"], analytic=True)
    assert done["platform"].tolist() == ["t4", "h200"]
    assert done["predicted_s"].iloc[1] < done["predicted_s"].iloc[0]


def test_cache_is_warm_where_nothing_is_said(stored: Path) -> None:
    rows = table(*[("vector_add", "fp32", '{"n":100000}')] * 3, cache=["cold", None, "warm"])
    done = predict_runs(rows)
    assert done["cache"].tolist() == ["cold", "warm", "warm"]
    assert done["baseline_s"].iloc[0] > done["baseline_s"].iloc[1] == done["baseline_s"].iloc[2]
    assert predict_runs(rows.drop(columns="cache"), cache="cold")["cache"].tolist() == ["cold"] * 3


def test_an_unbounded_band_is_empty(stored: Path) -> None:
    done = predict_runs(table(GOOD), level=0.9999)
    assert done["predicted_s"].notna().all() and done[["lower_s", "upper_s"]].isna().all().all()


@pytest.mark.parametrize(("change", "message"), [
    ({"platform": "h2oo"}, "unknown platform"),
    ({"params": "not json"}, "JSON"),
    ({"params": '{"m": NaN}'}, "NaN"),
    ({"kernel": ""}, "kernel"),
])
def test_a_row_that_is_no_run_is_an_error_unless_skipped(home: Path, change: dict[str, str], message: str) -> None:
    frame = pd.concat([table(GOOD), table(GOOD).assign(**change)], ignore_index=True)
    with pytest.raises(InputError, match=message):
        predict_runs(frame, where="runs.csv")
    assert predict_runs(frame, skip_bad=True, analytic=True).index.tolist() == [0]


def test_missing_columns_are_named(home: Path) -> None:
    with pytest.raises(InputError, match=r"params missing.*of questions.*found: platform, kernel, precision$"):
        predict_runs(table(GOOD).drop(columns="params"))


def test_the_whole_training_table_at_once(stored: Path, small_model: Model, small_runs: pd.DataFrame) -> None:
    done = predict_runs(small_runs)
    error = np.abs(done["predicted_s"] / small_runs["time_s"] - 1.0)
    assert error.median() < 0.05  # the noise that was put in
    assert ((done["lower_s"] <= done["predicted_s"]) & (done["predicted_s"] <= done["upper_s"])).all()


def test_an_unknown_cache_state_is_predicted_warm_with_a_band_that_holds_a_cold_call(home: Path) -> None:
    frame = pd.DataFrame({"platform": "h200", "kernel": "vector_add", "precision": "fp32", "params": '{"n":3000000}',
                          "implementation": "torch", "cache": ["warm", "cold", "unknown"]})
    warm, cold, unknown = predict_runs(frame).to_dict("records")
    assert unknown["predicted_s"] == pytest.approx(warm["predicted_s"], rel=1e-6)
    assert unknown["upper_s"] == pytest.approx(cold["upper_s"], rel=1e-6) and cold["upper_s"] > warm["upper_s"]
    assert unknown["lower_s"] == pytest.approx(min(warm["lower_s"], cold["lower_s"]), rel=1e-6)
    assert unknown["note"].startswith("cache state unknown: ") and "cache" not in warm["note"]


def test_a_wall_time_reaches_as_far_as_the_host_may_add_and_transfers_claim_nothing(home: Path) -> None:
    frame = pd.DataFrame({"platform": "h200", "kernel": "vector_add", "precision": "fp32", "params": '{"n":3000000}',
                          "implementation": "torch", "scope": ["kernel", "wall", "kernel+transfers"]})
    kernel, wall, moved = predict_runs(frame).to_dict("records")
    assert wall["predicted_s"] == kernel["predicted_s"] and wall["lower_s"] == kernel["lower_s"]
    assert 1e-6 < wall["upper_s"] - kernel["upper_s"] < 1e-5 and wall["note"].startswith("wall time: ")
    assert [row["in_domain"] for row in (kernel, wall, moved)] == [True, True, False]
    assert "transfers are not predicted" in moved["note"]
    assert moved["upper_s"] == pytest.approx(kernel["upper_s"], rel=1e-6)
    (elsewhere,) = predict_runs(frame.iloc[1:2].assign(platform="t4")).to_dict("records")
    assert not elsewhere["in_domain"] and "not measured on this GPU" in elsewhere["note"]
