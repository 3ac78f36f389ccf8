"""key=value words: what is a number, what is a mistake."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import InputError
from kernelcast.service.cli.parse import overrides, parameters, value_of
from kernelcast.service.cli.show import band, clean, seconds


@pytest.mark.parametrize(("word", "value"), [
    ("8192", 8192), ("1e6", 1_000_000), ("0.5", 0.5), ("-3", -3), ("true", True), ("False", False),
    ("random", "random"), ("4k", "4k"), ("[1,2,3]", [1, 2, 3]), ("inf", math.inf), ("csr=x", "csr=x"), ("0x10", "0x10"),
])
def test_values(word: str, value: Any) -> None:
    found = value_of(word)
    assert found == value and type(found) is type(value)


def test_words_about_the_call_are_kept_apart_from_sizes() -> None:
    assert parameters(["m=4", "precision=fp16", "implementation=cublas", "cache=cold"]) == (
        {"m": 4}, {"precision": "fp16", "implementation": "cublas", "cache": "cold"},
    )


@pytest.mark.parametrize("words", [["m"], ["=3"], ["m="], ["m=1", "m=1"], ["1m=2"], ["m n=2"], [""], ["grid=[1,"]])
def test_malformed_and_repeated_words_are_one_message(words: list[str]) -> None:
    with pytest.raises(InputError):
        parameters(words)


def test_overrides_keep_their_unit() -> None:
    assert overrides(["hbm_peak_bw=6TB/s"]) == {"hbm_peak_bw": "6TB/s"}


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30))
def test_no_control_character_reaches_the_terminal(text: str) -> None:
    shown = clean(text)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in shown)


def test_times_and_bands_for_people() -> None:
    assert seconds(0.0014321) == "1.432 ms"
    assert seconds(None) == "-"
    assert band(1e-6, 2e-6) == "1 µs … 2 µs"
    assert band(None, None) == "unbounded"
