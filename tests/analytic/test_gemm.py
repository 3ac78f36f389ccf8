"""The tile paths: acceptance figures, and the properties every platform must keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.equation_sets import matrix_time
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.gemm import stage_gemm, wavefront_gemm
from kernelcast.analytic.gemm_common import CHUNK_ROWS, GemmTime
from kernelcast.analytic.gemm_tiles import default_tile_k
from kernelcast.analytic.platform import Platform, load_platform, platform_ids
from kernelcast.analytic.published import gemm as printed
from kernelcast.analytic.published.stage import kernel_time
from kernelcast.analytic.work import element_byte

DEFAULT_SETS = [name for name in platform_ids() if not load_platform(name).as_published]
PUBLISHED_SETS = [name for name in platform_ids() if load_platform(name).as_published]
PRINTED = {"nvidia": printed.stage_gemm, "amd": printed.wavefront_gemm}
size = st.integers(1, 20_000)
name = st.sampled_from(DEFAULT_SETS)
state = st.sampled_from(["cold", "warm"])


def gemm(platform: Platform, *args: Any, **kwargs: Any) -> GemmTime:
    return matrix_time(platform)(platform, *args, **kwargs)


def compulsory_byte(m: float, n: float, k: float, precision: str, out: float) -> float:
    return (m * k + k * n) * element_byte(precision) + m * n * out


def test_h200_bf16_8192_cubed() -> None:
    result = stage_gemm(load_platform("h200"), 8192, 8192, 8192, 1, "bf16")
    assert 1.3e-3 <= result.time_s[0] <= 1.6e-3  # measured about 1.40 ms


def test_b200_fp16_16384_cubed_at_sustained_rates() -> None:
    result = stage_gemm(load_platform("b200"), 16384, 16384, 16384, 1, "fp16")
    assert 4.9e-3 <= result.time_s[0] <= 6.3e-3  # independent measurements: 5.7 to 6.1 ms


def test_worked_example_as_published() -> None:
    platform = load_platform("b200-as-published")
    result = gemm(platform, 16384, 16384, 16384, 1, "fp16", tile=(128, 128, 32))
    assert result.details["waves"][0] == 94
    assert result.details["k_tiles"][0] == 512
    assert result.time_s[0] == pytest.approx(4.17e-3, rel=0.05)
    # the accumulator moved every K-step, as Eq. (2) prints it, misses the published figure by more than 10 %
    every_step = platform.with_overrides({"tmem_passes_per_step": 1})
    literal = gemm(every_step, 16384, 16384, 16384, 1, "fp16", tile=(128, 128, 32))
    assert literal.time_s[0] > 1.1 * 4.17e-3
    # and the default parameters do not reproduce a figure that the hardware does not reach
    ours = stage_gemm(load_platform("b200"), 16384, 16384, 16384, 1, "fp16", tile=(128, 128, 64))
    assert ours.time_s[0] > 4.9e-3


def test_worked_example_is_the_printed_kernel_time_with_waves() -> None:
    result = gemm(load_platform("b200-as-published"), 16384, 16384, 16384, 1, "fp16", tile=(128, 128, 32))
    terms, details = result.terms, result.details
    whole = kernel_time(
        terms["launch"], 512, details["t_step_s"], terms["sync"], terms["writeback"], waves=details["waves"]
    )
    assert result.time_s == pytest.approx(whole, rel=1e-12)


def test_mi250x_dgemm_16384() -> None:
    """Printed: 0.283 s predicted and measured; our sustained rate of one die stems from that run."""
    result = wavefront_gemm(load_platform("mi250x-gcd"), 16384, 16384, 16384, 1, "fp64")
    assert result.time_s[0] == pytest.approx(0.283, rel=0.02)


@pytest.mark.parametrize("platform_id", platform_ids())
def test_terms_add_up_and_stay_above_the_bound(platform_id: str) -> None:
    platform = load_platform(platform_id)
    m, n, k = (np.array(x) for x in ([1, 64, 300, 4096, 8192], [4096, 64, 7000, 4096, 8192], [4096, 64, 129, 4096, 1]))
    for precision in platform.precisions("matrix"):
        result = gemm(platform, m, n, k, 1, precision)
        total = np.zeros(5)
        for term in result.terms.values():
            assert (term >= 0.0).all()
            total = total + term
        assert (total == result.time_s).all()
        assert np.isfinite(result.time_s).all()
        out = {"fp8": 2.0, "fp6": 2.0, "fp4": 2.0, "int8": 4.0}.get(precision, element_byte(precision))
        bound = np.maximum(
            2.0 * m * n * k / platform.peak_flop_per_s(precision),
            compulsory_byte(m, n, k, precision, out) / platform.value("hbm_peak_bw"),
        )
        assert (result.time_s >= bound).all()


@settings(max_examples=50, deadline=None)
@given(name, st.integers(0, 9), size, size, size, st.integers(1, 64), st.sampled_from([1, 7, 128, 4096]), state)
def test_time_never_falls_when_a_size_grows(
    platform_id: str, which: int, m: int, n: int, k: int, batch: int, more: int, cache: str
) -> None:
    platform = load_platform(platform_id)
    precisions = platform.precisions("matrix")
    precision = precisions[which % len(precisions)]
    base = gemm(platform, m, n, k, batch, precision, cache=cache).time_s[0]
    for grown in ((m + more, n, k, batch), (m, n + more, k, batch), (m, n, k + more, batch), (m, n, k, batch + more)):
        assert gemm(platform, *grown, precision, cache=cache).time_s[0] >= base * (1 - 1e-12)


@pytest.mark.parametrize("platform_id", ["h200", "b200", "a100-sxm", "mi300x", "mi250x-gcd"])
@pytest.mark.parametrize("cache", ["cold", "warm"])
def test_a_dense_ladder_is_non_decreasing(platform_id: str, cache: str) -> None:
    platform = load_platform(platform_id)
    ladder = np.arange(1, 6001)
    for sizes in ((ladder, 1000, 1000), (1000, ladder, 1000), (1000, 1000, ladder), (ladder, ladder, ladder)):
        time = gemm(platform, *sizes, 1, "bf16", cache=cache).time_s
        assert (np.diff(time) >= -1e-12 * time[:-1]).all()


RATES = ("sustained_hbm_bw", "l2_bw", "sustained_bf16_matrix", "pipeline_overlap_alpha", "hbm_peak_bw")


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(["h200", "b200", "mi300x", "mi250x-gcd"]), st.sampled_from(RATES), size, size, size, state)
def test_a_faster_part_is_never_slower(platform_id: str, rate: str, m: int, n: int, k: int, cache: str) -> None:
    platform = load_platform(platform_id)
    value = platform.get(rate)
    if value is None:
        return
    faster = platform.with_overrides({rate: min(value * 1.05, 1.0) if rate.endswith("alpha") else value * 1.05})
    slow = gemm(platform, m, n, k, 1, "bf16", cache=cache).time_s[0]
    fast = gemm(faster, m, n, k, 1, "bf16", cache=cache).time_s[0]
    assert fast <= slow * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(name, st.lists(st.tuples(size, size, size), min_size=2, max_size=6), state)
def test_vectorised_equals_scalar(platform_id: str, shapes: list[tuple[int, int, int]], cache: str) -> None:
    platform = load_platform(platform_id)
    m, n, k = np.array(shapes).T
    together = gemm(platform, m, n, k, 1, "fp16", cache=cache)
    alone = [gemm(platform, *shape, 1, "fp16", cache=cache).time_s[0] for shape in shapes]
    assert together.time_s.tolist() == alone


def test_more_rows_than_a_chunk() -> None:
    platform = load_platform("h200")
    rows = CHUNK_ROWS + 5
    result = stage_gemm(platform, np.full(rows, 64), 64, 64, 1, "bf16")
    assert result.time_s.shape == (rows,)
    assert all(array.shape == (rows,) for array in (*result.terms.values(), *result.details.values(), result.guard))
    assert len(set(result.time_s.tolist())) == 1


def test_adaptive_choice_is_the_best_of_the_candidates() -> None:
    platform = load_platform("h200")
    best = stage_gemm(platform, 4096, 4096, 4096, 1, "bf16").time_s[0]
    for tile in ((256, 128, 64), (128, 128, 64), (64, 64, 64), (64, 32, 64, 4)):
        assert stage_gemm(platform, 4096, 4096, 4096, 1, "bf16", tile=tile).time_s[0] >= best


def test_split_k_helps_a_small_grid_with_a_long_k() -> None:
    platform = load_platform("h200")
    result = stage_gemm(platform, 64, 64, 65536, 1, "bf16")
    assert result.details["split"][0] > 1
    whole = stage_gemm(platform, 64, 64, 65536, 1, "bf16", tile=(64, 64, 64, 1))
    assert result.time_s[0] < whole.time_s[0] / 2


def test_warm_operands_that_fit_the_cache_cost_less() -> None:
    platform = load_platform("h200")
    cold = stage_gemm(platform, 1, 4096, 2048, 1, "bf16", cache="cold").time_s[0]
    warm = stage_gemm(platform, 1, 4096, 2048, 1, "bf16", cache="warm").time_s[0]
    assert warm < cold
    big = [stage_gemm(platform, 1, 16384, 16384, 1, "bf16", cache=c).time_s[0] for c in ("cold", "warm")]
    assert big[0] == big[1]  # 512 MB do not fit


def test_guard_acts_where_a_rate_is_above_the_dense_peak() -> None:
    platform = load_platform("h200-as-published")  # prints 1513.5 TFLOP/s of a 989.4 TFLOP/s part
    result = stage_gemm(platform, 8192, 8192, 8192, 1, "bf16")
    peak = platform.peak_flop_per_s("bf16")
    assert result.guard.tolist() == [True]
    assert result.time_s[0] >= 2 * 8192**3 / peak
    assert result.terms["bound"][0] > 0.0
    assert not stage_gemm(load_platform("h200"), 8192, 8192, 8192, 1, "bf16").guard.any()


def test_vector_units_take_over_without_a_matrix_mode() -> None:
    platform = load_platform("h200")
    fallen_back = stage_gemm(platform, 2048, 2048, 2048, 1, "fp32")
    asked = stage_gemm(platform, 2048, 2048, 2048, 1, "fp32", unit="vector")
    assert fallen_back.time_s.tolist() == asked.time_s.tolist()
    assert asked.time_s[0] >= 2 * 2048**3 / platform.peak_flop_per_s("fp32", "vector")


def test_details_have_the_same_names_on_every_path() -> None:
    common = {
        "ctas", "waves", "wave_efficiency", "tile_m", "tile_n", "tile_k", "split", "k_tiles", "compute_s", "memory_s",
        "l2_traffic_byte", "llc_traffic_byte", "hbm_traffic_byte", "padded_flop", "bound_s",
    }
    for platform_id in platform_ids():
        result = gemm(load_platform(platform_id), 1000, 1000, 1000, 1, "fp16")
        assert common <= set(result.details)
        assert list(result.terms) == ["launch", "compute", "tail", "memory_exposed", "writeback", "sync", "bound"]
        assert result.details["padded_flop"][0] >= 2e9


@pytest.mark.parametrize("platform_id", PUBLISHED_SETS)
def test_published_sets_follow_the_printed_equations(platform_id: str) -> None:
    platform = load_platform(platform_id)
    default = gemm(platform, 4096, 4096, 4096, 1, "fp16")
    asked = PRINTED[platform.vendor](platform, 4096, 4096, 4096, 1, "fp16")
    assert default.time_s.tolist() == asked.time_s.tolist()
    assert asked.details["split"][0] == 1


def test_k_depth_of_a_step() -> None:
    depths = {precision: default_tile_k(precision) for precision in ("fp64", "fp32", "bf16", "fp8", "fp6", "fp4")}
    assert depths == {"fp64": 16, "fp32": 32, "bf16": 64, "fp8": 128, "fp6": 128, "fp4": 256}


@pytest.mark.parametrize(
    ("platform_id", "tile", "message"),
    [
        ("b200", (512, 256, 64), "tensor memory|shared memory"),
        ("b200", (256, 512, 16), "tensor memory"),
        ("h200", (256, 256, 64), "registers"),
        ("h200", (128, 128, 1024), "shared memory"),
        ("mi300x", (256, 256, 128), "VGPRs and LDS"),
        ("mi300x", (512, 512, 16), "VGPRs and LDS"),
        ("h200", (128, 128), "give tile_m, tile_n, tile_k"),
        ("h200", (0, 128, 64), "give tile_m, tile_n, tile_k"),
    ],
)
def test_a_tile_that_does_not_fit_is_an_error(platform_id: str, tile: tuple[int, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        gemm(load_platform(platform_id), 4096, 4096, 4096, 1, "bf16", tile=tile)


def test_bad_arguments_are_named() -> None:
    platform = load_platform("h200")
    with pytest.raises(InputError, match="m is 0"):
        stage_gemm(platform, 0, 1, 1, 1, "bf16")
    with pytest.raises(InputError, match="k is nan"):
        stage_gemm(platform, 1, 1, np.nan, 1, "bf16")
    with pytest.raises(InputError, match="cache 'hot'"):
        stage_gemm(platform, 1, 1, 1, 1, "bf16", cache="hot")
    with pytest.raises(InputError, match="unit 'tensor'"):
        stage_gemm(platform, 1, 1, 1, 1, "bf16", unit="tensor")
    with pytest.raises(InputError, match="fp4"):
        stage_gemm(platform, 1, 1, 1, 1, "fp4")
