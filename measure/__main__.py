"""`python -m kernelcast.measure`: measure a suite without the command line's other dependencies."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from ..analytic.errors import InputError, KernelcastError
from .dry import lines, plan_suite
from .progress import Lines
from .run import run_suite

SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}


def parse_budget(text: str | None) -> float | None:
    """`20min`, `560s`, `1h` or plain seconds, in seconds."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*([0-9.]+)\s*(s|min|h)?\s*", text)
    if not match:
        raise InputError(f"--budget {text!r} is not a time such as 20min or 560s")
    return float(match[1]) * SECONDS[match[2] or "s"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m kernelcast.measure", description="Measure a suite of kernels on this GPU."
    )
    parser.add_argument("--suite", required=True, help="name of a file in configs/suites, or a path")
    parser.add_argument("--platform", help="id of the platform this GPU is")
    parser.add_argument("--out", type=Path, help="Parquet table to write")
    parser.add_argument("--dry", action="store_true", help="say what would be measured; needs no GPU")
    parser.add_argument("--quick", action="store_true", help="two sizes of every implementation only")
    parser.add_argument("--resume", action="store_true", help="keep what the journal beside --out already holds")
    parser.add_argument("--budget", help="stop after this time, e.g. 20min")
    parser.add_argument("--time-limit", default="180s", help="a configuration that takes longer hangs; default 180s")
    options = parser.parse_args(arguments)
    try:
        if options.dry:
            print(*lines(plan_suite(options.suite, options.quick)), sep="\n")
            return 0
        if options.platform is None or options.out is None:
            raise InputError("say what this GPU is and where the table goes: --platform PLATFORM --out FILE")
        summary = run_suite(
            options.suite, options.platform, options.out, options.quick, options.resume, parse_budget(options.budget),
            progress=Lines(lambda text: print(text, flush=True)), hang_s=parse_budget(options.time_limit),
        )
    except KernelcastError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    for reason, count in summary.skipped.most_common(60):
        print(f"skipped {count}: {reason}")
    state = "complete" if summary.complete else "partial"
    print(
        f"{summary.rows} rows of {summary.measured} configurations in {summary.seconds:.0f} s ({state}): {summary.out}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
