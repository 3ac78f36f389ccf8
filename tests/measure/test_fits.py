"""Fits give back what made the sweep, and refuse sweeps that cannot tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import InputError
from kernelcast.measure.fits import Knees, Line, Saturation, fit_knees, fit_line, fit_saturation, fit_slope, plateau

SIZES = np.array([4, 6, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 72, 80, 96, 128, 256, 1024]) * 1e6


@given(st.floats(5e12, 2e13), st.floats(1e12, 4e12), st.floats(0.5, 0.85), st.floats(0.15, 0.5), st.integers(0, 1000))
@settings(deadline=None, max_examples=15)
def test_knees_come_back_through_noise(fast: float, slow: float, start: float, width: float, seed: int) -> None:
    true = Knees(fast, slow, start * 5e7, (start + width) * 5e7, 0.0)
    noise = np.exp(np.random.default_rng(seed).normal(0.0, 0.003, SIZES.size))
    found = fit_knees(SIZES, true.byte_per_s(SIZES) * noise, 5e7)
    assert found.cache_byte_per_s == pytest.approx(fast, rel=0.02)
    assert found.memory_byte_per_s == pytest.approx(slow, rel=0.02)
    assert found.start_byte == pytest.approx(true.start_byte, rel=0.08)
    assert found.end_byte == pytest.approx(true.end_byte, rel=0.08)
    assert found.error < 0.01


def test_a_sweep_that_ends_before_the_cache_does_cannot_tell() -> None:
    inside = SIZES[SIZES < 4e7]
    with pytest.raises(InputError, match="twice"):
        fit_knees(inside, np.full(inside.size, 9e12), 5e7)


@given(st.floats(1e11, 1e13), st.floats(5.0, 500.0), st.floats(1.0, 8.0))
@settings(deadline=None, max_examples=20)
def test_saturation_comes_back(limit: float, half: float, sharpness: float) -> None:
    blocks = np.array([1, 2, 4, 8, 16, 32, 64, 132, 264, 528, 1056, 2112, 4224, 16896], float)
    found = fit_saturation(blocks, Saturation(limit, half, sharpness, 0.0).rate(blocks))
    np.testing.assert_allclose(found.rate(blocks), Saturation(limit, half, sharpness, 0.0).rate(blocks), rtol=0.02)


@given(st.floats(1e-7, 1e-4), st.floats(1e9, 1e12))
@settings(deadline=None, max_examples=20)
def test_a_fixed_cost_and_a_rate_come_back(fixed: float, rate: float) -> None:
    byte = np.geomspace(8.0, max(1e9, 100.0 * fixed * rate), 40)
    found = fit_line(byte, Line(fixed, rate, 0.0).time_s(byte))
    assert found.fixed_s == pytest.approx(fixed, rel=1e-3)
    assert found.rate == pytest.approx(rate, rel=1e-3)


def test_a_slope_is_what_each_further_kernel_adds() -> None:
    count = np.array([1.0, 2, 4, 8, 16])
    assert fit_slope(count, 1e-4 + (count - 1) * 3e-6) == pytest.approx((1e-4, 3e-6))


def test_a_plateau_is_a_median_of_what_is_there() -> None:
    assert plateau([1, 2, 3, 4], [9, 5, 6, 7], 2, 4) == 6.0
    with pytest.raises(InputError, match="no point"):
        plateau([1, 2], [1, 1], 5, 6)


@pytest.mark.parametrize("bad", [[1.0, np.nan, 1, 1], [1.0, -1, 1, 1], [0.0, 1, 1, 1], [1.0, 1, 1]])
def test_impossible_points_are_refused(bad: list[float]) -> None:
    with pytest.raises(InputError):
        fit_saturation([1.0, 2, 3, 4], bad)
