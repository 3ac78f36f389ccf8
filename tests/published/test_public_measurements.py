"""PENNANT, MI300X decode microbenchmarks and the course exercises: the printed figures, and ours beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernelcast.analytic.platform import Platform, load_platform
from kernelcast.analytic.roofline import naive_roofline
from kernelcast.analytic.workload import load_workload, workload_baseline

MI300X = load_platform("mi300x")
READ = {  # blocks, loads -> (median ms, GB/s, % of 5300); 8 GiB
    ("64", "normal"): (6.541, 1313.3, 24.8), ("128", "normal"): (3.491, 2460.5, 46.4),
    ("256", "normal"): (2.165, 3968.4, 74.9), ("512", "normal"): (1.969, 4362.2, 82.3),
    ("1024", "normal"): (1.949, 4406.8, 83.1), ("256", "nt"): (2.103, 4084.8, 77.1),
    ("512", "nt"): (1.781, 4822.2, 91.0),
}
GEMV = {"one_accumulator": (29.3, 1146, 23.8), "four_accumulators": (11.6, 2897, 60.1), "wide_loads": (9.5, 3523, 73.1)}
DOT2 = {  # chain -> cycles an instruction, cycles an iteration, instructions an iteration
    "one dependent chain": (7.03, 7.03, 1), "two chains": (6.14, 12.28, 2), "with a multiply": (11.16, 22.32, 2),
}
DOC = (Path(__file__).parents[2] / "docs" / "published.md").read_text(encoding="utf-8")
PENNANT = {"t4": 40.9, "h100-pcie": 7.32}


def total(name: str, platform: Platform) -> float:
    return workload_baseline(load_workload(name), platform).total_s


@pytest.mark.parametrize("case", READ, ids="-".join)
def test_read_table_is_consistent_to_its_digits(case: tuple[str, str]) -> None:
    milliseconds, rate, percent = READ[case]
    # times are printed to 0.001 ms, and rates come from times of more digits
    assert 2**33 / (milliseconds * 1e-3) / 1e9 == pytest.approx(rate, rel=0.0005 / milliseconds + 2e-4)
    assert rate / 5300 * 100 == pytest.approx(percent, abs=0.055)


def test_read_curve_by_grid_size() -> None:
    """The 64-block row sets the bytes a block keeps in flight; the others are predicted by Little's law and HBM."""
    found = {segment.name: segment for segment in
             workload_baseline(load_workload("mi300x-streaming-read"), MI300X).segments}
    errors = {}
    for (blocks, loads), (milliseconds, _, _) in READ.items():
        name = f"blocks-{blocks}" + ("-nt" if loads == "nt" else "")
        errors[name] = found[name].time_s / (milliseconds * 1e-3) - 1
    assert abs(errors["blocks-64"]) < 0.001  # by construction
    for name in ("blocks-128", "blocks-256", "blocks-512", "blocks-1024", "blocks-256-nt"):
        assert abs(errors[name]) < 0.08
    assert 0.10 < errors["blocks-512-nt"] < 0.20  # non-temporal loads reach 4,822 GB/s; our file streams at 4,199


def test_read_ceiling_is_beyond_our_sustained_rate() -> None:
    ours = MI300X.value("sustained_hbm_bw")
    assert ours < 4822e9 < MI300X.value("hbm_peak_bw")
    assert pytest.approx(0.105, abs=0.0005) == 4822.2 / 4362.2 - 1  # "10.5% faster at 512 blocks"


@pytest.mark.parametrize("version", GEMV)
def test_gemv_table_is_consistent_to_its_digits(version: str) -> None:
    microseconds, rate, mbu = GEMV[version]
    byte = 2 * 4096 * 4096 + 2 * 4096 + 2 * 4096  # FP16 weights, input, output
    assert byte / (microseconds * 1e-6) / 1e9 == pytest.approx(rate, rel=0.05 / microseconds + 5e-4)
    assert rate / 4822 * 100 == pytest.approx(mbu, abs=0.055)


def test_gemv_weight_share() -> None:
    """Printed 99.93 % of the bytes are weights; 2-byte vectors make it 99.95 %, a 4-byte output 99.93 %."""
    weights = 2 * 4096 * 4096
    assert 100 * weights / (weights + 2 * 4096 + 2 * 4096) == pytest.approx(99.95, abs=0.005)
    assert 100 * weights / (weights + 2 * 4096 + 4 * 4096) == pytest.approx(99.93, abs=0.005)


def test_gemv_prediction_is_near_the_best_version() -> None:
    ours = total("mi300x-decode-gemv", MI300X)
    assert ours == pytest.approx(9.5e-6, rel=0.15)
    assert ours < 11.6e-6


def test_pennant_ratios() -> None:
    assert PENNANT["t4"] / PENNANT["h100-pcie"] == pytest.approx(5.6, abs=0.05)
    assert pytest.approx(6.7, abs=0.05) == 2000 / 300
    assert pytest.approx(0.84, abs=0.005) == (40.9 / 7.32) / (2000 / 300)  # "about 84 %"
    assert pytest.approx(0.23, abs=0.005) == 1 / (1 + 3.3)  # kernels' share beside 3.3 times as many copy cycles


def test_pennant_prediction_bounds_what_was_measured() -> None:
    """A purely bandwidth-bound program: T4 by construction, faster memories are predicted below the measured wall."""
    found = {name: total("pennant-medium", load_platform(name)) for name in ("t4", "h100-pcie", "mi300x")}
    assert found["t4"] == pytest.approx(40.9, rel=1e-3)
    assert found["mi300x"] < found["h100-pcie"] < PENNANT["h100-pcie"]
    ratio = load_platform("h100-pcie").value("sustained_hbm_bw") / load_platform("t4").value("sustained_hbm_bw")
    assert found["t4"] / found["h100-pcie"] == pytest.approx(ratio, rel=1e-3)
    # about 70 % of proportional to 5,300 over 300 GB/s: a wall of about 3.3 s, which is not printed
    wall = 40.9 / (0.70 * 5300 / 300)
    assert wall == pytest.approx(3.3, abs=0.05)
    assert found["mi300x"] < wall


def test_course_gemm_exactly() -> None:
    segment = load_workload("lesson-gemm-4096").segments[0]
    assert segment.flop == 2 * 4096**3 == 137_438_953_472
    assert segment.bytes == 3 * 4096**2 * 2 == 100_663_296
    flop, byte = 137.4e9, 100.7e6  # as printed
    assert flop / 100e12 == pytest.approx(1.374e-3)  # "0.001374 seconds", "about 1.37 milliseconds"
    assert byte / 2.5e12 == pytest.approx(40e-6, rel=0.01)  # "about 40 microseconds"
    assert float(naive_roofline(segment.flop, segment.bytes, 100e12, 2.5e12)) == pytest.approx(1.374e-3, abs=5e-7)


def test_course_gemm_as_a_workload_at_the_assumed_rates() -> None:
    platform = load_platform("h200").with_overrides(
        {"peak_fp16_matrix": "100 TFLOP/s", "sustained_fp16_matrix": "100 TFLOP/s", "dram_bandwidth": "2.5 TB/s",
         "hbm_peak_bw": "2.5 TB/s"}
    )
    found = workload_baseline(load_workload("lesson-gemm-4096"), platform).segments[0]
    assert found.terms["compute"] == pytest.approx(1.374389e-3, rel=1e-6)
    assert found.details["memory_s"] == pytest.approx(40.27e-6, rel=1e-3)
    assert found.limit == "matrix FLOP"
    assert found.bound_s == pytest.approx(1.374389e-3, rel=1e-6)


def test_course_intensity_and_vector_add() -> None:
    kernel = load_workload("lesson-intensity").segments[0]
    assert (kernel.flop, kernel.bytes) == (200e9, 80e9)
    assert 200e9 / 80e9 == 2.5  # FLOP a byte
    found = workload_baseline(load_workload("lesson-vector-add"), load_platform("h200")).segments[0]
    assert found.flop == 2**24
    assert found.byte == 3 * 2**24 * 4  # two operands read, one written
    assert found.flop / found.byte == pytest.approx(1 / 12)


@pytest.mark.parametrize("chain", DOT2)
def test_dot2_chains_are_consistent_and_documented(chain: str) -> None:
    each, iteration, count = DOT2[chain]
    assert each * count == pytest.approx(iteration, abs=0.005 * count)
    assert f"{each} cycles an instruction" in DOC


def test_dot2_forwarding_is_worth_what_the_source_says() -> None:
    dependent, floor, mixed = (DOT2[chain][i] for chain, i in
                               (("one dependent chain", 0), ("two chains", 0), ("with a multiply", 1)))
    assert dependent - floor == pytest.approx(0.9, abs=0.05)  # "the dependency costs 0.9 cycles, not three"
    assert mixed - dependent == pytest.approx(15.3, abs=0.05)
    assert (mixed - dependent) / 3 == pytest.approx(5, abs=0.15)  # "five times what the table documents"


def test_pennant_facts_that_no_equation_gives_are_documented() -> None:
    for words in ("83 to 93 %", "3.3 (medium mesh 3.4)", "about 2 M zones"):
        assert words in DOC
    assert pytest.approx(0.23, abs=0.005) == 1 / (1 + 3.3)
