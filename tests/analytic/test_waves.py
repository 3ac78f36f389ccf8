"""Tiles, waves and the tail."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.waves import (
    cta_count,
    full_waves,
    k_tile_count,
    wave_count,
)

count = st.integers(1, 100_000)


def test_the_worked_example_needs_94_waves() -> None:
    ctas = cta_count(16384, 16384, 128, 128)
    assert ctas == 128 * 128
    assert wave_count(ctas, 176) == 94  # 16384/176 = 93.09
    assert full_waves(ctas, 176) / wave_count(ctas, 176) == pytest.approx(93.0909 / 94, rel=1e-5)
    assert k_tile_count(16384, 32) == 512


def test_two_ctas_per_unit_halve_the_waves() -> None:
    assert wave_count(400, 100, 2) == 2
    assert wave_count(401, 100, 2) == 3


@settings(max_examples=50, deadline=None)
@given(count, st.integers(1, 300), st.integers(1, 4))
def test_waves_cover_the_grid_and_are_monotone(ctas: int, units: int, per_unit: int) -> None:
    waves = wave_count(ctas, units, per_unit)
    assert (waves - 1) * units * per_unit < ctas <= waves * units * per_unit
    assert wave_count(ctas + 1, units, per_unit) >= waves
    assert wave_count(ctas, units + 1, per_unit) <= waves
    assert full_waves(ctas, units, per_unit) <= waves


def test_arrays_broadcast_and_equal_scalars() -> None:
    sizes = np.array([1, 127, 128, 129, 4096])
    together = cta_count(sizes[:, None], sizes, 128, 64, 3)
    assert together.shape == (5, 5)
    assert together[3, 4] == cta_count(129, 4096, 128, 64, 3)


def test_no_units_is_an_error() -> None:
    with pytest.raises(InputError, match="units is 0"):
        wave_count(10, 0)
