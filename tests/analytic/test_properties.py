"""What every family keeps on every platform: faster parts are never slower, no jumps between regimes, rows independent.

Size by size, and against the bound: `test_baseline`. Equation by equation: `test_equations`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernelcast.analytic.baseline import Baseline, baseline, memory_of
from kernelcast.analytic.equation_sets import equation_set
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.families import FAMILIES, family
from kernelcast.analytic.gemm_tiles import candidates
from kernelcast.analytic.gemm_traffic import gemm_traffic
from kernelcast.analytic.platform import Parameter, Platform, load_platform, platform_ids
from kernelcast.analytic.platform_schema import PARAMETERS

RATE_UNITS = ("B/s", "FLOP/s", "OP/s", "Hz")
TIME_UNITS = ("s", "cycle")
FASTER = {"pipeline_overlap_alpha", "mfma_utilisation", "two_sm_speedup", "l2_knee_end", "llc_knee_end"}
SLOWER = {f"class_scale_{name}" for name in ("memory", "compute", "balanced", "stencil", "irregular")}
PRECISIONS = ("fp64", "fp16", "fp32", "int32")
# Table III as printed jumps from no hits back to all: these sets are held to the knees instead. `test_switches` has the
# jump itself.
PRINTED_CDNA = [name for name in platform_ids() if name.startswith("mi") and load_platform(name).as_published]


class Read(dict[str, Parameter]):
    """Parameters that remember which of them were looked up."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters)
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> Parameter:
        self.names.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)


def draw(name: str, seed: int, n: int) -> dict[str, np.ndarray]:
    """n configurations of a family, sizes log-uniform from 1 to some 1e9 elements in all."""
    rng = np.random.default_rng(seed)
    required = [p.name for p in family(name).params if p.kind in ("size", "real") and p.required]
    top = 2.0 ** (30.0 / max(len(required), 1))
    raw = {size: np.ceil(np.exp(rng.uniform(0.0, np.log(top), n))) for size in required}
    if {"rows", "nnz"} <= set(raw):
        raw["nnz"] = np.maximum(raw["nnz"], raw["rows"])
    if "levels" in raw:
        raw["levels"] = np.minimum(raw["levels"], raw["nodes"])
    return raw


def precisions_of(name: str, platform: Platform) -> str:
    """The family's own precision, or the first of a few that the platform has."""
    for precision in (family(name).precision, *PRECISIONS):
        try:
            baseline(name, draw(name, 0, 1), precision, platform)
        except InputError:
            continue
        return precision
    raise AssertionError(f"no precision for {name}")


def held(platform_id: str) -> Platform:
    platform = load_platform(platform_id)
    return platform.with_overrides({"llc_hit_form": "knees"}) if platform_id in PRINTED_CDNA else platform


def direction(name: str) -> float:
    """-1 where a larger value may only shorten a time, 1 where it may only lengthen it, 0 where neither is promised."""
    unit = PARAMETERS[name].unit
    if unit in RATE_UNITS or name in FASTER or name.startswith("precision_efficiency"):
        return -1.0
    return 1.0 if unit in TIME_UNITS or name in SLOWER else 0.0


def above_its_peak(platform: Platform, name: str) -> bool:
    """A sustained rate that its file flags as above the peak: raised, it takes the peak and so the bound with it."""
    peak = platform.get("peak_" + name.removeprefix("sustained_")) if name.startswith("sustained_") else None
    return bool(peak) and (platform.get(name) or 0.0) > float(peak or 0.0)


@pytest.mark.parametrize("platform_id", platform_ids())
def test_time_never_rises_with_a_rate_nor_falls_with_a_latency(platform_id: str) -> None:
    """Every parameter that any family looked up, raised by a third; peaks take their sustained rates along."""
    platform = held(platform_id)
    judged: set[str] = set()
    for number, name in enumerate(sorted(FAMILIES)):
        raw, cache = draw(name, 11 + number, 12), ("warm", "cold")[number % 2]
        precision = precisions_of(name, platform)
        read = Read(platform.parameters)
        before = baseline(name, raw, precision, replace(platform, parameters=read), cache=cache).time_s
        for parameter in sorted(read.names):
            sign, value = direction(parameter), platform.get(parameter)
            if not sign or not value:
                continue
            raised = min(1.3 * value, PARAMETERS[parameter].maximum)
            changed = platform.with_overrides({parameter: raised})
            after = baseline(name, raw, precision, changed, cache=cache).time_s
            assert (sign * (after - before) >= -1e-12 * before).all(), (name, precision, cache, parameter)
            # nor does a time move by more than what moved it: no jump at the edge of a regime
            if PARAMETERS[parameter].unit in (*RATE_UNITS, *TIME_UNITS) and not above_its_peak(platform, parameter):
                ratio, factor = (after / before) ** sign, raised / value
                assert (ratio <= factor * (1.0 + 1e-9)).all(), (name, precision, cache, parameter)
            judged.add(parameter)
    assert {"sustained_hbm_bw", "hbm_peak_bw", "latency_hbm_time"} <= judged
    assert any(name.startswith("peak_") for name in judged)


@pytest.mark.parametrize("platform_id", [name for name in platform_ids() if load_platform(name).as_published])
def test_more_work_never_takes_less_time_on_the_published_sets(platform_id: str) -> None:
    """`test_baseline` holds the others to it, with sizes that depend on one another and more of each."""
    platform = held(platform_id)
    names = ("gemm", "bmm", "triad", "spmv_csr", "stencil_5pt", "transpose", "nbody", "reduction")
    for number, name in enumerate(names):
        raw = draw(name, 301 + number, 60)
        precision = precisions_of(name, platform)
        for cache in ("warm", "cold"):
            before = baseline(name, raw, precision, platform, cache=cache).time_s
            for size in raw:
                factors = (1.01, 1.3, 2.0, 16.0)
                four = {key: np.tile(values, len(factors)) for key, values in raw.items()}
                grown = {**four, size: np.ceil(np.outer(factors, raw[size]).ravel())}
                if "nnz" in raw:
                    grown["nnz"] = np.maximum(grown["nnz"], grown["rows"])
                after = baseline(name, grown, precision, platform, cache=cache).time_s
                assert (after >= np.tile(before, len(factors)) * (1 - 1e-9)).all(), (name, cache, size)


@pytest.mark.parametrize("platform_id", [name for name in platform_ids() if load_platform(name).vendor == "nvidia"])
def test_more_overlap_never_takes_longer(platform_id: str) -> None:
    platform = load_platform(platform_id)
    shape = {"m": [1, 300, 4096, 16384], "n": [4096, 7000, 4096, 512], "k": [4096, 129, 4096, 8192]}
    times = [
        baseline("gemm", shape, "fp16", platform.with_overrides({"pipeline_overlap_alpha": alpha})).time_s
        for alpha in np.linspace(0.0, 1.0, 11)
    ]
    assert (np.diff(times, axis=0) <= 0.0).all()
    assert (times[0] > times[-1]).any()


@pytest.mark.parametrize("platform_id", platform_ids())
def test_terms_are_not_negative_add_up_and_rows_do_not_know_each_other(platform_id: str) -> None:
    """As-published sets, too: what each is held to besides is the physical bound."""
    platform = load_platform(platform_id)
    for number, name in enumerate(sorted(FAMILIES)):
        raw, cache = draw(name, 101 + number, 6), ("cold", "warm", "unknown")[number % 3]
        precision = precisions_of(name, platform)
        together = baseline(name, raw, precision, platform, cache=cache)
        assert all((term >= 0.0).all() for term in together.terms.values()), name
        np.testing.assert_allclose(np.sum(list(together.terms.values()), axis=0), together.time_s, rtol=1e-12)
        assert (together.time_s >= together.bound.seconds).all(), name
        for i in (0, 3, 5):
            alone = baseline(name, {size: values[i] for size, values in raw.items()}, precision, platform, cache=cache)
            assert alone.time_s[0] == together.time_s[i], name
            assert {k: v[0] for k, v in alone.terms.items()} == {k: v[i] for k, v in together.terms.items()}, name


def counted(platform: Platform, byte: Any, flop: Any, cache: str = "warm") -> Baseline:
    return baseline("segment", {"bytes": byte, "flops": flop}, "fp32", platform, cache=cache)


@pytest.mark.parametrize("platform_id", platform_ids())
@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_no_jump_where_the_working_set_leaves_the_cache_or_another_side_binds(platform_id: str, cache: str) -> None:
    platform = held(platform_id)
    memory = memory_of(platform)
    by_chain = memory.latency_s * memory.hbm_byte_per_s  # bytes whose traffic is as long as one dependent access
    size = float(memory.knee_end_byte)
    balance = float(counted(platform, size, 1.0, cache).details["memory_s"][0]) * platform.sustained_flop_per_s(
        "fp32", "vector")
    edges = {"start of misses": (memory.knee_start_byte, 0.0), "end of hits": (size, 0.0),
             "latency to traffic": (max(by_chain, 1.0), 0.0), "traffic to arithmetic": (size, balance)}
    for edge, (byte, flop) in edges.items():
        step = np.array([1.0 - 1e-9, 1.0, 1.0 + 1e-9])
        for moved in ((byte * step, flop), (byte, flop * step)):
            time = counted(platform, *moved, cache).time_s
            assert np.abs(np.diff(time) / time[1]).max() < 1e-7, edge
    # and nowhere else: a part in 1e6 more work is never 1 % more time
    rng = np.random.default_rng(5)
    byte, flop = np.exp(rng.uniform(0.0, np.log(1e11), 3000)), np.exp(rng.uniform(0.0, np.log(1e14), 3000))
    before = counted(platform, byte, flop, cache).time_s
    for grown in ((byte * (1 + 1e-6), flop), (byte, flop * (1 + 1e-6))):
        after = counted(platform, *grown, cache).time_s
        assert (after >= before * (1 - 1e-12)).all() and (after <= before * (1 + 1e-4)).all()


@pytest.mark.parametrize("platform_id", platform_ids())
def test_traffic_of_a_product_has_no_jump_at_the_knees(platform_id: str) -> None:
    """Tiles and waves come in whole numbers, and the time with them; the traffic between does not jump at a cache."""
    platform = load_platform(platform_id)
    mach = equation_set(platform).machine(platform, "fp16", "matrix")
    tiles = candidates(platform, "fp16", "matrix", (128, 128, 64))
    one = np.ones(3)
    for knee in (mach.cache_start_byte, mach.cache_end_byte, mach.l2_start_byte, mach.l2_end_byte):
        # operands (m + n) k x 2 B at the knee, and the whole footprint there
        for k in (knee / (2.0 * 8000.0), (knee / 2.0 - 4000.0**2) / 8000.0):
            if k < 1.0:
                continue
            depth = k * np.array([1.0 - 1e-9, 1.0, 1.0 + 1e-9])
            for cache in ("cold", "warm"):
                found = gemm_traffic(mach, tiles, 4000.0 * one, 4000.0 * one, depth, one, 2.0, 2.0, cache)
                for byte in (found.hbm_byte, found.llc_byte, found.l2_byte):
                    assert np.abs(np.diff(byte[0])).max() <= 1e-6 * found.compulsory_byte[0].max()


def test_the_blend_of_eq_16_starts_from_where_it_is_switched_off() -> None:
    platform = load_platform("h200")
    times = [
        float(counted(platform.with_overrides({"working_set_scale": w0}), 1e9, 0.0).time_s[0])
        for w0 in (0.0, 1.0, 1e6, 1e8, 1e9, 1e12)
    ]
    assert times[0] == times[1] == times[2]  # exp(-1000) of the difference is nothing
    assert (np.diff(times) <= 0.0).all() and times[-1] < times[0]
    assert times[-1] >= 1e9 / platform.value("hbm_peak_bw")
