"""Applications, tiles, crossovers, several platforms and pictures as a person meets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernelcast.service.cli.main import status_of

Run = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.usefixtures("home", "unshipped")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        status = status_of([str(a) for a in arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


def document(result: tuple[int, str, str]) -> Any:
    status, out, err = result
    assert status == 0, err
    return json.loads(out)


def fault(result: tuple[int, str, str], status: int = 2) -> str:
    code, out, err = result
    assert (code, out) == (status, ""), (code, err)
    assert len(err.strip().splitlines()) == 1 and "Traceback" not in err
    return err


# ---- applications


def test_predict_an_application_on_two_platforms(run: Run) -> None:
    status, out, err = run("predict", "llm-decode-7b", "-p", "h200", "-p", "mi300x")
    assert (status, err) == (0, "")
    for words in ("first-principles: counted from the algorithm", "14.2 GB of weights", "ratio",
                  "decided by", "gate-up: HBM bytes", "generic (gemv)", "no band"):
        assert words in out
    found = document(run("predict", "llm-decode-7b.yaml", "-p", "h200", "-p", "mi300x", "--json"))
    assert [item["platform"] for item in found] == ["h200", "mi300x"]
    assert found[0]["characterisation"] == "first-principles"
    assert found[0]["predicted_s"] == pytest.approx(sum(part["predicted_s"] for part in found[0]["segments"]))
    assert found[0]["ratio"] == 1.0 and found[0]["decided_by"] == "gate-up: HBM bytes"
    assert found[1]["ratio"] == pytest.approx(found[1]["predicted_s"] / found[0]["predicted_s"])


def test_a_file_of_ones_own(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\ncharacterisation: profiler-derived\nsource: counters\nsegments:\n"
                    "  - {name: s, class: memory, bytes: 43 GB}\n", encoding="utf-8")
    found = document(run("predict", str(path), "-p", "h200", "--json"))
    assert found["predicted_s"] == pytest.approx(10e-3, rel=1e-3)
    assert found["segments"][0]["route"] == "generic (memory)"
    path.write_text(path.read_text().replace("bytes: 43 GB", "bytes: 43 GB, alpha: 2"), encoding="utf-8")
    assert "mine.yaml: segments[0] (s).alpha:" in fault(run("predict", str(path), "-p", "h200"))


def test_open_inputs_refuse_with_status_3_until_set(run: Run) -> None:
    message = fault(run("predict", "rodinia-bfs_1M", "-p", "mi300a"), 3)
    assert "bfs_1M.flop, bfs_1M.bytes, bfs_1M.n_exec are not published" in message
    sets = ("--set", "bfs_1M.flop=1e6", "--set", "bfs_1M.bytes=30MB", "--set", "bfs_1M.n_exec=12")
    status, out, _ = run("predict", "rodinia-bfs_1M", "-p", "mi300a", *sets)
    assert status == 0
    assert "published_error_percent" in out and "40.9" in out  # their figure stands beside ours
    assert "changed: bfs_1M.flop=1e6" in out
    assert "without the changes" not in out  # there was no answer before


def test_wrong_words_about_applications(run: Run) -> None:
    assert "no such workload file" in fault(run("predict", "nowhere.yaml", "-p", "h200"))
    assert "say for which platform" in fault(run("predict", "llm-decode-7b"))
    assert "takes its sizes from its file" in fault(run("predict", "llm-decode-7b", "m=3", "-p", "h200"))
    assert "(did you mean rodinia-bfs_1M" in fault(run("predict", "rodinia-bfs", "-p", "h200"))
    assert "of that name are pennant-medium, pennant-step" in fault(run("predict", "pennant", "-p", "h200"))
    assert "unknown kernel family 'gem' (did you mean" in fault(run("predict", "gem", "m=3", "-p", "h200"))
    assert "no segment 'x'" in fault(run("predict", "llm-decode-7b", "-p", "h200", "--set", "x.y=3"))
    assert "no such parameter" in fault(run("predict", "llm-decode-7b", "-p", "h200", "--set", "speed=3"))


def test_explain_an_application_with_a_picture(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    pytest.importorskip("matplotlib")
    picture = tmp_path / "roof.png"
    status, out, err = run("explain", "llm-decode-7b", "-p", "h200", "--plot", str(picture))
    assert status == 0
    assert picture.read_bytes().startswith(b"\x89PNG") and "picture written to" in err
    for words in ("terms of the analytic time on h200", "gate-up: gemv fp16, 32 times", " × 32 = ", "physical bound",
                  "parameters looked up", "÷ 4.302 TB/s (sustained_hbm_bw)", "what binds", "to move it", "guard",
                  "sustained_hbm_bw  "):
        assert words in out


LESSON = ("lesson-gemm-4096", "-p", "h200", "--analytic", "--set", "sustained_fp16_matrix=100TFLOP/s", "--set",
          "dram_bandwidth=2.5TB/s")


def test_explain_carries_the_units_of_the_lesson(run: Run) -> None:
    """137.4 GFLOP at 100 TFLOP/s take 1.374 ms, 100.7 MB at 2.5 TB/s take 40.27 us: the worked example of the text."""
    _, out, _ = run("explain", *LESSON)
    for words in ("137.4 GFLOP on the matrix units ÷ 100 TFLOP/s (sustained_fp16_matrix) = 1.374 ms",
                  "100.7 MB HBM ↔ L2 ÷ 2.5 TB/s (sustained_hbm_bw) = 40.27 µs", "1365 FLOP a byte",
                  "memory traffic is next", "changed: sustained_hbm_bw = 2.5 TB/s (set by the user; was 4.302 TB/s)",
                  "without the changes: 176.6 µs"):
        assert words in out
    found = document(run("explain", *LESSON, "--json"))
    steps = {step["name"]: step["seconds"] for step in found["segments"][0]["steps"]}
    assert steps["arithmetic"] == pytest.approx(2 * 4096**3 / 100e12)
    assert steps["memory traffic"] == pytest.approx(3 * 4096**2 * 2 / 2.5e12)
    assert found["characterisation"] == "first-principles"
    assert found["sensitivity"][0]["parameter"] == "class_scale_compute"
    assert found["without_changes"]["predicted_s"] < found["predicted_s"]


def test_explain_copies_waits_and_fusion(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\ncharacterisation: first-principles\nsource: own\nsegments:\n"
                    "  - {name: a, class: memory, bytes: 1 GB, precision: fp32}\n"
                    "  - {name: b, class: memory, bytes: 2 GB, precision: fp32, syncs: 2, "
                    "transfers: [{bytes: 9 MB, direction: d2h, episodes: 3}]}\n", encoding="utf-8")
    _, out, _ = run("explain", str(path), "-p", "t4", "--fuse", "a,b=1 GB", "--set", "fusion_overhead=5us")
    assert "9 MB device → host ÷" in out and "; × 3 copies = " in out and "2 synchronisations × 3 µs" in out
    assert "fusion_overhead = 5 µs" in out
    assert "2 GB HBM ↔ L2" in out and "changed: fused a, b, 1 GB staying on chip" in out
    apart = document(run("predict", str(path), "-p", "h200", "--json"))
    fused = document(run("predict", str(path), "-p", "h200", "--fuse", "a,b=1 GB", "--json"))
    saved = 1e9 / 4.302e12 + 863e-9  # the intermediate traffic and a launch
    assert apart["predicted_s"] - fused["predicted_s"] == pytest.approx(saved, rel=1e-3)
    assert fused["without_changes"]["predicted_s"] == pytest.approx(apart["predicted_s"])
    for word, message in (("a=1", "not a fusion"), ("a,b", "not a fusion"), ("a,b=1 FLOP", "wrong dimension"),
                          ("a,c=1 B", "no segment 'c'"), ("a,b=9 GB", "9 GB stay on chip"), ("a,b=-1", "0 B or more"),
                          ("a,a=1", "named twice")):
        assert message in fault(run("predict", str(path), "-p", "h200", "--fuse", word))
    assert "joins segments of an application" in fault(run("predict", "relu", "n=9", "-p", "h200", "--fuse", "a,b=1"))


def test_devices_and_concurrency_are_rows_of_their_own(run: Run) -> None:
    words = ("llm-decode-7b", "-p", "h200", "--analytic", "--set")
    one = document(run("predict", *words[:-1], "--json"))
    two = document(run("predict", *words, "workload.devices=3", "--set", "multi_device_overhead=20us", "--json"))
    assert two["predicted_s"] - one["predicted_s"] == pytest.approx(40e-6)  # (3 - 1) · 20 us
    assert two["extra"] == pytest.approx({"devices": 40e-6})
    _, out, _ = run("explain", *words, "workload.devices=3", "--set", "multi_device_overhead=20us")
    assert "devices: (3 - 1) × 20 µs (multi_device_overhead) = 40 µs" in out
    assert "not divided among devices" in out and "whole application" in out
    message = fault(run("predict", "llm-decode-7b", "-p", "b200", "--set", "workload.devices=2"))
    assert "multi_device_overhead" in message  # not known there, and not guessed


def test_one_application_shown_with_what_others_printed(run: Run) -> None:
    status, out, _ = run("workloads", "rodinia-streamcluster_1M")
    assert status == 0
    for words in ("published: as a publication states them", "streamcluster_1M.bytes", "157 ms", "12.4", "bytes open"):
        assert words in out
    found = document(run("workloads", "spechpc-lbm_t", "--json"))
    assert found["characterisation"] == "profiler-derived" and found["segments"][0]["flop"] is None
    assert "no such workload file" in fault(run("workloads", "nowhere"))


def test_pennant_on_platforms_without_a_model_of_their_own(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped model across platforms answers for them."""
    monkeypatch.undo()
    found = document(run("predict", "pennant-medium", "-p", "t4", "-p", "h100-pcie", "-p", "mi300x", "--json"))
    assert [item["platform"] for item in found] == ["t4", "h100-pcie", "mi300x"]
    assert found[0]["characterisation"] == "worked-back"
    assert all(item["lower_s"] < item["predicted_s"] < item["upper_s"] for item in found)
    times = [item["predicted_s"] for item in found]
    assert times == sorted(times, reverse=True)  # by bandwidth: 300 GB/s, 2 TB/s, 5.3 TB/s


def test_the_list_of_applications(run: Run) -> None:
    status, out, _ = run("workloads")
    assert status == 0
    assert "rodinia-srad_502" in out and "flop, bytes, n_exec" in out
    found = {item["name"]: item for item in document(run("workloads", "--json"))}
    assert found["spechpc-miniswp_t"]["open_fields"] == ["miniswp_t.bytes"]
    assert found["llm-decode-7b"]["open_fields"] == []


# ---- what-ifs


def test_an_override_is_shown_with_what_it_was(run: Run) -> None:
    words = ("vector_add", "n=100000000", "-p", "b200", "--cache", "cold")
    plain = document(run("predict", *words, "--json"))
    status, out, _ = run("predict", *words, "--set", "dram_bandwidth=6TB/s")
    assert status == 0
    assert "changed: sustained_hbm_bw = 6 TB/s (set by the user; was 7 TB/s)" in out
    found = document(run("predict", *words, "--set", "dram_bandwidth=6TB/s", "--json"))
    assert found["terms"]["memory"] == pytest.approx(plain["terms"]["memory"] * 7 / 6)
    assert found["without_changes"]["predicted_s"] == pytest.approx(plain["predicted_s"])
    assert found["without_changes"]["ratio"] > 1.0
    assert "wrong dimension" in fault(run("predict", *words, "--set", "dram_bandwidth=6 GFLOP"))


def test_an_override_that_does_nothing_or_lacks_its_unit_is_said(run: Run) -> None:
    words = ("predict", "vector_add", "n=1e8", "-p", "h200", "--set")
    _, out, _ = run(*words, "peak_fp16_matrix=500TFLOP/s")
    assert "peak_fp16_matrix = 500 TFLOP/s" in out and "this time does not depend on it" in out
    assert "the changes make it 1 times that" in out
    for name in ("class_scale_memory", "precision_efficiency_fp32"):  # 0 would be no time, or none at all
        assert "out of range: expected more than 0" in fault(run(*words, f"{name}=0"))
    _, out, _ = run(*words, "dram_bandwidth=6")
    assert "set by the user without a unit, taken in B/s" in out
    _, out, _ = run("predict", "llm-decode-7b", "-p", "h200", "--set", "dram_bandwidth=6TB/s")
    assert "changed: sustained_hbm_bw = 6 TB/s (set by the user; was 4.302 TB/s)" in out


def test_platforms_side_by_side(run: Run) -> None:
    both = ("predict", "gemm", "m=8192", "n=8192", "k=8192", "-p", "b200", "-p", "mi300a")
    status, out, _ = run(*both)
    assert status == 0
    header = next(line for line in out.splitlines() if "platform" in line)
    assert "ratio" in header and "decided by" in header
    one = run("predict", "gemm", "m=8192", "n=8192", "k=8192", "-p", "b200")[1]
    assert "ratio" not in one
    terms = {line.split()[0]: line.split() for line in out.splitlines() if line.strip()}
    assert terms["term"][1:] == ["b200", "mi300a", "÷", "b200"]
    launch = terms["launch"]  # 730 ns against 2 us
    assert launch[1:] == ["730", "ns", "2", "µs", "2.74"]
    found = document(run(*both, "--json"))
    assert [item["decided_by"] for item in found] == ["compute", "compute"]
    assert found[1]["ratio"] == pytest.approx(found[1]["predicted_s"] / found[0]["predicted_s"])


def test_a_ratio_says_what_it_compares(run: Run, stored: Path) -> None:
    """T4 has a learned correction here, the H200 has none: the ratio of predictions is not that of the machines."""
    words = ("predict", "gemm", "m=1024", "n=2048", "k=512", "precision=fp16", "-p", "t4", "-p", "h200")
    found = document(run(*words, "--json"))
    plain = found[1]["baseline_s"] / found[0]["baseline_s"]
    assert found[1]["baseline_ratio"] == pytest.approx(plain) != pytest.approx(found[1]["ratio"])
    _, out, _ = run(*words)
    assert f"ratios of the analytic times: t4 1, h200 {plain:.3g}" in out
    assert "ratios of the analytic" not in run(*words, "--analytic")[1]


def test_a_narrow_window_turns_the_table(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    _, out, _ = run("predict", "gemm", "m=8192", "n=8192", "k=8192", "-p", "b200", "-p", "mi300a")
    rows = {line.split("  ")[0].strip(): line for line in out.splitlines()}
    assert max(map(len, out.splitlines())) <= 60
    assert {"predicted", "90 % band", "ratio", "decided by", "bound"} <= set(rows)
    assert rows["predicted"].count("s ") == 2
    _, out, _ = run("tiles", "gemm", "m=4096", "n=4096", "k=4096", "-p", "b200")
    header = next(line for line in out.splitlines() if "tile " in line)
    assert "wave efficiency" not in header and "predicted" in header and "slower by" in header
    assert "256x128x64" in out and max(map(len, out.splitlines())) <= 60
    _, out, _ = run("workloads")
    assert "mi300x-streaming-read" in out  # a name is not broken


def test_tiles(run: Run) -> None:
    status, out, _ = run("tiles", "gemm", "m=4096", "n=4096", "k=4096", "-p", "h200", "--top", "3")
    assert status == 0
    assert "slower ones not shown" in out and "128x" in out
    found = document(run("tiles", "gemm", "m=4096", "n=4096", "k=4096", "-p", "mi300x", "--json"))
    times = [row["baseline_s"] for row in found["tiles"] if row["baseline_s"] is not None]
    assert times == sorted(times)
    best = document(run("predict", "gemm", "m=4096", "n=4096", "k=4096", "-p", "mi300x", "--json"))
    assert times[0] == pytest.approx(best["baseline_s"])
    assert "tiles are of a matrix product" in fault(run("tiles", "fft", "n=8", "-p", "h200"))
    words = ("tiles", "gemm", "m=4096", "n=4096", "k=4096", "-p", "b200")
    two = document(run(*words, "--tile", "64x64x64", "--tile", "128x128x64x2", "--json"))["tiles"]
    assert [row["tile"] for row in two] == [[128, 128, 64, 2], [64, 64, 64, 1]]
    assert all(row["slower_percent"] >= 0.0 for row in two)  # than the fastest of all candidates
    assert "tile 256x512x16 does not fit the tensor memory of b200" in fault(run(*words, "--tile", "256x512x16"))
    for wrong in ("128x128", "0x1x1", "axbxc", "1x1x1x1x1", ""):
        assert "is not a tile; write --tile MxNxK" in fault(run(*words, "--tile", wrong))
    _, out, _ = run(*words, "--set", "dram_bandwidth=6TB/s")
    assert "changed: sustained_hbm_bw = 6 TB/s (set by the user; was 7 TB/s)" in out
    assert "--top is -1" in fault(run("tiles", "gemm", "m=8", "n=8", "k=8", "-p", "h200", "--top", "-1"))


def test_tiles_carry_the_relative_band_of_the_champion(run: Run, stored: Path) -> None:
    words = ("gemm", "m=1024", "n=2048", "k=512", "precision=fp16", "-p", "t4", "--json")
    found, whole = document(run("tiles", *words)), document(run("predict", *words))
    first = found["tiles"][0]
    for name in ("predicted_s", "lower_s", "upper_s"):
        assert first[name] == pytest.approx(whole[name])
    last = [row for row in found["tiles"] if row["baseline_s"] is not None][-1]
    assert last["upper_s"] / last["predicted_s"] == pytest.approx(first["upper_s"] / first["predicted_s"])
    assert "not one of its own" in found["note"]


def test_crossover_of_two_platforms(run: Run) -> None:
    status, out, _ = run("crossover", "vector_copy", "n=1e3..1e9", "-p", "h200", "-p", "mi300x", "--analytic")
    assert status == 0
    assert "the faster one changes at n=" in out and "no band" in out
    found = document(
        run("crossover", "vector_copy", "n=1e3..1e9", "-p", "h200", "-p", "mi300x", "--analytic", "--json")
    )
    assert [item["faster"] for item in found["stretches"]] == ["h200", "mi300x", "h200"]
    for values in found["crossings"]:
        sizes = [f"n={int(values['n']) + step}" for step in (-1, 0)]
        order = []
        for size in sizes:
            pair = document(run("predict", "vector_copy", size, "-p", "h200", "-p", "mi300x", "--analytic", "--json"))
            order.append(pair[0]["baseline_s"] < pair[1]["baseline_s"])
        assert order[0] != order[1]


def test_crossover_of_variants(run: Run) -> None:
    words = ("crossover", "spmv_csr", "rows=1e4..1e7", "cols=1e4..1e7", "nnz=1e5..1e8", "-p", "h200", "--analytic")
    found = document(run(*words, "--variant", "kernel=spmv_coo", "--json"))
    assert found["candidates"] == ["h200", "h200 with kernel=spmv_coo"]
    assert found["stretches"][-1]["faster"] == "h200"  # two indices an entry cost more than a row offset
    found = document(run("crossover", "gemm", "m=64..8192", "n=4096", "k=4096", "-p", "h200", "--variant",
                         "precision=fp8", "--json"))
    assert found["stretches"][-1]["faster"] == "h200 with precision=fp8"


SWEEP = ("corner-sums.zones=1e3..1e8", "corner-sums.points=1e3..1e8", "corner-sums.corners=4e3..4e8")


def test_crossover_of_an_application(run: Run) -> None:
    """A mesh of so many zones: from there the larger bandwidth pays for the longer launch."""
    words = ("crossover", "pennant-step", *SWEEP, "timestep.n=1e6", "-p", "h100-pcie", "-p", "mi300x", "--analytic")
    found = document(run(*words, "--json"))
    assert found["kernel"] == "pennant-step" and found["candidates"] == ["h100-pcie", "mi300x"]
    assert found["stretches"][-1]["faster"] == "mi300x" and len(found["crossings"]) == 1
    size = {key: int(value) for key, value in found["crossings"][0].items()}
    order = []
    for step in (-1, 0):
        sets = [word for key, value in size.items() for word in ("--set", f"{key}={value + step}")]
        pair = document(run("predict", "pennant-step", "--set", "timestep.n=1e6", *sets, *words[-5:], "--json"))
        order.append(pair[0]["baseline_s"] < pair[1]["baseline_s"])
    assert order == [True, False]
    both = ("-p", "b200", "-p", "mi300a", "--analytic")
    _, out, _ = run("crossover", "lesson-intensity", "kernel.bytes=1MB..80GB", *both)
    assert "the faster one changes at kernel.bytes=12.61 GB" in out
    _, out, _ = run("crossover", "lesson-intensity", "kernel.bytes=1MB..80GB", "kernel.flop=1 TFLOP", *both, "--set",
                    "dram_bandwidth=4TB/s")
    assert "with kernel.flop=1 TFLOP, dram_bandwidth=4TB/s set by hand" in out


def test_crossover_with_models_says_where_bands_overlap(run: Run, stored: Path) -> None:
    found = document(run("crossover", "vector_add", "n=1e5..1e8", "-p", "t4", "-p", "h200", "--json"))
    assert found["stretches"][-1]["faster"] == "h200"
    assert found["stretches"][-1]["certain"] is None  # no model, so no band, on one of them
    assert not found["analytic"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("vector_copy", "n=1e3..1e9", "-p", "h200"), "between two"),
        (("vector_copy", "n=1000", "-p", "h200", "-p", "t4"), "say what to sweep"),
        (("vector_copy", "n=9..1", "-p", "h200", "-p", "t4"), "0 < LOW < HIGH"),
        (("vector_copy", "n=a..b", "-p", "h200", "-p", "t4"), "range"),
        (("vector_copy", "q=1..9", "-p", "h200", "-p", "t4"), "unknown parameter 'q'"),
        (("vector_cop", "n=1..9", "-p", "h200", "-p", "t4"), "unknown kernel family"),
        (("n=1..9", "-p", "h200"), "family comes first"),
        (("vector_copy", "n=1..9"), "say which two"),
        (("lesson-intensity", "kernel.bytes=1..9FLOP", "-p", "h200", "-p", "t4"), "wrong dimension"),
        (("lesson-intensity", "kernel.byts=1..9", "-p", "h200", "-p", "t4"), "unknown field"),
        (("lesson-intensity", "bytes=1..9", "-p", "h200", "-p", "t4"), "write segment.field=LOW..HIGH"),
        (("lesson-intensity", "a.bytes=1..9", "-p", "h200", "-p", "t4"), "no segment 'a'"),
        (("lesson-intensity", "kernel.bytes=9..1", "-p", "h200", "-p", "t4"), "0 < LOW < HIGH"),
        (("lesson-intensity", "-p", "h200", "-p", "t4"), "say what to sweep"),
        (("lesson-intensity", "kernel.bytes=1..9", "-p", "h200"), "between two platforms"),
        (("lesson-intensity", "kernel.bytes=1..9", "-p", "h200", "--variant", "precision=fp8"), "of a kernel"),
    ],
)
def test_wrong_words_about_crossovers(run: Run, words: tuple[str, ...], message: str) -> None:
    assert message in fault(run("crossover", *words))


# ---- explain


def test_explain_says_steps_units_and_equations(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    status, out, _ = run("explain", "spmv_csr", "rows=400000", "cols=400000", "nnz=4000000", "-p", "h200")
    assert status == 0
    for words in ("÷ 4.302 TB/s (sustained_hbm_bw)", "HBM ↔ L2", "what binds", "to move it", "Eq. (1)", "guard"):
        assert words in out
    found = document(run("explain", "gemm", "m=512", "n=512", "k=512", "-p", "mi300x", "--json"))
    assert {"steps", "binding", "to_move", "equations", "guard", "sensitivity", "parameters"} <= set(found)
    assert all({"name", "words", "seconds", "equation"} == set(step) for step in found["steps"])


def test_pictures_of_kernels(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    words = ("explain", "gemm", "m=512", "n=512", "k=512", "-p", "h200", "-p", "mi300x", "--json")
    status, _, err = run(*words, "--plot", str(tmp_path / "roof.svg"))
    assert status == 0 and err.count("picture written to") == 2
    assert {path.name for path in tmp_path.glob("*.svg")} == {"roof-h200.svg", "roof-mi300x.svg"}
    assert ".svg, .png, .pdf" in fault(run(*words, "--plot", str(tmp_path / "roof.gif")))
