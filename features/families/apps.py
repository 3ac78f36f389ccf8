"""Application kernels: few blocks with long walks."""

from __future__ import annotations

import numpy as np

from ...analytic.baseline import Baseline
from ...analytic.platform import Platform
from ..grid import Arguments, Columns
from ..numbers import log2, padding_log2, tail


def weighted_sums(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """Sums over all inputs by a block of 16 outputs: few blocks, each with a long walk."""
    inputs, hidden = np.asarray(a["inputs"], dtype=np.float64), np.asarray(a["hidden"], dtype=np.float64)
    slots = platform.value("compute_units")
    blocks = np.ceil(hidden / 16.0)
    weights = inputs * hidden * byte
    return {"log2_walk": log2(np.ceil(blocks / (8.0 * slots)) * inputs), "log2_blocks": log2(blocks / slots),
            "tail_blocks": tail(blocks, slots), "log2_weights_over_cache": log2(weights / platform.value("l2_size")),
            "pad_hidden_16": padding_log2(hidden, 16.0), "pad_hidden_32": padding_log2(hidden, 32.0),
            "row_is_whole": (hidden * byte % 32.0 == 0) * 1.0}


COLUMNS = {"backprop": weighted_sums}
