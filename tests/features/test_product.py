"""How a product is cut into tiles: each expected value shows its count of tiles, steps and waves."""

import json

import numpy as np
import pandas as pd
import pytest
from kernelcast.features.describe import describe


def _columns(m: int, n: int, k: int, precision: str = "bf16", batch: int = 1) -> dict[str, float]:
    frame = pd.DataFrame({"platform": ["h200"], "kernel": ["gemm"], "precision": [precision],
                          "params": [json.dumps({"m": m, "n": n, "k": k, "batch": batch})]})
    rows = describe(frame, strict=True).groups[0].rows
    return dict(zip(rows.names, rows.values[0], strict=True))


def test_few_rows_take_the_narrowest_tile_that_holds_them() -> None:
    found = _columns(20, 4096, 1024)  # 20 rows: a tile of 32
    assert found["log2_narrow_per_unit"] == pytest.approx(np.log2(32 / 132))  # 4096 / 128 tiles on 132 units
    assert found["tail_narrow_64"] == pytest.approx(np.log2(132 / 64))  # 4096 / 64 tiles in one wave
    assert [found[f"m_upto_{rows}"] for rows in (16, 32, 64)] == [0.0, 1.0, 1.0]
    assert found["pad_m_16"] == pytest.approx(np.log2(32 / 20))


def test_idle_units_share_the_k_loop() -> None:
    found = _columns(20, 4096, 1024)
    assert found["log2_k_steps"] == pytest.approx(4.0)  # 1024 * 2 B / 128 B = 16 steps
    assert found["log2_steps_shared"] == pytest.approx(2.0)  # floor(132 / 32) = 4 units a tile
    assert _columns(4096, 4096, 1024)["log2_steps_shared"] == pytest.approx(4.0)  # no idle unit


@pytest.mark.parametrize(
    "precision, k, padded", [("bf16", 64, 64), ("bf16", 65, 128), ("fp8", 65, 128), ("fp8", 130, 256)]
)
def test_k_is_padded_to_whole_steps(precision: str, k: int, padded: int) -> None:
    assert _columns(128, 128, k, precision)["pad_k"] == pytest.approx(np.log2(padded / k))


def test_waves_count_the_tiles_of_a_batch_and_pairs_halve_the_units() -> None:
    found = _columns(512, 512, 512, batch=40)
    assert found["tail_64x256"] == pytest.approx(np.log2(5 / (640 / 132)))  # 8 * 2 * 40 tiles in 5 waves
    assert found["tail_256x256_pair"] == pytest.approx(np.log2(3 / (160 / 66)))  # 2 * 2 * 40 tiles on 66 pairs
