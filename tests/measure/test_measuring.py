"""Measuring as a process: killed, interrupted, hung, out of memory, on the wrong GPU. The table is valid each time."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelcast.analytic.errors import KernelcastError
from kernelcast.measure import run, runner
from kernelcast.measure.gpu import throttled
from kernelcast.measure.progress import Lines
from kernelcast.measure.run import chunks, run_suite
from kernelcast.measure.runner import tick_s
from kernelcast.measure.suite import load_suite
from kernelcast.measure.trace import RECORD
from kernelcast.training.tables.schema import read_runs

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


class Maker:
    """Starts measuring processes on the paper GPU, one after another, forked from one that has imported everything:
    each is a process of its own, seconds sooner."""

    def __init__(self) -> None:
        self._server = subprocess.Popen([sys.executable, str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        assert self._answer() == "ready"

    def begin(self, program: str, words: list[str], *, file_limit: int | None = None, terminal: bool = False) -> int:
        """The number of a process that has begun; nobody else gets that number before `end`."""
        assert self._server.stdin is not None
        env = {"KERNELCAST_HOME": os.environ["KERNELCAST_HOME"], "COLUMNS": "120", "TERM": "xterm"}
        order = {"program": program, "words": words, "file_limit": file_limit, "terminal": terminal, "env": env}
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        return int(self._answer())

    def end(self) -> subprocess.CompletedProcess[str]:
        """How the process that was begun last has ended, once it has."""
        status, out, err = self._answer()
        return subprocess.CompletedProcess([], status, out, err)

    def _answer(self) -> Any:
        assert self._server.stdout is not None
        return json.loads(self._server.stdout.readline())

    def begin_measuring(self, folder: Path, out: str, *more: str, file_limit: int | None = None) -> int:
        """`python -m kernelcast.measure`, begun."""
        words = ["--suite", str(folder / "paper.yaml"), "--platform", "h200", "--out", str(folder / out), *more]
        return self.begin("measure", words, file_limit=file_limit)

    def measure(self, folder: Path, out: str, *more: str, file_limit: int | None = None
                ) -> subprocess.CompletedProcess[str]:
        """`python -m kernelcast.measure`, from beginning to end."""
        self.begin_measuring(folder, out, *more, file_limit=file_limit)
        return self.end()

    def command(self, folder: Path, *more: str, terminal: bool = False) -> subprocess.CompletedProcess[str]:
        """`kernelcast measure`, its standard error a terminal of 120 columns or a pipe."""
        words = ["measure", "-p", "h200", "--suite", str(folder / "paper.yaml"), "--out", str(folder / "t.parquet")]
        self.begin("kernelcast", [*words, *more], terminal=terminal)
        return self.end()

    def close(self) -> None:
        self._server.communicate(timeout=60)


@pytest.fixture(scope="module")
def maker() -> Iterator[Maker]:
    made = Maker()
    yield made
    made.close()


def table(path: Path) -> pd.DataFrame:
    return read_runs(path).frame.sort_values(["precision", "params", "cache"]).reset_index(drop=True)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("fake_suite", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(run, "Gpu", run.Gpu)  # put back afterwards
    monkeypatch.setattr(run, "open_tracer", run.open_tracer)
    monkeypatch.setattr(runner, "BUILDERS", dict(runner.BUILDERS))
    spec.loader.exec_module(module)
    module.CALL_S = 0.0
    return module


@pytest.fixture
def paper(module: Any) -> Any:
    return module.install()


def test_killed_at_five_random_moments_it_resumes_to_the_same_table(tmp_path: Path, maker: Maker) -> None:
    suite(tmp_path, 100)
    begun = time.monotonic()
    assert maker.measure(tmp_path, "whole.parquet").returncode == 0
    whole_s = time.monotonic() - begun
    chance, journal = random.Random(20261130), tmp_path / "cut.journal.jsonl"
    sizes, ends = [], []
    for _ in range(5):
        process = maker.begin_measuring(tmp_path, "cut.parquet", "--resume")
        time.sleep(chance.uniform(0.1, 0.35) * whole_s)
        with contextlib.suppress(ProcessLookupError):  # where this process was kept waiting, that one may be through
            os.kill(process, signal.SIGKILL)
        ends.append(maker.end().returncode)
        sizes.append(journal.stat().st_size if journal.exists() else 0)
    assert -signal.SIGKILL in ends and set(ends) <= {-signal.SIGKILL, 0}
    assert sizes == sorted(sizes)  # nothing measured is lost
    done = maker.measure(tmp_path, "cut.parquet", "--resume")
    assert done.returncode == 0 and "(complete)" in done.stdout
    keys = [json.loads(line)["key"] for line in journal.read_text().splitlines()]
    assert len(keys) == len(set(keys)) == len(load_suite(tmp_path / "paper.yaml"))
    # the floor of the timer is each process's own
    cut, whole = (table(tmp_path / name).drop(columns="noise_floor_s") for name in ("cut.parquet", "whole.parquet"))
    pd.testing.assert_frame_equal(cut, whole)


def test_a_kernel_that_hangs_ends_the_run_with_a_valid_table_and_is_left_out_when_resumed(
    tmp_path: Path, maker: Maker
) -> None:
    suite(tmp_path, 40, odd(666))
    first = maker.measure(tmp_path, "t.parquet", "--time-limit", "1s")
    assert first.returncode == 2
    assert "no answer in 1 s" in first.stdout
    assert "--resume" in first.stdout
    assert {"kernel", "params", "time_s"} <= set(pd.read_parquet(tmp_path / "t.parquet").columns)
    again = maker.measure(tmp_path, "t.parquet", "--time-limit", "5s", "--resume")
    assert again.returncode == 0, again.stderr
    frame = table(tmp_path / "t.parquet")
    assert not frame["params"].str.contains("666").any()
    meta = json.loads((tmp_path / "t.meta.json").read_text())
    assert any("no answer in 1 s" in reason for reason in meta["skipped"])
    assert len(frame) == 2 * (len(load_suite(tmp_path / "paper.yaml")) - 1)


def test_a_round_that_hangs_is_resumed_one_by_one_and_only_the_culprit_is_left_out(
    tmp_path: Path, maker: Maker
) -> None:
    """In a round of timing nobody knows which of its configurations hangs; alone it shows."""
    path = suite(tmp_path, 10, odd(667))
    first = maker.measure(tmp_path, "t.parquet", "--time-limit", "1s")
    assert first.returncode == 2
    assert "measures them one by one" in first.stdout
    assert pd.read_parquet(tmp_path / "t.parquet").empty
    again = maker.measure(tmp_path, "t.parquet", "--time-limit", "1s", "--resume")
    assert again.returncode == 2
    assert "leaves it out" in again.stdout
    last = maker.measure(tmp_path, "t.parquet", "--resume")
    assert last.returncode == 0
    assert "(complete)" in last.stdout
    assert len(table(tmp_path / "t.parquet")) == 2 * (len(load_suite(path)) - 1)
    meta = json.loads((tmp_path / "t.meta.json").read_text())
    assert meta["skipped"] == {"vector_copy/paper/fp16: no answer in 1 s": 1}


def test_a_hang_on_a_full_disk_still_ends_the_process(tmp_path: Path, maker: Maker) -> None:
    """What is written last fails; the process must not stay behind with the kernel."""
    suite(tmp_path, 40, odd(666))
    ended = maker.measure(tmp_path, "t.parquet", "--time-limit", "1s", file_limit=0)
    assert ended.returncode == 2
    assert "gave no answer in 1 s: stopped; " in ended.stdout
    assert "t.journal.jsonl: cannot append" in ended.stdout


def test_interrupted_the_table_so_far_is_valid(tmp_path: Path, maker: Maker) -> None:
    """A later round hangs: it cannot be through before the signal comes, however busy the machine is."""
    rounds = list(chunks(load_suite(suite(tmp_path, 70, odd(667)))))
    assert not any(config.params["n"] == 667 for config in rounds[0])
    journal = tmp_path / "t.journal.jsonl"
    process = maker.begin_measuring(tmp_path, "t.parquet")
    for _ in range(1200):
        time.sleep(0.05)
        if journal.exists() and journal.stat().st_size:
            break
    os.kill(process, signal.SIGINT)
    ended = maker.end()
    assert ended.returncode == 0
    assert "partial" in ended.stdout
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


def test_what_fails_in_a_round_of_timing_takes_nothing_with_it(tmp_path: Path, paper: Any) -> None:
    """Built and called once, then out of memory, or without an algorithm, in the timed call."""
    path, out = suite(tmp_path, 10, odd(14) + odd(15)), tmp_path / "t.parquet"
    summary = run_suite(path, "h200", out)
    assert summary.complete
    assert summary.skipped["vector_copy/paper/fp16: out of device memory"] == 1
    assert [k for k in summary.skipped if "no algorithm found" in k and k.startswith("vector_copy/paper/fp16: Runtime")]
    assert summary.measured == len(load_suite(path)) - 2
    frame = table(out)
    assert len(frame) == 2 * summary.measured
    n = np.array([json.loads(p)["n"] for p in frame["params"]])
    np.testing.assert_allclose(frame["time_s"], (1000 + n) * 1e-9, rtol=1e-4)


def test_without_kernel_records_graphs_are_replayed_and_table_and_meta_say_so(tmp_path: Path, module: Any) -> None:
    module.install(records=False)
    path, out = suite(tmp_path, 10, odd(17)), tmp_path / "t.parquet"
    words: list[str] = []
    summary = run_suite(path, "h200", out, progress=Lines(words.append))
    assert words[0] == "timing by graph replay: no records on paper"
    frame = table(out)
    assert set(frame["timing"]) == {"graph replay"}
    assert set(frame["cache"]) == {"warm"}  # nothing can flush inside a graph
    assert frame["launches"].isna().all()  # nothing counted them
    n = np.array([json.loads(p)["n"] for p in frame["params"]])
    np.testing.assert_allclose(frame["time_s"], (1100 + n) * 1e-9, rtol=1e-4)  # the gap of 100 ns is in it
    (reason,) = summary.skipped
    assert "operation not permitted when stream is capturing" in reason
    assert len(frame) == len(load_suite(path)) - 1
    meta = json.loads((tmp_path / "t.meta.json").read_text())
    assert meta["tracer"] == {"name": "graph replay", "because": "no records on paper"}
    assert "in a graph of up to 100 such calls" in meta["method"]
    assert "warm only" in meta["method"]


def test_with_kernel_records_the_table_has_no_column_about_them(tmp_path: Path, paper: Any) -> None:
    run_suite(suite(tmp_path), "h200", tmp_path / "t.parquet")
    frame = pd.read_parquet(tmp_path / "t.parquet")
    assert "timing" not in frame
    assert frame["launches"].dtype == np.int32
    assert json.loads((tmp_path / "t.meta.json").read_text())["tracer"]["because"] == ""


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


def test_a_file_system_that_takes_no_more_leaves_a_whole_journal(tmp_path: Path, maker: Maker) -> None:
    """A real write that ends in the middle of a line: the torn line goes, the rest is kept and continued."""
    path, limit = suite(tmp_path, 60), 6000
    cut = maker.measure(tmp_path, "t.parquet", file_limit=limit)
    assert cut.returncode == 2
    assert cut.stderr.count("error: ") == 1
    assert "cannot" in cut.stderr
    journal = tmp_path / "t.journal.jsonl"
    kept = [json.loads(line)["key"] for line in journal.read_text().splitlines()]
    assert 0 < len(kept) < len(load_suite(path))
    assert not list(tmp_path.glob("*.part"))
    rest = maker.measure(tmp_path, "t.parquet", "--resume")
    assert rest.returncode == 0, rest.stderr
    assert len(table(tmp_path / "t.parquet")) == 2 * len(load_suite(path))


def test_a_table_that_cannot_be_written_is_one_message_and_the_journal_is_whole(
    tmp_path: Path, paper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = suite(tmp_path, 10), tmp_path / "t.parquet"

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pd.DataFrame, "to_parquet", full)
        with pytest.raises(KernelcastError, match=r"cannot write the table: No space left.*journal .* is whole"):
            run_suite(path, "h200", out)
    assert not out.exists()
    assert run_suite(path, "h200", out, resume=True).rows == 2 * len(load_suite(path))


@pytest.mark.parametrize("error", [OSError(30, "Read-only file system"), OSError(13, "Permission denied")])
def test_a_read_only_place_is_refused_before_anything_is_measured(
    tmp_path: Path, paper: Any, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def refuse(*_: object) -> None:
        raise error

    path = suite(tmp_path)
    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(KernelcastError, match=f"cannot write the journal: {error.strerror}"):
        run_suite(path, "h200", tmp_path / "t.parquet")
    assert not paper.records  # nothing was launched


def test_progress_tells_what_is_left(tmp_path: Path, paper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "LOOK_CHUNKS", 1)
    monkeypatch.setattr(run, "card_state", lambda: {"clocks.sm": "1400 MHz", "clocks.max.sm": "1980 MHz"})
    words: list[str] = []
    run_suite(suite(tmp_path), "h200", tmp_path / "t.parquet", progress=Lines(words.append, every_s=0.0))
    assert "of 2 kinds, about" in words[0]
    assert any("s left" in w for w in words)
    assert any("THROTTLING" in w for w in words)


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_on_a_terminal_a_bar_says_how_far_and_how_long_still(
    tmp_path: Path, maker: Maker, more: tuple[str, ...]
) -> None:
    suite(tmp_path, 40)
    done = maker.command(tmp_path, *more, terminal=True)
    seen = done.stderr
    assert done.returncode == 0, seen
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
    assert re.search(r"configurations ━+ +[0-9]+/80 [0-9:]+ about [0-9:-]+ left", plain)
    assert "80 configurations of 2 kinds, about" in seen
    assert seen.rstrip().endswith("\x1b[2K")  # the bar is gone at the end
    assert "configurations in" in done.stdout or json.loads(done.stdout)["complete"]


def test_without_a_terminal_there_are_lines_and_beside_json_nothing(tmp_path: Path, maker: Maker) -> None:
    suite(tmp_path, 10)
    plain = maker.command(tmp_path)
    assert plain.returncode == 0
    assert "kernelcast: 20 configurations of 2 kinds, about" in plain.stderr
    assert "\x1b" not in plain.stderr
    quiet = maker.command(tmp_path, "--json")
    assert json.loads(quiet.stdout)["rows"] == 40
    assert quiet.stderr == ""


def test_lines_estimate_by_the_pace_of_the_phase() -> None:
    """Checks are slower than configurations: their pace does not enter. A line every ten seconds at most."""
    now, words = [0.0], []
    lines = Lines(words.append, every_s=10.0, clock=lambda: now[0])
    for at_s, phase, done in ((0, "kinds checked", 0), (50, "kinds checked", 1), (100, "configurations", 0),
                              (105, "configurations", 50), (110, "configurations", 100)):
        now[0] = at_s
        lines.step(phase, done, 400)
    # 399 kinds at 50 s each; then 300 configurations at 0.1 s each, 110 s after all began
    assert words == ["1/400 kinds checked, 50 s, about 19950 s left", "100/400 configurations, 110 s, about 30 s left"]


def test_a_clock_well_below_its_highest_is_throttling() -> None:
    assert throttled([{"clocks.sm": "1410 MHz", "clocks.max.sm": "1980 MHz"}])
    assert not throttled([{"clocks.sm": "1860 MHz", "clocks.max.sm": "1980 MHz"}])
    assert not throttled([{}])


def test_the_timers_tick_is_its_smallest_step() -> None:
    rows = [(0, 864, 1, 0), (0, 863, 1, 0), (0, 832, 1, 0), (0, 928, 1, 0)]
    assert tick_s(np.array(rows, RECORD)) == pytest.approx(31e-9)
    assert tick_s(np.array(rows[:1], RECORD)) == 1e-6  # nothing to tell it from
