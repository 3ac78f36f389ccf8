"""Platforms as loaded: lookups, rates, overrides, flags."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.platform import Platform, load_platform, load_platform_file, platform_ids, write_platform
from kernelcast.analytic.platform_schema import ALIASES, DRAM_BANDWIDTH, KINDS, PARAMETERS, REQUIRED

DEFAULT_IDS = [
    "a100-sxm", "b200", "h100-pcie", "h100-sxm", "h200", "mi100", "mi210", "mi250x", "mi250x-gcd", "mi300a", "mi300x",
    "mi355x", "t4",
]
PUBLISHED_IDS = ["b200-as-published", "h200-as-published", "mi250x-as-published", "mi300a-as-published"]
FOLDER = Path(__file__).parents[2] / "configs" / "platforms"


def flagged(platform: Platform) -> set[str]:
    return {flag.key for flag in platform.flags}


def test_the_shipped_platforms() -> None:
    assert platform_ids() == sorted(DEFAULT_IDS + PUBLISHED_IDS)


@pytest.mark.parametrize("name", DEFAULT_IDS + PUBLISHED_IDS)
def test_every_shipped_file_is_complete_and_sourced(name: str) -> None:
    platform = load_platform(name)
    assert platform.id == name
    assert platform.as_published == (name in PUBLISHED_IDS)
    for required in REQUIRED:
        assert platform.parameter(required).value is not None
    for parameter in platform.parameters.values():
        assert parameter.kind in KINDS, parameter
        assert parameter.source, parameter
        assert parameter.date, parameter
        if parameter.kind == "assumed":
            assert parameter.note, f"{name}: {parameter.name} is assumed without a reason"
    assert 0 < platform.sustained_hbm_byte_per_s() <= platform.value("hbm_peak_bw")


@pytest.mark.parametrize("name", DEFAULT_IDS)
def test_default_sets_have_what_the_equations_name(name: str) -> None:
    platform = load_platform(name)
    shared = ["l2_bw", "latency_hbm_time", "empty_kernel_duration", "memcpy_bandwidth", "memcpy_latency",
              "sync_latency", "working_set_scale", "class_scale_memory", "precision_efficiency_fp16", "l2_knee_start",
              "gemm_tile_m", "typical_sustained_fraction_matrix", "int32_vector_fraction"]
    nvidia = ["pipeline_overlap_alpha", "mbarrier_latency", "barriers_per_step", "tma_latency", "tma_bw_per_cu",
              "tmem_passes_per_step", "two_sm_speedup"]
    amd = ["coherence_latency", "cross_xcd_latency", "mfma_utilisation", "vgprs_per_simd", "vgpr_granule",
           "simds_per_cu", "cta_overhead", "shared_mem_banks", "mwp_limit"]
    for parameter in shared + (nvidia if platform.vendor == "nvidia" else amd):
        platform.value(parameter)
    assert platform.is_true("unified_memory") == (name == "mi300a")


def test_known_values() -> None:
    h200 = load_platform("h200")
    assert h200.value("compute_units") == 132
    assert h200.value("hbm_peak_bw") == 4.8e12
    assert h200.value("l2_size") == 60e6
    assert load_platform("b200").value("compute_units") == 148
    assert load_platform("mi300a").value("compute_units") == 228
    assert load_platform("t4").value("hbm_peak_bw") == 320e9
    assert load_platform("b200-as-published").value("compute_units") == 176
    assert load_platform("mi300a-as-published").text("llc_hit_form") == "table3"
    assert load_platform("b200").text("accumulate_in") == "tmem"


@pytest.mark.parametrize(
    ("alias", "name"),
    [("a100-sxm-80gb", "a100-sxm"), ("h100", "h100-sxm"), ("H200", "h200"), ("h200-sxm", "h200"), ("tesla-t4", "t4")],
)
def test_platform_aliases(alias: str, name: str) -> None:
    assert load_platform(alias) is load_platform(name)


def test_aliases_are_unique_and_hide_no_id() -> None:
    seen: set[str] = set(platform_ids())
    for name in platform_ids():
        for alias in load_platform(name).aliases:
            assert alias not in seen
            seen.add(alias)


def test_unknown_platform_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"unknown platform 'h20o' \(did you mean .*h200"):
        load_platform("h20o")


def test_parameter_lookup_is_loud() -> None:
    h200 = load_platform("h200")
    with pytest.raises(InputError, match=r"h200: unknown parameter 'hbm_peek_bw' \(did you mean .*hbm_peak_bw"):
        h200.value("hbm_peek_bw")
    with pytest.raises(InputError, match=r"platform h200: parameter 'vgprs_per_simd' is not given"):
        h200.value("vgprs_per_simd")
    b200 = load_platform("b200")
    with pytest.raises(InputError, match=r"platform b200: parameter 'barrier_latency' is not known.*measured value"):
        b200.value("barrier_latency")
    with pytest.raises(InputError, match="is a word"):
        h200.value("accumulate_in")
    with pytest.raises(InputError, match="is not a word"):
        h200.text("l2_size")
    assert b200.get("barrier_latency") is None
    assert h200.get("vgprs_per_simd", 512.0) == 512.0
    assert h200.value("sm_count") == 132


def test_parameter_aliases_point_at_parameters() -> None:
    assert set(ALIASES.values()) <= set(PARAMETERS)
    assert not set(ALIASES) & set(PARAMETERS)
    assert not set(DRAM_BANDWIDTH) & (set(PARAMETERS) | set(ALIASES))


@pytest.mark.parametrize(
    ("name", "precision", "unit", "flop_per_s"),
    [
        ("h200", "bf16", "matrix", 989.4e12),
        ("h200", "fp32", "matrix", 66.9e12),  # no FP32 tensor cores: the vector rate
        ("h200", "fp16", "vector", 66.9e12),  # at the FP32 rate
        ("h200", "int32", "vector", 0.5 * 66.9e12),  # 64 INT32 lanes beside 128 FP32 lanes
        ("a100-sxm", "int32", "matrix", 19.5e12),  # 64 beside 64
        ("t4", "fp64", "matrix", 254.4e9),  # vector units only
        ("mi300x", "fp32", "matrix", 163.4e12),
        ("mi300x", "int8", "vector", 0.25 * 163.4e12),
        ("b200", "fp4", "matrix", 9e15),
        ("mi250x", "int8", "matrix", 383e12),
    ],
)
def test_peaks(name: str, precision: str, unit: str, flop_per_s: float) -> None:
    assert load_platform(name).peak_flop_per_s(precision, unit) == pytest.approx(flop_per_s)


@pytest.mark.parametrize(
    ("name", "precision"),
    [("h200", "fp4"), ("a100-sxm", "fp8"), ("t4", "bf16"), ("t4", "tf32"), ("mi250x", "tf32"), ("mi355x", "tf32")],
)
def test_a_precision_the_hardware_lacks_is_refused_with_what_it_has(name: str, precision: str) -> None:
    with pytest.raises(InputError, match=rf"{name} has no {precision} matrix rate; it has .*fp16") as caught:
        load_platform(name).peak_flop_per_s(precision)
    assert caught.value.exit_status == 2
    with pytest.raises(InputError, match="has no"):
        load_platform(name).sustained_flop_per_s(precision)


def test_unknown_precision_or_unit() -> None:
    with pytest.raises(InputError, match=r"unknown precision 'fp17' \(did you mean fp16"):
        load_platform("h200").peak_flop_per_s("fp17")
    with pytest.raises(InputError, match="unknown unit 'tensor'"):
        load_platform("h200").peak_flop_per_s("fp16", "tensor")


def test_sustained_rates_say_where_they_come_from() -> None:
    h200, pcie, t4 = load_platform("h200"), load_platform("h100-pcie"), load_platform("t4")
    assert h200.sustained_flop_per_s("bf16") == 812.9e12
    assert h200.rate_note("bf16") == "sustained_bf16_matrix"
    # not measured on the PCIe card: 756.5 TFLOP/s x the Hopper fraction
    fraction = pcie.value("typical_sustained_fraction_matrix")
    assert pcie.sustained_flop_per_s("bf16") == pytest.approx(756.5e12 * fraction)
    assert pcie.rate_note("bf16") == "peak_bf16_matrix x typical_sustained_fraction_matrix"
    assert t4.rate_note("fp64") == (
        "peak_fp64_vector x typical_sustained_fraction_vector; no fp64 matrix mode, so the vector units"
    )


@pytest.mark.parametrize("name", DEFAULT_IDS)
def test_sustained_never_beats_the_peak_on_default_sets(name: str) -> None:
    platform = load_platform(name)
    known_wrong = {("mi210", "fp32"), ("mi210", "tf32"), ("mi210", "fp16"), ("mi210", "bf16")}  # flagged below
    for unit in ("matrix", "vector"):
        for precision in platform.precisions(unit):
            if unit == "vector" and (name, precision) in known_wrong:
                continue
            assert 0 < platform.sustained_flop_per_s(precision, unit) <= platform.peak_flop_per_s(precision, unit)


@pytest.mark.parametrize("name", [name for name in DEFAULT_IDS if name != "mi210"])
def test_default_sets_are_plausible(name: str) -> None:
    assert load_platform(name).flags == ()


def test_flags_on_the_sets_as_published() -> None:
    # TileSight's FP32 probe issues packed FP32, which the listed peak does not count.
    assert flagged(load_platform("mi210")) == {"sustained_fp32_vector"}
    # The H200 column repeats the H100 PCIe datasheet with sparsity: 53-56 % above the dense peaks.
    h200 = load_platform("h200-as-published")
    assert flagged(h200) == {f"sustained_{p}_matrix" for p in ("fp32", "tf32", "bf16", "fp16", "fp8", "int8")}
    bf16 = next(flag for flag in h200.flags if flag.key == "sustained_bf16_matrix")
    assert bf16.file == "h200-as-published.yaml"
    assert bf16.message == "1.514 PFLOP/s is 53% above the dense peak 989.4 TFLOP/s (peak_bf16_matrix)"
    b200 = flagged(load_platform("b200-as-published"))
    assert {"sustained_fp64_matrix", "sustained_fp32_matrix", "sustained_fp6_matrix", "tmem_read_bw_per_cu"} <= b200
    assert "peak_fp16_matrix" in b200  # 176 SMs do not give 2250 TFLOP/s at the device's clock
    assert "sustained_bf16_matrix" not in b200
    assert {"llc_bw", "peak_fp64_matrix", "peak_fp8_matrix", "registers_per_cu"} <= flagged(
        load_platform("mi300a-as-published")
    )
    assert flagged(load_platform("mi250x-as-published")) == {"peak_fp64_matrix", "registers_per_cu"}


def test_overrides_are_checked_and_marked() -> None:
    h200 = load_platform("h200")
    changed = h200.with_overrides({"sm_count": "66", "unified_memory": "true", "accumulate_in": "tmem"})
    assert changed.value("compute_units") == 66
    assert changed.is_true("unified_memory")
    assert changed.parameter("compute_units").kind == "override"
    assert changed.parameter("compute_units").note == "was 132"
    assert "peak_fp16_matrix" in flagged(changed)  # half the SMs, the same peak
    assert h200.value("compute_units") == 132
    assert h200.with_overrides({}) is h200
    # a parameter this file lacks may be set
    assert h200.with_overrides({"vgprs_per_simd": 512}).value("vgprs_per_simd") == 512


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"hbm_peek_bw": "6TB/s"}, r"cannot set 'hbm_peek_bw'.*did you mean .*hbm_peak_bw"),
        ({"hbm_peak_bw": "6TB"}, r"cannot set hbm_peak_bw=6TB: unit 'TB' has the wrong dimension"),
        ({"hbm_peak_bw": "fast"}, r"cannot set hbm_peak_bw=fast: 'fast' is not a number"),
        ({"hbm_peak_bw": "-1"}, "out of range: expected more than 0"),
        ({"hbm_peak_bw": "nan"}, "not a number"),
        ({"alpha": "1.5"}, "out of range: expected 0 to 1"),
        ({"alpha": 0.9, "pipeline_overlap_alpha": 0.8}, "set twice"),
        ({"accumulate_in": "cache"}, "not one of tmem, registers"),
        ({"unified_memory": "2"}, "not true or false"),
        ({"compute_units": True}, "not a number"),
    ],
)
def test_bad_overrides(overrides: dict[str, str | float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_platform("h200").with_overrides(overrides)


def test_a_peak_scales_its_sustained_partner() -> None:
    changed = load_platform("h200").with_overrides({"hbm_peak_bw": "9.6 TB/s", "peak_bf16_matrix": "494.7 TFLOP/s"})
    assert changed.value("sustained_hbm_bw") == pytest.approx(2 * 4.302e12)
    assert changed.value("sustained_bf16_matrix") == pytest.approx(812.9e12 / 2)
    assert changed.value("sustained_bf16_matrix_max") == pytest.approx(900.2e12 / 2)
    assert changed.parameter("sustained_hbm_bw").source == "scaled with hbm_peak_bw"
    both = load_platform("h200").with_overrides({"hbm_peak_bw": 9.6e12, "sustained_hbm_bw": 5e12})
    assert both.value("sustained_hbm_bw") == 5e12


def test_a_sustained_value_above_the_peak_raises_it_and_is_flagged() -> None:
    changed = load_platform("h200").with_overrides({"sustained_bf16_matrix": "1.2 PFLOP/s"})
    assert changed.peak_flop_per_s("bf16") == 1.2e15
    assert any("peak_bf16_matrix was raised" in flag.message for flag in changed.flags)
    below = load_platform("h200").with_overrides({"sustained_bf16_matrix": "700 TFLOP/s"})
    assert below.peak_flop_per_s("bf16") == 989.4e12
    assert below.flags == ()


@pytest.mark.parametrize("name", DRAM_BANDWIDTH)
def test_dram_bandwidth_sets_what_the_model_uses(name: str) -> None:
    slow = load_platform("h200").with_overrides({name: "3 TB/s"})
    assert (slow.value("sustained_hbm_bw"), slow.value("hbm_peak_bw")) == (3e12, 4.8e12)
    fast = load_platform("h200").with_overrides({name: "6 TB/s"})
    assert (fast.value("sustained_hbm_bw"), fast.value("hbm_peak_bw")) == (6e12, 6e12)


def test_latency_twins_stay_together() -> None:
    h200 = load_platform("h200")
    # 665.3 cycles and 336 ns in the file, each rounded to four digits: twice the cycles are twice the time
    assert h200.with_overrides({"latency_hbm": 1330.6}).value("latency_hbm_time") == pytest.approx(2 * 336e-9, rel=1e-3)
    assert h200.with_overrides({"latency_hbm_time": "1 us"}).value("latency_hbm") == pytest.approx(1980, rel=1e-3)
    assert h200.latency_s("tma_latency") == pytest.approx(420 / 1.98e9)
    assert h200.latency_s("latency_hbm") == h200.value("latency_hbm_time")
    assert h200.latency_s("memcpy_latency") == 2.525e-6
    assert h200.cycles_to_s(1980) == pytest.approx(1e-6)
    # cycles only in the file: the twin is made from the boost clock
    t4 = load_platform("t4")
    assert t4.value("latency_hbm_time") == pytest.approx(622 / 1.59e9)


@given(ratio=st.floats(0.05, 20))
@settings(deadline=None, max_examples=30)
def test_overrides_keep_sustained_under_the_peak(ratio: float) -> None:
    h200 = load_platform("h200")
    for name in ("hbm_peak_bw", "dram_bandwidth", "sustained_hbm_bw"):
        base = h200.value("hbm_peak_bw") if name == "hbm_peak_bw" else h200.value("sustained_hbm_bw")
        changed = h200.with_overrides({name: base * ratio})
        assert changed.value("sustained_hbm_bw") <= changed.value("hbm_peak_bw") * (1 + 1e-12)


def test_describe_lists_every_parameter_with_its_flags() -> None:
    rows = {row["name"]: row for row in load_platform("h200-as-published").describe()}
    assert set(rows) == set(load_platform("h200-as-published").parameters)
    row = rows["sustained_bf16_matrix"]
    assert (row["value"], row["unit"], row["kind"], row["date"]) == (1513.5e12, "FLOP/s", "published", "2025-12")
    assert len(row["flags"]) == 1
    assert rows["hbm_peak_bw"]["flags"] == []


def test_written_file_reads_back_the_same(tmp_path: Path) -> None:
    changed = load_platform("mi300a").with_overrides({"hbm_peak_bw": "6TB/s"})
    write_platform(changed, tmp_path / "mine.yaml")
    again = load_platform(str(tmp_path / "mine.yaml"))
    assert again.parameters == changed.parameters
    assert again.aliases == changed.aliases
    assert list(tmp_path.iterdir()) == [tmp_path / "mine.yaml"]


def test_a_platform_can_be_pickled() -> None:
    h200 = load_platform("h200")
    assert pickle.loads(pickle.dumps(h200)).parameters == h200.parameters


def test_loading_is_quick_and_leaves_pint_alone() -> None:
    def least_s(work: Callable[[], object]) -> float:
        spent = []
        for _ in range(5):
            start = time.process_time()
            work()
            spent.append(time.process_time() - start)
        return min(spent)

    # read by the library's slow parser it would take six times as long
    read = least_s(lambda: yaml.safe_load((FOLDER / "b200.yaml").read_text()))
    assert least_s(lambda: load_platform_file(FOLDER / "b200.yaml")) < 0.5 * read
    code = (
        "import sys; from kernelcast.analytic.platform import load_platform;"
        "load_platform('h100'); assert 'pint' not in sys.modules and 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
