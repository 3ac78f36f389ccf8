"""Microbenchmarks: the numbers a parameter file holds, measured. `kernelcast calibrate` fits what this writes."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..analytic.errors import KernelcastError
from . import micro_compute, micro_launch, micro_memory
from .gpu import Gpu, Skip, card_state, require_platform
from .meta import commit, versions
from .micro_bench import Bench
from .watchdog import HANG_S, HANG_STATUS, Watchdog

Section = Callable[[Gpu, Bench], Any]
# in this order: what times the host runs before the tracer does, which would slow its launches
SECTIONS: dict[str, Section] = {
    "host_launch": micro_launch.host_launches,
    "graph_launch": micro_launch.graph_launches,
    "host_copy": micro_launch.host_copies,
    "two_devices": micro_launch.two_devices,
    "empty_kernel": micro_launch.empty_kernels,
    "concurrent": micro_launch.concurrent_kernels,
    "barrier": micro_memory.barriers,
    "shared": micro_memory.shared_sweep,
    "atomic": micro_memory.atomic_sweep,
    "copy": micro_memory.copy_sweep,
    "grid": micro_memory.grid_sweep,
    "read": micro_memory.read_sweep,
    "chase": micro_memory.chase_sweep,
    "vector": micro_compute.vector_rates,
    "matrix": micro_compute.matrix_rates,
}


def measure(
    platform_id: str,
    out: Path,
    sections: list[str] | None = None,
    step: Callable[[str, int, int], None] = lambda *_: None,
    hang_s: float | None = HANG_S,
) -> dict[str, Any]:
    """Run the sections and write `out` after each, so that a cut-off run keeps what it has.

    A section that fails is named with its reason under `failed`; the others go on. `step(phase, done, count)` follows
    them. One that takes longer than `hang_s` ends the process (status 2). Raises KernelcastError: no GPU, or not
    `platform_id`, or `out` cannot be written."""
    g = Gpu()
    require_platform(platform_id, g.name)
    b = Bench(g)
    report: dict[str, Any] = {
        "platform": platform_id, "gpu": g.name, "versions": versions(g), "commit": commit(),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),  # noqa: UP017
        "units": b.units, "card_before": card_state(), "failed": {}, "seconds": {}, "results": {},
    }
    _write(report, out)  # a place that cannot be written is found before anything is measured
    chosen = sections or list(SECTIONS)
    watchdog = Watchdog(hang_s, lambda name: _hung(name, hang_s, report, out))
    with watchdog.watching():
        _warm_up(g)
        for number, name in enumerate(chosen):
            step("microbenchmarks", number, len(chosen))
            watchdog.beat(name)
            _section(name, g, b, report)
            _write(report, out)
    return report


def _section(name: str, g: Gpu, b: Bench, report: dict[str, Any]) -> None:
    begun = time.perf_counter()
    try:
        report["results"][name] = SECTIONS[name](g, b)
    except Skip as reason:
        report["failed"][name] = str(reason)
    except Exception as error:
        report["failed"][name] = f"{type(error).__name__}: {str(error)[:300]}"
    report["seconds"][name] = round(time.perf_counter() - begun, 2)
    g.sync()
    g.torch.cuda.empty_cache()
    report |= {"tracer": b.tracer.name if "tracer" in b.__dict__ else "", "card_after": card_state()}


def _hung(name: str, hang_s: float | None, report: dict[str, Any], out: Path) -> None:
    """Leave what there is, with the section that hangs under `failed`, and end: nothing else stops a kernel."""
    try:
        report["failed"][name or "warm-up"] = f"no answer in {hang_s:g} s"
        _write(report, out)
        print(f"{name or 'warm-up'} gave no answer in {hang_s:g} s: stopped; {out} has the rest", file=sys.stderr)
    finally:
        os._exit(HANG_STATUS)


def _warm_up(g: Gpu, seconds: float = 0.5) -> None:
    a = g.randn(4096, 4096, precision="bf16")
    begun = time.perf_counter()
    while time.perf_counter() - begun < seconds:
        for _ in range(20):
            g.torch.mm(a, a)
        g.sync()


def _write(report: dict[str, Any], out: Path) -> None:
    part = out.with_name(out.name + ".part")
    try:
        part.write_text(json.dumps(report, indent=1) + "\n")
        os.replace(part, out)  # whole, whenever the run or the disk ends
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise KernelcastError(f"{out}: cannot be written: {error.strerror}") from error


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m kernelcast.measure.microbench", description="Measure what a parameter file holds."
    )
    parser.add_argument("--platform", required=True, help="id of the platform this GPU is")
    parser.add_argument("--out", required=True, type=Path, help="JSON file to write")
    parser.add_argument("--sections", nargs="*", choices=list(SECTIONS), help="only these")
    options = parser.parse_args(arguments)
    try:
        report = measure(options.platform, options.out, options.sections)
    except KernelcastError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    for name, reason in report["failed"].items():
        print(f"{name}: {reason}")
    print(f"{len(report['results'])} sections in {sum(report['seconds'].values()):.0f} s: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
