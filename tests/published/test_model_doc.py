"""docs/model.md: every line of arithmetic is evaluated, and the code gives the same at the pinned parameters."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from kernelcast.analytic.baseline import baseline
from kernelcast.analytic.equations import EQUATIONS, UNNUMBERED
from kernelcast.analytic.gemm import stage_gemm
from kernelcast.analytic.platform import Platform, load_platform
from kernelcast.analytic.platform_schema import PARAMETERS
from kernelcast.analytic.published import gemm as printed_gemm
from kernelcast.analytic.workload import load_workload, workload_baseline

DOC = (Path(__file__).parents[2] / "docs" / "model.md").read_text(encoding="utf-8")
NUMBER = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
LINE = re.compile(rf"(\w+)\s*=\s*(.+?)(?:\s*=\s*({NUMBER})(?:\s+\S+)?)?\s*$")
BINARY: dict[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv
}
CALLS: dict[str, Callable[..., float]] = {"max": max, "ceil": math.ceil}


def evaluate(node: ast.AST, names: dict[str, float]) -> float:
    if isinstance(node, ast.Expression):
        return evaluate(node.body, names)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.BinOp):
        return BINARY[type(node.op)](evaluate(node.left, names), evaluate(node.right, names))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return float(CALLS[node.func.id](*(evaluate(argument, names) for argument in node.args)))
    raise AssertionError(f"unexpected {ast.dump(node)}")


def lines(kind: str) -> list[tuple[str, str, str | None]]:
    blocks = re.findall(rf"^```{kind}\n(.*?)^```", DOC, flags=re.MULTILINE | re.DOTALL)
    found = []
    for line in "".join(blocks).splitlines():
        match = LINE.fullmatch(line.strip())
        assert match, line
        found.append((match[1], match[2], match[3]))
    assert found
    return found


def half_unit(printed: str) -> float:
    """Half a unit in the last printed digit."""
    mantissa, _, exponent = printed.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - decimals) * (1 + 1e-9)


def values(kind: str) -> tuple[dict[str, float], dict[str, float]]:
    """(parameters, results) of a walk; asserts every printed value on the way, to its last digit."""
    parameters = {name: float(text) for name, text, _ in lines(f"{kind}-parameters")}
    results: dict[str, float] = {}
    for name, expression, printed in lines(kind):
        result = evaluate(ast.parse(expression, mode="eval"), parameters | results)
        if printed is not None:
            assert result == pytest.approx(float(printed), rel=0, abs=half_unit(printed)), f"{name} = {expression}"
        results[name] = result
    return parameters, results


def pinned(parameters: dict[str, float]) -> Platform:
    return load_platform("h200").with_overrides(parameters)


def test_matrix_product() -> None:
    parameters, doc = values("gemm")
    found = stage_gemm(pinned(parameters), 4096, 4096, 4096, 1, "bf16", tile=(128, 128, 64), cache="cold")
    got = {name: float(value[0]) for name, value in (found.terms | found.details).items()}
    pairs = {"compute": "compute_s", "tail": "tail_s", "writeback": "writeback_s", "sync": "sync_s",
             "launch": "empty_kernel_duration", "waves": "waves", "ctas": "tiles", "k_tiles": "k_steps",
             "hbm_traffic_byte": "hbm_byte", "l2_traffic_byte": "l2_byte", "bound_s": "bound_s"}
    for ours, written in pairs.items():
        assert got[ours] == pytest.approx((parameters | doc)[written], rel=1e-6), written
    assert got["memory_exposed"] == 0.0
    assert got["memory_s"] == pytest.approx(doc["l2_s"], rel=1e-6)
    assert found.time_s[0] == pytest.approx(doc["time_s"], rel=1e-6)
    rate = doc["flop"] / doc["time_s"]
    assert (round(rate / 1e12), round(100 * rate / parameters["peak_bf16_matrix"])) == (778, 79)  # in the prose
    assert "177 µs are 778 TFLOP/s, 79 % of the dense peak" in DOC
    assert round(100 * (doc["busy_s"] / doc["l2_s"] - 1)) == 2
    assert "a matrix unit 2 % faster would meet" in DOC
    assert "(174.4 µs against 170.2 µs over L2 and 54.6 µs over HBM)" in DOC


def test_sparse_product() -> None:
    parameters, doc = values("spmv")
    params = {"rows": doc["rows"], "cols": doc["rows"], "nnz": doc["nnz"], "row_max": 10}
    found = baseline("spmv_csr", params, "fp64", pinned(parameters), cache="warm")
    got = {name: float(value[0]) for name, value in found.details.items()}
    for name in ("memory_s", "chain_s", "hbm_byte", "cache_byte"):
        assert got[name] == pytest.approx(doc[name], rel=1e-6), name
    assert got["hit_rate"] == pytest.approx(doc["hit"], rel=1e-6)
    assert float(found.work.flop[0]) == doc["flop"]
    assert float(found.work.compulsory_byte[0]) == doc["compulsory"]
    assert float(found.work.reread_byte[0]) == doc["reread"]
    assert found.time_s[0] == pytest.approx(doc["time_s"], rel=1e-6)
    assert found.bound.seconds[0] == pytest.approx(doc["bound_s"], rel=1e-6)
    assert round(doc["time_s"] / doc["bound_s"], 1) == 2.8  # in the prose
    assert "at 2.8 times the physical bound" in DOC


def test_the_printed_tensor_memory_term_misses_the_worked_example() -> None:
    literal = load_platform("b200-as-published").with_overrides({"tmem_passes_per_step": 1})
    found = printed_gemm.stage_gemm(literal, 16384, 16384, 16384, 1, "fp16", tile=(128, 128, 32))
    assert round(100 * (found.time_s[0] / 4.17e-3 - 1)) == 16
    assert "comes out 16 % too long" in DOC


def test_the_workload_example_runs(tmp_path: Path) -> None:
    text = re.findall(r"^```yaml\n(.*?)^```", DOC, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "my-solver.yaml").write_text(text[0], encoding="utf-8")
    found = workload_baseline(load_workload(tmp_path / "my-solver.yaml"), load_platform("h200"))
    assert [segment.name for segment in found.segments] == ["sweep", "solve", "norm"]
    assert found.total_s > 0.1


def test_every_equation_is_in_the_tables_with_its_function() -> None:
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in DOC.splitlines() if line.startswith("| ")]
    numbered = {row[0]: (row[1], row[3]) for row in cells if re.fullmatch(r"\(\d+\)", row[0])}
    assert numbered == {f"({row.number})": (row.title, f"`{row.where}`") for row in EQUATIONS}
    beside = {(row[0], row[1], row[2]) for row in cells if len(row) == 3}
    assert {(row.number, row.title, f"`{row.where}`") for row in UNNUMBERED} <= beside


def test_every_choice_named_is_a_parameter_and_every_switch_is_named() -> None:
    part = DOC.partition("## As published, and as corrected")[2]
    named = set(re.findall(r"`([a-z0-9]+(?:_[a-z0-9]+)+)`", part))
    assert named <= set(PARAMETERS)
    switches = {name for name, spec in PARAMETERS.items() if spec.choices} - {"accumulate_in"}
    assert switches <= named
