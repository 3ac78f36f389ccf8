"""Counted work beside first-principles work, family by family: which compulsory bytes and FLOP are off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analytic.families import family as find_family
from ..analytic.work import arguments, element_byte

if TYPE_CHECKING:
    import pandas as pd

OFF = 0.20
SMALL_BYTE = 1e6  # below, whole sectors and kernel arguments are a visible share
KEPT_BYTE = 60e6  # written bytes up to the size of the last-level cache may still be in it when the kernel ends
HEADERS = (
    "family", "calls", "launches", "read, counted ÷ compulsory", "read + written", "L2 ÷ (compulsory + re-read)",
    "FLOP, counted ÷ ours", "off by more than 20 %",
)


def compare(counted: pd.DataFrame) -> pd.DataFrame:
    """One row a counted call: our work and its ratios to what was counted; NaN where a ratio would mean nothing.

    Reads and totals are compared on cold calls only: there the compulsory bytes must cross from memory."""
    import pandas as pd

    calls = counted[counted["kernel"] != "segment"]
    parts = []
    for (kernel, number), group in calls.groupby(["kernel", "precision"], sort=True):
        name, precision = str(kernel), str(number)
        records = [json.loads(text) for text in group["params"]]
        family = find_family(name)
        raw = {
            p: np.array([r.get(p) for r in records], dtype=object) for p in family.names if any(p in r for r in records)
        }
        work = family.work(arguments(family, raw), element_byte(precision))
        part = group[["kernel", "implementation", "precision", "cache", "launches", "time_s"]].copy()
        cold = group["cache"].to_numpy() == "cold"
        read, total = group["bytes_read"].to_numpy(), group["bytes"].to_numpy()
        with np.errstate(divide="ignore", invalid="ignore"):
            big = cold & (work.read_byte >= SMALL_BYTE)
            part["read"] = np.where(big, read / work.read_byte, np.nan)
            settled = cold & (work.compulsory_byte >= SMALL_BYTE) & (work.write_byte >= 4.0 * KEPT_BYTE)
            part["total"] = np.where(settled, total / work.compulsory_byte, np.nan)
            part["l2"] = np.where(
                work.compulsory_byte >= SMALL_BYTE, group["l2_bytes"].to_numpy() / work.cache_byte, np.nan
            )
            low, high = _operations(group)
            floating = (work.flop > 0) & precision.startswith(("fp", "bf", "tf", "mixed"))
            part["flop_low"] = np.where(floating, low / work.flop, np.nan)
            part["flop_high"] = np.where(floating, high / work.flop, np.nan)
        part["ours_launches"] = work.launches
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _operations(group: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Least and most operations that the counters allow: equal where `flops` is known."""
    known = group["flops"].to_numpy(float)
    inst = group[[c for c in group if str(c).startswith("fp_inst_")]].to_numpy(float).sum(axis=1)
    matrix = group["flops_tensor"].to_numpy(float)
    return np.where(np.isnan(known), matrix + inst, known), np.where(np.isnan(known), matrix + 2.0 * inst, known)


def by_family(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Medians by family, and what is off by more than a fifth whatever the multiply-adds.

    Bytes are judged on calls of one kernel: ncu empties the caches before each, so a later one reads again what the
    one before it left there. FLOP are judged where any floating-point arithmetic was counted at all."""
    found = []
    for name, group in rows.groupby("kernel", sort=True):
        single = group[group["launches"] == 1]
        one = {c: _median(single[c].to_numpy(float)) for c in ("read", "total")}
        one |= {c: _median(group[c].to_numpy(float)) for c in ("l2", "flop_low", "flop_high")}
        byte = any(abs(one[c] - 1.0) > OFF for c in ("read", "total") if np.isfinite(one[c]))
        flop = one["flop_low"] > 1.0 + OFF or 0.0 < one["flop_high"] < 1.0 - OFF
        off = [word for word, wrong in (("bytes", byte), ("FLOP", flop)) if wrong]
        found.append({"family": name, "calls": len(group), "launches": float(np.median(group["launches"])), **one,
                      "off": ", ".join(off)})
    return found


def _median(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else float("nan")


def _cell(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "-"


def _span(low: float, high: float) -> str:
    return _cell(low) if _cell(low) == _cell(high) else f"{_cell(low)} to {_cell(high)}"


def table_text(lines: list[dict[str, Any]]) -> str:
    rows = ["| " + " | ".join(HEADERS) + " |", "|" + "---|" * len(HEADERS)]
    for x in lines:
        ratios = [_cell(x[c]) for c in ("read", "total", "l2")]
        cells = [
            x["family"],
            str(x["calls"]),
            f"{x['launches']:g}",
            *ratios,
            _span(x["flop_low"], x["flop_high"]),
            x["off"],
        ]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def sample_text(counted: pd.DataFrame) -> str:
    """How large the sample is, and of how many of its calls the FLOP are known."""
    calls = counted[counted["kernel"] != "segment"]
    configurations = len(calls.drop_duplicates(["kernel", "implementation", "precision", "params"]))
    cold, exact = int((calls["cache"] == "cold").sum()), int(calls["flops"].notna().sum())
    families, kernels = calls["kernel"].nunique(), int(calls["launches"].sum())
    return (
        f"**Sample: {len(calls):,} calls** of {configurations:,} configurations ({cold:,} cold, "
        f"{len(calls) - cold:,} warm) of {families} families; {kernels:,} kernels. "
        f"FLOP are known (to 5 %) of {exact:,} calls, within a factor of two of the other {len(calls) - exact:,}."
    )


def write_report(counted: pd.DataFrame, out: Path) -> None:
    """Write the page with its table between the markers; what stands around them in an existing page stays."""
    lines = by_family(compare(counted))
    made = f"{BEGIN}\n\n{sample_text(counted)}\n\n{table_text(lines)}\n\n{_summary(lines)}\n\n{END}"
    text = out.read_text() if out.exists() else f"# Counted and first-principles work\n\n{BEGIN}\n{END}\n"
    head, _, rest = text.partition(BEGIN)
    out.write_text(head + made + rest.partition(END)[2])


BEGIN, END = "<!-- counted: begin -->", "<!-- counted: end -->"


def _summary(lines: list[dict[str, Any]]) -> str:
    byte = [x["family"] for x in lines if "bytes" in x["off"]]
    flop = [x["family"] for x in lines if "FLOP" in x["off"]]
    return (f"Compulsory bytes off by more than {OFF:.0%}: {', '.join(byte) or 'none'}.\n\n"
            f"FLOP off by more than {OFF:.0%}: {', '.join(flop) or 'none'}.")
