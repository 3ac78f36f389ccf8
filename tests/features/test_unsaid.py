"""What a question leaves out although the training runs say it: a model answers that does without, and says so."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.families import FAMILIES
from kernelcast.features.unsaid import unsaid
from kernelcast.service.answer import predict
from kernelcast.service.batch import predict_runs
from kernelcast.service.cli.demo import QUESTIONS

SPMV: dict[str, Any] = {"rows": 1_000_000, "cols": 1_000_000, "nnz": 16_000_000, "row_std": 4.0, "row_max": 36,
                        "structure": "uniform"}
NARROW = "too narrow"
WITHOUT = "by a model and a band that do without "


def test_the_statistics_are_parameters_that_may_be_left_out() -> None:
    assert sum(bool(family.statistics) for family in FAMILIES.values()) >= 11
    for family in FAMILIES.values():
        optional = {param.name for param in family.params if not param.required}
        assert set(family.statistics) <= optional, family.name


def test_absent_cells_are_found_whatever_they_look_like() -> None:
    raw = {"row_max": np.array([3.0, np.nan]), "row_std": np.array([None, 1.0], dtype=object), "nnz": np.ones(2)}
    found = unsaid(FAMILIES["spmv_csr"], raw, 2)
    assert {name: rows.tolist() for name, rows in found.items()} == {"row_std": [True, False], "row_max": [False, True]}
    assert unsaid(FAMILIES["bfs"], {}, 3)["max_degree"].tolist() == [True] * 3
    assert unsaid(FAMILIES["gemm"], {}, 1) == {}


@pytest.mark.parametrize("name", ["row_std", "row_max", "structure"])
def test_a_question_that_leaves_one_out_is_answered_without_it_alone_and_in_a_table(home: Any, name: str) -> None:
    part = {key: value for key, value in SPMV.items() if key != name}
    whole, short = (predict("spmv_csr", platform="h200", precision="fp32", implementation="cusparse", **given)
                    for given in (SPMV, part))
    assert whole.in_domain and whole.note == ""
    assert short.in_domain and short.note.startswith(WITHOUT) and name in short.note
    table = pd.DataFrame({"platform": "h200", "kernel": "spmv_csr", "precision": "fp32", "implementation": "cusparse",
                          "params": [json.dumps(SPMV), json.dumps(part)]})
    done = predict_runs(table)
    assert done["in_domain"].tolist() == [True, True]
    assert done["note"].tolist() == [whole.note, short.note]
    assert done["predicted_s"].tolist() == pytest.approx([whole.predicted_s, short.predicted_s], rel=1e-9)
    assert done["upper_s"].tolist() == pytest.approx([whole.upper_s, short.upper_s], rel=1e-9)


def test_a_label_that_no_training_run_had_says_as_much_as_none(home: Any) -> None:
    asked = pd.DataFrame({"platform": "h200", "kernel": "spmv_csr", "precision": "fp32",
                          "params": [json.dumps(SPMV | {"structure": label}) for label in ("web", "")]})
    done = predict_runs(asked)
    assert done["predicted_s"].nunique() == 1
    assert "structure 'web' (of no training run)" in done["note"][0]
    # a person who asks is told the words instead; a slip of the keyboard is refused in a table, too
    with pytest.raises(InputError, match=r"'structure' is 'web'.*valid: .*uniform.*leave it out"):
        predict("spmv_csr", platform="h200", precision="fp32", **SPMV | {"structure": "web"})
    slip = predict_runs(asked.assign(params=json.dumps(SPMV | {"structure": "unifrom"})))
    assert slip["predicted_s"].isna().all() and "did you mean uniform" in slip["note"][0]


def test_nobody_asks_for_what_a_model_never_saw(home: Any) -> None:
    part = {key: value for key, value in SPMV.items() if key != "structure"}  # no run of an MI250X has one
    assert NARROW not in predict("spmv_csr", platform="mi250x-gcd", precision="fp64", **part).note


def test_the_questions_of_the_demo_are_whole(home: Any) -> None:
    for family, precision, params in QUESTIONS:
        given = predict(family, platform="h200", precision=precision, **params)
        assert given.in_domain and given.note == "", family
