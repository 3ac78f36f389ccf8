"""Eq. (9)-(14)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.published.wavefront import (
    WAVEFRONT_VALIDITY,
    kernel_time_wavefront,
    memory_time_kernel,
    memory_time_latency,
    mfma_time,
    overlap_factor,
    step_time_printed,
    tile_kernel_time,
    tile_step_time,
)
from kernelcast.analytic.roofline import guard_bound
from kernelcast.analytic.validity import outside
from kernelcast.analytic.wavefront import latency_bound_time, step_time

time = st.floats(1e-9, 1e-3)
part = st.floats(0.0, 1.0)
waves = st.integers(1, 40)


def test_overlap_factor_by_hand() -> None:
    assert overlap_factor(5, 1.0, 8.0) == 0.5  # 4 others cover 4 of 8
    assert overlap_factor(1, 1.0, 8.0) == 0.0
    assert overlap_factor(9, 1.0, 8.0) == 1.0
    assert overlap_factor(3, 1.0, 0.0) == 1.0


@settings(max_examples=50, deadline=None)
@given(waves, time, time)
def test_overlap_factor_is_a_fraction_and_rises_with_occupancy(n: int, t_compute: float, t_memory: float) -> None:
    eta = overlap_factor(n, t_compute, t_memory)
    assert 0.0 <= eta <= 1.0
    assert overlap_factor(n + 1, t_compute, t_memory) >= eta


@settings(max_examples=50, deadline=None)
@given(part, part, part)
def test_hit_weights_add_up_to_one(h1: float, h2: float, h3: float) -> None:
    assert memory_time_latency(7, h1, h2, h3, 1.0, 1.0, 1.0, 1.0) == pytest.approx(7.0)


@settings(max_examples=50, deadline=None)
@given(part, part, part, st.floats(0.0, 0.5))
def test_more_hits_never_cost_time(h1: float, h2: float, h3: float, extra: float) -> None:
    latencies = (57e-9, 102e-9, 218e-9, 421e-9)  # L1 < L2 < LLC < HBM
    base = memory_time_latency(1, h1, h2, h3, *latencies)
    for index in range(3):
        better = [h1, h2, h3]
        better[index] = min(1.0, better[index] + extra)
        assert memory_time_latency(1, *better, *latencies) <= base * (1 + 1e-12)
    assert latencies[0] <= base * (1 + 1e-12)
    assert base <= latencies[3] * (1 + 1e-12)


def test_memory_time_of_the_kernel_is_the_larger_form() -> None:
    assert memory_time_kernel([1.0, 3.0], 2.0, 1.0).tolist() == [2.0, 3.0]
    assert latency_bound_time(1e9, 5e-7, 1e6) == pytest.approx(5e-4)  # 2 TB/s in flight


def test_mfma_time() -> None:
    # 1e6 instructions on 228 units of 0.5 Gi/s at 55 %
    assert mfma_time(1e6, 228, 5e8, 0.55) == pytest.approx(1e6 / (228 * 5e8 * 0.55))
    with pytest.raises(InputError, match="utilisation"):
        mfma_time(1, 1, 1, 1.5)


def test_printed_step_beats_the_bound_and_the_guard_says_so() -> None:
    assert step_time_printed(4.0, 2.0, 1.0) == 3.0  # (4+2)/2: below the memory time
    guarded, acts = guard_bound(step_time_printed([4.0, 4.0], [2.0, 2.0], [1.0, 0.0]), [4.0, 4.0])
    assert guarded.tolist() == [4.0, 6.0]
    assert acts.tolist() == [True, False]


def test_printed_step_falls_when_compute_grows() -> None:
    slow, fast = 2.0, 1.0  # a contradiction of Eqs. (9) and (12) together, kept on record
    at = {c: float(step_time_printed(10.0, c, overlap_factor(8, c, 10.0))) for c in (fast, slow)}
    assert at[slow] < at[fast]


@settings(max_examples=50, deadline=None)
@given(time, time, waves)
def test_consistent_step_is_the_exposed_memory_form(t_memory: float, t_compute: float, n: int) -> None:
    eta = overlap_factor(n, t_compute, t_memory)
    expected = n * t_compute + (1.0 - float(eta)) * t_memory
    step = step_time(t_memory, t_compute, n)
    assert step == pytest.approx(expected, rel=1e-9)
    assert step >= n * t_compute
    assert step_time(t_memory * 1.1, t_compute, n) >= step
    assert step_time(t_memory, t_compute * 1.1, n) >= step
    assert step_time(t_memory, t_compute, n + 1) / (n + 1) <= step / n * (1 + 1e-12)


def test_step_is_continuous_where_overlap_becomes_full() -> None:
    edge = 8.0 / 4.0  # (5 - 1) * T_compute = T_memory = 8
    below, above = step_time(8.0, np.array([edge * (1 - 1e-12), edge * (1 + 1e-12)]), 5)
    assert above == pytest.approx(below, rel=1e-9)


def test_kernel_time_adds_every_term() -> None:
    assert kernel_time_wavefront(4e-6, 128, 1e-6, 2e-7, 1.5e-7, 7.5e-8) == pytest.approx(
        4e-6 + 128e-6 + 2e-7 + 1.5e-7 + 7.5e-8
    )
    assert kernel_time_wavefront(0.0, 128, 1e-6, waves=3) == pytest.approx(3 * 128e-6)


@pytest.mark.parametrize("size", [1024, 4096, 16384])
@pytest.mark.parametrize(("units", "flop_per_s", "byte_per_s"), [(228, 122.6e12, 3.64e12), (110, 47.9e12, 1.389e12)])
def test_16x16_tiles_beat_8x8(size: int, units: int, flop_per_s: float, byte_per_s: float) -> None:
    """The ordering of the tile study, on MI300A and one MI250X die, FP64."""

    def study(tile: int) -> float:
        ctas = (size / tile) ** 2
        step = tile_step_time(
            2.0 * tile * tile * size, 2.0 * tile * size * 8.0, flop_per_s / units, byte_per_s / units
        )
        return float(tile_kernel_time(ctas, step, units, tau_cta_s=1e-9, t_launch_s=4e-6, t_coherence_s=1.5e-7))

    assert study(16) < study(8)


@settings(max_examples=50, deadline=None)
@given(st.floats(1, 1e9), st.floats(1, 1e9), st.floats(1e9, 1e13), st.floats(1e8, 1e12), st.integers(1, 10**6))
def test_tile_study_is_monotone(flop: float, byte: float, peak: float, bandwidth: float, ctas: int) -> None:
    def total(f: float, b: float, p: float, w: float, c: float) -> float:
        return float(tile_kernel_time(c, tile_step_time(f, b, p, w), 228, 1.0, 1e-9, 4e-6))

    base = total(flop, byte, peak, bandwidth, ctas)
    assert base >= 4e-6
    assert total(flop * 2, byte, peak, bandwidth, ctas) >= base
    assert total(flop, byte * 2, peak, bandwidth, ctas) >= base
    assert total(flop, byte, peak, bandwidth, ctas + 1) >= base
    assert total(flop, byte, peak * 2, bandwidth, ctas) <= base
    assert total(flop, byte, peak, bandwidth * 2, ctas) <= base


def test_validity() -> None:
    report = outside(WAVEFRONT_VALIDITY, {"utilisation": [0.3, 0.55], "tile": 128})
    assert report["utilisation"].tolist() == [True, False]
    assert report["tile"].item() is True
