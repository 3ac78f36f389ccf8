"""A journal cut anywhere resumes to the same table; a table is replaced whole or not at all."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import KernelcastError
from kernelcast.measure.journal import Journal, fold

CONSTANTS = {"platform": "h200", "statistic": "median"}


def entry(key: str, time_s: float = 1.23456789e-5) -> dict[str, Any]:
    rows = [
        {
            "kernel": "relu",
            "precision": "fp32",
            "params": '{"n":1024}',
            "time_s": time_s,
            "spread_s": 1e-7,
            "time_min_s": time_s,
            "n_reps": 9,
            "cache": cache,
            "launches": 1,
            "implementation": "torch",
            "group": "relu:n1024",
        }
        for cache in ("cold", "warm")
    ]
    return {"key": key, "rows": rows}


KEYS = [f"k{i}" for i in range(6)]


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=40)
def test_truncation_anywhere_resumes_to_the_same_set(cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.journal.jsonl"
        Journal.open(path, resume=False).append(entry(k) for k in KEYS)
        whole = path.read_bytes()
        path.write_bytes(whole[: cut % (len(whole) + 1)])
        resumed = Journal.open(path, resume=True)
        assert list(resumed.entries) == KEYS[: len(resumed.entries)]
        resumed.append(entry(k) for k in KEYS if k not in resumed.entries)
        assert path.read_bytes() == whole
        assert Journal.open(path, resume=True).rows() == resumed.rows()


def test_without_resume_a_journal_starts_afresh(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    Journal.open(path, resume=False).append([entry("a")])
    assert Journal.open(path, resume=False).entries == {}
    assert path.read_bytes() == b""


def test_fold_writes_the_measured_runs_columns(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "t.jsonl", resume=False)
    journal.append(
        [entry("b"), entry("a", 2e-3), {"key": "c", "kind": "relu/torch/fp32", "skip": "out of device memory"}]
    )
    out = tmp_path / "deep" / "t.parquet"
    assert fold(journal, out, CONSTANTS) == 4
    frame = pd.read_parquet(out)
    assert list(frame.columns[:5]) == ["platform", "kernel", "precision", "params", "time_s"]
    assert frame["time_s"].tolist() == [2e-3, 2e-3, 1.2346e-5, 1.2346e-5]  # by key; five significant digits
    assert set(frame["platform"]) == {"h200"}
    assert not list(out.parent.glob("*.part"))
    assert [e["skip"] for e in journal.skipped()] == ["out of device memory"]


def test_fold_of_nothing_is_an_empty_table(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "t.jsonl", resume=False)
    assert fold(journal, tmp_path / "t.parquet", CONSTANTS) == 0
    assert len(pd.read_parquet(tmp_path / "t.parquet")) == 0


def test_a_place_that_cannot_be_written_is_said_plainly(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(KernelcastError, match="cannot write the journal"):
        Journal.open(blocked / "t.jsonl", resume=False)


def test_a_full_disk_keeps_what_was_journalled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.open(tmp_path / "t.jsonl", resume=False)
    journal.append([entry("a")])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kernelcast.measure.journal.os.fsync", full)
    with pytest.raises(KernelcastError, match=r"No space left.*--resume"):
        journal.append([entry("b")])
    assert list(journal.entries) == ["a"]
    assert json.loads((tmp_path / "t.jsonl").read_text().splitlines()[0])["key"] == "a"
