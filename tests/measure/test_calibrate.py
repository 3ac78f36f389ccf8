"""A parameter file from microbenchmarks: measured values with their source, the rest untouched, wrong files refused."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.platform import load_platform, load_platform_file
from kernelcast.analytic.platform_diff import differences
from kernelcast.measure.calibrate import calibrate
from kernelcast.measure.calibrate_rules import RULES
from kernelcast.measure.microbench import SECTIONS
from kernelcast.service.cli.main import status_of

RUNS = Path(str(resources.files("kernelcast.configs"))) / "runs"
MICRO = RUNS / "h200-micro.json"
REPEAT = RUNS / "h200-micro-repeat.json"
SHIPPED = RUNS.parent / "platforms" / "h200.yaml"
BEFORE = Path(__file__).parents[2] / "docs" / "calibration" / "h200-before.yaml"


@pytest.fixture
def report() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(MICRO.read_text())
    return loaded


def write(folder: Path, report: dict[str, Any]) -> Path:
    path = folder / "micro.json"
    path.write_text(json.dumps(report))
    return path


def test_measured_parameters_carry_their_source_and_the_rest_stays() -> None:
    before = load_platform_file(BEFORE)
    made = calibrate(before, MICRO)
    assert made.left == {}
    for name in made.measured:
        parameter = made.platform.parameter(name)
        assert parameter.kind == "measured"
        assert "NVIDIA H200" in parameter.source
        assert "580.159.04" in parameter.source
        assert parameter.date.startswith("2026-11")
        assert parameter.note
    followers = {"tma_bw_per_cu", "store_setup_latency"}
    kept = set(before.parameters) - set(made.measured) - followers
    assert {n: before.parameters[n] for n in kept} == {n: made.platform.parameters[n] for n in kept}
    assert made.platform.value("tma_bw_per_cu") == pytest.approx(made.platform.value("l2_bw") / 132, rel=1e-3)
    assert made.platform.flags == ()


def test_the_h200_is_as_it_was_seen_by_others() -> None:
    p = calibrate(load_platform("h200"), MICRO).platform
    assert 4.1e12 < p.value("sustained_hbm_bw") < 4.4e12
    assert 760e12 < p.value("sustained_bf16_matrix") < 820e12
    assert 0.6e-6 < p.value("empty_kernel_duration") < 1.0e-6
    assert 0.6 < p.value("l2_knee_start") / p.value("l2_size") < 0.8
    assert 0.9 < p.value("l2_knee_end") / p.value("l2_size") < 1.2
    assert p.value("latency_l1") < p.value("latency_l2") < p.value("latency_hbm")


def test_two_cards_agree() -> None:
    """What does not hang on the host, the power limit or the order of measuring repeats to 4 % on another card."""
    base = load_platform("h200")
    first, second = (calibrate(base, path).platform for path in (MICRO, REPEAT))
    for name in ("sustained_hbm_bw", "l2_bw", "l2_knee_start", "l2_knee_end", "latency_l1", "latency_l2", "latency_hbm",
                 "shared_mem_bw_per_cu", "grid_barrier_latency", "sustained_fp32_vector", "sustained_fp64_vector",
                 "sustained_bf16_matrix", "memcpy_bandwidth"):
        assert second.value(name) == pytest.approx(first.value(name), rel=0.04), name


def test_every_section_has_its_rule_or_is_for_the_reader() -> None:
    assert set(RULES) <= set(SECTIONS)
    assert set(SECTIONS) - set(RULES) == {"atomic"}  # no parameter of the model: reported and drawn


def test_a_written_file_reads_back_and_differs_where_measured(tmp_path: Path) -> None:
    out = tmp_path / "mine.yaml"
    assert status_of(["calibrate", "-p", str(BEFORE), "--runs", str(MICRO), "--out", str(out), "--no-pictures"]) == 0
    read = load_platform_file(out)
    made = calibrate(load_platform_file(BEFORE), MICRO)
    assert not [d.name for d in differences(read, made.platform, tolerance=1e-9)]
    changed = {d.name for d in differences(load_platform_file(BEFORE), read)}
    assert changed == set(made.measured) | {"tma_bw_per_cu", "store_setup_latency"}
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("start", ["h200", str(BEFORE)])
def test_the_shipped_file_is_what_calibrate_makes_of_the_shipped_microbenchmarks(tmp_path: Path, start: str) -> None:
    """Byte for byte, from the values before our own microbenchmarks and from the calibrated file itself."""
    out = tmp_path / "h200.yaml"
    assert status_of(["calibrate", "-p", start, "--runs", str(MICRO), "--out", str(out), "--no-pictures"]) == 0
    assert out.read_text() == SHIPPED.read_text()


def test_the_shipped_values_are_the_measured_ones() -> None:
    shipped, results = load_platform("h200"), json.loads(MICRO.read_text())["results"]
    assert shipped.value("sustained_bf16_matrix") == pytest.approx(2 * 8192**3 / 0.00135251, rel=1e-3)
    assert shipped.value("kernel_launch_latency") == pytest.approx(results["host_launch"]["pipelined_s"], rel=1e-3)
    assert shipped.value("latency_l1") == pytest.approx(20.02e-9 * 1.98e9, rel=1e-3)  # 39.6 cycles at the boost clock
    mine = [p for p in shipped.parameters.values() if p.source.endswith("(h200-micro.json)")]
    assert len(mine) == 33
    assert f"# {len(mine)} parameters are from" in SHIPPED.read_text().partition("id: h200")[0]
    assert {p.kind for p in mine} == {"measured"}


def test_the_floor_of_kernel_times_is_that_of_kernels_that_touch_memory(tmp_path: Path, report: dict[str, Any]) -> None:
    """Hardly a kernel of the shipped table is faster, and none comes near the 0.64 us of one that does nothing."""
    floor = load_platform("h200").value("empty_kernel_duration")
    times = pd.read_parquet(RUNS / "h200.parquet", columns=["time_s"])["time_s"]
    assert (times < floor).mean() < 0.002
    assert times.min() > 1.1 * report["results"]["empty_kernel"]["warm_s"]
    del report["results"]["copy"]
    alone = calibrate(load_platform("h200"), write(tmp_path, report)).measured["empty_kernel_duration"]
    assert alone.value == report["results"]["empty_kernel"]["warm_s"] == 6.4e-7


def test_a_product_without_a_matrix_mode_rates_the_vector_units(tmp_path: Path, report: dict[str, Any]) -> None:
    made = calibrate(load_platform("h200"), MICRO).measured
    assert made["sustained_fp32_vector"].value == pytest.approx(2 * 8192**3 / 0.021429225)  # 51.3 TFLOP/s
    assert "chains of multiply-adds in registers 6.127e+13" in made["sustained_fp32_vector"].note
    assert "sustained_fp32_matrix" not in made
    assert made["sustained_fp64_vector"].value > 33e12  # fp64 has a matrix mode: the product says nothing of the vector
    del report["results"]["matrix"]
    chains = calibrate(load_platform("h200"), write(tmp_path, report)).measured["sustained_fp32_vector"]
    assert chains.value == report["results"]["vector"]["fp32"]["short_per_s"]


def test_each_sweep_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "mine.yaml"
    assert status_of(["calibrate", "-p", "h200", "--runs", str(MICRO), "--out", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert len(said["pictures"]) == 9
    assert all(Path(p).read_text().rstrip().endswith("</svg>") for p in said["pictures"])
    assert said["measured"]["l2_bw"] > 9e12


def test_a_section_that_is_missing_or_broken_leaves_its_parameters_alone(
    tmp_path: Path, report: dict[str, Any]
) -> None:
    del report["results"]["read"]
    report["results"]["copy"] = []
    report["results"]["host_launch"] = {"pipelined_s": -1.0, "event_bracketed_s": 5e-6, "sync_s": 9e-6}
    before = load_platform_file(BEFORE)
    made = calibrate(before, write(tmp_path, report))
    for name in ("l2_bw", "sustained_hbm_bw", "kernel_launch_latency"):
        assert made.platform.parameters[name] == before.parameters[name]
    assert set(made.left) == {"read", "copy", "kernel_launch_latency"}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"platform": "h100-sxm"}, "measured on 'h100-sxm'"),
        ({"units": 114}, "114 units"),
        ({"results": {}}, "nothing in the report"),
        ({"results": []}, "not a microbenchmark report"),
    ],
)
def test_a_wrong_report_is_refused(
    tmp_path: Path, report: dict[str, Any], change: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        calibrate(load_platform("h200"), write(tmp_path, report | change))


def test_what_is_no_report_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(InputError, match="no such file"):
        calibrate(load_platform("h200"), path)
    path.write_text("{")
    with pytest.raises(InputError, match="not a microbenchmark report"):
        calibrate(load_platform("h200"), path)


def test_a_run_table_gives_what_kernels_can_tell(tmp_path: Path) -> None:
    rows = [{"platform": "h200", "kernel": "gemm", "precision": "bf16", "time_s": 2 * 8192**2 * k / 7e14,
             "params": json.dumps({"m": 8192, "n": 8192, "k": k})} for k in range(8192, 12289, 1024)]
    rows += [{"platform": "h200", "kernel": "vector_copy", "precision": "fp32", "params": json.dumps({"n": 2**28}),
              "time_s": 2**31 / 4e12}]
    table = tmp_path / "runs.parquet"
    pd.DataFrame(rows).to_parquet(table)
    made = calibrate(load_platform("h200"), table)
    assert {n: f.value for n, f in made.measured.items()} == pytest.approx(
        {"sustained_hbm_bw": 4e12, "sustained_bf16_matrix": 7e14}
    )
    pd.DataFrame(rows[:2]).to_parquet(table)
    with pytest.raises(InputError, match="no large"):
        calibrate(load_platform("h200"), table)


@pytest.mark.parametrize(
    "words", [[], ["-p", "h200"], ["-p", "h200", "--runs", "x.json", "--out", "x.txt"],
              ["-p", "h200", "--runs", str(MICRO), "--out", "/nonexistent/place/p.yaml"]],
)
def test_bad_usage_is_one_message(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["calibrate", *words]) == 2
    assert capsys.readouterr().err.count("kernelcast: ") == 1


def test_two_platforms_are_compared_by_parameter(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["platforms", "--diff", "h100-sxm", "h200", "--json"]) == 0
    found = {d["name"]: d for d in json.loads(capsys.readouterr().out)}
    assert found["hbm_peak_bw"]["ratio"] == pytest.approx(4.8e12 / found["hbm_peak_bw"]["first"])
    assert "warp_size" not in found
    assert status_of(["platforms", "--diff", "h200", "h200", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert status_of(["platforms", "--diff", "h200", "nosuch"]) == 2
