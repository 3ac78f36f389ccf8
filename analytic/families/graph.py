"""Graph traversal and all-pairs paths."""

from __future__ import annotations

import numpy as np

from ..work import INDEX_BYTE, SECTOR_BYTE, Arguments, Family, Param, Work, make_work
from .sparse import DEGREES, fill_degrees


def _bfs(a: Arguments, byte: float) -> Work:
    nodes, edges, levels = a["nodes"], a["edges"], a["levels"]
    # row offsets and adjacency once, the level of every node written once; each edge looks a node's level up (a sector)
    compulsory = 2.0 * nodes * INDEX_BYTE + edges * INDEX_BYTE
    return make_work(
        edges, compulsory, nodes * INDEX_BYTE, threads=np.maximum(nodes / levels, 1.0), launches=levels,
        working_set_byte=compulsory + nodes * INDEX_BYTE,
        reread_byte=np.maximum(edges * SECTOR_BYTE - nodes * INDEX_BYTE, 0.0), chain=4.0 * levels,
    )  # fmt: skip


def _floyd_warshall(a: Arguments, byte: float) -> Work:
    n = a["nodes"]
    plane = n * n * byte
    return make_work(
        2.0 * n**3, plane, 2.0 * plane, threads=n * n, working_set_byte=2.0 * plane, launches=n,
        reread_byte=np.maximum(1.5 * plane * (n - 1.0), 0.0), chain=2.0 * n,
    )  # fmt: skip


FAMILIES: tuple[Family, ...] = (
    Family("bfs", (Param("nodes"), Param("edges"), Param("levels"), *DEGREES,
                   Param("frontier", "list", required=False)),
           _bfs, "irregular", meaning="breadth-first search; edges are directed edges stored", precision="int32",
           derive=fill_degrees),
    Family("floydwarshall", (Param("nodes"),), _floyd_warshall, "balanced",
           meaning="all-pairs shortest paths, a launch a vertex", precision="int32"),
)  # fmt: skip
