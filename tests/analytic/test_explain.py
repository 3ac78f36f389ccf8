"""Explanations: the steps are the baseline's own numbers, what binds is the longest, units and ends are said."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.baseline import baseline
from kernelcast.analytic.explain import Explanation, explain_baseline
from kernelcast.analytic.families import FAMILIES
from kernelcast.analytic.platform import load_platform, platform_ids
from kernelcast.analytic.units import parse_quantity

CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "product": ("gemm", {"m": 4096, "n": 4096, "k": 4096}, "fp16"),
    "skinny": ("gemm", {"m": 8, "n": 8192, "k": 8192}, "fp16"),
    "sparse": ("spmv_csr", {"rows": 400000, "cols": 400000, "nnz": 4000000}, "fp64"),
    "copy": ("vector_copy", {"n": 10**8}, "fp32"),
    "tiny": ("vector_copy", {"n": 100}, "fp32"),
    "arithmetic": ("nbody", {"bodies": 200000}, "fp32"),
    "graph": ("bfs", {"nodes": 10**6, "edges": 6 * 10**6, "levels": 12}, "int32"),
}


def explain(case: str, platform_id: str) -> tuple[Any, Explanation]:
    family, params, precision = CASES[case]
    platform = load_platform(platform_id)
    base = baseline(family, params, precision, platform)
    return base, explain_baseline(base, platform, precision)


@pytest.mark.parametrize("platform_id", platform_ids())
@pytest.mark.parametrize("case", CASES)
def test_steps_on_every_platform(case: str, platform_id: str) -> None:
    base, said = explain(case, platform_id)
    total = float(base.time_s[0])
    side = [step for step in said.steps if step.competes]
    added = sum(step.time_s for step in said.steps if step.competes is False)
    assert side and said.equations and said.binding and said.to_move
    assert all(step.time_s >= 0.0 and step.equation for step in said.steps)
    if base.guard[0] or base.terms.get("bound", [0.0])[0]:
        assert said.guard.startswith("acted")
    elif base.route == "generic":  # the longest side plus what is added is the time
        traffic = sum(step.time_s for step in side if step.name.endswith("traffic"))
        rest = [step.time_s for step in side if not step.name.endswith("traffic")]
        assert max([traffic, *rest]) + added == pytest.approx(total, rel=1e-9)
    elif not load_platform(platform_id).as_published:
        assert max(step.time_s for step in side) + added == pytest.approx(total, rel=1e-9)
    else:
        loop = next(step.time_s for step in said.steps if step.competes is None)
        assert loop + added == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_quotients_are_what_they_say(case: str) -> None:
    """`amount … ÷ rate … = time`, read back from the words, to their four digits."""
    _, said = explain(case, "mi300x")
    checked = 0
    for step in said.steps:
        match = re.fullmatch(r"([\d.e+]+ \S+) .*÷ ([\d.e+]+ \S+/s) .*= ([\d.]+ \S+)", step.words)
        if match and "; ×" not in step.words:
            unit = "FLOP" if "FLOP" in match[1] else "B"
            amount, rate = parse_quantity(match[1], unit), parse_quantity(match[2], f"{unit}/s")
            assert amount / rate == pytest.approx(parse_quantity(match[3], "s"), rel=2e-3)
            checked += 1
    assert checked


def test_both_ends_of_every_byte_count_are_named() -> None:
    for case in CASES:
        _, said = explain(case, "mi300a")
        for step in said.steps:
            if step.name.endswith("traffic"):
                assert " ↔ " in step.words


@pytest.mark.parametrize("platform_id", ["h200", "b200", "mi300x"])
@pytest.mark.parametrize("case", ["product", "skinny"])
def test_what_a_product_adds_once_is_worked_out(case: str, platform_id: str) -> None:
    """Bytes of the stored tile over the unit's port, and round trips times the latency, read back from the words."""
    base, said = explain(case, platform_id)
    steps = {step.name: step.words for step in said.steps}
    store = re.fullmatch(r"(.*B) of a tile .* ÷ (.*B/s) \(.*\) = (.*s); × ([\d.]+) .* = (.*s)", steps["writeback"])
    assert store is not None
    once = parse_quantity(store[1], "B") / parse_quantity(store[2], "B/s")
    assert once == pytest.approx(parse_quantity(store[3], "s"), rel=2e-3)
    assert once * float(store[4]) == pytest.approx(float(base.terms["writeback"][0]), rel=4e-3)
    sync = re.match(r"([\d.]+) round trips × (\S+ \S*s) ", steps["sync"])
    added = [parse_quantity(text, "s") for text in re.findall(r"\+ (\S+ \S*s) \(", steps["sync"])]
    assert sync is not None
    assert float(sync[1]) * parse_quantity(sync[2], "s") + sum(added) == pytest.approx(
        float(base.terms["sync"][0]), rel=4e-3
    )
    assert "1 launch × " in steps["launch"] and "empty_kernel_duration" in steps["launch"]


def test_rates_to_reach_are_those_of_the_device() -> None:
    """Not of one of its units: a person compares them with the parameter named beside."""
    words = explain("product", "h200")[1].to_move
    rate = load_platform("h200").sustained_flop_per_s("fp16", "matrix")
    match = re.search(r"instead of (\S+ \S+) of sustained_fp16_matrix", words)
    assert match is not None and parse_quantity(match[1], "FLOP/s") == pytest.approx(rate, rel=1e-3)


def test_what_binds() -> None:
    assert explain("arithmetic", "h200")[1].binding.startswith("arithmetic, ")
    assert explain("copy", "h200")[1].binding.startswith(("memory traffic", "traffic"))
    assert explain("tiny", "h200")[1].binding.startswith("launches, 863 ns")
    assert "instead of 4.302 TB/s" in explain("copy", "h200")[1].to_move
    assert explain("product", "b200-as-published")[1].equations[0].startswith("Eqs. (2), (3), (4), (7), (8) as printed")


def test_a_class_scale_is_said() -> None:
    platform = load_platform("h200").with_overrides({"class_scale_memory": 1.25})
    base = baseline("vector_copy", {"n": 10**8}, "fp32", platform)
    said = explain_baseline(base, platform, "fp32")
    assert any("× 1.25 (class_scale)" in step.words for step in said.steps)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(FAMILIES)), st.integers(64, 4096), st.sampled_from(["h200", "mi300x", "t4"]))
def test_every_family_can_be_explained(name: str, size: int, platform_id: str) -> None:
    family, platform = FAMILIES[name], load_platform(platform_id)
    params = {p.name: float(size) for p in family.params if p.kind in ("size", "real") and p.name != "load"}
    precision = "fp16" if family.precision == "bf16" else family.precision  # T4 has no bf16
    base = baseline(name, params, precision, platform)
    said = explain_baseline(base, platform, precision)
    assert said.binding
    assert not any("nan" in step.words for step in said.steps)


def test_re_reads_past_the_cache_are_told_from_the_traffic_that_has_to_be() -> None:
    """FlashAttention over 4,096 tokens: Q, K, V and O are 134 MB; the rest is K and V read again by every block."""
    platform = load_platform("h200")
    sizes = {"batch": 1, "heads": 32, "seq": 4096, "head_dim": 128}
    base = baseline("attention", sizes, "bf16", platform)
    said = explain_baseline(base, platform, "bf16")
    steps = {step.name: step for step in said.steps}
    assert steps["memory traffic"].amount == 4 * 32 * 4096 * 128 * 2
    # 32 heads, 32 blocks of 128 queries each, K and V of a head: 2 * 4096 * 128 * 2 B; once is compulsory
    assert steps["re-read traffic"].amount == pytest.approx(32 * 31 * 2 * 4096 * 128 * 2)
    together = steps["memory traffic"].time_s + steps["re-read traffic"].time_s
    assert together == pytest.approx(float(base.details["memory_s"][0]))
    assert said.binding.startswith("traffic, mostly re-reads")
    assert "upper estimate" in steps["re-read traffic"].words
    held_s = steps["re-read traffic"].amount / platform.value("l2_bw")
    assert f"were all of it found in L2, re-read traffic would take {held_s * 1e6:.4g} µs" in said.to_move


def test_no_re_reads_are_shown_where_the_cache_holds_them() -> None:
    platform = load_platform("h200")
    sizes = {"batch": 1, "heads": 32, "seq": 1024, "head_dim": 128}
    small = baseline("attention", sizes, "bf16", platform, cache="cold")
    steps = {step.name: step for step in explain_baseline(small, platform, "bf16").steps}
    assert "re-read traffic" not in steps
    assert "hit rate 1 of a working set" in steps["cache traffic"].words  # of the re-reads: the rest is cold
