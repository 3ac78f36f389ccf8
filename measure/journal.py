"""The journal beside a table: one JSON line a configuration, appended when measured, folded into Parquet at the end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..analytic.errors import KernelcastError

FLOATS = ("time_s", "spread_s", "time_min_s", "noise_floor_s")
EMPTY = ["kernel", "precision", "params", "time_s", "cache", "implementation", "group"]  # columns of a table of no rows


@dataclass
class Journal:
    """Done configurations by key; a line is `{"key", "rows": [...]}` or `{"key", "kind", "skip": reason}`.

    A line `{"key", "suspect": reason}` is not done: it hung together with others and is to be measured alone."""

    path: Path
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, resume: bool) -> Journal:
        """Start afresh, or keep every whole line of a run that was cut off (a torn last line is dropped)."""
        journal = cls(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if resume and path.exists():
                journal._recover()
            else:
                path.write_bytes(b"")
        except OSError as error:
            raise KernelcastError(f"{path}: cannot write the journal: {error.strerror}") from error
        return journal

    def _recover(self) -> None:
        good = 0
        data = self.path.read_bytes()
        for line in data.splitlines(keepends=True):
            try:
                entry = json.loads(line)
            except ValueError:
                break
            if not line.endswith(b"\n") or not isinstance(entry, dict) or "key" not in entry:
                break
            self.entries[entry["key"]] = entry
            good += len(line)
        if good < len(data):
            os.truncate(self.path, good)

    def reread(self) -> None:
        """Take what is whole in the file: an interruption may fall between writing an entry and counting it."""
        self.entries.clear()
        self._recover()

    def append(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Write entries through to the disk before they count as done."""
        added = list(entries)
        text = "".join(json.dumps(e, separators=(",", ":")) + "\n" for e in added)
        try:
            with self.path.open("ab") as stream:
                stream.write(text.encode())
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise KernelcastError(
                f"{self.path}: cannot append ({error.strerror}); what was written stays valid, continue with --resume"
            ) from error
        for entry in added:
            self.entries[entry["key"]] = dict(entry)

    def suspects(self) -> set[str]:
        return {key for key, entry in self.entries.items() if "suspect" in entry}

    def rows(self) -> list[dict[str, Any]]:
        return [row for key in sorted(self.entries) for row in self.entries[key].get("rows", [])]

    def skipped(self) -> list[dict[str, Any]]:
        return [e for e in self.entries.values() if "skip" in e]


def fold(journal: Journal, out: Path, constants: Mapping[str, Any]) -> int:
    """Write the table (measured-runs format) atomically; returns its rows. `constants` are columns equal throughout."""
    import pandas as pd

    rows = journal.rows()
    frame = pd.DataFrame(rows, columns=None if rows else EMPTY)
    for name, value in constants.items():
        frame[name] = value
    for name in FLOATS:
        if name in frame:
            frame[name] = frame[name].astype(float).map(lambda v: float(f"{v:.5g}"))  # the timer's digits, no more
    if len(frame):
        first = ["platform", "kernel", "precision", "params", "time_s"]
        frame = frame[first + [c for c in frame.columns if c not in first]]
        frame["launches"] = frame["launches"].astype("Int32" if frame["launches"].isna().any() else np.int32)
        frame["n_reps"] = frame["n_reps"].astype(np.int32)
    part = out.with_name(out.name + ".part")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        frame.to_parquet(part, index=False, compression="zstd")
        os.replace(part, out)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise KernelcastError(
            f"{out}: cannot write the table: {error.strerror}; the journal {journal.path} is whole"
        ) from error
    return len(frame)
