"""Small applications: a layer of a network, clustering of a stream, alignment."""

from __future__ import annotations

import numpy as np

from ..case import TOLERANCE, Case, Measured, Params, blocks, in_turn
from ..gpu import Gpu
from ..rough import launches

I32 = np.int32


def backprop(g: Gpu, p: Params, precision: str) -> Case:
    torch, inputs, hidden = g.torch, p["inputs"], p["hidden"]
    x, delta = g.rand(inputs, precision=precision), g.randn(hidden, precision=precision)
    weight, momentum = (g.randn(inputs, hidden, precision=precision) * 0.01 for _ in range(2))
    out, weight2, momentum2 = g.empty(hidden, precision=precision), torch.empty_like(weight), torch.empty_like(momentum)
    grid = (blocks(inputs, 8), blocks(hidden, 32))
    steps = [
        g.kernel("bench", "backprop_forward", precision)(
            blocks(hidden, 16), 256, I32(inputs), I32(hidden), x, weight, out
        ),
        g.kernel("bench", "backprop_adjust", precision)(
            grid, (32, 8), I32(inputs), I32(hidden), x, delta, weight, momentum, weight2, momentum2
        ),
    ]
    call = in_turn(steps)

    def check() -> float:
        call()
        w = weight.double()
        change = 0.3 * torch.outer(x.double(), delta.double()) + 0.3 * momentum.double()
        return max(
            g.error(out, torch.sigmoid(x.double() @ w)), g.error(weight2, w + change), g.error(momentum2, change)
        )

    return Case(call, check, TOLERANCE[precision] * 10)


def streamcluster(g: Gpu, p: Params, precision: str) -> Case:
    points, dims = p["points"], p["dims"]
    x, cost = g.rand(dims, points, precision=precision), g.rand(points, precision=precision) * dims / 3
    gain, candidate = g.empty(points, precision=precision), points // 3
    call = g.kernel("bench", "streamcluster_gain", precision)(
        blocks(points), 256, I32(points), I32(dims), I32(candidate), x, cost, gain
    )

    def check() -> float:
        call()
        d = x.double()
        return g.error(gain, (cost.double() - ((d - d[:, candidate : candidate + 1]) ** 2).sum(0)).clamp_min(0))

    return Case(call, check, 1e-4)


def nw(g: Gpu, p: Params, precision: str) -> Case:
    torch, n, edge, penalty = g.torch, p["n"], 16, 10
    similarity = g.integers(11, n, n, low=-10)
    score = torch.zeros((n + 1, n + 1), dtype=torch.int32, device="cuda")
    border = -penalty * torch.arange(n + 1, dtype=torch.int32, device="cuda")
    score[0], score[:, 0] = border, border
    across, kernel, steps = n // edge, g.kernel("bench", "nw_diagonal"), []
    for diagonal in range(2 * across - 1):
        first = max(0, diagonal - across + 1)
        count = min(diagonal, across - 1) - first + 1
        steps.append(kernel(count, edge, I32(n), I32(diagonal), I32(first), I32(penalty), similarity, score))
    call = in_turn(steps)

    def check() -> float:
        score[1:, 1:] = 0
        call()
        s, want = similarity.cpu().numpy(), score.cpu().numpy().copy()
        want[1:, 1:] = 0
        for total in range(2, 2 * n + 1):  # anti-diagonals
            i = np.arange(max(1, total - n), min(n, total - 1) + 1)
            j = total - i
            best = np.maximum(want[i - 1, j], want[i, j - 1]) - penalty
            want[i, j] = np.maximum(best, want[i - 1, j - 1] + s[i - 1, j - 1])
        return g.equal(score.cpu(), torch.from_numpy(want))

    return Case(call, check, 0.0)


FAMILIES: tuple[Measured, ...] = (
    Measured("backprop", {"two_kernels": backprop},
             lambda p: (6.0 * p["inputs"] * p["hidden"], 20.0 * p["inputs"] * p["hidden"])),
    Measured("streamcluster", {"thread_point": streamcluster},
             lambda p: (3.0 * p["points"] * p["dims"], 4.0 * p["points"] * (p["dims"] + 2))),
    Measured("nw", {"tile16": nw}, lambda p: launches(4.0 * p["n"] * 16, p["n"] / 8)),
)
