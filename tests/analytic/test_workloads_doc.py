"""docs/workloads.md names every field that a workload file may have, and its example is one."""

from __future__ import annotations

import re
from pathlib import Path

from kernelcast.analytic.platform import load_platform
from kernelcast.analytic.workload import load_workload, workload_baseline
from kernelcast.analytic.workload_file import CHARACTERISATIONS, Segment, Transfer, WorkloadFile

DOC = (Path(__file__).parents[2] / "docs" / "workloads.md").read_text(encoding="utf-8")


def test_every_field_is_named() -> None:
    file_part, segment_part = DOC.split("## The file")[1].split("## A segment")
    for model, text in ((WorkloadFile, file_part), (Segment, segment_part), (Transfer, segment_part)):
        for name, field in model.model_fields.items():
            assert re.search(rf"\b{field.alias or name}\b", text), f"{model.__name__}.{name}"
    assert all(f"`{word}`" in file_part for word in CHARACTERISATIONS)


def test_the_example_is_a_workload(tmp_path: Path) -> None:
    match = re.search(r"```yaml\n(.*?)```", DOC, re.DOTALL)
    assert match is not None
    path = tmp_path / "my-solver.yaml"
    path.write_text(match[1], encoding="utf-8")
    found = workload_baseline(load_workload(path), load_platform("h200"))
    assert [part.name for part in found.segments] == ["upload", "sweep", "solve"]
    assert found.total_s > 0.05  # 3 GB over 55 GB/s alone
