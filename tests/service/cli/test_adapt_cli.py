"""`kernelcast adapt` and `kernelcast suggest` as a person meets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from kernelcast.registry import index
from kernelcast.service.cli.main import status_of
from kernelcast.training.tables.schema import read_runs

Run = Callable[..., tuple[int, str, str]]
NEW = "a100-sxm"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        status = status_of([str(a) for a in arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


@pytest.fixture
def few(small_runs: pd.DataFrame, tmp_path: Path) -> Path:
    path = tmp_path / "few.csv"
    small_runs.groupby("kernel").head(10).assign(platform=NEW).to_csv(path, index=False)
    return path


def test_adapt_stores_tracks_and_says_what_it_kept(run: Run, few: Path, tracked_home: Path, unshipped: None) -> None:
    status, out, err = run("adapt", "--platform", NEW, "--runs", few, "--json")
    assert status == 0, err
    found = json.loads(out)
    assert found["champion"] and found["rows"] == 30 and found["adapted_from"] == []
    assert set(found["families"]) == {"gemm", "vector_add", "transpose"}
    assert index.champion_entry(NEW) is not None
    status, out, err = run("predict", "gemm", "m=512", "n=512", "k=512", "precision=fp16", "-p", NEW, "--json")
    assert status == 0 and "adapted from" in out, err


def test_adapt_from_a_stored_model(run: Run, few: Path, stored: Path, tracked_home_in: None) -> None:
    status, out, err = run("adapt", "--platform", NEW, "--runs", few, "--from", "kernelcast-t4", "--json")
    assert status == 0, err
    assert json.loads(out)["adapted_from"] == ["kernelcast-t4"]


@pytest.fixture
def tracked_home_in(home: Path, empty_database: Path) -> None:
    import shutil

    shutil.copy(empty_database, home / "mlflow.db")


def test_unknown_source_and_wrong_table_are_one_message(run: Run, few: Path, home: Path) -> None:
    status, out, err = run("adapt", "--platform", NEW, "--runs", few, "--from", "nobody")
    assert (status, out) == (2, "") and "no model 'nobody' to start from" in err
    status, out, err = run("adapt", "--platform", "h200", "--runs", few, "--from", "parameters")
    assert (status, out) == (2, "") and "no run of h200" in err


def test_suggest_writes_a_table_of_questions(run: Run, few: Path, home: Path, unshipped: None, tmp_path: Path) -> None:
    target = tmp_path / "next.csv"
    status, out, err = run("suggest", "--platform", NEW, "-n", "5", "--candidates", few, "--out", target, "--json")
    assert status == 0, err
    lines = json.loads(out)
    assert len(lines) == 5 and all(line["expected_s"] > 0 for line in lines)
    assert len(read_runs(target, require_time=False).frame) == 5


def test_suggest_needs_a_candidate(run: Run, few: Path, home: Path, unshipped: None) -> None:
    status, out, err = run("suggest", "--platform", NEW, "-n", "5", "--candidates", few, "--family", "fft")
    assert (status, out) == (2, "") and "no candidate of fft" in err
