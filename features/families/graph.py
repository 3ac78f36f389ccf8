"""Graphs: how uneven their degrees are, how much work a level has."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..grid import Arguments, Columns
from ..numbers import log2


def degrees(a: Arguments, *_: Any) -> Columns:
    """How uneven the degrees of the nodes are."""
    return {"max_over_avg_degree": log2(a["max_degree"] / a["avg_degree"]),
            "std_over_avg_degree": np.asarray(a["std_degree"] / a["avg_degree"])}


def frontier(a: Arguments, *_: Any) -> Columns:
    """Degrees, and the nodes and edges of a level."""
    levels = np.asarray(a["levels"], dtype=np.float64)
    return degrees(a) | {
        "log2_nodes_per_level": log2(a["nodes"] / levels), "log2_edges_per_level": log2(a["edges"] / levels),
    }


COLUMNS = {"bfs": frontier, "pagerank": degrees}
