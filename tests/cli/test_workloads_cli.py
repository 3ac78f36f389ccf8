"""Applications, tiles, crossovers, several platforms and pictures as a person meets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernelcast.cli.main import status_of

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
    for words in ("first-principles inputs", "ratio", "decided by", "gate-up: HBM bytes", "generic (gemv)", "no band"):
        assert words in out
    found = document(run("predict", "llm-decode-7b.yaml", "-p", "h200", "-p", "mi300x", "--json"))
    assert [item["platform"] for item in found] == ["h200", "mi300x"]
    assert found[0]["characterisation"] == "first-principles"
    assert found[0]["predicted_s"] == pytest.approx(sum(part["predicted_s"] for part in found[0]["segments"]))


def test_a_file_of_ones_own(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\ncharacterisation: profiler-derived\nsource: counters\nsegments:\n"
                    "  - {name: s, class: memory, bytes: 43 GB}\n", encoding="utf-8")  # fmt: skip
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
    assert "set by hand: bfs_1M.flop=1e6" in out


def test_wrong_words_about_applications(run: Run) -> None:
    assert "no such workload file" in fault(run("predict", "nowhere.yaml", "-p", "h200"))
    assert "say for which platform" in fault(run("predict", "llm-decode-7b"))
    assert "takes its sizes from its file" in fault(run("predict", "llm-decode-7b", "m=3", "-p", "h200"))
    assert "no segment 'x'" in fault(run("predict", "llm-decode-7b", "-p", "h200", "--set", "x.y=3"))
    assert "no such parameter" in fault(run("predict", "llm-decode-7b", "-p", "h200", "--set", "speed=3"))


def test_explain_an_application_with_a_picture(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "roof.png"
    status, out, err = run("explain", "llm-decode-7b", "-p", "h200", "--plot", str(picture))
    assert status == 0
    assert picture.read_bytes().startswith(b"\x89PNG") and "picture written to" in err
    for words in ("terms of the analytic time on h200", "in 32 executions", "physical bound", "parameters looked up"):
        assert words in out


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
    assert "wrong dimension" in fault(run("predict", *words, "--set", "dram_bandwidth=6 GFLOP"))


def test_platforms_side_by_side(run: Run) -> None:
    status, out, _ = run("predict", "gemm", "m=8192", "n=8192", "k=8192", "-p", "b200", "-p", "mi300a")
    assert status == 0
    header = next(line for line in out.splitlines() if "platform" in line)
    assert "ratio" in header and "decided by" in header
    one = run("predict", "gemm", "m=8192", "n=8192", "k=8192", "-p", "b200")[1]
    assert "ratio" not in one


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
                         "precision=fp8", "--json"))  # fmt: skip
    assert found["stretches"][-1]["faster"] == "h200 with precision=fp8"


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
    ],
)
def test_wrong_words_about_crossovers(run: Run, words: tuple[str, ...], message: str) -> None:
    assert message in fault(run("crossover", *words))


# ---- explain


def test_explain_says_steps_units_and_equations(run: Run) -> None:
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
