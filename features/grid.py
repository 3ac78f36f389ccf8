"""Columns that several families share: a thread a cell of a grid. And what a function of columns is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.baseline import Baseline
from ..analytic.platform import Platform
from ..analytic.work import FloatArray
from .numbers import log2, padding_log2, tail

Arguments = Mapping[str, NDArray[Any]]
Columns = dict[str, FloatArray]
ColumnsOf = Callable[[Arguments, Baseline, float, Platform], Columns]


def grid_blocks(across: str, down: str, width: float, height: float, deep: str = "") -> ColumnsOf:
    """Columns of a kernel with a thread a cell in blocks of width × height: padding at the edges, last wave."""

    def columns(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
        x, y = np.asarray(a[across], dtype=np.float64), np.asarray(a[down], dtype=np.float64)
        z = np.asarray(a[deep], dtype=np.float64) if deep else 1.0
        blocks, slots = np.ceil(x / width) * np.ceil(y / height) * z, 8.0 * platform.value("compute_units")
        return {"pad_across": padding_log2(x, width), "pad_down": padding_log2(y, height),
                "log2_blocks": log2(blocks / slots), "tail_blocks": tail(blocks, slots),
                "log2_line": log2(x * byte), "log2_plane": log2(x * y * byte),
                "line_is_whole": (x * byte % 32.0 == 0) * 1.0}

    return columns
