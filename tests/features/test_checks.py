"""Rows judged by their own values: what cannot be true, and that a bad row costs no other its place."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.families import FAMILIES
from kernelcast.features.checks import row_faults
from kernelcast.features.describe import describe
from kernelcast.service.answer import predict
from kernelcast.training.tables.schema import read_runs
from kernelcast.training.tables.shipped import shipped_tables

MATRIX = {"rows": 100, "cols": 50, "nnz": 400, "row_mean": 4, "row_max": 9, "row_min": 1}
IMPOSSIBLE: dict[str, tuple[str, dict[str, Any], str]] = {
    # 100 rows x 50 columns hold 5000 entries at most
    "more entries than places": ("spmv_csr", MATRIX | {"nnz": 5001, "row_max": 50, "row_mean": 50}, "more than rows x"),
    "a row longer than the matrix is wide": ("spmv_coo", MATRIX | {"row_max": 51}, "'row_max' is more than cols"),
    # 400 entries in 100 rows: the longest has at least 4
    "the longest row below the mean": ("spmv_ell", MATRIX | {"row_max": 3, "row_mean": 3}, "less than nnz / rows"),
    "a mean above the longest row": ("spmm_csr", MATRIX | {"cols_dense": 8, "row_mean": 10}, "'row_mean' is more"),
    "a shortest row above the mean": ("sptrsv", MATRIX | {"row_min": 5}, "'row_min' is more"),
    "more levels than nodes": ("bfs", {"nodes": 10, "edges": 90, "levels": 11}, "'levels' is more than nodes"),
    "more key heads than heads": ("attention", {"batch": 1, "heads": 4, "kv_heads": 8, "seq": 64, "head_dim": 64},
                                  "'kv_heads' is more than heads"),
    "a word that means nothing": ("gather", {"table": 100, "n": 100, "order": "sortd"}, "did you mean sorted"),
    "a number for a word": ("histogram", {"bins": 10, "n": 100, "order": 3}, "valid: random, sorted"),
}


def rows(kernel: str, *params: dict[str, Any], precision: str = "fp32") -> pd.DataFrame:
    return pd.DataFrame({"platform": "h200", "kernel": kernel, "precision": precision, "cache": "warm",
                         "params": [json.dumps(item) for item in params]})


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_what_cannot_hold_together_is_refused_alone_and_in_a_table(case: str) -> None:
    kernel, params, words = IMPOSSIBLE[case]
    with pytest.raises(InputError, match=words):
        predict(kernel, platform="h200", analytic=True, **params)
    assert words in row_faults(rows(kernel, params))[0]


@pytest.mark.parametrize("kernel", ["spmv_csr", "spmv_hybrid"])
def test_limits_may_be_reached_and_left_unsaid(kernel: str) -> None:
    full = {"rows": 100, "cols": 50, "nnz": 5000, "row_mean": 50, "row_max": 50, "row_min": 50}
    plain = {"rows": 100, "cols": 50, "nnz": 400}
    # six digits of a mean: 1000003 / 3 = 333334.33
    rounded = {"rows": 3, "cols": 400_000, "nnz": 1_000_003, "row_mean": 333334.0, "row_max": 333_334}
    assert row_faults(rows(kernel, full, plain, rounded)).tolist() == ["", "", ""]


def test_no_measured_row_is_called_impossible() -> None:
    frame = read_runs(shipped_tables()["h200"]).frame
    judged = [name for name, family in FAMILIES.items() if family.contradictions or any(p.words for p in family.params)]
    asked = frame[frame["kernel"].isin(judged)]
    assert len(asked) > 10_000
    assert set(row_faults(asked)) == {""}


def test_a_bad_row_costs_no_other_row_of_its_family_its_place() -> None:
    good = {"m": 256, "n": 256, "k": 256}
    frame = rows("gemm", good, good | {"m": 0}, good, {"m": 1, "n": 1}, precision="bf16")
    described = describe(frame)
    assert np.isfinite(described.baseline_s).tolist() == [True, False, True, False]
    assert "'m' must be finite" in described.refused[1] and "'k' is missing" in described.refused[3]
    assert described.baseline_s[0] == describe(rows("gemm", good, precision="bf16")).baseline_s[0]
    (group,) = described.groups
    assert group.index.tolist() == [0, 2]
    with pytest.raises(InputError, match="'m' is 0"):
        describe(frame.iloc[:2], strict=True)
