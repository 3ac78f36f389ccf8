"""Regenerate docs/accuracy.md from the corpora present: `python -m kernelcast.bench.evaluation`."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ...analytic.errors import KernelcastError, nearest_names
from ...configs import folder
from ...training.tables.importers.common import DATA_VARIABLE
from .ablation import ablation
from .cases import CASES
from .newgpu import NEW_GPUS, score_new_gpu
from .report import render
from .score import score
from .segments import SEGMENT_CASES, score_segments
from .suggestions import SUGGESTIONS, score_suggestions

Limits = dict[str, int | None]
Job = tuple[str, str, Callable[[Limits], dict[str, Any]]]
ABLATIONS = {"ablation-own-h200": "own-h200", "ablation-gemm-h200": "gemm-h200"}


def settings() -> dict[str, Any]:
    """configs/evaluation.yaml."""
    path = folder("evaluation.yaml")
    loaded: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def jobs(level: float) -> dict[str, Job]:
    """name → (title, definition, what makes its record), in the order of the report."""
    out: dict[str, Job] = {n: (c.title, c.definition, lambda rows, c=c: score(c.build(rows), level))  # type: ignore[misc]
                           for n, c in CASES.items()}
    out |= {n: (c.title, c.definition, lambda rows, c=c: score_new_gpu(c, rows, level))  # type: ignore[misc]
            for n, c in NEW_GPUS.items()}
    out |= {n: (c.title, c.definition, lambda rows, c=c: score_segments(c, rows, level))  # type: ignore[misc]
            for n, c in SEGMENT_CASES.items()}
    out |= {n: (c.title, c.definition, lambda rows, c=c: score_suggestions(c, rows))  # type: ignore[misc]
            for n, c in SUGGESTIONS.items()}
    for name, of in ABLATIONS.items():
        case = CASES[of]
        words = f"{case.definition}; every variant with the same rows and tree settings"
        out[name] = (f"Ablation on: {case.title}", words,
                     lambda rows, case=case: ablation(case.build(rows)[0]))  # type: ignore[misc]
    return out


def finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become null."""
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def run(names: Sequence[str], *, quick: bool, config: dict[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
    """The records of the named splits; a corpus that is absent gives a record with the reason."""
    known = jobs(float(config["level"]))
    records: dict[str, Any] = {}
    for name in names:
        title, definition, make = known[name]
        own = config["splits"].get(name) or {}
        rows = config["quick_rows"] if quick else {**config["rows"], **own.get("rows", {})}
        head = {"name": name, "title": title, "definition": definition, "quick": quick}
        head |= {k: own[k] for k in ("target", "class_limit", "half_width", "few") if k in own}
        head |= {"subset_targets": own["subsets"]} if "subsets" in own else {}
        say(f"{name} …")
        try:
            records[name] = finite({**head, **make(rows)})
        except KernelcastError as fault:
            records[name] = {**head, "skipped": str(fault)}
        result = records[name]
        say(f"{name}: " + (result.get("skipped") or json.dumps(result.get("methods", result.get("variants")))))
    return records


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def merge(path: Path, records: dict[str, Any], order: Sequence[str]) -> dict[str, Any]:
    """Earlier records of the JSON file with the new ones in their place; a new skip never replaces a result."""
    old = json.loads(path.read_text(encoding="utf-8"))["splits"] if path.is_file() else {}
    kept = {k: v for k, v in records.items() if "skipped" not in v or k not in old}
    merged = {**old, **kept}
    return {name: merged[name] for name in order if name in merged}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the splits, write the JSON beside the page, then the page. Returns the exit code."""
    order = list(jobs(0.9))
    parser = argparse.ArgumentParser(prog="python -m kernelcast.bench.evaluation", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"splits to run: {', '.join(order)}")
    parser.add_argument("--quick", action="store_true", help="few rows: numbers not for the report")
    parser.add_argument("--out", type=Path, default=Path("docs/accuracy.md"), help="the page; the JSON lies beside it")
    parser.add_argument("--data", type=Path, help=f"folder of the converted tables (default: ${DATA_VARIABLE})")
    parser.add_argument("--render", action="store_true", help="only write the page again from the JSON")
    given = parser.parse_args(arguments)
    if given.data is not None:
        os.environ[DATA_VARIABLE] = str(given.data)
    names = [] if given.render else given.only or order
    unknown = [name for name in names if name not in order]
    if unknown:
        print(f"unknown split {unknown[0]!r}{nearest_names(unknown[0], order)}", file=sys.stderr)
        return 2
    store = given.out.with_suffix(".json")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    config = settings()
    merged = merge(store, {}, order)
    for name in names:  # written after each, so that a run cut short loses one split at most
        records = run([name], quick=given.quick, config=config, say=_say)
        merged = merge(store, records, order)
        store.write_text(json.dumps({"level": config["level"], "splits": merged}, indent=1) + "\n", encoding="utf-8")
        given.out.write_text(render(merged), encoding="utf-8")
    if given.render:
        given.out.write_text(render(merged), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
