"""The file beside a table that says on what, how and how well it was measured."""

from __future__ import annotations

import datetime
import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .gpu import throttled

if TYPE_CHECKING:
    from .gpu import Gpu
    from .journal import Journal
    from .replay import GraphReplay
    from .runner import Runner
    from .summary import Summary
    from .trace import Tracer

ROUND = ": a round fills a 512 MiB buffer, times a call (cold), then times the next call on the same buffers (warm)"
WARM_ROUND = ", warm only: nothing can empty the caches between calls of one graph"
BINS_S = (0.0, 2e-6, 1e-5, 1e-4, 1e-3, 1e-2, float("inf"))


def noise(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Median and 90th percentile of the inter-quartile range over the time, by bins of time."""
    time_s = np.array([r["time_s"] for r in rows], float)
    share = np.array([r["spread_s"] for r in rows], float) / time_s
    found = {}
    for low, high in itertools.pairwise(BINS_S):
        inside = (time_s >= low) & (time_s < high)
        if inside.any():
            name = f"{low:g} to {high:g} s"
            found[name] = {
                "rows": int(inside.sum()),
                "median_iqr": round(float(np.median(share[inside])), 5),
                "p90_iqr": round(float(np.percentile(share[inside], 90)), 5),
            }
    return found


def commit() -> str:
    """The checkout's commit; KERNELCAST_COMMIT where the code was copied to the machine without its repository."""
    given = os.environ.get("KERNELCAST_COMMIT")
    if given:
        return given
    try:
        command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def versions(gpu: Gpu) -> dict[str, str]:
    torch, cp = gpu.torch, gpu.cp
    found = {
        "torch": torch.__version__,
        "cupy": cp.__version__,
        "cuda": str(torch.version.cuda),
        "python": sys.version.split()[0],
    }
    found["cudnn"] = str(torch.backends.cudnn.version())
    found["cuda_driver_api"] = str(cp.cuda.runtime.driverGetVersion())
    return found


def write_meta(
    out: Path,
    gpu: Gpu,
    tracer: Tracer | GraphReplay,
    journal: Journal,
    runner: Runner,
    states: list[dict[str, str]],
    summary: Summary,
    suite: str,
) -> None:
    """Write `<table>.meta.json`; environment, method, counts, noise, what was skipped and why."""
    rows, rounds = journal.rows(), ROUND if "cold" in tracer.caches else WARM_ROUND
    skipped = Counter(f"{e['kind']}: {e['skip']}" for e in journal.skipped())
    sm = [
        int(s["clocks.sm"].split()[0])
        for s in states
        if s.get("clocks.sm", "").split()[:1] and s["clocks.sm"].split()[0].isdigit()
    ]
    meta = {
        "table": out.name,
        "gpu": gpu.name,
        "driver": states[0].get("driver_version", "unknown"),
        "versions": versions(gpu),
        "sm_clock_mhz_seen": {"min": min(sm), "max": max(sm)} if sm else {},
        "card_before": states[0],
        "card_after": states[-1],
        "command": f"python -m kernelcast.measure --suite {suite} --out {out.name}",
        "suite": suite,
        "commit": commit(),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),  # noqa: UP017
        "method": (
            f"time_s is {tracer.method}; "
            "spread_s their inter-quartile range, noise_floor_s that or a tick of the timer. "
            f"Configurations are timed in interleaved rounds of up to 32{rounds}. "
            "Inputs are random. Every implementation and precision was checked against a double-precision reference "
            "before timing, and every small configuration itself."
        ),
        "rows": len(rows),
        "configurations": summary.measured,
        "complete": summary.complete,
        "seconds": round(summary.seconds, 1),
        "lost_records": tracer.dropped(),
        "tracer": {"name": tracer.name, "because": tracer.why},
        "families": dict(sorted(Counter(r["kernel"] for r in rows).items())),
        "noise": noise(rows),
        "timer_tick_s": runner.tick_s,
        "throttled_readings": sum(throttled([s]) for s in states),
        "first_repeat_outliers": dict(runner.first_outliers.most_common()),
        "first_check_s": {"/".join(k): round(v, 3) for k, v in sorted(runner.first_check_s.items())},
        "worst_check_error": {"/".join(k): float(f"{v:.2e}") for k, v in sorted(runner.worst_error.items())},
        "failed_kinds": {"/".join(k): v for k, v in sorted(runner.broken.items())},
        "skipped": dict(skipped.most_common()),
    }
    out.with_suffix(".meta.json").write_text(json.dumps(meta, indent=1) + "\n")
