"""Units: prefixes, dimensions, round trips."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.units import format_quantity, parse_quantity, unit_factor

DECIMAL = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
SI_UNITS = ["B", "B/s", "FLOP/s", "OP/s", "s", "Hz", "W"]


@pytest.mark.parametrize("prefix", DECIMAL)
@pytest.mark.parametrize("unit", SI_UNITS)
def test_every_decimal_prefix_on_every_unit(prefix: str, unit: str) -> None:
    assert unit_factor(prefix + unit, unit) == pytest.approx(DECIMAL[prefix], rel=1e-15)


@pytest.mark.parametrize("prefix", BINARY)
@pytest.mark.parametrize("unit", ["B", "B/s"])
def test_every_binary_prefix(prefix: str, unit: str) -> None:
    assert unit_factor(prefix + unit, unit) == BINARY[prefix]


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("4.8 TB/s", "B/s", 4.8e12),
        ("4.8TB/s", "B/s", 4.8e12),
        ("  4.8e0  TB/s ", "B/s", 4.8e12),
        ("1.5 TiB/s", "B/s", 1.5 * 2**40),
        ("989 TFLOPS", "FLOP/s", 989e12),
        ("989 TFLOP/s", "FLOP/s", 989e12),
        ("1979 TOPS", "FLOP/s", 1979e12),
        ("1979 TOP/s", "OP/s", 1979e12),
        ("137 GFLOP", "FLOP", 137e9),
        ("2.5 us", "s", 2.5e-6),
        ("2.5µs", "s", 2.5e-6),
        ("2.5μs", "s", 2.5e-6),  # Greek mu, the other code point
        ("1.98 GHz", "Hz", 1.98e9),
        ("420 cycles", "cycle", 420.0),
        ("85 %", "ratio", 0.85),
        ("148", "count", 148.0),
        ("64 warps", "warp", 64.0),
        ("-1e-3 s", "s", -1e-3),
        (".5 B", "B", 0.5),
        ("7", "B/s", 7.0),
        (4.8e12, "B/s", 4.8e12),
    ],
)
def test_text_to_si(text: str | float, unit: str, value: float) -> None:
    assert parse_quantity(text, unit) == value


@pytest.mark.parametrize(
    ("text", "unit", "message"),
    [
        ("4.8 TB", "B/s", "wrong dimension"),
        ("5 s", "cycle", "wrong dimension"),
        ("5 TFLOP/s", "B/s", "wrong dimension"),
        ("5 cycle", "count", "wrong dimension"),
        ("5 KB", "B", "did you mean"),  # 1000 or 1024? ask
        ("5 parsec", "s", "unknown unit"),
        ("5 TB/", "B/s", "unknown unit"),
        ("5 __import__('os')", "B", "unknown unit"),
        ("fast", "B/s", "not a number"),
        ("", "B/s", "not a number"),
        ("4,8 TB/s", "B/s", "unknown unit"),
        ("nan", "s", "not a number"),
        ("1e400", "s", "not a finite"),
        (math.nan, "s", "not a finite"),
        (math.inf, "s", "not a finite"),
        (True, "count", "not a number"),
    ],
)
def test_bad_text_says_what_is_wrong(text: str | float, unit: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_quantity(text, unit)


@given(
    value=st.floats(1e-15, 1e21, allow_nan=False, allow_infinity=False),
    unit=st.sampled_from(["B", "B/s", "FLOP/s", "OP/s", "s", "Hz", "W", "cycle", "warp", "count", "ratio"]),
)
@settings(deadline=None, max_examples=200)
def test_format_then_parse_keeps_four_digits(value: float, unit: str) -> None:
    assert parse_quantity(format_quantity(value, unit), unit) == pytest.approx(value, rel=5.1e-4)


@given(value=st.floats(-1e20, 1e20, allow_nan=False), unit=st.sampled_from(["B/s", "s", "cycle", "count"]))
@settings(deadline=None, max_examples=100)
def test_repr_with_a_unit_is_exact(value: float, unit: str) -> None:
    assert parse_quantity(f"{value!r} {unit}", unit) == value


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (4.8e12, "B/s", "4.8 TB/s"),
        (1.43e-3, "s", "1.43 ms"),
        (8.8e-7, "s", "880 ns"),
        (126.5 * 2**20, "B", "126.5 MiB"),
        (60_000_000, "B", "60 MB"),
        (80e9, "B", "80 GB"),
        (262144, "B", "256 KiB"),
        (999.96, "Hz", "1 kHz"),  # rounds up into the next prefix
        (0.0, "s", "0 s"),
        (-2.5e-6, "s", "-2.5 µs"),
        (420, "cycle", "420 cycle"),
        (148, "count", "148"),
        (0.85, "ratio", "0.85"),
        (1.23456e15, "FLOP/s", "1.235 PFLOP/s"),
        (math.inf, "s", "inf s"),
    ],
)
def test_numbers_for_people(value: float, unit: str, text: str) -> None:
    assert format_quantity(value, unit) == text
