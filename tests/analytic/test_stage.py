"""Eq. (2), (3), (6), (8) and the stage-centric kernel time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.published.stage import (
    TWO_SM_SPEEDUP_MEASURED,
    compute_time_2sm,
    kernel_time,
    pair_memory_time,
    pair_sync_time,
    pair_traffic,
    step_time,
    step_time_pipelined,
    store_time,
    tma_store_time,
    tmem_management_time,
    tmem_time,
    tmem_traffic_per_step,
)
from kernelcast.analytic.stage import (
    COMPUTE_VALIDITY,
    compute_time,
    register_accumulators_fit,
    smem_per_step,
    tmem_demand,
)
from kernelcast.analytic.validity import outside

time = st.floats(0.0, 1e-3)
rate = st.floats(1e9, 1e14)
SM_FLOP_PER_S = 2250e12 / 176  # the published B200


def test_tmem_time_of_a_128x128_accumulator() -> None:
    d_accum = 128 * 128 * 4  # 64 KiB
    # 65536/16e12 = 4.10 ns, 65536/8e12 = 8.19 ns, 11 cycles at 1.965 GHz = 5.60 ns
    assert tmem_time(d_accum, 16e12, 8e12, 11 / 1.965e9) == pytest.approx(17.886e-9, rel=1e-3)
    assert tmem_time(0.0, 16e12, 8e12, 0.0) == 0.0  # Hopper: no tensor memory


def test_strategies_a_and_b() -> None:
    demand_a = tmem_demand(128, 256, 64, 4, 2, "A")
    assert demand_a == 128 * 256 * 4
    assert tmem_demand(128, 256, 64, 4, 2, "B") == demand_a + 128 * 64 * 2
    assert tmem_demand(128, 256, 64, 4, 2, "A", buffers=2) == 2 * demand_a
    assert tmem_traffic_per_step(100.0, 30.0, "A") == 100.0
    assert tmem_traffic_per_step(100.0, 30.0, "B") == 130.0
    # B keeps the A tile out of shared memory
    assert smem_per_step(128, 256, 64, 2, "A") == (128 + 256) * 64 * 2
    assert smem_per_step(128, 256, 64, 2, "B") == 256 * 64 * 2
    for function in (
        lambda: tmem_demand(1, 1, 1, 4, 2, "C"), lambda: tmem_traffic_per_step(1, 1, "C"),
        lambda: smem_per_step(1, 1, 1, 2, "C"),
    ):
        with pytest.raises(InputError, match="strategy 'C'"):
            function()


def test_compute_step_of_the_worked_example_is_82_ns() -> None:
    assert compute_time(128, 128, 32, SM_FLOP_PER_S) == pytest.approx(82.02e-9, rel=1e-4)
    assert tmem_management_time(1e-6, 0.5e-6, 512) == pytest.approx(1.5e-6 / 512)


def test_two_sm_pair_as_printed() -> None:
    alone = compute_time(256, 256, 16, SM_FLOP_PER_S)
    measured = alone / compute_time_2sm(256, 256, 16, SM_FLOP_PER_S)
    predicted = alone / compute_time_2sm(256, 256, 16, SM_FLOP_PER_S, 1.30)
    assert measured == pytest.approx(TWO_SM_SPEEDUP_MEASURED) == pytest.approx(1.28)
    assert predicted == pytest.approx(1.30)
    assert abs(predicted / measured - 1) < 0.02  # "within 2%"
    # square tiles: 2(M_A + M_B) over 2 M_A + M_B is 4/3, the printed "up to ~1.33x"
    assert 2 * (1.0 + 1.0) / pair_traffic(1.0, 1.0) == pytest.approx(1.33, abs=0.005)
    assert pair_memory_time(2e4, 1e4, 1e12) == pytest.approx(5e4 / 1e12)
    assert pair_sync_time(512, 20e-9) == pytest.approx(512 * 20e-9)


@settings(max_examples=50, deadline=None)
@given(time, time, time, time)
def test_step_time_forms(t_compute: float, t_io: float, t_sync: float, o_misc: float) -> None:
    once = step_time(t_compute, t_io, t_sync, o_misc)
    twice = step_time(t_compute, t_io, t_sync, o_misc, count_sync_twice=True)
    assert once == pytest.approx(max(t_compute, t_io) + o_misc)
    assert twice == pytest.approx(float(once) + t_sync)
    steady = step_time_pipelined(t_io, 0.0, t_compute, t_sync, o_misc)
    assert steady >= max(t_io, t_compute, t_sync)


@settings(max_examples=50, deadline=None)
@given(st.integers(16, 256), st.integers(16, 256), st.integers(16, 256), rate, st.floats(1.0, 2.0))
def test_compute_time_rises_with_work_and_falls_with_rates(m: int, n: int, k: int, r: float, s: float) -> None:
    base = compute_time(m, n, k, r, s)
    assert base > 0
    assert compute_time(m + 1, n, k, r, s) > base
    assert compute_time(m, n + 1, k, r, s) > base
    assert compute_time(m, n, k + 1, r, s) > base
    assert compute_time(m, n, k, r * 1.1, s) < base
    assert compute_time(m, n, k, r, s * 1.1) < base


def test_kernel_time_with_and_without_waves() -> None:
    one_cta = kernel_time(5e-6, 512, 88e-9, 2e-8, 3e-7)
    assert one_cta == pytest.approx(5e-6 + 512 * 88e-9 + 2e-8 + 3e-7)  # the printed form
    grid = kernel_time(5e-6, 512, 88e-9, 2e-8, 3e-7, waves=94)
    assert grid == pytest.approx(5e-6 + 94 * 512 * 88e-9 + 3.2e-7)
    each_wave_pays = kernel_time(5e-6, 512, 88e-9, 2e-8, 3e-7, waves=94, persistent=False)
    assert each_wave_pays == pytest.approx(5e-6 + 94 * (512 * 88e-9 + 3.2e-7))


def test_stores() -> None:
    assert store_time(32768, 1e11, 1e-7) == pytest.approx(32768 / 1e11 + 1e-7)
    assert tma_store_time(32768, 1e11, 2e-7) == pytest.approx(32768 / 1e11 + 2e-7)


def test_accumulators_in_registers() -> None:
    fits = register_accumulators_fit([128, 256], 256, 4, 65536)
    assert fits.tolist() == [True, False]  # 32768 of 65536 registers; all of them


def test_vectorised_equals_scalar() -> None:
    sizes = np.array([32.0, 64.0, 128.0])
    together = compute_time(sizes[:, None], sizes, 64, SM_FLOP_PER_S, 1.0, 1e-9)
    alone = [[float(compute_time(m, n, 64, SM_FLOP_PER_S, 1.0, 1e-9)) for n in sizes] for m in sizes]
    assert together.tolist() == alone


def test_validity_of_compute() -> None:
    assert outside(COMPUTE_VALIDITY, {"tile_m": [8, 128]})["tile_m"].tolist() == [True, False]
