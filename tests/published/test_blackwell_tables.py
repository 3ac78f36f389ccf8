"""arXiv 2512.02189 as data: printed precision, inner consistency, and that nothing impossible goes unflagged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kernelcast.analytic.platform import load_platform
from kernelcast.analytic.stage_io import engine_input_rate

TABLES: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("arxiv_2512_02189.yaml").read_text(encoding="utf-8")
)
PEAK_UNIT = {"fp32": "vector"}


def half_digit(value: float, digits: int) -> float:
    """Half a unit in the last printed decimal."""
    return 0.5 * 10.0**-digits * (1 + 1e-9)


@pytest.mark.parametrize("row", TABLES["tensor_throughput"], ids=lambda row: row["precision"])
@pytest.mark.parametrize("name", ["b200", "h200"])
def test_a_rate_above_the_dense_peak_is_flagged(row: dict[str, Any], name: str) -> None:
    if row[name] is None:
        return
    precision = row["precision"]
    peak = load_platform(name).peak_flop_per_s(precision, PEAK_UNIT.get(precision, "matrix"))
    assert (row[name] > peak) == (name in row.get("implausible", {}))


def test_the_as_published_sets_hold_the_printed_rates_and_flag_them() -> None:
    for name in ("b200", "h200"):
        platform = load_platform(f"{name}-as-published")
        flagged = {flag.key for flag in platform.flags}
        for row in TABLES["tensor_throughput"]:
            key = f"sustained_{row['precision']}_matrix"
            if row[name] is None or platform.get(key) is None:
                continue
            assert platform.value(key) == pytest.approx(row[name])
            if name in row.get("implausible", {}):
                assert key in flagged


@pytest.mark.parametrize("row", TABLES["tensor_throughput"], ids=lambda row: row["precision"])
def test_printed_speedups_follow_from_the_printed_rates(row: dict[str, Any]) -> None:
    if row["speedup"] is not None:
        assert row["b200"] / row["h200"] == pytest.approx(row["speedup"], abs=half_digit(1, 2))


def test_accumulation_rates_are_throughput_rates_divided() -> None:
    """Table VI is Table VII over exactly 2 or 4: not a measurement of its own."""
    rates = {row["precision"]: row["b200"] for row in TABLES["tensor_throughput"]}
    for row in TABLES["accumulation"]:
        assert row["rate"] == pytest.approx(rates[row["operands"]] / row["divides_table_vii_by"], rel=2e-4)


def test_hopper_instruction_latency_is_its_throughput() -> None:
    """m64nNk16 at 2048 FMA a cycle and SM (989.4 TFLOP/s over 132 SMs at 1.83 GHz); Blackwell's 11 cycles are issue."""
    for row in TABLES["instruction_latency"]:
        cycles = row["m"] * row["n"] * row["k"] / 2048.0
        if row["instruction"] == "wgmma":
            assert row["cycle"] == cycles
        elif row["m"] == 256:
            assert row["cycle"] < cycles / 2 / 2  # two SMs of twice the rate: at least 128 cycles of work


def test_the_engine_is_bound_by_its_output() -> None:
    """Input rate = output rate over the compression ratio, to the printed digits."""
    for row in TABLES["decompression_pattern"]:
        printed = half_digit(1, 2) * 1e9
        ours = engine_input_rate(row["output"], row["ratio"])
        assert ours == pytest.approx(row["input"], abs=printed + 0.008 * row["input"])
    outputs = [row["output"] for row in TABLES["decompression_pattern"]]
    assert max(outputs) / min(outputs) < 1.4  # while the ratio goes from 1 to 245


def test_all_formats_decompress_the_same_volume() -> None:
    volumes = [row["output"] * row["time_s"] for row in TABLES["decompression_format"]]
    assert max(volumes) / min(volumes) < 1.005  # about 105 MB
    assert {row["format"] for row in TABLES["decompression_format"] if "implausible" in row} == {"bitcomp", "ans"}


def test_batch_latencies_are_of_2048_token_prompts() -> None:
    """Tokens a second times seconds over the batch is 2048: prompt processing, no decode rate."""
    for row in TABLES["latency_by_batch"]:
        assert row["b200_token_per_s"] * row["b200_s"] / row["batch"] == pytest.approx(2048, rel=2e-3)
        assert row["h200_s"] / row["b200_s"] == pytest.approx(row["ratio"], abs=0.01)


def test_llm_and_workload_speedups() -> None:
    for row in (*TABLES["llm_token_per_s"], *TABLES["workloads"]):
        if row["speedup"] is None:
            continue
        fast = row["b200"] / row["h200"]
        ratio = 1.0 / fast if row.get("unit") == "us" else fast
        assert ratio == pytest.approx(row["speedup"], abs=0.011)
