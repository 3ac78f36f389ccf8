"""`python -m kernelcast.measure.counted plan|run|replay|fold|report`: counters for a sample of a table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from ..analytic.errors import KernelcastError
from .counters import CACHES, Planned, count, load_plan, plan, replay, save_plan
from .gpu import Gpu, require_platform
from .suite import load_suite


def draw(suite: str, platform_id: str, runs: Path, count: int, path: Path) -> list[Planned]:
    """Draw `count` configurations of a suite that the table `runs` holds and write them as a plan."""
    import pandas as pd

    seen = pd.read_parquet(runs).drop_duplicates(["kernel", "implementation", "precision", "params"])
    keys = zip(seen["kernel"], seen["implementation"], seen["precision"], seen["params"], strict=True)
    chosen = plan(load_suite(suite), dict(zip(keys, seen["launches"].astype(int), strict=True)), count)
    save_plan(chosen, suite, platform_id, path)
    return chosen


def count_table(
    suite: str, platform_id: str, runs: Path, rows: int, budget_s: float, say: Callable[[str], None]
) -> tuple[Path, int]:
    """Count about `rows` calls of a measured table into `<table>-counted.parquet`; the reports stay beside it.

    Returns the file and the calls in it. Raises KernelcastError: no ncu, no GPU, another GPU."""
    from ..training.tables.schema import write_runs
    from .counted_table import fold

    folder, out = runs.with_name(f"{runs.stem}-counters"), runs.with_name(f"{runs.stem}-counted.parquet")
    folder.mkdir(parents=True, exist_ok=True)
    draw(suite, platform_id, runs, max(1, rows // len(CACHES)), folder / "plan.json")
    count(folder / "plan.json", folder, budget_s, say)
    frame = fold([folder], runs)
    write_runs(frame, out)
    return out, int((frame["kernel"] != "segment").sum())


def _plan(o: argparse.Namespace) -> str:
    chosen = draw(o.suite, o.platform, o.runs, o.count, o.plan)
    return f"{len(chosen)} configurations of {len({p.config.family for p in chosen})} families: {o.plan}"


def _run(o: argparse.Namespace) -> str:
    return f"{len(count(o.plan, o.folder, o.budget))} reports in {o.folder}"


def _replay(o: argparse.Namespace) -> str:
    platform_id, configs = load_plan(o.plan)
    gpu = Gpu()
    require_platform(platform_id, gpu.name)
    return f"{replay(gpu, configs, o.journal, o.budget)} of {len(configs)} configurations"


def _fold(o: argparse.Namespace) -> str:
    from ..training.tables.schema import write_runs
    from .counted_table import fold

    frame = fold(o.folders, o.runs)
    write_runs(frame, o.out)
    segments = int((frame["kernel"] == "segment").sum())
    return f"{len(frame) - segments} calls and {segments} single kernels as segments: {o.out}"


def _report(o: argparse.Namespace) -> str:
    import pandas as pd

    from .counted_report import write_report

    write_report(pd.read_parquet(o.counted), o.out)
    return str(o.out)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernelcast.measure.counted", description=__doc__)
    verbs = parser.add_subparsers(required=True)
    drawn = verbs.add_parser("plan", help="draw the sample; no GPU needed")
    drawn.add_argument("--suite", required=True)
    drawn.add_argument("--platform", required=True)
    drawn.add_argument("--runs", required=True, type=Path, help="the measured table, for times and launches")
    drawn.add_argument("--count", type=int, default=600, help="configurations; each is two rows, cold and warm")
    drawn.set_defaults(act=_plan)
    run = verbs.add_parser("run", help="replay the sample under Nsight Compute")
    run.add_argument("--folder", required=True, type=Path, help="where the reports go")
    run.set_defaults(act=_run)
    again = verbs.add_parser("replay", help="what Nsight Compute watches")
    again.add_argument("--journal", required=True, type=Path)
    again.set_defaults(act=_replay)
    table = verbs.add_parser("fold", help="make a table of the reports; no GPU needed")
    table.add_argument("folders", nargs="+", type=Path)
    table.add_argument("--runs", required=True, type=Path, help="the measured table, for times")
    table.add_argument("--out", required=True, type=Path)
    table.set_defaults(act=_fold)
    page = verbs.add_parser("report", help="counted beside first-principles work, as a page; no GPU needed")
    page.add_argument("--counted", required=True, type=Path)
    page.add_argument("--out", required=True, type=Path)
    page.set_defaults(act=_report)
    for verb in (drawn, run, again):
        verb.add_argument("--plan", required=True, type=Path)
    for verb in (run, again):
        verb.add_argument("--budget", type=float, default=600.0, help="seconds after which to end")
    options = parser.parse_args(arguments)
    try:
        print(options.act(options))
    except KernelcastError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
