"""How a matrix product is cut into tiles: what a library's choice of kernel turns on, whichever library it is."""

from __future__ import annotations

import numpy as np

from ..analytic.baseline import Baseline
from ..analytic.gemm_serial import SHAPES as SERIAL_SHAPES
from ..analytic.gemm_tiles import K_STEP_BYTE
from ..analytic.platform import Platform
from ..analytic.work import FloatArray
from .numbers import log2, padding_log2, tail

SKINNY = (1, 8, 16, 32, 64, 128, 256)
"""Rows up to which kernels for few rows are chosen: a vector product, then the tile heights matrix units offer."""
SHAPES = ((64, 256), (64, 128), (128, 64), (128, 192))
"""Tile shapes beside the square ones, one to a unit."""
PAIRED = ((256, 256), (256, 128))
"""Tile shapes that two units share."""
MOST_PER_UNIT = 8.0
"""Tiles a unit from where on their number no longer shows in waves."""


def cut_columns(base: Baseline, byte: float, platform: Platform) -> dict[str, FloatArray]:
    """Columns of shape (n,) of products `C[m,n] = A[m,k] B[k,n]`, all of them counts of tiles, steps and waves.

    Few rows: libraries take the narrowest tile that holds them (often with A and B swapped), which leaves units idle;
    those can share the K loop, so what is left of it for each is a column.
    """
    if base.work.gemm is None:
        return {}
    m, n, k, batch = base.work.gemm
    units = platform.value("compute_units")
    steps = np.ceil(k * byte / K_STEP_BYTE)
    narrow = np.clip(2.0 ** np.ceil(np.log2(np.maximum(m, 1.0))), 16.0, 256.0)
    tiles = {edge: np.ceil(n / edge) * np.ceil(m / narrow) * batch for edge in (64, 128)}
    sharing = np.maximum(np.floor(units / tiles[128]), 1.0)
    columns = {f"m_upto_{rows}": np.asarray(m <= rows, dtype=np.float64) for rows in SKINNY}
    columns |= {f"pad_m_{edge}": padding_log2(m, edge) for edge in (16, 32)}
    columns |= {f"tail_{tm}x{tn}": tail(np.ceil(m / tm) * np.ceil(n / tn) * batch, units) for tm, tn in SHAPES}
    columns |= {f"tail_{tm}x{tn}_pair": tail(np.ceil(m / tm) * np.ceil(n / tn) * batch, units / 2.0)
                for tm, tn in PAIRED}  # fmt: skip
    for tm, tn in SERIAL_SHAPES:
        columns[f"serial_{tm}x{tn}"] = log2(base.details[f"serial_{tm}x{tn}_s"] / base.time_s)
        per_unit = np.ceil(m / tm) * np.ceil(n / tn) * batch / units
        columns[f"per_unit_{tm}x{tn}"] = np.asarray(np.minimum(per_unit, MOST_PER_UNIT))
    return columns | {
        "tail_narrow_64": tail(tiles[64], units), "tail_narrow_128": tail(tiles[128], units),
        "log2_narrow_per_unit": log2(tiles[128] / units),
        "log2_k_steps": log2(steps), "pad_k": log2(steps * K_STEP_BYTE / (k * byte)),
        "log2_steps_shared": log2(steps / sharing), "log2_serial": log2(base.details["rounds_s"] / base.time_s),
    }  # fmt: skip
