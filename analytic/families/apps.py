"""Application kernels in the manner of the Rodinia suite that are no stencil, and profiled segments."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..work import Arguments, Family, Param, Work, make_work


def _backprop(a: Arguments, byte: float) -> Work:
    inputs, hidden = a["inputs"], a["hidden"]
    weights = inputs * hidden
    # forward products with partial sums a block, then the weight update
    return make_work(
        5.0 * weights, (2.0 * weights + inputs) * byte, 2.0 * weights * byte, threads=weights,
        working_set_byte=2.0 * weights * byte, launches=2.0, reread_byte=weights * byte, chain=8.0,
    )


def _streamcluster(a: Arguments, byte: float) -> Work:
    points, dims = a["points"], a["dims"]
    # cost of moving each point to one candidate centre
    return make_work(3.0 * points * dims, points * (dims + 3.0) * byte, points * byte, threads=points, chain=dims)


def _nw(a: Arguments, byte: float) -> Work:
    n = a["n"]
    block = 16.0
    diagonals = 2.0 * np.ceil(n / block) - 1.0
    # anti-diagonal wavefronts of 16 × 16 blocks, a launch a diagonal
    return make_work(
        4.0 * n * n, n * n * byte, n * n * byte, threads=np.maximum(n / block, 1.0) * block,
        working_set_byte=2.0 * n * n * byte, launches=diagonals, chain=diagonals * 2.0 * block,
    )


def _segment(a: Arguments, byte: float) -> Work:
    """A profiled kernel of no known family: counted FLOP and device-memory bytes, read and written together."""
    size = a["bytes"]
    l2 = np.where(np.isnan(a["l2_bytes"]), size, a["l2_bytes"])
    return make_work(
        a["flops"], size, 0.0, threads=np.maximum(a["threads"], 1.0), launches=a["launches"],
        reread_byte=np.maximum(l2 - size, 0.0),
        working_set_byte=np.where(np.isnan(a["working_set"]), size, a["working_set"]),
    )


def _counted(name: str, meaning: str, unit: str, **more: Any) -> Param:
    return Param(name, "real", required=False, meaning=meaning, unit=unit, **more)


SEGMENT = (
    _counted("flops", "floating-point operations of the call", "FLOP", default=0.0),
    Param("bytes", "real", meaning="device-memory bytes of the call, read and written", unit="B"),
    _counted("threads", "threads of one launch", "threads", default=1e6),
    _counted("l2_bytes", "bytes between L2 and the compute units", "B", follows="bytes"),
    _counted("working_set", "bytes the call touches", "B", follows="bytes"),
    Param("launches", required=False, default=1.0, meaning="kernels started", unit="launches"),
    _counted("registers", "registers of a thread", "registers"),
    _counted("smem_bytes", "shared memory of a block", "B"),
    _counted("int_ops", "integer operations of the call", "operations"),
    _counted("fp_inst", "floating-point instructions of all threads", "instructions"),
    Param("name", "text", required=False, meaning="what the profiler calls it"),
    Param("grid", "list", required=False, meaning="blocks of a launch along x, y, z", unit="blocks"),
    Param("block", "list", required=False, meaning="threads of a block along x, y, z", unit="threads"),
)

FAMILIES: tuple[Family, ...] = (
    Family("backprop", (Param("inputs", meaning="inputs of the layer", unit="neurons"),
                        Param("hidden", required=False, default=16.0, meaning="outputs of the layer", unit="neurons")),
           _backprop, "compute", meaning="one layer of a perceptron, forward and weight update",
           example={"inputs": 65_536, "hidden": 16}),
    Family("streamcluster", (Param("points", meaning="points", unit="points"),
                             Param("dims", meaning="coordinates of a point", unit="elements")),
           _streamcluster, "memory", meaning="assignment cost of points to one candidate centre",
           example={"points": 65_536, "dims": 256}),
    Family("nw", (Param("n", meaning="length of each of the two sequences", unit="letters"),), _nw, "balanced",
           meaning="sequence alignment by anti-diagonals", precision="int32", example={"n": 2048}),
    Family("segment", SEGMENT, _segment, "balanced", meaning="a profiled kernel with counted FLOP and bytes",
           example={"flops": 1e9, "bytes": 100e6, "threads": 1e6}),
)
