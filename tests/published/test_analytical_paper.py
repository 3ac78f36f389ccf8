"""Figures of arXiv 2605.04178 that can be recomputed, each at its printed precision or with the difference said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from kernelcast.analytic.cachemodel import bandwidth_harmonic, knee_hit_rate
from kernelcast.analytic.equations import equation
from kernelcast.analytic.gemm import stage_gemm, wavefront_gemm
from kernelcast.analytic.platform import load_platform
from kernelcast.analytic.published import gemm as printed_gemm
from kernelcast.analytic.published.cache import hit_rate_table_iii, hit_rate_table_iii_printed
from kernelcast.analytic.published.platform_terms import tile_study
from kernelcast.analytic.published.stage import compute_time_2sm, pair_traffic
from kernelcast.analytic.stage import compute_time
from kernelcast.analytic.workload import load_workload

FIGURES: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("arxiv_2605_04178.yaml").read_text(encoding="utf-8")
)
DOC = (Path(__file__).parents[2] / "docs" / "published.md").read_text(encoding="utf-8")
TABLE_X = {  # Rodinia: B200, MI300A [%]
    "hotspot_1024": (31.0, 23.6), "hotspot_512": (15.4, 1.6), "bfs_1M": (44.9, 40.9), "backprop_65536": (33.0, 21.3),
    "pathfinder_1000": (0.4, 0.1), "srad_502": (0.5, 0.5), "streamcluster_1M": (12.4, 0.03),
}
TABLE_XI = {  # SPEChpc Tiny: B200, MI300A [%]
    "lbm_t": (14.9, 0.1), "soma_t": (0.3, 1.3), "tealeaf_t": (0.2, 1.6), "clvleaf_t": (18.5, 1.5),
    "miniswp_t": (32.8, 0.8), "pot3d_t": (None, 7.0), "sph_exa_t": (0.03, 0.6), "hpgmgfv_t": (0.3, 0.8),
}
TABLE_XII = {  # MI300A: error with first-principles inputs [%], FLOP ratio
    "lbm_t": (98.7, 0.121), "soma_t": (31.8, 1.065), "tealeaf_t": (98.4, 0.008), "clvleaf_t": (98.7, 0.013),
    "miniswp_t": (99.2, 0.001), "pot3d_t": (10.3, 0.961), "sph_exa_t": (94.0, 0.021), "hpgmgfv_t": (19.4, 0.800),
}
CLASSES = {
    "hotspot_1024": "stencil", "hotspot_512": "stencil", "bfs_1M": "memory", "backprop_65536": "compute",
    "pathfinder_1000": "balanced", "srad_502": "balanced", "streamcluster_1M": "memory", "lbm_t": "memory",
    "soma_t": "balanced", "tealeaf_t": "memory", "clvleaf_t": "memory", "miniswp_t": "compute", "pot3d_t": "memory",
    "sph_exa_t": "balanced", "hpgmgfv_t": "memory",
}


def printed(name: str) -> dict[tuple[str, str], float]:
    return {(entry.platform, entry.quantity): entry.value for entry in load_workload(name).published}


@pytest.mark.parametrize("case", TABLE_X)
def test_table_x_stands_beside_the_open_workloads(case: str) -> None:
    found = printed(f"rodinia-{case}")
    assert tuple(found[p, "published_error_percent"] for p in ("b200", "mi300a")) == TABLE_X[case]
    assert load_workload(f"rodinia-{case}").segments[0].work_class == CLASSES[case]


@pytest.mark.parametrize("case", TABLE_XI)
def test_tables_xi_and_xii_stand_beside_the_open_workloads(case: str) -> None:
    found = printed(f"spechpc-{case}")
    assert tuple(found.get((p, "published_error_percent")) for p in ("b200", "mi300a")) == TABLE_XI[case]
    assert found["mi300a", "published_first_principles_error_percent"] == TABLE_XII[case][0]
    assert found["mi300a", "first_principles_flop_over_profiled"] == TABLE_XII[case][1]
    assert load_workload(f"spechpc-{case}").segments[0].work_class == CLASSES[case]


def test_printed_averages_follow_from_the_printed_rows() -> None:
    def mean(values: list[float | None]) -> float:
        return float(np.mean([value for value in values if value is not None]))

    assert mean([row[1] for row in TABLE_X.values()]) == pytest.approx(12.5, abs=0.25)  # "MI300A Rodinia 12.5%"
    assert mean([row[0] for row in TABLE_XI.values()]) == pytest.approx(9.6, abs=0.05)  # "overall MAE of 9.6%"
    # "MI300A SPEChpc 1.3%" is not the mean of its own table, 1.7
    assert mean([row[1] for row in TABLE_XI.values()]) == pytest.approx(1.71, abs=0.005)
    # miniswp: 5.1e9 over 4.8e12 is the printed 0.001
    assert pytest.approx(TABLE_XII["miniswp_t"][1], abs=0.0005) == 5.1e9 / 4.8e12


def test_streamcluster_times() -> None:
    found = printed("rodinia-streamcluster_1M")
    measured, naive = found["mi300a", "measured_s"], found["mi300a", "published_naive_s"]
    assert (measured, naive) == (0.157, 5e-6)
    assert 100 * (1 - naive / measured) == pytest.approx(100.0, abs=0.5)  # "100% error"


def test_worked_example_under_the_published_parameters() -> None:
    """Printed 4.17 ms predicted, 4.10 ms measured, 1.8 % apart. Ours under the same parameters: 4.24 ms."""
    published = load_platform("b200-as-published")
    found = printed_gemm.stage_gemm(published, 16384, 16384, 16384, 1, "fp16", tile=(128, 128, 32))
    assert found.time_s[0] == pytest.approx(4.17e-3, rel=0.02)
    assert abs(4.17 / 4.10 - 1) == pytest.approx(0.018, abs=0.001)
    assert pytest.approx(2145e12, rel=1e-3) == 2 * 16384**3 / 4.10e-3  # 95 % of the 2,250 TFLOP/s datasheet peak


def test_worked_example_under_our_parameters_follows_other_measurements() -> None:
    """Public serving stacks take 5.7 to 6.1 ms for it in bf16; the sustained rate of the file is a best case."""
    found = stage_gemm(load_platform("b200"), 16384, 16384, 16384, 1, "bf16")
    assert 4.9e-3 < found.time_s[0] < 6.3e-3


def test_two_sm_speedup() -> None:
    """Predicted 1.30, measured 1.28, within 2 %; traffic falls by 4/3 for square tiles."""
    platform = load_platform("b200-as-published")
    model, measured = platform.value("two_sm_speedup_model"), platform.value("two_sm_speedup")
    assert (model, measured) == (1.30, 1.28)
    assert abs(model / measured - 1) < 0.02
    rate = platform.peak_flop_per_s("fp16") / platform.value("compute_units")
    assert compute_time(256, 256, 64, rate) / compute_time_2sm(256, 256, 64, rate, model) == pytest.approx(1.30)
    assert 4.0 / pair_traffic(1.0, 1.0) == pytest.approx(1.33, abs=0.005)


@pytest.mark.parametrize("name", ["mi300a-as-published", "mi300a", "mi250x-as-published", "mi250x-gcd", "mi300x"])
@pytest.mark.parametrize("size", [256, 1024, 4096, 16384])
def test_16x16_tiles_come_before_8x8(name: str, size: int) -> None:
    """The order the tile study prints, for MI300A and for MI250X; its times are not printed."""
    small, large = tile_study(load_platform(name), size, size, size, [8, 16])
    assert large < small


def test_infinity_cache_knees() -> None:
    """205 and 256 MB as printed, where the printed pieces jump; ours are continuous and fitted to sweeps."""
    published = load_platform("mi300a-as-published")
    assert (published.value("llc_knee_start"), published.value("llc_knee_end")) == (205e6, 256e6)
    below, at, above = hit_rate_table_iii_printed([204e6, 256e6, 256.1e6])
    assert (below, at) == (1.0, 0.0)
    assert above > 0.99  # the jump
    sizes = np.linspace(1e8, 6e8, 2001)
    continuous = hit_rate_table_iii(sizes)
    assert (np.diff(continuous) <= 0).all() and np.abs(np.diff(continuous)).max() < 0.01
    ours = load_platform("mi300a")
    low, high = ours.value("llc_knee_start"), ours.value("llc_knee_end")
    assert low == pytest.approx(205e6, rel=0.05)  # the printed start is confirmed
    assert high > 1.5 * 256e6  # the printed end is not
    rate = bandwidth_harmonic(knee_hit_rate(sizes, low, high), ours.value("llc_bw"), ours.value("sustained_hbm_bw"))
    assert (np.diff(rate) <= 0).all()


def test_mi250x_dgemm() -> None:
    """0.283 s predicted and measured at 16384³; taken as one die, at the 31.1 TFLOP/s that implies."""
    found = wavefront_gemm(load_platform("mi250x-gcd"), 16384, 16384, 16384, 1, "fp64")
    assert found.time_s[0] == pytest.approx(0.283, abs=0.0005)


def table_row(start: str) -> str:
    """The one line of docs/published.md that starts so."""
    found = [line for line in DOC.splitlines() if line.startswith(f"| {start} ")]
    assert len(found) == 1, start
    return found[0]


def test_error_figures_stand_in_the_documentation() -> None:
    row = table_row("microbenchmarks [A Table VI]")
    for entry in FIGURES["microbenchmarks"]:
        assert f"{entry['model']} (" in row and f"({entry['kernels']}" in row and f"{entry['naive']}" in row
    assert all(f"{value:g}" in DOC for key, value in FIGURES["by_class"].items() if key != "platform")
    names = {"rodinia": "Rodinia [A Table X]", "spechpc": "SPEChpc Tiny [A Table XI]"}
    for entry in FIGURES["applications"]:
        start = "SPEChpc Tiny, first-principles inputs [A Table XII]" if "inputs" in entry else names[entry["suite"]]
        assert f"{entry['model']:g}" in table_row(start)
    for case, value in FIGURES["cases_h200"].items():
        assert f"{case} {value:g}" in DOC


def test_cases_on_h200_stand_beside_the_workloads() -> None:
    for case, value in FIGURES["cases_h200"].items():
        name = f"spechpc-{case}" if case.endswith("_t") else f"rodinia-{case}"
        found = printed(name).get(("h200", "published_error_percent"))
        assert found == value or (found is None and case == "miniswp_t")


def test_what_the_paper_says_twice_differs_and_is_kept_as_the_table_has_it() -> None:
    tables = {f"MI300A {case}": row[1] for case, row in TABLE_X.items()}
    tables |= {f"B200 {case}": row[0] for case, row in TABLE_XI.items() if row[0] is not None}
    tables["B200 microbenchmarks"] = FIGURES["microbenchmarks"][0]["model"]
    for entry in FIGURES["said_twice"]:
        assert tables[entry["what"]] == entry["table"]
        assert 0.0 < abs(entry["table"] - entry["text"]) <= 0.31
        assert f"{entry['table']:g}" in DOC and f"{entry['text']:g}" in DOC


def test_printed_ranges_are_those_of_the_equations_and_the_parameters_lie_in_them() -> None:
    ranges = FIGURES["ranges"]
    held = {(number, item.name): [item.low, item.high] for number in (7, 11, 13) for item in equation(number).ranges}
    assert held[7, "alpha"] == ranges["overlap_alpha"]
    assert held[11, "utilisation"] == ranges["mfma_utilisation"]
    assert held[13, "t_coherence_s"] == pytest.approx(ranges["coherence_s"])
    assert held[13, "t_cross_xcd_s"] == pytest.approx(ranges["cross_xcd_s"])
    inside = {
        "b200-as-published": {"pipeline_overlap_alpha": "overlap_alpha", "barriers_per_step": "barriers",
                              "mbarrier_latency": "barrier_cycle", "tensor_instr_latency": "tcgen05_mma_cycle",
                              "kernel_launch_latency": "launch_s", "sustained_hbm_bw": "sustained_hbm_b200"},
        "mi300a-as-published": {"mfma_utilisation": "mfma_utilisation", "coherence_latency": "coherence_s",
                                "cross_xcd_latency": "cross_xcd_s", "kernel_launch_latency": "launch_s"},
    }
    for name, parameters in inside.items():
        for parameter, key in parameters.items():
            assert ranges[key][0] <= load_platform(name).value(parameter) <= ranges[key][1], parameter
    # the worked example is beyond its own "sustained" range
    assert ranges["sustained_tensor_b200"][1] < 2 * 16384**3 / 4.10e-3


def test_ratios_of_the_observations() -> None:
    intensity, gain = FIGURES["intensity_flop_per_byte"], FIGURES["improvement"]
    difference = 100 * (intensity["mi300a"] / intensity["b200"] - 1)
    assert difference == pytest.approx(intensity["printed_difference_percent"], abs=1.5)
    # 206 % over 1.3 % is 158, not the printed 205 (which is their difference)
    assert round(gain["naive"] / gain["model"]) == 158
    assert round(gain["naive"] - gain["model"]) == gain["printed_factor"]
