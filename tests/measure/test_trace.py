"""Traces are cut at their markers, and a trace that does not match what was launched is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import KernelcastError
from kernelcast.measure.trace import RECORD, Segment, assign_codes, cut


def trace(*kernels: tuple[int, int, int]) -> np.ndarray:
    """(duration_ns, grid_x, is marker), one after the other with gaps of 100 ns."""
    rows, now = [], 1_000
    for duration, grid, marker in kernels:
        rows.append((now, now + duration, grid, marker))
        now += duration + 100
    return np.array(rows, RECORD)


def test_a_segment_is_what_lies_between_two_markers() -> None:
    records = trace((5, 7, 0), (1, 2, 1), (2000, 64, 0), (3000, 9, 0), (1, 3, 1), (500, 1, 0), (1, 1, 1))
    found = cut(records)
    assert [(s.code, s.launches) for s in found] == [(2, 2), (3, 1), (1, 0)]
    assert [s.time_s for s in found] == pytest.approx([5e-6, 0.5e-6, 0.0])  # 2000 + 3000 ns, 500 ns, nothing


def test_records_may_come_in_any_order() -> None:
    records = trace((1, 4, 1), (800, 1, 0), (1, 5, 1), (900, 1, 0))
    assert cut(records[[3, 0, 2, 1]]) == cut(records)


def test_no_records_or_no_markers_give_no_segments() -> None:
    assert cut(np.zeros(0, RECORD)) == []
    assert cut(trace((10, 1, 0))) == []


@given(st.lists(st.tuples(st.integers(1, 60), st.lists(st.integers(1, 10**7), max_size=4)), min_size=1, max_size=30))
@settings(deadline=None, max_examples=40)
def test_any_sequence_of_calls_comes_back(calls: list[tuple[int, list[int]]]) -> None:
    kernels = [item for code, times in calls for item in [(1, code, 1), *((t, 3, 0) for t in times)]]
    found = cut(trace(*kernels))
    assert [s.code for s in found] == [code for code, _ in calls]
    assert [s.launches for s in found] == [len(times) for _, times in calls]
    np.testing.assert_allclose([s.time_s for s in found], [sum(times) * 1e-9 for _, times in calls], rtol=1e-12)


def test_codes_are_given_to_a_trace_without_grids() -> None:
    assert assign_codes([Segment(0, 1.0, 1), Segment(0, 2.0, 1)], [4, 5]) == [Segment(4, 1.0, 1), Segment(5, 2.0, 1)]


@pytest.mark.parametrize(("codes", "complaint"), [([4], "holds 2 markers where 1"), ([4, 6], "not in the order")])
def test_a_trace_that_lost_records_is_refused(codes: list[int], complaint: str) -> None:
    with pytest.raises(KernelcastError, match=complaint):
        assign_codes([Segment(4, 1.0, 1), Segment(5, 2.0, 1)], codes)
