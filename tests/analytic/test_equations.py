"""The table of equations: each at its number, with ranges, moving the way it must, the same on arrays and scalars."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from kernelcast.analytic.baseline import baseline
from kernelcast.analytic.equations import EQUATIONS, UNNUMBERED, Equation, equation, out_of_range
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.explain import explain_baseline
from kernelcast.analytic.platform import load_platform, platform_ids
from kernelcast.analytic.published import stage_io

ALL = (*EQUATIONS, *UNNUMBERED)
FRACTIONS = {"alpha", "overlap", "utilisation", "efficiency", "hit_rate", "join", "h_l1", "h_l2", "h_llc"}
WORDS = {"strategy", "order", "count_sync_twice", "persistent", "simds", "granule"}
COUNTS = {"participants", "k_tiles", "waves", "n_wavefronts", "n_loads", "n_cu", "n_cta", "n_mfma", "units", "ctas",
          "ctas_per_unit", "count", "syncs", "kernels", "n_barriers", "n_active", "w_eff", "conflict_degree",
          "waves_per_workgroup", "tile_m", "tile_n", "tile_k"}
FIXED = {"max_workgroups": 32.0, "max_waves_per_cu": 32.0, "vgprs_per_simd": 512.0, "mwp": 0.0, "cwp": 0.0}
ROWS = 400


def sample(row: Equation, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random arguments: times of a nanosecond to a millisecond, rates, bytes, counts, fractions; some of them 0."""
    drawn: dict[str, np.ndarray] = {}
    for name in row.arguments:
        if name in WORDS:
            continue
        if name in FRACTIONS:
            least = 0.01 if name in ("utilisation", "efficiency") else 0.0  # these divide
            drawn[name] = np.maximum(rng.uniform(0.0, 1.0, ROWS), least)
        elif name in FIXED:
            drawn[name] = np.full(ROWS, FIXED[name])
        elif name in COUNTS:
            drawn[name] = np.floor(np.exp(rng.uniform(0.0, 8.0, ROWS)))
        elif name == "vgpr_per_lane":
            drawn[name] = rng.integers(1, 513, ROWS).astype(float)
        elif name.endswith("_per_s"):
            drawn[name] = np.exp(rng.uniform(np.log(1e9), np.log(1e15), ROWS))
        elif name.endswith("_s"):
            drawn[name] = np.exp(rng.uniform(np.log(1e-9), np.log(1e-3), ROWS)) * (rng.uniform(size=ROWS) > 0.1)
        else:
            drawn[name] = np.exp(rng.uniform(0.0, np.log(1e9), ROWS))
    if "peak_byte_per_s" in drawn and "sustained_byte_per_s" in drawn:
        drawn["peak_byte_per_s"] = drawn["sustained_byte_per_s"] * rng.uniform(1.0, 2.0, ROWS)
    if {"cache_byte_per_s", "memory_byte_per_s"} <= set(drawn):  # a cache is no slower than what is behind it
        drawn["cache_byte_per_s"] = drawn["memory_byte_per_s"] * np.exp(rng.uniform(0.0, 3.0, ROWS))
    if "beta" in drawn:  # the exponents of Table III, no fractions
        drawn |= {name: np.exp(rng.uniform(-2.0, 2.0, ROWS)) for name in ("alpha", "beta")}
    if "knee_end_byte" in drawn:
        drawn["knee_end_byte"] = 4.0 * drawn["knee_start_byte"]
    if "waves_per_workgroup" in drawn:
        drawn["waves_per_workgroup"] = rng.integers(1, 17, ROWS).astype(float)
    return drawn


def more(name: str, values: np.ndarray, share: float) -> np.ndarray:
    """A larger value of the argument; fractions move towards 1, counts to a whole number."""
    if name in FRACTIONS:
        return values + (1.0 - values) * share
    grown = values * (1.0 + 3.0 * share)
    return np.ceil(grown) if name in COUNTS or name == "vgpr_per_lane" else grown


def name_of(row: Equation) -> str:
    return f"{row.number}-{row.function.__name__}"


def test_the_sixteen_equations_are_there_in_order() -> None:
    assert [row.number for row in EQUATIONS] == [str(number) for number in range(1, 17)]
    assert equation(12).function.__name__ == "step_time_printed"
    assert len({row.where for row in ALL}) == len(ALL)


@pytest.mark.parametrize("row", EQUATIONS, ids=name_of)
def test_an_equation_cites_its_number_and_has_ranges_of_its_own_arguments(row: Equation) -> None:
    text = inspect.getdoc(row.function) or ""
    cited = " ".join(text.split())
    assert f"Eq. ({row.number})" in cited and "arXiv 2605.04178" in cited
    assert "[" in text and not row.function.__name__.startswith("_")
    assert row.ranges, "no validity range"
    assert all(item.low < item.high and item.unit for item in row.ranges)


@pytest.mark.parametrize("row", ALL, ids=name_of)
def test_names_in_the_table_are_arguments(row: Equation) -> None:
    assert {*row.rises, *row.falls, *(item.name for item in row.ranges)} <= set(row.arguments)
    assert not set(row.rises) & set(row.falls)
    assert inspect.getdoc(row.function)


@pytest.mark.parametrize("row", ALL, ids=name_of)
def test_results_are_finite_and_never_negative(row: Equation) -> None:
    found = row.function(**sample(row, np.random.default_rng(1)))
    assert found.shape == (ROWS,)
    assert np.isfinite(found).all() and (found >= 0.0).all()


@pytest.mark.parametrize("row", ALL, ids=name_of)
def test_the_result_moves_the_way_the_table_says(row: Equation) -> None:
    drawn = sample(row, np.random.default_rng(2))
    base = row.function(**drawn)
    for name in (*row.rises, *row.falls):
        sign = 1.0 if name in row.rises else -1.0
        for share in (1e-6, 0.1, 0.9):
            grown = dict(drawn)
            grown[name] = more(name, drawn[name], share)
            if name == "vgpr_per_lane":
                grown[name] = np.minimum(grown[name], 512.0)
            if name == "knee_start_byte":
                grown[name] = np.minimum(grown[name], 0.99 * drawn["knee_end_byte"])
                grown[name] = np.maximum(grown[name], drawn[name])
            moved = row.function(**grown)
            assert (sign * (moved - base) >= -1e-12 * np.abs(base)).all(), (name, share)


@pytest.mark.parametrize("row", ALL, ids=name_of)
def test_arrays_and_scalars_give_the_same(row: Equation) -> None:
    drawn = sample(row, np.random.default_rng(3))
    together = row.function(**drawn)
    for i in range(0, ROWS, 25):
        alone = row.function(**{name: float(values[i]) for name, values in drawn.items()})
        assert float(alone) == together[i]
    # columns against rows broadcast
    first = next(iter(drawn))
    grid = row.function(**{name: values[:5, None] if name == first else values[:5] for name, values in drawn.items()})
    assert grid.shape == ((5, 5) if len(drawn) > 1 else (5, 1))
    assert np.diagonal(grid).tolist() == together[:5].tolist() or len(drawn) == 1


@pytest.mark.parametrize("row", ALL, ids=name_of)
def test_what_is_not_a_number_is_refused_by_name(row: Equation) -> None:
    drawn = sample(row, np.random.default_rng(4))
    for name in row.arguments:
        if name not in drawn:
            continue
        bad = {**drawn, name: np.where(np.arange(ROWS) == 7, np.nan, drawn[name])}
        with pytest.raises(InputError, match="position 7"):
            row.function(**bad)


@pytest.mark.parametrize("row", [row for row in ALL if FRACTIONS & set(row.arguments)], ids=name_of)
@pytest.mark.parametrize("value", [-0.01, 1.01])
def test_fractions_outside_0_to_1_are_refused_by_name(row: Equation, value: float) -> None:
    drawn = sample(row, np.random.default_rng(5))
    for name in sorted(FRACTIONS & set(row.arguments) - ({"alpha"} if "beta" in row.arguments else set())):
        with pytest.raises(InputError, match=rf"{name} is {value}"):
            row.function(**{**drawn, name: np.full(ROWS, value)})


def test_leaving_a_range_is_reported_by_argument() -> None:
    left = equation(7).outside(alpha=[0.5, 0.85, 0.95, 1.0])
    assert left["alpha"].tolist() == [True, False, False, True]
    assert equation(13).outside(t_coherence_s=[50e-9, 150e-9])["t_coherence_s"].tolist() == [True, False]
    with pytest.raises(InputError, match="no range named t_tma_s"):
        equation(7).outside(t_tma_s=1.0)


def test_no_shipped_parameter_leaves_the_range_of_its_equation() -> None:
    assert {name: out_of_range(load_platform(name)) for name in platform_ids()} == {name: [] for name in platform_ids()}


def test_a_parameter_outside_its_range_is_said_with_the_explanation() -> None:
    platform = load_platform("h200").with_overrides({"pipeline_overlap_alpha": 0.5})
    assert out_of_range(platform) == [
        "pipeline_overlap_alpha = 0.5 is outside 0.85 to 0.95, where Eq. (7) was published or checked"
    ]
    slow = load_platform("mi300a").with_overrides({"coherence_latency": "1 us"})
    assert out_of_range(slow) == [
        "coherence_latency = 1e-06 is outside 1e-07 to 2e-07 s, where Eq. (13) was published or checked"
    ]
    size = {"m": 4096, "n": 4096, "k": 4096}
    said = explain_baseline(baseline("gemm", size, "bf16", platform), platform, "bf16")
    assert any("alpha = 0.5 is outside" in words for words in said.equations)
    plain = load_platform("h200")
    said = explain_baseline(baseline("gemm", size, "bf16", plain), plain, "bf16")
    assert not any("outside" in words for words in said.equations)
    # a copy looks no alpha up
    said = explain_baseline(baseline("vector_copy", {"n": 1e8}, "fp32", platform), platform, "fp32")
    assert not any("outside" in words for words in said.equations)


def test_tma_bandwidth_runs_from_hbm_to_l2() -> None:
    assert stage_io.tma_bandwidth([0.0, 1.0], 8e10, 3e10) == pytest.approx([3e10, 8e10])
    assert stage_io.tma_bandwidth(0.5, 8e10, 3e10) == pytest.approx(1 / (0.5 / 8e10 + 0.5 / 3e10))
