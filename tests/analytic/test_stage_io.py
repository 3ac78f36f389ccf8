"""Eq. (4), (5), (7): copies, decompression, overlap."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.published.stage_io import (
    decompression_engine_time,
    decompression_load_time,
    engine_input_rate,
    io_time_effective,
    sync_time,
    tma_time,
    tma_time_operands,
    unpack_time,
)

time = st.floats(0.0, 1e-3)
part = st.floats(0.0, 1.0)

# arXiv 2512.02189 Table II: pattern -> (compression ratio, input GB/s, output GB/s)
TABLE_II = {
    "random": (1.00, 173.23, 172.55),
    "mixed": (1.98, 80.11, 158.94),
    "repetitive": (15.02, 14.63, 219.80),
    "zeros": (245.45, 0.85, 209.83),
}


def test_tma_time_and_multicast() -> None:
    assert tma_time(16384, 1e11, 2e-7) == pytest.approx(2e-7 + 1.6384e-7)
    assert tma_time(16384, 1e11, 2e-7, participants=4) == pytest.approx(2e-7 + 1.6384e-7 / 4)
    serial = tma_time_operands(8192, 16384, 1e11, 2e-7, 1, 2)
    overlapped = tma_time_operands(8192, 16384, 1e11, 2e-7, 1, 2, order="overlapped")
    assert serial == pytest.approx(2 * (2e-7 + 8.192e-8))
    assert overlapped == pytest.approx(2e-7 + 8.192e-8)
    with pytest.raises(InputError, match="order 'both'"):
        tma_time_operands(1, 1, 1, 0, order="both")


def test_decompression_by_link_and_by_engine() -> None:
    assert decompression_load_time(1e9, 2.0, 50e9, 0.8) == pytest.approx(1e9 / (2 * 50e9 * 0.8))
    assert decompression_engine_time(5e8, 50e9, 100e9) == pytest.approx(0.01)
    assert decompression_engine_time(5e8, 100e9, 50e9) == pytest.approx(0.01)
    assert unpack_time(1e6, 1e11, 1e-6) == pytest.approx(1.1e-5)
    with pytest.raises(InputError, match="efficiency"):
        decompression_load_time(1e9, 2.0, 50e9, 1.5)


@pytest.mark.parametrize("pattern", TABLE_II)
def test_table_ii_engine_is_bound_by_its_output(pattern: str) -> None:
    ratio, input_rate, output_rate = TABLE_II[pattern]
    # ratio and input rate are printed to 0.005: the bracket their rounding allows
    low = engine_input_rate(output_rate, ratio + 0.005) - 0.005
    high = engine_input_rate(output_rate, ratio - 0.005) + 0.005
    assert low <= input_rate <= high


def test_output_bound_time_does_not_depend_on_the_ratio() -> None:
    times = [
        float(decompression_engine_time(1e9 / ratio, 1e13, engine_input_rate(200e9, ratio)))
        for ratio in (1.0, 2.0, 15.0)
    ]
    assert times == pytest.approx([5e-3] * 3)


@settings(max_examples=50, deadline=None)
@given(time, time, time, part, part)
def test_overlap_hides_copies_never_sync(t_tma: float, t_decomp: float, t_sync: float, a: float, b: float) -> None:
    a, b = sorted((a, b))
    less_hidden = io_time_effective(t_tma, t_decomp, t_sync, a)
    more_hidden = io_time_effective(t_tma, t_decomp, t_sync, b)
    assert t_sync <= more_hidden <= less_hidden * (1 + 1e-12)
    assert io_time_effective(t_tma, t_decomp, t_sync, 0.0) == pytest.approx(t_tma + t_decomp + t_sync)
    assert io_time_effective(t_tma, t_decomp, t_sync, 1.0) == t_sync


@settings(max_examples=50, deadline=None)
@given(st.floats(1, 1e6), st.floats(1e9, 1e13), time, st.integers(1, 16))
def test_tma_time_is_monotone(byte: float, rate: float, latency: float, participants: int) -> None:
    base = tma_time(byte, rate, latency, participants)
    assert base >= latency
    assert tma_time(byte * 2, rate, latency, participants) >= base
    assert tma_time(byte, rate * 2, latency, participants) <= base
    assert tma_time(byte, rate, latency, participants + 1) <= base


def test_sync_and_bad_alpha() -> None:
    assert sync_time(2, 20e-9) == pytest.approx(40e-9)
    with pytest.raises(InputError, match=r"alpha is 1\.1"):
        io_time_effective(1.0, 1.0, 0.0, [0.5, 1.1])
