"""Split keys, the refusal of a wrong GPU, and what a machine without one is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernelcast.analytic.errors import InputError, KernelcastError
from kernelcast.measure.__main__ import main, parse_budget
from kernelcast.measure.families import group_key
from kernelcast.measure.families.graph import _bottom_up
from kernelcast.measure.gpu import require_platform
from kernelcast.measure.meta import noise
from kernelcast.measure.runner import repeats_for
from kernelcast.measure.suite import load_suite


def test_a_product_is_grouped_by_its_weights_not_its_tokens() -> None:
    assert group_key("gemm", {"m": 7, "n": 4096, "k": 11008}, 1) == "gemm:n4096k11008"
    assert group_key("gemm", {"m": 9, "n": 4096, "k": 11008}, 2) == "gemm:n4096k11008"
    assert group_key("bmm", {"batch": 3, "m": 7, "n": 8, "k": 9}, 1) == "bmm:n8k9"


def test_a_matrix_is_one_group_in_every_format_and_another_with_another_seed() -> None:
    p = {"rows": 1000, "row_mean": 8, "structure": "banded"}
    keys = {group_key(f, p, 5) for f in ("spmv_csr", "spmv_coo", "spmv_ell", "spmv_sellp")}
    assert len(keys) == 1
    key = keys.pop()
    assert key.startswith("spmv:banded:")
    assert group_key("spmm_csr", {**p, "cols_dense": 32}, 5) == key
    assert group_key("spmv_csr", p, 6) != key


def test_a_graph_is_one_group_for_search_and_ranking() -> None:
    p = {"nodes": 1000, "degree": 8, "structure": "rmat"}
    assert group_key("bfs", p, 1) == group_key("pagerank", {**p, "iterations": 4}, 1)
    assert group_key("bfs", p, 1).startswith("bfs:rmat:")


def test_other_families_are_grouped_by_size() -> None:
    assert group_key("transpose", {"m": 64, "n": 32}, 1) == "transpose:m64n32"
    assert group_key("vector_copy", {"n": 1024}, 1) == group_key("vector_copy", {"n": 1024}, 2)
    assert group_key("relu", {"n": 1024}, 1) != group_key("relu", {"n": 1025}, 1)


def test_configurations_of_a_unit_share_a_group() -> None:
    units: dict[str, set[str]] = {}
    for c in load_suite("h200-kinds"):
        units.setdefault(c.unit, set()).add(group_key(c.family, c.params, c.seed))
    assert max(len(groups) for groups in units.values()) == 1


@pytest.mark.parametrize(
    ("platform", "name"),
    [("h200", "NVIDIA H200"), ("h100-sxm", "NVIDIA H100 80GB HBM3"), ("a100-sxm", "NVIDIA A100-SXM4-80GB"),
     ("mi300x", "AMD Instinct MI300X"), ("mi250x-gcd", "AMD Instinct MI250X"), ("b200", "NVIDIA B200")],
)
def test_the_right_gpu_is_taken(platform: str, name: str) -> None:
    require_platform(platform, name)


@pytest.mark.parametrize(
    ("platform", "name"),
    [("h200", "NVIDIA H100 80GB HBM3"), ("h100-sxm", "NVIDIA H200"), ("b200", "NVIDIA GB200"), ("h200", "NVIDIA GH200"),
     ("mi300x", "AMD Instinct MI300A"), ("a100-sxm", "NVIDIA A10")],
)
def test_another_gpu_is_refused(platform: str, name: str) -> None:
    with pytest.raises(KernelcastError, match=platform):
        require_platform(platform, name)


def test_no_gpu_is_an_error_without_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if _has("torch") and _has("cupy"):
        pytest.skip("this machine may have a GPU to measure on")
    status = main(["--suite", "h200-kinds", "--platform", "h200", "--out", str(tmp_path / "t.parquet")])
    assert status == 2
    assert "measuring needs" in capsys.readouterr().err
    assert not (tmp_path / "t.parquet").exists()


def _has(name: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(name) is not None


@pytest.mark.parametrize(
    ("text", "seconds"), [("20min", 1200.0), ("560s", 560.0), ("1h", 3600.0), ("90", 90.0), (None, None)]
)
def test_budgets(text: str | None, seconds: float | None) -> None:
    assert parse_budget(text) == seconds


def test_a_wrong_budget_is_refused() -> None:
    with pytest.raises(InputError, match="soon"):
        parse_budget("soon")


def test_short_calls_are_repeated_more_often() -> None:
    assert [repeats_for(t, False) for t in (1e-6, 5e-4, 2e-3, 0.05)] == [9, 7, 5, 3]
    assert repeats_for(1e-6, True) == 3


def test_search_goes_bottom_up_only_while_the_frontier_is_large() -> None:
    sizes, edges = [1, 100, 5000, 9000, 40], [10, 2000, 90000, 60000, 300]
    assert _bottom_up(sizes, edges, nodes=14141, total=152310) == [False, False, True, True, False]
    assert not any(_bottom_up([1, 2, 2, 2], [4, 8, 8, 8], nodes=100_000, total=400_000))


def test_noise_is_binned_by_time() -> None:
    rows = [{"time_s": 1e-6, "spread_s": 1e-7}, {"time_s": 1e-6, "spread_s": 3e-7}, {"time_s": 1e-3, "spread_s": 1e-6}]
    found = noise(rows)
    assert found["0 to 2e-06 s"] == {"rows": 2, "median_iqr": 0.2, "p90_iqr": 0.28}  # 0.1 and 0.3 of the time
    assert found["0.001 to 0.01 s"]["median_iqr"] == 0.001
