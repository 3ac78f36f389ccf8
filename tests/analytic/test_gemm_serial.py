"""K steps one after the other: the hand-made count, monotonicity, and its place beside the analytic time."""

import numpy as np
import pytest
from kernelcast.analytic.baseline import baseline
from kernelcast.analytic.gemm_serial import serial_times, tile_time
from kernelcast.analytic.gemm_tiles import machine
from kernelcast.analytic.platform import load_platform


def _serial(platform: str, *shape: float, precision: str = "fp8") -> float:
    mach = machine(load_platform(platform), precision, "matrix")
    return float(serial_times(mach, *(np.array([size]) for size in shape), precision)["rounds_s"][0])


def test_a_single_wave_waits_one_latency_a_step() -> None:
    latency = load_platform("mi300x").value("latency_hbm_time")
    # 16 x 64 tiles: 20 * 15 = 300 of 304 units at m = 240; 4096 B / 128 B = 32 steps
    assert _serial("mi300x", 240, 1280, 4096, 1) == pytest.approx(32 * latency)
    assert _serial("mi300x", 16, 1280, 4096, 1) == pytest.approx(32 * latency)
    # 2 B an element: twice the steps
    assert _serial("mi300x", 16, 1280, 4096, 1, precision="bf16") == pytest.approx(64 * latency)


def test_a_large_product_takes_at_least_its_arithmetic() -> None:
    mach = machine(load_platform("h200"), "bf16", "matrix")
    ideal = 2.0 * 8192**3 / (mach.unit_flop_per_s * mach.units)
    assert ideal <= _serial("h200", 8192, 8192, 8192, 1, precision="bf16") < 1.5 * ideal


@pytest.mark.parametrize("platform", ["b200", "h200", "a100-sxm", "mi300x", "mi250x-gcd"])
def test_never_shorter_for_more_work(platform: str) -> None:
    mach = machine(load_platform(platform), "bf16", "matrix")
    sizes = np.unique(np.round(np.geomspace(1, 20_000, 400)))
    other = np.full(sizes.shape, 777.0)
    for place in range(4):
        shape = [other, other, other, np.ones(sizes.shape)]
        shape[place] = sizes
        for times in serial_times(mach, *shape, "bf16").values():
            assert np.all(np.diff(times) >= 0.0) and times[-1] > times[0]


def test_each_tile_counts_its_own_waves_and_none_is_below_the_least() -> None:
    mach = machine(load_platform("mi300x"), "fp8", "matrix")
    shape = [np.array([size]) for size in (256.0, 1280.0, 4096.0, 1.0)]
    # 16 x 64: 16 * 20 = 320 tiles on 304 units, two waves; 128 x 128: 2 * 10 = 20 tiles, one wave; 32 steps each
    assert tile_time(mach, 16, 64, *shape, "fp8")[0] == pytest.approx(2 * 32 * mach.latency_s)
    step = max(mach.latency_s, 2.0 * 128**3 / mach.unit_flop_per_s)
    found = serial_times(mach, *shape, "fp8")
    assert found["serial_128x128_s"][0] == pytest.approx(32 * step)
    assert found["rounds_s"][0] <= min(times[0] for name, times in found.items() if name != "rounds_s")


def test_it_is_a_by_product_and_no_part_of_the_time() -> None:
    platform = load_platform("mi300x")
    found = baseline("gemm", {"m": 16, "n": 1280, "k": 12800}, "fp8", platform, cache="cold")
    assert found.details["rounds_s"][0] == pytest.approx(100 * platform.value("latency_hbm_time"))  # 12800 B / 128 B
    assert found.time_s[0] == pytest.approx(sum(term[0] for term in found.terms.values()))
    assert "rounds" not in found.terms
