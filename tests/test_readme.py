"""The README gives the generated figures: its accuracy table docs/accuracy.json, its errors those of the models."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from kernelcast.registry.store import read_meta

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SPLITS = json.loads((ROOT / "docs" / "accuracy.json").read_text(encoding="utf-8"))["splits"]
ROWS = {
    "own-h200": "H200, 51 families",
    "gemm-b200": "B200 matrix products",
    "gemm-h200": "H200 matrix products",
    "attention-h200": "H200 attention",
    "own-h200-bfs": "H200 breadth-first search",
    "gemm-mi300x": "MI300X matrix products",
    "spmv-mi250x": "MI250X sparse products",
}
METHODS = ("naive_roofline", "calibrated_analytic", "nearest_utilisation", "hybrid")


@pytest.mark.parametrize("split", ROWS)
def test_accuracy_table_is_the_generated_one(split: str) -> None:
    (line,) = [line for line in README.splitlines() if line.startswith(f"| {ROWS[split]}")]
    printed = [[float(v) for v in cell.split("/")] for cell in line.split("|")[2:6]]
    found = SPLITS[split]["methods"]
    for method, cell in zip(METHODS, printed, strict=True):
        expected = [found[method][name] for name in ("mape", "median_ape", "p90_ape")]
        assert cell == pytest.approx(expected, abs=0.0501), method


CURVES = {
    "gemm-b200-new": "B200 bf16 products", "gemm-mi300x-new": "MI300X fp8 products",
    "spmv-mi250x-new": "MI250X CSR products",
}


@pytest.mark.parametrize("split", CURVES)
def test_learning_curves_are_the_generated_ones(split: str) -> None:
    (line,) = [line for line in README.splitlines() if line.startswith(f"| {CURVES[split]}")]
    printed = [cell.strip() for cell in line.split("|")[2:-1]]
    found = {int(point["runs"]): point["mape"] for point in SPLITS[split]["curve"]}
    for count, cell in zip((0, 5, 20, 50, 200), printed, strict=True):
        assert cell == "–" if count not in found else float(cell) == pytest.approx(found[count], abs=0.0501), count


def test_figures_of_the_text_are_the_generated_ones() -> None:
    text = " ".join(README.split())
    errors = {line["label"]: line["methods"]["hybrid"]["mape"] for line in SPLITS["own-h200"]["classes"]}
    ranked = sorted(errors, key=lambda name: -errors[name])
    assert ranked[0] == "conv2d" and f"conv2d ({errors['conv2d']:.1f} %" in text
    assert set(ranked[1:5]) == {"segmented_scan", "hash_probe", "bmm", "fft"} and errors[ranked[1]] <= 12.0
    kinds = SPLITS["kinds-h200"]
    triple = " / ".join(f"{kinds['methods']['hybrid'][name]:.1f}" for name in ("mape", "median_ape", "p90_ape"))
    assert f"{triple} %, and the band covered {100 * kinds['bands']['total']['coverage']:.1f} %" in text
    for line in SPLITS["unsaid-h200"]["subsets"]:
        errors_said = line["methods"]["hybrid"]
        assert " / ".join(f"{errors_said[name]:.1f}" for name in ("mape", "median_ape", "p90_ape")) in text
    few = [SPLITS[f"mi300a-{count}"]["methods"]["hybrid"]["mape"] for count in (5, 8)]
    assert f"MI300A: {few[0]:.1f} % from 5 runs of each, {few[1]:.1f} % from 8" in text
    for split, words in (("segment-h200", "from full counters"), ("segment-h200-work", "from FLOP and bytes alone")):
        errors = SPLITS[split]["methods"]["hybrid"]
        triple = " / ".join(f"{errors[name]:.1f}" for name in ("mape", "median_ape", "p90_ape"))
        assert f"{triple} % {words}" in text


def test_champion_errors_are_those_in_the_shipped_models() -> None:
    printed = dict(re.findall(r"^\| ([a-z0-9-]+) \| [^|]+ \| ([0-9.]+) % \|$", README, re.MULTILINE))
    shipped = {}
    for path in sorted((ROOT / "configs" / "champions").glob("[a-z]*/model.json")):
        shipped[path.parent.name] = read_meta(path.parent)["meta"]["heldout"]["mape"]
    assert set(printed) == set(shipped)
    assert {name: float(v) for name, v in printed.items()} == pytest.approx(shipped, abs=0.0501)
