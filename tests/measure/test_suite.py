"""Suites draw the same configurations everywhere and cover the sizes they promise."""

from __future__ import annotations

import hashlib
import json
import math
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import InputError
from kernelcast.measure.costs import effort, planned_s
from kernelcast.measure.families import BUILDERS, MEASURED
from kernelcast.measure.run import CHUNK_CONFIGS, chunks, quick_set
from kernelcast.measure.suite import Config, default_suite, find_suite, load_suite

SMALL = """
seed: 4
draws:
  - family: vector_copy
    count: 60
    effort: [4.0e+3, 4.0e+9]
    params: {n: {log: [256, 1.0e+9], multiple: [1, 256]}}
    variants:
      - {implementation: thread_element, precision: fp32}
      - {implementation: thread_element, precision: fp64, share: 0.5, max_effort: 1.0e+8}
  - family: gemm
    count: 40
    effort: [1.0e+4, 1.0e+10]
    params:
      m: {log: [1, 8192]}
      "n,k": {choice: [[4096, 4096], [512, 2048], [30, 50]]}
    variants:
      - {implementation: cublas, precision: bf16}
      - {implementation: cublas, precision: fp8, multiple: {n: 16, k: 16}}
  - family: bicg
    count: 5
    effort: [1.0e+6, 1.0e+9]
    params: {m: {pow2: [64, 4096]}, n: {same: m}}
    variants: [{implementation: row_thread, precision: fp32, min: {m: 128}}]
"""


@pytest.fixture(scope="module")
def full() -> list[Config]:
    """The H200's whole suite: drawing it takes seconds."""
    return load_suite("h200-full")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path


def test_same_file_same_configurations(small: Path) -> None:
    first, second = load_suite(small), load_suite(small)
    assert [c.key for c in first] == [c.key for c in second]
    assert [c.key for c in load_suite(small, draw_seed=9)] != [c.key for c in first]


def test_keys_are_unique_and_depend_on_every_field(small: Path) -> None:
    configs = load_suite(small)
    assert len({c.key for c in configs}) == len(configs)
    base = Config("gemm", "cublas", "bf16", {"m": 1, "n": 2, "k": 3}, "0.0", 1)
    others = [
        Config("bmm", "cublas", "bf16", base.params, "0.0", 1),
        Config("gemm", "tile16", "bf16", base.params, "0.0", 1),
        Config("gemm", "cublas", "fp16", base.params, "0.0", 1),
        Config("gemm", "cublas", "bf16", {"m": 1, "n": 2, "k": 4}, "0.0", 1),
        Config("gemm", "cublas", "bf16", base.params, "0.0", 2),
    ]
    assert len({c.key for c in [base, *others]}) == 6


def test_sizes_cover_every_decade_of_the_range(small: Path) -> None:
    sizes = [c.effort for c in load_suite(small) if c.family == "vector_copy" and c.precision == "fp32"]
    decades = np.bincount([int(math.log10(s)) for s in sizes], minlength=10)
    assert (decades[4:9] >= 5).all()  # 60 draws over the six decades from 4e3 to 4e9: about ten each


def test_limits_on_variants_hold(small: Path) -> None:
    configs = load_suite(small)
    assert all(c.effort <= 1e8 for c in configs if c.family == "vector_copy" and c.precision == "fp64")
    assert {(c.params["n"], c.params["k"]) for c in configs if c.precision == "fp8"} == {(4096, 4096), (512, 2048)}
    assert all(c.params["m"] == c.params["n"] >= 128 for c in configs if c.family == "bicg")


def test_both_aligned_and_unaligned_sizes_are_drawn(small: Path) -> None:
    n = np.array([c.params["n"] for c in load_suite(small) if c.family == "vector_copy"])
    assert (n % 256 == 0).any()
    assert (n % 2 == 1).any()


def test_packaged_suite_is_complete(full: list[Config]) -> None:
    configs = full
    assert len({c.family for c in configs}) >= 40
    assert {c.kind[:2] for c in configs} == set(BUILDERS)  # nothing unknown, nothing left out
    assert {c.family for c in configs} == set(MEASURED)
    # shipped tables were measured of these and journals are resumed by them: sizes come from the families' work:
    # a change of it must not draw another suite under the same name
    assert hashlib.sha1("\n".join(c.key for c in configs).encode()).hexdigest()[:12] == "f77e92e94ffb"
    held = {c.key for c in configs}
    again = load_suite("h200-repeat")
    assert len(again) == 600
    assert all(c.key in held for c in again)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[1, 2]", "mapping"),
        ("draws: [{family: nosuch, count: 1, effort: [1, 2], params: {}, variants: []}]", "nosuch"),
        ("draws: [{family: relu, count: 2, effort: [1, 2], params: {n: {}}, variants: []}]", "exactly one"),
        ("draws: [\n", "readable"),
    ],
)
def test_a_wrong_suite_is_refused_with_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint) as caught:
        load_suite(path)
    assert "wrong.yaml" in str(caught.value)


def test_an_unknown_suite_names_near_ones() -> None:
    with pytest.raises(InputError, match="h200-full"):
        find_suite("h200-ful")


def test_effort_of_a_product_is_its_bytes_or_a_tenth_of_its_operations() -> None:
    assert effort("gemm", {"m": 1, "n": 1000, "k": 1000}) == 4.0 * (1000 + 1000 * 1000 + 1000)
    assert effort("gemm", {"m": 4096, "n": 4096, "k": 4096}) == pytest.approx(2 * 4096**3 / 10)


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=200))
@settings(deadline=None, max_examples=30)
def test_chunks_keep_every_configuration_in_order(sizes: list[int]) -> None:
    configs = [Config("relu", "torch", "fp32", {"n": n}, str(i), i) for i, n in enumerate(sizes)]
    found = list(chunks(configs))
    assert [c for chunk in found for c in chunk] == configs
    assert all(1 <= len(chunk) <= CHUNK_CONFIGS for chunk in found)


def test_quick_takes_at_most_two_of_every_kind(small: Path) -> None:
    configs = load_suite(small)
    quick = quick_set(configs)
    kinds = [c.kind for c in quick]
    assert set(kinds) == {c.kind for c in configs}
    assert max(kinds.count(k) for k in kinds) <= 2


def test_any_platform_has_a_suite() -> None:
    assert default_suite("h200") == default_suite("mi300x") == "h200-full"
    assert find_suite(default_suite("mi300x")).is_file()


def test_a_suite_beside_another_holds_nothing_of_it(tmp_path: Path) -> None:
    draws = """draws:
  - family: nbody
    count: 8
    effort: [1.0e+5, 1.0e+7]
    params: {bodies: {choice: [256, 512, 1024]}}
    variants: [{implementation: shared_tile, precision: fp32}]
"""
    (tmp_path / "one.yaml").write_text(f"seed: 1\n{draws}\n")
    (tmp_path / "two.yaml").write_text(f"seed: 1\n{draws.replace('1024]', '1024, 2048]')}\n")
    (tmp_path / "beside.yaml").write_text(f"beside: {tmp_path / 'one.yaml'}\n{(tmp_path / 'two.yaml').read_text()}")
    one, two, beside = ({c.identity for c in load_suite(tmp_path / f"{n}.yaml")} for n in ("one", "two", "beside"))
    assert beside == two - one
    assert beside and one & two


def recorded(name: str) -> tuple[int, int, float]:
    """Kinds, configurations (skipped ones too) and seconds of a shipped run."""
    path = Path(str(resources.files("kernelcast.configs"))) / "runs" / f"{name}.meta.json"
    meta = json.loads(path.read_text())
    return len(meta["worst_check_error"]), meta["configurations"] + sum(meta["skipped"].values()), meta["seconds"]


@pytest.mark.parametrize("name", ["h200", "h200-repeat"])
def test_the_planned_time_is_what_measuring_took_on_a_fresh_machine(name: str) -> None:
    kinds, configurations, seconds = recorded(name)
    assert planned_s(kinds, configurations) == pytest.approx(seconds, rel=0.02)


def test_the_planned_time_is_an_upper_one_where_kernels_were_built_before() -> None:
    """The hold-out suite ran in a lease that had built them: 30 s, planned 53 s."""
    kinds, configurations, seconds = recorded("h200-holdout")
    assert seconds < planned_s(kinds, configurations) < 2.0 * seconds


def test_a_quick_suite_is_planned_to_take_less_than_five_minutes(full: list[Config]) -> None:
    assert default_suite("h200") == "h200-full"
    chosen = quick_set(full)
    kinds = len({c.kind for c in chosen})
    assert kinds == len({c.kind for c in full}) == 155
    assert len(chosen) <= 2 * kinds
    # 155 checks at 0.127 s and 310 configurations at 0.0113 s: 23 s; five minutes leave room for a slower machine
    assert planned_s(kinds, len(chosen)) == pytest.approx(23.2, abs=0.2)
    assert planned_s(kinds, len(chosen)) < 300.0
