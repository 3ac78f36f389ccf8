"""Counters as a measured-runs table: what ncu saw of a call, beside the time the table holds for the same call."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analytic.errors import InputError, KernelcastError
from .counters import INTEGER, KEY, SINGLE, SUMMED

if TYPE_CHECKING:
    import pandas as pd

READ, WRITE, L2 = "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum"
PRECISION = {"f": "fp32", "d": "fp64", "h": "fp16"}  # vector units; 16-bit of either kind
EXACT = 0.05  # vector arithmetic below this share of the matrix units' may be counted either way
TENSOR = re.compile(r"^sm__ops_path_tensor_src_([a-z]+[0-9]+).*\.sum$")
TABLE_KEY = ("kernel", "implementation", "precision", "params", "cache")
NAME_LENGTH = 160


@dataclass
class Kernel:
    """One counted kernel: name, shape and counters (bytes, operations, percent)."""

    name: str
    grid: list[int]
    block: list[int]
    counters: dict[str, float] = field(default_factory=dict)


def read_report(path: Path) -> dict[str, list[Kernel]]:
    """Kernels by configuration key from `ncu --csv --page raw --print-units base`. InputError if it is not that."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("==")]
    if not lines:
        return {}
    rows = list(csv.reader(lines))
    header = rows[0]
    if "Kernel Name" not in header or READ not in header:
        raise InputError(f"{path}: not a raw page of an Nsight Compute report with {READ}")
    place = {name: i for i, name in enumerate(header)}
    _only_base_units(path, dict(zip(header, rows[1], strict=True)))
    found: dict[str, list[Kernel]] = {}
    for row in rows[2:]:
        key = KEY.search(",".join(row))
        if key is None:
            continue
        kernel = Kernel(row[place["Kernel Name"]], _triple(row[place["Grid Size"]]), _triple(row[place["Block Size"]]))
        for name, i in place.items():
            if name.endswith((".sum", "active", "_pct")) or name.startswith("launch__"):
                value = row[i].replace(",", "")
                if re.fullmatch(r"-?[0-9.]+(e[+-]?[0-9]+)?", value):
                    kernel.counters[name] = float(value)
        found.setdefault(key[1], []).append(kernel)
    return found


def _only_base_units(path: Path, units: dict[str, str]) -> None:
    for name in (READ, WRITE, L2):
        if units.get(name, "byte") != "byte":
            raise InputError(f"{path}: {name} is in {units[name]!r}; print the report with --print-units base")


def _triple(text: str) -> list[int]:
    return [int(v) for v in re.findall(r"[0-9]+", text)]


def totals(kernels: Iterable[Kernel]) -> dict[str, float]:
    """Sums over the kernels of a call: bytes by boundary, floating-point instructions by precision, operations.

    `flops` is NaN where only the sum of additions, multiplications and multiply-adds was counted and the matrix units
    do not dwarf it: a multiply-add is one instruction and two operations, so the truth is one to two times the sum."""
    sums = dict.fromkeys(("bytes_read", "bytes_written", "l2_bytes", "int_ops", "flops_tensor"), 0.0)
    inst = dict.fromkeys((f"fp_inst_{name}" for name in PRECISION.values()), 0.0)
    operations, split = 0.0, True
    for kernel in kernels:
        c = kernel.counters
        sums["bytes_read"] += c.get(READ, 0.0)
        sums["bytes_written"] += c.get(WRITE, 0.0)
        sums["l2_bytes"] += c.get(L2, 0.0)
        sums["int_ops"] += c.get(INTEGER, 0.0)
        sums["flops_tensor"] += sum(v for name, v in c.items() if TENSOR.match(name))
        split &= all(name in c for name in SINGLE)
        for letter, precision in PRECISION.items():
            single = [c.get(name, 0.0) for name in SINGLE if f"_op_{letter}" in name]
            inst[f"fp_inst_{precision}"] += c.get(SUMMED[letter], sum(single))
        operations += sum(weight * c.get(name, 0.0) for name, weight in SINGLE.items())
    vector, matrix = sum(inst.values()), sums["flops_tensor"]
    exact = split or vector <= EXACT * matrix  # nothing of either is exact too
    flops = matrix + (operations if split else vector) if exact else float("nan")
    return {**sums, **inst, "flops": flops, "bytes": sums["bytes_read"] + sums["bytes_written"]}


def _shape(kernel: Kernel) -> dict[str, Any]:
    c = kernel.counters
    static, dynamic = (c.get(f"launch__shared_mem_per_block_{kind}", 0.0) for kind in ("static", "dynamic"))
    return {
        "name": kernel.name[:NAME_LENGTH], "grid": kernel.grid, "block": kernel.block,
        "registers": int(c.get("launch__registers_per_thread", 0)), "smem_bytes": int(static + dynamic),
    }


def _occupancy(kernel: Kernel) -> dict[str, float]:
    c = kernel.counters
    return {
        "occupancy": c.get("sm__warps_active.avg.pct_of_peak_sustained_active", np.nan) / 100.0,
        "occupancy_limit": c.get("sm__maximum_warps_per_active_cycle_pct", np.nan) / 100.0,
    }


def counted_rows(reports: Iterable[tuple[str, dict[str, list[Kernel]], list[dict[str, Any]]]]) -> list[dict[str, Any]]:
    """A row a counted call from (cache state, kernels by key, journal lines); a call counted twice is taken once.

    The shape and the occupancy are those of the call's kernel with the most threads."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for cache, kernels, journal in reports:
        for line in journal:
            found = kernels.get(line["key"])
            if not found or "params" not in line or (line["key"], cache) in rows:
                continue
            largest = max(found, key=lambda k: float(np.prod(k.grid)) * float(np.prod(k.block)))
            rows[line["key"], cache] = {
                **{name: line[name] for name in ("kernel", "implementation", "precision", "params")}, "cache": cache,
                "counted_kernels": len(found), **totals(found), **_shape(largest), **_occupancy(largest),
            }
    return list(rows.values())


def join_times(counted: list[dict[str, Any]], table: pd.DataFrame) -> pd.DataFrame:
    """Counted calls beside the times of the same calls in `table` (never the profiler's own), as families.

    Calls whose kernels are not as many as the table's launches are left out: something else ran."""
    import pandas as pd

    frame = pd.DataFrame(counted)
    times = table.drop_duplicates(list(TABLE_KEY))
    joined = times.merge(frame, on=list(TABLE_KEY), how="inner", validate="one_to_one")
    whole = joined[joined["counted_kernels"] == joined["launches"]].drop(columns="counted_kernels")
    return whole.sort_values(list(TABLE_KEY), kind="stable").reset_index(drop=True)


def as_segments(families: pd.DataFrame) -> pd.DataFrame:
    """The calls of one kernel again as `segment` rows: what a profile of an unknown kernel would hold."""
    one = families[families["launches"] == 1].copy()
    shape = ["name", "grid", "block", "registers", "smem_bytes", "l2_bytes", "int_ops"]
    one["fp_inst"] = one[[f"fp_inst_{name}" for name in PRECISION.values()]].sum(axis=1)
    records = one[[*shape, "fp_inst"]].to_dict("records")
    one = one.drop(columns="fp_inst")
    one["kernel"] = "segment"
    one["params"] = [json.dumps({k: _number(v) for k, v in r.items()}, separators=(",", ":")) for r in records]
    # the same inputs give kernels of one group in both forms, so that neither form's test rows were trained on
    return one


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def fold(folders: Iterable[Path], table_path: Path) -> pd.DataFrame:
    """All reports under `folders` (NAME-CACHE.csv beside NAME-CACHE.journal.jsonl) as one table, both forms."""
    import pandas as pd

    reports = []
    for folder in folders:
        for path in sorted(Path(folder).glob("*-*.csv")):
            journal = path.with_name(f"{path.stem}.journal.jsonl")
            lines = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
            reports.append((path.stem.rpartition("-")[2], read_report(path), lines))
    counted = counted_rows(reports)
    if not counted:
        raise KernelcastError("nothing was counted; the logs beside the reports say why")
    families = join_times(counted, pd.read_parquet(table_path))
    families["family"] = families["kernel"]
    frame = pd.concat([families, as_segments(families)], ignore_index=True)
    for name in ("grid", "block"):
        frame[name] = [json.dumps(v) for v in frame[name]]
    return frame
