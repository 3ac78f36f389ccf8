"""Graphs: traversal, PageRank, all-pairs paths."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..work import INDEX_BYTE, SECTOR_BYTE, Arguments, Contradiction, Family, Param, Work, make_work


def _bfs(a: Arguments, byte: float) -> Work:
    nodes, edges, levels = a["nodes"], a["edges"], a["levels"]
    # row offsets and adjacency once, the level of every node written once; each edge looks a node's level up (a sector)
    compulsory = 2.0 * nodes * INDEX_BYTE + edges * INDEX_BYTE
    return make_work(
        edges, compulsory, nodes * INDEX_BYTE, threads=np.maximum(nodes / levels, 1.0), launches=levels,
        working_set_byte=compulsory + nodes * INDEX_BYTE,
        reread_byte=np.maximum(edges * SECTOR_BYTE - nodes * INDEX_BYTE, 0.0), chain=4.0 * levels,
    )


def _pagerank(a: Arguments, byte: float) -> Work:
    nodes, edges, steps = a["nodes"], a["edges"], a["iterations"]
    one = edges * (INDEX_BYTE + SECTOR_BYTE / 2.0) + nodes * (INDEX_BYTE + 3.0 * byte)
    compulsory = edges * INDEX_BYTE + nodes * (INDEX_BYTE + 2.0 * byte)
    return make_work(
        (2.0 * edges + 3.0 * nodes) * steps, compulsory, nodes * byte, threads=nodes, launches=2.0 * steps,
        working_set_byte=compulsory, reread_byte=np.maximum(one * steps - compulsory - nodes * byte, 0.0),
        chain=2.0 * steps,
    )


def _floyd_warshall(a: Arguments, byte: float) -> Work:
    n = a["nodes"]
    plane = n * n * byte
    return make_work(
        2.0 * n**3, plane, 2.0 * plane, threads=n * n, working_set_byte=2.0 * plane, launches=n,
        reread_byte=np.maximum(1.5 * plane * (n - 1.0), 0.0), chain=2.0 * n,
    )


GRAPH_KINDS = ("uniform", "rmat", "small_world", "grid", "road", "geometric", "communities", "hubs")
DEGREES = (
    Param("avg_degree", "real", required=False, meaning="mean number of edges of a node", unit="edges",
          follows="edges / nodes"),
    Param("max_degree", "real", required=False, meaning="most edges of a node", unit="edges"),
    Param("std_degree", "real", required=False, meaning="standard deviation of the number of edges", unit="edges"),
    Param("structure", "text", required=False, meaning="what kind of graph it is", words=GRAPH_KINDS, open=True),
)
NODES = Param("nodes", meaning="nodes of the graph", unit="nodes")
EDGES = Param("edges", meaning="directed edges as stored", unit="edges")


def fill_degrees(a: dict[str, NDArray[Any]]) -> None:
    """The average degree follows from edges and nodes."""
    a["avg_degree"] = np.where(np.isnan(a["avg_degree"]), a["edges"] / a["nodes"], a["avg_degree"])


FAMILIES: tuple[Family, ...] = (
    Family("bfs", (NODES, EDGES, Param("levels", meaning="steps from the root to the furthest node", unit="levels"),
                   *DEGREES, Param("frontier", "list", required=False, meaning="nodes of each level, from the root on",
                                   unit="nodes")),
           _bfs, "irregular", meaning="breadth-first search; edges are directed edges stored", precision="int32",
           derive=fill_degrees,
           contradictions=(Contradiction("'levels' is more than nodes", lambda c: c["levels"] > c["nodes"]),),
           statistics=("max_degree", "std_degree", "structure"),
           asked_without=(("structure", "frontier"), ("structure", "frontier", "max_degree", "std_degree")),
           example={"nodes": 1_000_000, "edges": 16_000_000, "levels": 7, "max_degree": 40, "std_degree": 4.0,
                    "structure": "uniform"}),
    Family("pagerank", (NODES, EDGES, Param("iterations", required=False, default=1.0, meaning="steps of the iteration",
                                            unit="steps"), *DEGREES),
           _pagerank, "irregular", meaning="power iteration on a graph", derive=fill_degrees,
           statistics=("std_degree", "structure"),
           asked_without=(("structure",), ("structure", "max_degree", "std_degree")),
           example={"nodes": 1_000_000, "edges": 16_000_000, "max_degree": 40, "std_degree": 4.0,
                    "structure": "uniform"}),
    Family("floydwarshall", (NODES,), _floyd_warshall, "balanced",
           meaning="all-pairs shortest paths, a launch a vertex", precision="int32", example={"nodes": 1024}),
)
