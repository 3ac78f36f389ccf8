"""Measuring as a process: killed, interrupted, hung, out of memory, on the wrong GPU. The table is valid each time."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelcast.analytic.errors import KernelcastError
from kernelcast.measure import run, runner
from kernelcast.measure.run import chunks, run_suite, throttled
from kernelcast.measure.runner import tick_s
from kernelcast.measure.suite import load_suite
from kernelcast.measure.trace import RECORD
from kernelcast.training.runs import read_runs

SCRIPT = Path(__file__).with_name("fake_suite.py")
SUITE = """
seed: 3
draws:
  - family: vector_copy
    count: {count}
    effort: [8.0e+2, 8.0e+7]
    params: {{n: {{log: [100, 1.0e+7]}}}}
    variants: [{{implementation: paper, precision: fp32}}, {{implementation: paper, precision: fp64}}]
"""


def suite(folder: Path, count: int = 60, extra: str = "") -> Path:
    path = folder / "paper.yaml"
    path.write_text(SUITE.format(count=count) + extra)
    return path


def odd(n: int) -> str:
    """A draw of a single size."""
    return f"""  - family: vector_copy
    count: 1
    effort: [1.0, 1.0e+9]
    params: {{n: {{choice: [{n}]}}}}
    variants: [{{implementation: paper, precision: fp16}}]
"""


def command(folder: Path, out: str, *more: str) -> list[str]:
    return [sys.executable, str(SCRIPT), str(folder / "paper.yaml"), str(folder / out), *more]


def table(path: Path) -> pd.DataFrame:
    return read_runs(path).frame.sort_values(["precision", "params", "cache"]).reset_index(drop=True)


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("fake_suite", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(run, "Gpu", run.Gpu)  # put back afterwards
    monkeypatch.setattr(run, "open_tracer", run.open_tracer)
    monkeypatch.setattr(runner, "BUILDERS", dict(runner.BUILDERS))
    spec.loader.exec_module(module)
    module.CALL_S = 0.0
    return module.install()


def test_killed_at_five_random_moments_it_resumes_to_the_same_table(tmp_path: Path) -> None:
    suite(tmp_path, 60)
    begun = time.monotonic()
    subprocess.run(command(tmp_path, "whole.parquet"), check=True, stdout=subprocess.DEVNULL)
    whole_s = time.monotonic() - begun
    chance, journal, sizes = random.Random(20261130), tmp_path / "cut.journal.jsonl", []
    for _ in range(5):
        process = subprocess.Popen(command(tmp_path, "cut.parquet", "--resume"), stdout=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.4, 0.8) * whole_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
        sizes.append(journal.stat().st_size if journal.exists() else 0)
    assert sizes == sorted(sizes)  # nothing measured is lost
    done = subprocess.run(command(tmp_path, "cut.parquet", "--resume"), check=True, capture_output=True, text=True)
    assert "(complete)" in done.stdout
    keys = [json.loads(line)["key"] for line in journal.read_text().splitlines()]
    assert len(keys) == len(set(keys)) == len(load_suite(tmp_path / "paper.yaml"))
    # the floor of the timer is each process's own
    cut, whole = (table(tmp_path / name).drop(columns="noise_floor_s") for name in ("cut.parquet", "whole.parquet"))
    pd.testing.assert_frame_equal(cut, whole)


def test_a_kernel_that_hangs_ends_the_run_with_a_valid_table_and_is_left_out_when_resumed(tmp_path: Path) -> None:
    suite(tmp_path, 40, odd(666))
    first = subprocess.run(command(tmp_path, "t.parquet", "--time-limit", "1s"), capture_output=True, text=True)
    assert first.returncode == 2
    assert "no answer in 1 s" in first.stdout
    assert "--resume" in first.stdout
    assert {"kernel", "params", "time_s"} <= set(pd.read_parquet(tmp_path / "t.parquet").columns)
    again = subprocess.run(
        command(tmp_path, "t.parquet", "--time-limit", "5s", "--resume"), capture_output=True, text=True
    )
    assert again.returncode == 0, again.stderr
    frame = table(tmp_path / "t.parquet")
    assert not frame["params"].str.contains("666").any()
    meta = json.loads((tmp_path / "t.meta.json").read_text())
    assert any("no answer in 1 s" in reason for reason in meta["skipped"])
    assert len(frame) == 2 * (len(load_suite(tmp_path / "paper.yaml")) - 1)


def test_interrupted_the_table_so_far_is_valid(tmp_path: Path) -> None:
    suite(tmp_path, 100)
    process = subprocess.Popen(command(tmp_path, "t.parquet"), stdout=subprocess.PIPE, text=True)
    journal = tmp_path / "t.journal.jsonl"
    for _ in range(200):
        time.sleep(0.05)
        if journal.exists() and journal.stat().st_size:
            break
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "partial" in said
    frame = table(tmp_path / "t.parquet")
    assert 0 < len(frame) < 2 * len(load_suite(tmp_path / "paper.yaml"))
    assert set(frame["cache"]) == {"warm", "cold"}


def test_out_of_memory_is_skipped_noted_and_the_rest_measured(tmp_path: Path, paper: Any) -> None:
    path, out = suite(tmp_path, 20, odd(13)), tmp_path / "t.parquet"
    summary = run_suite(path, "h200", out)
    assert summary.complete
    assert summary.skipped == {"vector_copy/paper/fp16: kind failed its check: out of device memory": 1}
    assert summary.measured == len(load_suite(path)) - 1
    assert len(table(out)) == 2 * summary.measured


def test_a_wrong_result_is_never_timed(tmp_path: Path, paper: Any) -> None:
    path, out = suite(tmp_path, 10, odd(31)), tmp_path / "t.parquet"
    summary = run_suite(path, "h200", out)
    assert "wrong result" in next(iter(summary.skipped))
    assert "31" not in {json.loads(p)["n"] for p in table(out)["params"]}
    assert set(table(out)["precision"]) == {"fp32", "fp64"}


def test_times_are_medians_of_the_trace_and_each_row_has_its_noise_floor(tmp_path: Path, paper: Any) -> None:
    out = tmp_path / "t.parquet"
    run_suite(suite(tmp_path, 10), "h200", out)
    frame = table(out)
    n = np.array([json.loads(p)["n"] for p in frame["params"]])
    np.testing.assert_allclose(frame["time_s"], (1000 + n) * 1e-9, rtol=1e-4)  # five digits are kept
    assert (frame["noise_floor_s"] >= frame["spread_s"]).all()
    assert (frame["noise_floor_s"] > 0).all()
    assert (frame["n_reps"] == 9).all()
    meta = json.loads((tmp_path / "t.meta.json").read_text())
    assert meta["first_repeat_outliers"] == {}
    assert set(meta["first_check_s"]) == {"vector_copy/paper/fp32", "vector_copy/paper/fp64"}


def test_another_gpu_is_refused_before_anything_is_written(tmp_path: Path, paper: Any) -> None:
    paper.name = "NVIDIA H100 80GB HBM3"
    with pytest.raises(KernelcastError, match=r"H100.*not the platform 'h200'"):
        run_suite(suite(tmp_path), "h200", tmp_path / "t.parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["paper.yaml"]


def test_a_spent_budget_leaves_a_partial_table(tmp_path: Path, paper: Any) -> None:
    path, out = suite(tmp_path, 60), tmp_path / "t.parquet"
    summary = run_suite(path, "h200", out, budget_s=0.0)
    assert not summary.complete
    assert summary.rows == 0
    rest = run_suite(path, "h200", out, resume=True)
    assert rest.complete
    assert rest.rows == 2 * len(load_suite(path))


def test_a_table_of_nothing_has_its_columns(tmp_path: Path, paper: Any) -> None:
    run_suite(suite(tmp_path), "h200", tmp_path / "t.parquet", budget_s=0.0)
    assert {"platform", "kernel", "precision", "params", "time_s"} <= set(pd.read_parquet(tmp_path / "t.parquet"))


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path, paper: Any) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KernelcastError, match="cannot write"):
        run_suite(suite(tmp_path), "h200", tmp_path / "file" / "t.parquet")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_refused(tmp_path: Path, paper: Any) -> None:
    path = suite(tmp_path)
    tmp_path.chmod(0o500)
    with pytest.raises(KernelcastError, match="cannot write"):
        run_suite(path, "h200", tmp_path / "t.parquet")


def test_a_disk_that_fills_keeps_what_was_measured(tmp_path: Path, paper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out, calls = suite(tmp_path, 60), tmp_path / "t.parquet", []

    def fsync(_: int) -> None:
        calls.append(1)
        if len(calls) > 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("kernelcast.measure.journal.os.fsync", fsync)
    with pytest.raises(KernelcastError, match=r"No space left.*--resume"):
        run_suite(path, "h200", out)
    measured = sum(len(c) for c in list(chunks(load_suite(path)))[:2])
    assert len(table(out)) >= 2 * measured
    monkeypatch.setattr("kernelcast.measure.journal.os.fsync", os.fdatasync)
    rest = run_suite(path, "h200", out, resume=True)
    assert rest.complete
    assert rest.rows == 2 * len(load_suite(path))


def test_progress_tells_what_is_left(tmp_path: Path, paper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "REPORT_CHUNKS", 1)
    words: list[str] = []
    note: Callable[[str], None] = words.append
    run_suite(suite(tmp_path), "h200", tmp_path / "t.parquet", progress=note)
    assert any("s left" in w for w in words)


def test_a_clock_well_below_its_highest_is_throttling() -> None:
    assert throttled([{"clocks.sm": "1410 MHz", "clocks.max.sm": "1980 MHz"}])
    assert not throttled([{"clocks.sm": "1860 MHz", "clocks.max.sm": "1980 MHz"}])
    assert not throttled([{}])


def test_the_timers_tick_is_its_smallest_step() -> None:
    rows = [(0, 864, 1, 0), (0, 863, 1, 0), (0, 832, 1, 0), (0, 928, 1, 0)]
    assert tick_s(np.array(rows, RECORD)) == pytest.approx(31e-9)
    assert tick_s(np.array(rows[:1], RECORD)) == 1e-6  # nothing to tell it from
