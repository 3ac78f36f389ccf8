"""Whether a change moved an answer: every row of configs/runs, asked of every shipped champion, before and after.

    python -m kernelcast.bench.answers write FILE.parquet [--every N] [--platform P …]
    python -m kernelcast.bench.answers compare BEFORE.parquet AFTER.parquet

`write` asks for each row of the shipped tables on each platform that has a champion, and on one that only has the model
across platforms. `compare` says how many rows differ in predicted_s, lower_s, upper_s (relative, more than 1e-9) and in
note, and shows the first ones; exit status 4 where one does.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # sums of float32 follow the threads

import numpy as np
import pandas as pd

from ..configs import folder
from ..service.batch import predict_runs

TABLES = ("h200", "h200-more", "h200-kinds", "h200-holdout", "h200-repeat", "h200-repeat-2")
WITHOUT_CHAMPION = ("h100-pcie",)
TOLERANCE = 1e-9
NUMBERS = ("predicted_s", "lower_s", "upper_s")
KEY = ("asked", "table", "row")


def champions() -> list[str]:
    names = [path.name for path in folder("champions").iterdir()]
    return sorted(name.split(".")[0] for name in names if not name.startswith(("_", ".")))


def write(path: Path, every: int, platforms: list[str]) -> None:
    parts = []
    for name in TABLES:
        frame = pd.read_parquet(folder("runs", f"{name}.parquet")).iloc[::every]
        for platform in platforms or [*champions(), *WITHOUT_CHAMPION]:
            asked = predict_runs(frame, platforms=[platform])
            part = asked[[*NUMBERS, "in_domain", "note", "kernel"]].reset_index(drop=True)
            part["note"] = part["note"].astype("category")
            parts.append(part.assign(asked=platform, table=name, row=np.arange(len(part)) * every))
            print(f"{name} on {platform}: {len(part)} rows", file=sys.stderr, flush=True)
    whole = pd.concat(parts, ignore_index=True)
    whole["note"] = whole["note"].astype(str).astype("category")
    whole.to_parquet(path, compression="zstd")


def compare(before: Path, after: Path) -> int:
    old, new = (pd.read_parquet(path).set_index(list(KEY)) for path in (before, after))
    both = old.index.intersection(new.index)
    old, new = old.loc[both], new.loc[both]
    differs = pd.DataFrame(index=both)
    for name in NUMBERS:
        a, b = np.asarray(old[name], dtype=float), np.asarray(new[name], dtype=float)
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(b - a) <= TOLERANCE * np.abs(a))
        differs[name] = ~same
    differs["note"] = np.asarray(old["note"].astype(str) != new["note"].astype(str))
    differs["in_domain"] = np.asarray(old["in_domain"] != new["in_domain"])
    print(f"{len(both)} answers compared; differing: {differs.sum().to_dict()}")
    bad = differs.any(axis=1)
    for key in both[np.asarray(bad)][:10]:
        print(key, old.loc[key].to_dict(), new.loc[key].to_dict(), sep="\n  ")
    if bad.any():
        names = pd.Series(np.asarray(old["kernel"].astype(str))[np.asarray(bad)])
        print(names.value_counts().to_dict())
    return 4 if bad.any() else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("file", type=Path)
    writing.add_argument("--every", type=int, default=1)
    writing.add_argument("--platform", action="append", default=[])
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "compare":
        return compare(options.before, options.after)
    write(options.file, options.every, options.platform)
    return 0


if __name__ == "__main__":
    sys.exit(main())
