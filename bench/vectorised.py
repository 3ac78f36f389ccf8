"""How much faster whole arrays are than one row at a time, as ratios measured side by side in one run.

    python -m kernelcast.bench.vectorised [ROWS]

Prints one line a stage: seconds for ROWS rows in one call, seconds for 64 single-row calls scaled to ROWS, the ratio.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

from ..analytic.baseline import baseline
from ..analytic.platform import load_platform
from ..features.describe import describe
from ..service.batch import predict_runs

SINGLE = 64


def frame_of(rows: int) -> pd.DataFrame:
    sizes = np.exp(np.random.default_rng(0).uniform(np.log(64), np.log(8192), (rows, 3))).astype(int)
    params = [json.dumps({"m": int(m), "n": int(n), "k": int(k)}) for m, n, k in sizes]
    return pd.DataFrame({"platform": "h200", "kernel": "gemm", "precision": "bf16", "params": params})


def seconds(stage: Callable[[slice], object], part: slice) -> float:
    start = time.perf_counter()
    stage(part)
    return time.perf_counter() - start


def main(rows: int) -> None:
    frame = frame_of(rows)
    gpu = load_platform("h200")
    sizes = pd.DataFrame([json.loads(text) for text in frame["params"]])

    def ask(part: slice) -> object:
        return baseline("gemm", {name: sizes[name].to_numpy()[part] for name in "mnk"}, "bf16", gpu)

    stages: dict[str, Callable[[slice], object]] = {
        "baseline": ask,
        "features": lambda part: describe(frame[part]),
        "predict_runs": lambda part: predict_runs(frame[part]),
    }
    for name, stage in stages.items():
        stage(slice(0, 2))  # imports, files and caches
        whole = seconds(stage, slice(None))
        single = sum(seconds(stage, slice(i, i + 1)) for i in range(SINGLE)) * rows / SINGLE
        print(f"{name:14s} {rows} rows at once {whole:8.3f} s, one by one {single:9.2f} s, ratio {single / whole:7.0f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
