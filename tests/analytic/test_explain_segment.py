"""Segments in words: the steps are the segment's own numbers and make its time, on every route and platform."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.explain import Explanation, Step
from kernelcast.analytic.explain_segment import explain_segment
from kernelcast.analytic.generic import CLASSES
from kernelcast.analytic.platform import Platform, load_platform, platform_ids
from kernelcast.analytic.units import parse_quantity
from kernelcast.analytic.workload import SegmentTime, Workload, load_workload, workload_baseline
from kernelcast.analytic.workload_file import Segment, shipped_workloads


def application(*segments: Segment, **fields: Any) -> Workload:
    given = {"name": "w", "description": "", "characterisation": "first-principles", "source": "own", "note": "",
             "routing": None, "concurrent_kernels": 1.0, "devices": 1.0, "published": (), "path": "w.yaml"} | fields
    return Workload(segments=segments, **given)


def explained(segment: Segment, platform: Platform, **fields: Any) -> tuple[SegmentTime, Explanation]:
    time = workload_baseline(application(segment, **fields), platform).segments[0]
    return time, explain_segment(segment, time, platform)


def counted(**fields: Any) -> Segment:
    return Segment.model_validate({"name": "a", "precision": "fp32", "flop": 1e9, "bytes": 1e9} | fields)


def total(steps: tuple[Step, ...]) -> float:
    """The longest of what runs side by side (both kinds of traffic are one side) and everything that is added."""
    traffic = sum(s.time_s for s in steps if s.competes and s.name in ("memory traffic", "cache traffic"))
    rest = [s.time_s for s in steps if s.competes and s.name not in ("memory traffic", "cache traffic")]
    return max([traffic, *rest]) + sum(s.time_s for s in steps if s.competes is False)


CASES: dict[str, dict[str, Any]] = {
    "traffic": {"flop": 0},
    "arithmetic": {"flop": 1e13},
    "half overlap": {"flop": 1e12, "alpha": 0.5},
    "partly cached": {"hit_rate": 0.4},
    "all cached": {"bytes": 1e6, "hit_rate": 1.0},
    "small working set": {"working_set": 1e6},
    "little in flight": {"bytes_in_flight": 1e5},
    "much in flight": {"bytes_in_flight": 1e9},
    "fitted": {"m_case": 1.3, "m_case_source": "ten runs"},
    "several kernels": {"kernels": 12, "n_exec": 7},
    "copies and waits": {"transfers": [{"bytes": 1e6, "direction": "h2d", "episodes": 3}], "syncs": 2, "n_exec": 4},
    "only waits": {"flop": 0, "bytes": 0, "syncs": 3},
}


@pytest.mark.parametrize("platform_id", platform_ids())
@pytest.mark.parametrize("case", CASES)
def test_steps_make_the_time(case: str, platform_id: str) -> None:
    """On as-published sets too, where bandwidths mix arithmetically and launches cost the printed latency."""
    time, said = explained(counted(**CASES[case]), load_platform(platform_id), routing="generic")
    if time.terms.get("guard"):
        assert said.guard.startswith("acted")
    elif case == "only waits":
        assert sum(step.time_s for step in said.steps) == pytest.approx(time.time_s)
    else:
        assert total(said.steps) * time.n_exec == pytest.approx(time.time_s, rel=1e-9)
        assert said.guard == "did not act"
    assert said.binding and said.to_move and said.equations
    assert all(" ↔ " in s.words or "→" in s.words for s in said.steps if re.search(r"traffic|copies", s.name))


@settings(max_examples=60, deadline=None)
@given(
    st.fixed_dictionaries({"flop": st.floats(0, 1e14), "bytes": st.floats(1, 1e12), "class": st.sampled_from(CLASSES),
                           "hit_rate": st.floats(0, 1), "alpha": st.floats(0, 1)}),
    st.sampled_from(platform_ids()),
)
def test_quotients_are_what_they_say(fields: dict[str, Any], platform_id: str) -> None:
    _, said = explained(counted(**fields), load_platform(platform_id), routing="generic")
    for step in said.steps:
        match = re.fullmatch(r"([\d.e+]+ \S+) .*÷ ([\d.e+-]+ \S+/s) .*= ([\d.e-]+ \S+)", step.words)
        if match and "; ×" not in step.words:
            unit = "FLOP" if "FLOP" in match[1] else "B"
            amount, rate = parse_quantity(match[1], unit), parse_quantity(match[2], f"{unit}/s")
            assert amount / rate == pytest.approx(parse_quantity(match[3], "s"), rel=2e-3)


@pytest.mark.parametrize("name", [n for n in shipped_workloads() if not n.startswith(("rodinia", "spechpc"))])
def test_every_shipped_application_can_be_explained(name: str) -> None:
    loaded = load_workload(name)
    for platform_id in ("b200", "mi300a", "h200-as-published"):
        platform = load_platform(platform_id)
        done = workload_baseline(loaded, platform)
        for segment, time in zip(loaded.segments, done.segments, strict=True):
            said = explain_segment(segment, time, platform)
            assert said.steps and "nan" not in " ".join(step.words for step in said.steps)


def test_published_routing_names_the_family_that_stands_for_it() -> None:
    time, said = explained(counted(**{"class": "stencil"}), load_platform("mi300a"), routing="published")
    assert said.steps[0].name == "transpose" and "1 GB HBM ↔ cache as a transpose" in said.steps[0].words
    assert sum(step.time_s for step in said.steps) == pytest.approx(time.time_s)
    assert said.equations[0].startswith("section V.B")


def test_unified_memory_copies_nothing() -> None:
    _, said = explained(counted(**CASES["copies and waits"]), load_platform("mi300a"), routing="generic")
    assert [step.name for step in said.steps if not step.competes] == ["launches", "waits"]


def test_a_family_with_a_fitted_multiplier() -> None:
    segment = Segment.model_validate({"name": "a", "kernel": "vector_copy", "params": {"n": 10**8}, "n_exec": 3,
                                      "m_case": 1.5, "m_case_source": "ten runs"})
    time, said = explained(segment, load_platform("h200"))
    assert total(said.steps) * 3 == pytest.approx(time.time_s)
    assert all("× 1.5 (m_case)" in step.words for step in said.steps)


def test_a_tile_given_in_the_file(tmp_path: Path) -> None:
    """A tile given in the file is the tile of the steps."""
    path = tmp_path / "tile.yaml"
    path.write_text("name: t\ncharacterisation: first-principles\nsource: own\nsegments:\n  - {name: p, kernel: gemm, "
                    "precision: fp16, params: {m: 4096, n: 4096, k: 4096}, tile: [64, 64, 64]}\n", encoding="utf-8")
    loaded, platform = load_workload(path), load_platform("h200")
    said = explain_segment(loaded.segments[0], workload_baseline(loaded, platform).segments[0], platform)
    assert "tile 64×64×64" in said.steps[0].words
