"""Application kernels in the manner of the Rodinia suite that are no stencil, and profiled segments."""

from __future__ import annotations

import numpy as np

from ..work import Arguments, Family, Param, Work, make_work


def _backprop(a: Arguments, byte: float) -> Work:
    inputs, hidden = a["inputs"], a["hidden"]
    weights = inputs * hidden
    # forward products with partial sums a block, then the weight update
    return make_work(
        5.0 * weights, (2.0 * weights + inputs) * byte, 2.0 * weights * byte, threads=weights,
        working_set_byte=2.0 * weights * byte, launches=2.0, reread_byte=weights * byte, chain=8.0,
    )  # fmt: skip


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
    )  # fmt: skip


def _segment(a: Arguments, byte: float) -> Work:
    """A profiled kernel of no known family: counted FLOP and device-memory bytes, read and written together."""
    size = a["bytes"]
    l2 = np.where(np.isnan(a["l2_bytes"]), size, a["l2_bytes"])
    return make_work(
        a["flops"], size, 0.0, threads=np.maximum(a["threads"], 1.0), launches=a["launches"],
        reread_byte=np.maximum(l2 - size, 0.0),
        working_set_byte=np.where(np.isnan(a["working_set"]), size, a["working_set"]),
    )  # fmt: skip


FAMILIES: tuple[Family, ...] = (
    Family("backprop", (Param("inputs"), Param("hidden", required=False, default=16.0)), _backprop, "compute",
           meaning="one layer of a perceptron, forward and weight update"),
    Family("streamcluster", (Param("points"), Param("dims")), _streamcluster, "memory",
           meaning="assignment cost of points to one candidate centre"),
    Family("nw", (Param("n"),), _nw, "balanced", meaning="sequence alignment by anti-diagonals", precision="int32"),
    Family("segment",
           (Param("flops", "real", required=False, default=0.0), Param("bytes", "real"),
            Param("threads", "real", required=False, default=1e6), Param("l2_bytes", "real", required=False),
            Param("working_set", "real", required=False), Param("launches", required=False, default=1.0),
            Param("registers", "real", required=False), Param("smem_bytes", "real", required=False),
            Param("int_ops", "real", required=False), Param("fp_inst", "real", required=False),
            Param("name", "text", required=False),
            Param("grid", "list", required=False), Param("block", "list", required=False)),
           _segment, "balanced", meaning="a profiled kernel with counted FLOP and bytes"),
)  # fmt: skip
