"""Feature rows: alignment, padding, tails and factors against hand-made numbers; frames against single rows."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from kernelcast.analytic.factors import exponent_of, largest_prime, rough_part
from kernelcast.features.describe import describe
from kernelcast.features.families.dense import split_count, tile_costs
from kernelcast.features.numbers import alignment_log2, padding_log2, tail


def test_alignment_is_the_largest_power_of_two_that_divides_the_bytes() -> None:
    # 4096 * 2 B = 2^13, capped at 2^7; 4100 * 2 B = 8200 = 2^3 * 1025; 3 * 2 B = 2^1 * 3
    np.testing.assert_array_equal(alignment_log2(np.array([4096.0, 4100.0, 3.0]), 2.0), [7.0, 3.0, 1.0])


def test_padding_is_zero_where_the_tile_divides_and_one_where_half_is_padding() -> None:
    np.testing.assert_allclose(padding_log2(np.array([256.0, 64.0, 192.0]), 128.0), [0.0, 1.0, np.log2(256 / 192)])


def test_tail_compares_whole_waves_with_smooth_ones() -> None:
    # 132 units fill one wave of 132; 133 need two; one unit alone takes the time of 132, capped at 2^6
    np.testing.assert_allclose(tail(np.array([132.0, 133.0, 1.0]), 132.0), [0.0, np.log2(2 * 132 / 133), 6.0])


def test_factors_of_a_transform_length() -> None:
    n = np.array([1024.0, 3 * 5 * 7 * 16.0, 1031.0, 2 * 11.0])
    np.testing.assert_array_equal(rough_part(n), [1.0, 1.0, 1031.0, 11.0])
    np.testing.assert_array_equal(exponent_of(n, 2), [10.0, 4.0, 0.0, 1.0])
    np.testing.assert_array_equal(largest_prime(n), [2.0, 7.0, 1031.0, 11.0])


def run(kernel: str, precision: str = "fp32", cache: str = "warm", **params: object) -> dict[str, object]:
    return {"platform": "h200", "kernel": kernel, "precision": precision, "cache": cache, "params": json.dumps(params)}


def test_a_mixed_frame_is_described_as_its_rows_would_be_alone() -> None:
    rows = [
        run("gemm", "bf16", m=100, n=200, k=300),
        run("spmv_csr", "fp64", rows=1000, cols=1000, nnz=5000),
        run("gemm", "bf16", m=4096, n=4096, k=4096),
        run("bfs", "int32", "cold", nodes=1000, edges=8000, levels=6),
    ]
    whole = describe(pd.DataFrame(rows))
    for i, row in enumerate(rows):
        alone = describe(pd.DataFrame([row]))
        assert whole.baseline_s[i] == pytest.approx(alone.baseline_s[0], rel=1e-12)
        assert whole.naive_s[i] == pytest.approx(alone.naive_s[0], rel=1e-12)
    assert sorted(int(i) for group in whole.groups for i in group.index) == [0, 1, 2, 3]


def test_rows_that_cannot_be_described_are_refused_with_the_reason_and_the_others_kept() -> None:
    frame = pd.DataFrame([run("gemm", m=8, n=8, k=8), run("warp_drive", n=3), run("gemm", "fp4", m=8, n=8, k=8)])
    described = describe(frame)
    assert np.isfinite(described.baseline_s[0])
    assert set(described.refused) == {1, 2}
    assert "no counted bytes" in described.refused[1]
    assert "fp4" in described.refused[2]


def test_an_unknown_family_with_counted_work_is_a_segment() -> None:
    frame = pd.DataFrame([run("my_kernel", name="k")]).assign(flops=1e9, bytes=1e9)
    described = describe(frame)
    assert described.groups[0].family == "segment"
    # 1e9 B across HBM at no more than 4.8e12 B/s
    assert described.baseline_s[0] > 1e9 / 4.8e12


def test_the_parts_of_the_keys_fill_the_machine_without_needless_cuts() -> None:
    # 264 blocks fill 264 units: no cut. 1 block of 8 key blocks: 8 parts. 132 blocks on 264: two halves fill one wave
    found = split_count(np.array([264.0, 1.0, 132.0]), np.array([64.0, 8.0, 64.0]), 264.0)
    np.testing.assert_array_equal(found, [1.0, 8.0, 2.0])


def test_whole_waves_of_padded_tiles_cost_what_they_cover() -> None:
    # 132 tiles of 128 x 128 on 132 units: no waste; one tile more doubles the time. k of 512 may be cut in two
    m, n = np.array([128.0, 128.0]), np.array([132 * 128.0, 133 * 128.0])
    costs = tile_costs(m, n, np.full(2, 512.0), np.ones(2), 132.0)
    np.testing.assert_allclose(costs["cost_128x128"], [0.0, np.log2(2 * 132 / 133)])
    assert np.all(costs["cost_cut"] <= costs["cost_best"])
