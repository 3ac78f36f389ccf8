"""What a parameter may be: numbers, words and the slips of a keyboard, each rule on a handful of rows."""

from __future__ import annotations

import numpy as np
import pytest
from kernelcast.analytic.errors import InputError, mistyped
from kernelcast.analytic.families import FAMILIES
from kernelcast.analytic.rules import number_faults, numbers, spelt, word_faults
from kernelcast.analytic.work import Param, arguments

ORDER = Param("order", "text", required=False, words=("random", "sorted"))
KIND = Param("kind", "text", required=False, words=("near_diagonal", "grid"), open=True)


def cells(*values: object) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def test_numbers_are_read_from_whatever_a_table_holds() -> None:
    values, bad = numbers(cells(1, "2.5", True, "False", None, "wide", np.nan, [1]))
    np.testing.assert_array_equal(values, [1.0, 2.5, 1.0, 0.0, np.nan, np.nan, np.nan, np.nan])
    assert bad.tolist() == [False] * 5 + [True, False, True]


def test_a_number_breaks_the_rules_of_its_kind_and_nan_breaks_none() -> None:
    values = np.array([np.nan, 0.0, 1.5, np.inf, 2.0**54, 3.0])
    broken = {fault.words: fault.where.tolist() for fault in number_faults(Param("n"), values, whole=True)}
    assert broken == {
        "must be finite and at least 1": [False, True, False, True, False, False],
        "is too large for the size of anything": [False, False, False, True, True, False],
        "must be a whole number, at least 1": [False, False, True, False, False, False],
    }
    # a share may be nothing and need not be whole
    assert not any(f.where.any() for f in number_faults(Param("x", "real"), np.array([0.0, 0.5]), whole=True))


def test_words_are_case_blind_and_unknown_ones_are_refused_with_the_valid_ones() -> None:
    given = cells("Random", "SORTED", None, np.nan, "", "banana", 3)
    assert spelt(ORDER, given)[:2].tolist() == ["random", "sorted"] and given[0] == "Random"
    faults = {fault.words: np.flatnonzero(fault.where).tolist() for fault in word_faults(ORDER, given)}
    assert faults == {"is '3' (valid: random, sorted)": [6], "is 'banana' (valid: random, sorted)": [5]}


def test_a_label_may_be_anything_but_a_slip_of_the_keyboard() -> None:
    assert spelt(KIND, cells("Near Diagonal", "near-diagonal")).tolist() == ["near_diagonal"] * 2
    (fault,) = word_faults(KIND, cells("web", "gird", "grid", None))
    assert fault.where.tolist() == [False, True, False, False] and "did you mean" in fault.words


@pytest.mark.parametrize(("name", "meant"), [
    ("cublass", "cublas"), ("cublsa", "cublas"), ("cubas", "cublas"), ("cubles", "cublas"), ("xcublas", "cublas"),
    ("cublas", ""), ("rocblas", ""), ("tile32", ""), ("fax", ""), ("", ""),
])
def test_one_slip_is_a_mistyping_two_are_another_name(name: str, meant: str) -> None:
    assert mistyped(name, ("cublas", "tile16", "fa2")) == meant


@pytest.mark.parametrize(("family", "params", "words"), [
    ("attention", {"kv_precision": "banana"}, r"'kv_precision' is 'banana' \(valid: bf16, .*fp8"),
    ("gemm", {"scheme": "int8wo"}, r"'scheme' is 'int8wo' \(did you mean int8_wo"),
    ("gather", {"order": "sortd"}, r"row 1: parameter 'order' is 'sortd' \(did you mean sorted\?\)"),
    ("bfs", {"structure": "romat"}, r"'structure' is 'romat' \(did you mean rmat"),
])
def test_the_equations_refuse_what_a_person_and_a_table_are_refused(family: str, params: dict[str, str], words: str
                                                                    ) -> None:
    sound = {name: value for name, value in FAMILIES[family].example.items() if name not in params}
    column = cells(*params.values(), *([None] if family == "gather" else []))
    with pytest.raises(InputError, match=words):
        arguments(FAMILIES[family], sound | dict.fromkeys(params, column))


def test_case_changes_no_work() -> None:
    params = dict(FAMILIES["attention"].example)
    low, high = (arguments(FAMILIES["attention"], params | {"kv_precision": word})["kv_precision"].tolist()
                 for word in ("fp8", "FP8"))
    assert low == high == ["fp8"]
