"""One prediction: its fields, where it comes from, and what is refused."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import InputError, RefusedError
from kernelcast.analytic.families import FAMILIES
from kernelcast.analytic.platform import load_platform
from kernelcast.service.answer import Prediction, predict

if TYPE_CHECKING:
    from kernelcast.training.hybrid.model import Model

GEMM: dict[str, Any] = {"m": 1024, "n": 2048, "k": 512, "precision": "fp16"}
FIELDS = (
    "platform", "kernel", "precision", "params", "implementation", "cache", "baseline_s", "predicted_s", "lower_s",
    "upper_s", "level", "in_domain", "note", "route", "model", "terms", "bound", "parameters",
)


def ask(family: str = "gemm", platform: str = "t4", **given: Any) -> Prediction:
    return predict(family, platform=platform, **given)


def test_a_prediction_has_every_field_of_the_interface(stored: Path) -> None:
    found = ask(**GEMM)
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(FIELDS) <= set(document)
    assert document["params"] == {"m": 1024, "n": 2048, "k": 512}
    assert document["model"] == "kernelcast-t4@1" and document["implementation"] == "cublas"
    assert document["in_domain"] is True
    assert set(document["bound"]) == {"limit", "work", "rate", "seconds"}
    assert found.bound["work"] / found.bound["rate"] == pytest.approx(found.bound["seconds"])
    assert found.bound["seconds"] <= found.baseline_s
    assert sum(found.terms.values()) == pytest.approx(found.baseline_s)
    assert found.lower_s is not None and found.upper_s is not None
    assert 0 < found.lower_s <= found.predicted_s <= found.upper_s


def test_it_says_which_parameters_were_read(stored: Path) -> None:
    rows = {row["name"]: row for row in ask(**GEMM).parameters}
    assert {"hbm_peak_bw", "compute_units", "peak_fp16_matrix"} <= set(rows)
    assert all(row["kind"] and row["source"] for row in rows.values())
    t4 = load_platform("t4")
    assert rows["hbm_peak_bw"]["value"] == t4.value("hbm_peak_bw")
    assert len(rows) < len(t4.parameters)


def test_a_higher_level_gives_a_wider_band(stored: Path) -> None:
    narrow, wide = ask(**GEMM, level=0.5), ask(**GEMM, level=0.95)
    assert narrow.predicted_s == wide.predicted_s
    assert wide.lower_s < narrow.lower_s and narrow.upper_s < wide.upper_s  # type: ignore[operator]


def test_a_level_beyond_the_calibration_rows_is_unbounded(stored: Path) -> None:
    found = ask(**GEMM, level=0.9999)
    assert found.lower_s is None and found.upper_s is None
    assert found.to_dict()["upper_s"] is None
    assert "unbounded" in found.note


@pytest.mark.parametrize("level", [0, 1, -0.1, 90, math.nan, math.inf, "0.9", None, True])
def test_level_lies_between_0_and_1(level: Any) -> None:
    with pytest.raises(InputError, match="level"):
        ask(**GEMM, level=level)


def test_without_a_model_the_time_is_analytic_and_has_no_band(home: Path, unshipped: None) -> None:
    found = ask(**GEMM)
    assert found.model == "analytic" and found.predicted_s == found.baseline_s
    assert (found.lower_s, found.upper_s, found.in_domain) == (None, None, False)
    assert "no model for t4" in found.note
    assert not home.exists()


def test_analytic_takes_its_band_from_the_errors_on_measured_runs(stored: Path, small_model: Model) -> None:
    found = ask(**GEMM, analytic=True)
    assert found.model == "analytic" and found.predicted_s == found.baseline_s
    # by the definition of a split conformal band: the ceil((n + 1) * 0.9)-th smallest score
    scores = np.sort(small_model.analytic_scores)
    half = scores[math.ceil((len(scores) + 1) * 0.9) - 1]
    assert found.upper_s == pytest.approx(found.baseline_s * math.exp(half))
    assert "analytic only" in found.note and "kernelcast-t4@1" in found.note


def test_an_unseen_family_is_analytic_within_the_model(stored: Path) -> None:
    found = ask("softmax", rows=1000, cols=1000)
    assert found.in_domain is False and "no measured run" in found.note
    assert found.predicted_s == found.baseline_s


def test_the_implementation_that_is_taken_is_the_one_of_the_training_runs(stored: Path) -> None:
    # the usual transpose of the vendor's libraries is another one than that of the synthetic runs
    assert FAMILIES["transpose"].reference.get("nvidia") != "hand-written"
    found = ask("transpose", m=500, n=500)
    assert found.implementation == "hand-written" and "implementation" not in found.note
    named = ask("transpose", m=500, n=500, implementation="hand-written")
    assert named.predicted_s == found.predicted_s


def test_without_training_runs_the_usual_implementation_is_named(home: Path, unshipped: None) -> None:
    assert ask(**GEMM).implementation == FAMILIES["gemm"].reference["nvidia"] == "cublas"
    assert ask(**GEMM, implementation="mine").implementation == "mine"


def test_the_assumed_precision_is_named(stored: Path) -> None:
    found = ask("gemm", "h200", m=64, n=64, k=64, analytic=True)
    assert found.precision == FAMILIES["gemm"].precision
    assert f"{found.precision} assumed" in found.note


def test_overrides_move_the_baseline_and_are_named(stored: Path) -> None:
    plain = ask("vector_add", n=50_000_000)
    faster = ask("vector_add", n=50_000_000, overrides={"hbm_peak_bw": "640 GB/s", "sustained_hbm_bw": "560 GB/s"})
    assert faster.baseline_s < 0.6 * plain.baseline_s
    assert faster.predicted_s < plain.predicted_s
    assert "hbm_peak_bw" in faster.note and "not measured" in faster.note
    assert plain.in_domain and not faster.in_domain
    used = {row["name"]: row["kind"] for row in faster.parameters}
    assert used["hbm_peak_bw"] == "override"


def test_parameters_changed_since_training_are_noticed(stored: Path, small_model: Model) -> None:
    import dataclasses

    t4 = load_platform("t4")
    changed = t4.with_overrides({"clock_boost": 1.0e9})
    found = predict("gemm", platform=dataclasses.replace(changed), **GEMM)
    assert "have changed since" in found.note and not found.in_domain
    assert "have changed" not in ask(**GEMM).note


def test_a_kernel_of_no_known_family_is_predicted_from_its_counts(stored: Path) -> None:
    found = ask("my_kernel", flops=1e9, bytes=1e8, precision="fp32")
    assert found.kernel == "my_kernel" and not found.in_domain
    assert "not known" in found.note
    assert found.predicted_s >= 1e8 / load_platform("t4").value("hbm_peak_bw")


def test_a_segment_without_counts_is_refused(home: Path) -> None:
    with pytest.raises(RefusedError, match="bytes"):
        ask("segment", name="k", grid=[1, 1, 1])
    assert ask("segment", bytes=1e6, grid=[8, 1, 1], block=[128, 1, 1]).params["grid"] == [8, 1, 1]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown platform": ({"platform": "h20o"}, "did you mean"),
    "unknown family": ({"family": "gemmm"}, "did you mean gemm"),
    "unknown parameter": ({"mm": 3}, r"'mm'.*gemm takes m n k"),
    "missing parameter": ({"m": None}, "'m'"),
    "zero": ({"m": 0}, "at least 1"),
    "negative": ({"m": -4}, "at least 1"),
    "fraction": ({"m": 2.5}, "whole number"),
    "NaN": ({"m": math.nan}, "finite"),
    "infinite": ({"m": math.inf}, "finite"),
    "text": ({"m": "many"}, "must be a number"),
    "truth": ({"m": True}, "must be a number"),
    "array": ({"m": [1, 2]}, "must be a number"),
    "NaN in an optional one": ({"batch": math.nan}, "finite"),
    "too large": ({"m": 1e160, "n": 1e160}, "too large"),
    "unknown precision": ({"precision": "fp12"}, "did you mean"),
    "precision the platform lacks": ({"precision": "fp8"}, "t4"),
    "cache": ({"cache": "hot"}, "warm, cold"),
    "unknown override": ({"overrides": {"hbm_peek_bw": 1}}, "hbm_peak_bw"),
    "wrong unit": ({"overrides": {"hbm_peak_bw": "4 GB"}}, "dimension"),
    "unknown model": ({"model": "nobody"}, "nobody"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_message(stored: Path, case: str) -> None:
    change, message = BAD[case]
    given = {"family": "gemm", "platform": "t4", **GEMM} | change
    with pytest.raises(InputError, match=message):
        predict(given.pop("family"), **given)


def test_a_damaged_champion_is_an_error_and_not_a_quiet_analytic_time(stored: Path) -> None:
    stored.joinpath("gemm.ubj.gz").write_bytes(b"")
    with pytest.raises(InputError, match=r"gemm\.ubj.gz"):
        ask(**GEMM)
    assert ask("vector_add", n=10**6).model == "kernelcast-t4@1"  # another family does not need that file


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**6), st.sampled_from(["h200", "b200", "mi300x"]))
def test_any_size_gives_ordered_finite_numbers(m: int, n: int, k: int, platform: str) -> None:
    found = predict("gemm", platform=platform, precision="bf16", analytic=True, m=m, n=n, k=k)
    assert math.isfinite(found.predicted_s) and found.predicted_s >= found.bound["seconds"] > 0
    json.dumps(found.to_dict(), allow_nan=False)


def test_predicting_imports_neither_mlflow_nor_matplotlib(stored: Path) -> None:
    code = (
        "import sys, kernelcast as kc\n"
        "p = kc.predict('gemm', platform='t4', precision='fp16', m=1024, n=2048, k=512)\n"
        "assert p.model == 'kernelcast-t4@1', p.model\n"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'mlflow', 'matplotlib', 'sqlalchemy'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
