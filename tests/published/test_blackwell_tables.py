"""arXiv 2512.02189 as data: printed precision, inner consistency, and that nothing impossible goes unflagged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kernelcast.analytic.platform import load_platform
from kernelcast.analytic.published.stage_io import engine_input_rate

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
    """Seven of the eight rows of Table VI are Table VII over exactly 1, 2 or 4: no measurement of its own. And the
    eighth, FP8 into FP32, is 0.7 % below FP8 into FP16: that accumulating in FP32 halves the rate does not follow."""
    rates = {row["precision"]: row["b200"] for row in TABLES["tensor_throughput"]}
    own = [row for row in TABLES["accumulation"] if row["divides_table_vii_by"] is None]
    assert len(TABLES["accumulation"]) == 8 and len(own) == 1
    for row in TABLES["accumulation"]:
        if row["divides_table_vii_by"] is not None:
            assert row["rate"] == pytest.approx(rates[row["operands"]] / row["divides_table_vii_by"], rel=2e-4)
    assert 1 - own[0]["rate"] / 1925.3e12 == pytest.approx(0.0065, abs=5e-5)


def test_latencies_of_the_precisions_span_what_the_text_says() -> None:
    cycles = [row["latency_cycle"] for row in TABLES["accumulation"]]
    assert (min(cycles), max(cycles)) == (11.2, 12.6)
    assert round(14.2 / 11.2, 2) == 1.27  # "FP4 to FP64: 1.27 times the latency", 11.2 to 14.2 cycles


def test_the_printed_shares_are_of_another_peak_than_the_datasheet() -> None:
    """96.5 % of FP16 at 1929.6 means a peak of 2,000 TFLOP/s, where the datasheet has 2,250; FP4 8,000 for 9,000."""
    implied = {row["precision"]: row["b200"] / row["peak_share"] * 100 for row in TABLES["tensor_throughput"]}
    assert implied["fp16"] == pytest.approx(2000e12, rel=1e-3)
    assert implied["fp4"] == pytest.approx(8000e12, rel=1e-3)
    assert load_platform("b200").peak_flop_per_s("fp16") == pytest.approx(2250e12, rel=0.02)


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
        assert row["output"] * row["time_s"] == pytest.approx(104.9e6, rel=2e-3)  # the same 105 MB in every row
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


def test_quantisation_of_the_language_models() -> None:
    rows = {(row["model"], row["precision"]): row for row in TABLES["llm_token_per_s"]}
    for (model, _), row in rows.items():
        if row["perplexity_change_percent"] is not None:
            change = 100 * (row["perplexity"] / rows[model, "fp16"]["perplexity"] - 1)
            assert change == pytest.approx(row["perplexity_change_percent"], abs=0.051)
    assert round(rows["mistral-7b", "fp4"]["b200"] / rows["mistral-7b", "fp16"]["b200"], 2) == 2.01


def test_parts_of_the_training_speedup_multiply_to_more_than_it() -> None:
    parts = TABLES["training_factors"]
    product = parts["compute_units"] * parts["cta_pairs"] * parts["tensor_memory"]
    assert product == pytest.approx(parts["printed_product"], abs=0.01)
    assert product / parts["measured"] == pytest.approx(1.13, abs=0.006)  # 13 % over


def test_machine_balance_and_the_memory_levels() -> None:
    for row in TABLES["balance"]:
        assert row["rate"] / 8.0e12 == pytest.approx(row["flop_per_byte"], abs=0.51)
    levels = {row["level"]: row for row in TABLES["memory"]}
    memory = levels["tensor memory"]
    assert 1 - memory["cycle"] / levels["hbm"]["cycle"] == pytest.approx(0.58)  # "58 % less than Hopper's 1000"
    assert memory["read"] / load_platform("b200").value("clock_boost") > 8000.0  # B a cycle, against a port of 128
    assert load_platform("b200").value("l2_size") > 1.3 * levels["l2"]["size"]
    triad = next(row for row in TABLES["workloads"] if row["name"] == "stream triad")
    assert triad["b200"] / 8.0 == pytest.approx(0.52, abs=0.005)  # "52 % of peak"
