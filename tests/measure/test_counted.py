"""Counters: the sample covers every family, reports are read exactly, and times never come from the profiler."""

from __future__ import annotations

import json
import os
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelcast.analytic.errors import InputError, KernelcastError
from kernelcast.measure.counted import count_table, main
from kernelcast.measure.counted_report import by_family, compare, write_report
from kernelcast.measure.counted_table import Kernel, as_segments, counted_rows, fold, join_times, read_report, totals
from kernelcast.measure.counters import (
    INTEGER,
    SINGLE,
    SUMMED,
    load_plan,
    metrics_for,
    ncu_command,
    params_text,
    plan,
    save_plan,
)
from kernelcast.measure.suite import Config, load_suite
from kernelcast.training.tables.schema import read_runs

RUNS = Path(str(resources.files("kernelcast.configs"))) / "runs"
KEY = "0123456789abcdef"
FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
FADD = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"
HEADER = ("ID", "thread Domain:Push/Pop_Range", "Kernel Name", "Block Size", "Grid Size", "dram__bytes_read.sum",
          "dram__bytes_write.sum", "lts__t_bytes.sum", FFMA, "launch__registers_per_thread")
UNITS = ("", "", "", "", "", "byte", "byte", "byte", "inst", "register/thread")


def report(folder: Path, *rows: tuple[str, ...], units: tuple[str, ...] = UNITS) -> Path:
    lines = ["==PROF== a line of ncu's own"]
    lines += [",".join(f'"{cell}"' for cell in row) for row in (HEADER, units, *rows)]
    path = folder / "vector-cold.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def row(key: str = KEY, read: str = "1,024", name: str = "triad") -> tuple[str, ...]:
    return ("0", f'1 "<default domain>:kc:{key}:none"'.replace('"', "'"), name, "(256, 1, 1)", "(8, 2, 1)", read,
            "512", "4,096", "2,048", "32")


def test_a_report_is_read_by_configuration_with_thousands_separators(tmp_path: Path) -> None:
    found = read_report(report(tmp_path, row(), row(read="10"), row(key="f" * 16), row(key="none")))
    assert {k: len(v) for k, v in found.items()} == {KEY: 2, "f" * 16: 1}
    kernel = found[KEY][0]
    assert (kernel.name, kernel.grid, kernel.block) == ("triad", [8, 2, 1], [256, 1, 1])
    assert kernel.counters["dram__bytes_read.sum"] == 1024.0
    assert kernel.counters["launch__registers_per_thread"] == 32.0


def test_other_units_or_another_page_are_refused(tmp_path: Path) -> None:
    units = (*UNITS[:5], "Mbyte", *UNITS[6:])
    with pytest.raises(InputError, match=r"Mbyte.*--print-units base"):
        read_report(report(tmp_path, row(), units=units))
    (tmp_path / "x.csv").write_text('"Section","Metric"\n')
    with pytest.raises(InputError, match="raw page"):
        read_report(tmp_path / "x.csv")


def test_a_multiply_add_is_two_operations_and_an_unsplit_sum_is_no_flop_count() -> None:
    split = Kernel("k", [1], [1], dict.fromkeys(SINGLE, 0.0) | {FFMA: 100.0, FADD: 10.0, INTEGER: 7.0})
    assert totals([split])["flops"] == 210.0
    assert totals([split, split])["fp_inst_fp32"] == 220.0
    summed = Kernel("k", [1], [1], {SUMMED["f"]: 110.0})
    assert np.isnan(totals([summed])["flops"])
    assert totals([summed])["fp_inst_fp32"] == 110.0
    tensor = Kernel("k", [1], [1], {SUMMED["f"]: 110.0, "sm__ops_path_tensor_src_bf16_dst_fp32.sum": 1e6})
    assert totals([tensor])["flops"] == pytest.approx(1e6 + 110)  # whichever way, within 5 %
    assert totals([Kernel("k", [1], [1], {SUMMED["f"]: 0.0})])["flops"] == 0.0


def test_times_come_from_the_table_and_calls_that_differ_are_left_out(tmp_path: Path) -> None:
    line = {"key": KEY, "kernel": "triad", "implementation": "x", "precision": "fp32", "params": '{"n":256}'}
    counted = counted_rows([("cold", read_report(report(tmp_path, row())), [line, line, {"key": "e" * 16}])])
    assert len(counted) == 1
    table = pd.DataFrame([{**line, "platform": "h200", "cache": c, "time_s": t, "launches": 1, "group": "g"}
                          for c, t in (("cold", 3e-6), ("warm", 2e-6))]).drop(columns="key")
    joined = join_times(counted, table)
    assert joined["time_s"].tolist() == [3e-6]
    assert joined["bytes"].tolist() == [1536.0]
    assert len(join_times(counted, table.assign(launches=2))) == 0
    segment = as_segments(joined).iloc[0]
    params = json.loads(segment["params"])
    assert segment["kernel"] == "segment"
    assert segment["group"] == "g"
    assert (params["name"], params["grid"], params["registers"], params["l2_bytes"]) == ("triad", [8, 2, 1], 32, 4096)


def configs() -> list[Config]:
    kinds = [
        ("gemm", "cublas", "bf16"),
        ("gemm", "tile16", "fp32"),
        ("triad", "x", "fp32"),
        ("bitonicsort", "y", "int32"),
    ]
    return [Config(*kind, {"m": n, "n": n, "k": n} if kind[0] == "gemm" else {"n": n * n}, str(n), n)
            for kind in kinds for n in (128, 256, 512, 1024, 2048)]


def test_a_cut_off_sample_has_of_every_family_first() -> None:
    launches = {
        ("bitonicsort", "y", "int32", json.dumps({"n": n * n}, separators=(",", ":"))): 60 for n in (128, 256, 512)
    }
    chosen = plan(configs(), launches, 100)
    assert {p.config.family for p in chosen[:3]} == {"gemm", "triad", "bitonicsort"}
    assert {p.config.kind for p in chosen[:4]} == {c.kind for c in configs()}
    assert len({p.config.key for p in chosen}) == len(chosen)
    # sixty launches cost as much as sixty short calls and tell as little as one: the smallest stands for its kind
    assert [p.config.params["n"] for p in chosen if p.config.family == "bitonicsort"] == [128**2]
    assert sum(p.config.family == "triad" for p in chosen) == 5


def test_a_plan_comes_back_as_written(tmp_path: Path) -> None:
    chosen = plan(configs(), {}, 7)
    save_plan(chosen, "suite", "h200", tmp_path / "plan.json")
    platform, again = load_plan(tmp_path / "plan.json")
    assert platform == "h200"
    assert [c.key for c in again] == [p.config.key for p in chosen]
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(InputError, match="not a plan"):
        load_plan(tmp_path / "bad.json")


def test_ncu_leaves_the_clocks_alone_and_flushes_for_cold_calls_only(tmp_path: Path) -> None:
    metrics = metrics_for({"sm__ops_path_tensor_src_fp8", "sm__ops_path_tensor_src_int1"}, tensor=True)
    assert set(SINGLE) <= set(metrics)
    assert [m for m in metrics if "tensor" in m] == ["sm__ops_path_tensor_src_fp8.sum"]
    for cache, flush in (("cold", "all"), ("warm", "none")):
        command = ncu_command("ncu", metrics, cache, tmp_path / "r", ["python", "x.py"])
        assert command[command.index("--clock-control") + 1] == "none"
        assert command[command.index("--cache-control") + 1] == flush
        assert command[-2:] == ["python", "x.py"]


def test_no_ncu_is_said_plainly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save_plan(plan(configs(), {}, 2), "suite", "h200", tmp_path / "plan.json")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["run", "--plan", str(tmp_path / "plan.json"), "--folder", str(tmp_path)]) == 2
    assert "Nsight Compute" in capsys.readouterr().err


COUNTED_SUITE = """
seed: 1
draws:
  - family: triad
    count: 6
    effort: [1.0e+5, 1.0e+8]
    params: {n: {log: [8192, 8388608]}}
    variants: [{implementation: thread_element, precision: fp32}]
  - family: bmm
    count: 6
    effort: [1.0e+5, 1.0e+8]
    params: {batch: {log: [2, 8]}, m: {log: [64, 512]}, n: {log: [64, 512]}, k: {log: [64, 512]}}
    variants: [{implementation: cublas, precision: bf16}]
"""


@pytest.fixture
def counted_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A measured table of a small suite, and an `ncu` of paper on the path."""
    (tmp_path / "small.yaml").write_text(COUNTED_SUITE)
    rows = [{"platform": "h200", "kernel": c.family, "implementation": c.implementation, "precision": c.precision,
             "params": params_text(c.params), "time_s": 1e-5 if cache == "cold" else 8e-6, "cache": cache,
             "launches": 1 if c.family == "triad" else 2, "group": c.key}
            for c in load_suite(tmp_path / "small.yaml") for cache in ("cold", "warm")]
    pd.DataFrame(rows).to_parquet(tmp_path / "runs.parquet")
    tools = tmp_path / "bin"
    tools.mkdir()
    program = Path(__file__).with_name("fake_ncu.py")
    (tools / "ncu").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$@"\n')
    (tools / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "runs.parquet"


def test_split_counters_from_ncus_page_to_the_table_and_the_report(
    counted_table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Additions, multiplications and multiply-adds asked for apart: every FLOP count is one number, no range."""
    folder = counted_table.parent
    said: list[str] = []
    out, calls = count_table(str(folder / "small.yaml"), "h200", counted_table, 24, 60.0, said.append)
    assert calls == 24  # 12 configurations, cold and warm
    assert [words.split(":")[0] for words in said] == ["vector-cold", "vector-warm", "tensor-cold", "tensor-warm"]
    frame = read_runs(out).frame
    times = dict(zip(("cold", "warm"), (1e-5, 8e-6), strict=True))
    assert all(row["time_s"] == times[row["cache"]] for _, row in frame.iterrows())  # never the profiler's
    triads, products = frame[frame["kernel"] == "triad"], frame[frame["kernel"] == "bmm"]
    n = np.array([json.loads(p)["n"] for p in triads["params"]])
    assert (triads["flops"] == 2 * n).all()  # a multiply-add is two
    assert (triads["fp_inst_fp32"] == n).all()
    assert (triads["bytes_read"] == 8 * n).all()
    assert (triads["bytes_written"] == 4 * n).all()
    sizes = [json.loads(p) for p in products["params"]]
    tensor = np.array([4 * s["batch"] * s["m"] * s["n"] * s["k"] for s in sizes])
    assert (products["flops_tensor"] == tensor).all()
    # both kernels: fp32 100 + 50 + 2·25 + 1000, fp64 3 + 2·4, fp16 7
    assert (products["flops"] == tensor + 1200 + 11 + 7).all()
    assert (products["fp_inst_fp32"] == 1175).all()
    assert (products["fp_inst_fp64"] == 7).all()
    assert (products["bytes_read"] == 1e9 + 5).all()
    segments = frame[frame["kernel"] == "segment"]
    assert len(segments) == len(triads)  # calls of one kernel only
    params = json.loads(segments.iloc[0]["params"])
    assert (params["name"], params["grid"], params["smem_bytes"]) == ("triad<float>(int, float *)", [1024, 1, 1], 1024)
    assert segments["occupancy"].to_numpy() == pytest.approx(0.619)
    page = folder / "page.md"
    assert main(["report", "--counted", str(out), "--out", str(page)]) == 0
    text = page.read_text()
    assert "**Sample: 24 calls** of 12 configurations (12 cold, 12 warm) of 2 families; 36 kernels." in text
    assert "FLOP are known (to 5 %) of 24 calls, within a factor of two of the other 0." in text
    (triad,) = [line for line in text.splitlines() if line.startswith("| triad")]
    assert triad.split(" | ")[-2] == "1.00"
    (bmm,) = [line for line in text.splitlines() if line.startswith("| bmm")]
    assert bmm.split(" | ")[-2].startswith("2.0") and bmm.rstrip(" |").endswith("FLOP")


def test_a_report_that_ends_early_gives_the_calls_it_has(counted_table: Path) -> None:
    """ncu was stopped: what its page holds whole is taken, calls of too few kernels and missing reports are not."""
    folder = counted_table.parent
    count_table(str(folder / "small.yaml"), "h200", counted_table, 24, 60.0, lambda _: None)
    counters = folder / "runs-counters"
    page = counters / "tensor-cold.csv"
    page.write_text("\n".join(page.read_text().splitlines()[:-1]) + "\n")  # the last call's second kernel is missing
    (counters / "tensor-warm.csv").write_text("")
    (counters / "vector-warm.csv").unlink()
    frame = fold([counters], counted_table)
    calls = frame[frame["kernel"] != "segment"]
    assert calls.groupby(["kernel", "cache"]).size().to_dict() == {("bmm", "cold"): 5, ("triad", "cold"): 6}
    for left in counters.glob("*.csv"):
        left.write_text("")
    with pytest.raises(KernelcastError, match="nothing was counted; the logs"):
        fold([counters], counted_table)


@pytest.fixture(scope="module")
def shipped() -> pd.DataFrame:
    return pd.read_parquet(RUNS / "h200-counted.parquet")


def test_the_shipped_counts_cover_every_family_with_the_tables_own_times(shipped: pd.DataFrame) -> None:
    table = pd.read_parquet(RUNS / "h200.parquet")
    calls = shipped[shipped["kernel"] != "segment"]
    assert set(calls["kernel"]) == set(table["kernel"])
    keys = ["kernel", "implementation", "precision", "params", "cache"]
    times = calls.merge(table.drop_duplicates(keys), on=keys, suffixes=("", "_table"))
    assert len(times) == len(calls) >= 1000
    assert (times["time_s"] == times["time_s_table"]).all()
    assert (shipped["bytes"] == shipped["bytes_read"] + shipped["bytes_written"]).all()
    peak = 1.02 * 4.8e12  # counted bytes over the measured time beat no datasheet
    big = calls[(calls["cache"] == "cold") & (calls["bytes"] > 5e7)]
    assert len(big) > 10
    assert (big["bytes"] / big["time_s"] < peak).all()


def test_counted_tensor_operations_of_large_products_are_the_products(shipped: pd.DataFrame) -> None:
    products = shipped[(shipped["kernel"] == "gemm") & shipped["flops"].notna()]
    sizes = [json.loads(p) for p in products["params"]]
    work = np.array([2.0 * s["m"] * s["n"] * s["k"] for s in sizes])
    ratio = products["flops"].to_numpy() / work
    thick = np.array([min(s["m"], s["n"], s["k"]) >= 128 for s in sizes])  # thinner and smaller ones pad their tiles
    large = thick & (work >= 1e9)
    assert large.sum() >= 8
    assert ((ratio[large] > 0.999) & (ratio[large] < 1.1)).all()
    assert (ratio > 0.999).all()


def test_the_page_is_what_the_command_writes(shipped: pd.DataFrame, tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "counted-work.md"
    copy = tmp_path / "page.md"
    copy.write_text(page.read_text())
    write_report(shipped, copy)
    assert copy.read_text() == page.read_text()
    lines = {x["family"]: x for x in by_family(compare(shipped))}
    assert lines["vector_copy"]["read"] == pytest.approx(1.0, abs=0.02)
    assert lines["transpose"]["off"] == ""
