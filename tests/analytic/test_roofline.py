"""Eq. (1), the naive roofline and the guard."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.roofline import combine_overlap, execution_time, guard_bound, naive_roofline
from kernelcast.analytic.validity import Validity, outside

seconds = st.floats(0.0, 1e3)
part = st.floats(0.0, 1.0)


def test_gemm_4096_of_the_roofline_notes() -> None:
    flop = 2 * 4096**3  # 137.4 GFLOP
    byte = 3 * 4096**2 * 2  # 3 matrices * 4096**2 elements * 2 B = 100.7 MB
    assert naive_roofline(flop, byte, 100e12, 2.5e12) == pytest.approx(1.37e-3, rel=4e-3)  # compute binds
    assert naive_roofline(0, byte, 100e12, 2.5e12) == pytest.approx(40e-6, rel=7e-3)


def test_execution_time_adds_overhead_to_the_longer() -> None:
    assert execution_time([3.0, 1.0], [2.0, 5.0], 0.5).tolist() == [3.5, 5.5]


@settings(max_examples=50, deadline=None)
@given(seconds, seconds, part, part)
def test_overlap_runs_from_sum_to_maximum(a: float, b: float, low: float, high: float) -> None:
    assert combine_overlap(a, b, 0.0) == pytest.approx(a + b)
    assert combine_overlap(a, b, 1.0) == max(a, b)
    low, high = sorted((low, high))
    assert combine_overlap(a, b, high) <= combine_overlap(a, b, low) * (1 + 1e-12)
    assert combine_overlap(a, b, low) >= max(a, b)


@settings(max_examples=50, deadline=None)
@given(st.floats(1.0, 1e15), st.floats(1.0, 1e12), st.floats(1e9, 1e16), st.floats(1e9, 1e13))
def test_bound_never_rises_with_a_rate(flop: float, byte: float, peak: float, bandwidth: float) -> None:
    base = naive_roofline(flop, byte, peak, bandwidth)
    assert naive_roofline(flop, byte, peak * 1.5, bandwidth) <= base
    assert naive_roofline(flop, byte, peak, bandwidth * 1.5) <= base
    assert naive_roofline(flop * 1.5, byte, peak, bandwidth) >= base


def test_guard_lifts_and_reports() -> None:
    time, acts = guard_bound([1.0, 3.0], [2.0, 2.0])
    assert time.tolist() == [2.0, 3.0]
    assert acts.tolist() == [True, False]


def test_bad_inputs_are_named() -> None:
    with pytest.raises(InputError, match="peak_byte_per_s is 0 at position 1"):
        naive_roofline(1.0, 1.0, 1.0, [1.0, 0.0])
    with pytest.raises(InputError, match=r"overlap is 1\.2"):
        combine_overlap(1.0, 1.0, 1.2)
    with pytest.raises(InputError, match="t_compute_s is nan"):
        execution_time(np.nan, 1.0)


def test_validity_reports_where_inputs_leave_the_range() -> None:
    ranges = (Validity("alpha", 0.85, 0.95, "1"), Validity("n", 1, 2, "1"))
    report = outside(ranges, {"alpha": [0.8, 0.9, np.nan]})
    assert report["alpha"].tolist() == [True, False, True]
    with pytest.raises(InputError, match="no range named beta"):
        outside(ranges, {"beta": 1.0})
