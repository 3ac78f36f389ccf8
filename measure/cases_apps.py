"""Small applications, one or many launches: clustering, gravity, a layer, LU, alignment, paths, transforms, sorting."""

from __future__ import annotations

import numpy as np

from .case import TOLERANCE, Builder, Case, Params, blocks, in_turn
from .gpu import Gpu

I32 = np.int32


def kmeans(g: Gpu, p: Params, precision: str) -> Case:
    torch, points, features, clusters = g.torch, p["points"], p["features"], p["clusters"]
    x, centre = g.rand(features, points, precision=precision), g.rand(clusters, features, precision=precision)
    label = torch.empty(points, dtype=torch.int32, device="cuda")
    call = g.kernel("bench", "kmeans_assign", precision)(
        blocks(points), 256, I32(points), I32(features), I32(clusters), x, centre, label
    )

    def check() -> float:
        call()
        d = torch.stack([((x.double() - c[:, None]) ** 2).sum(0) for c in centre.double()])
        chosen = d.gather(0, label.long()[None])[0]
        return float(((chosen - d.amin(0)) / d.amin(0).clamp_min(1e-9)).max())  # a tie may fall either way

    return Case(call, check, 1e-4)


def nbody(g: Gpu, p: Params, precision: str) -> Case:
    torch, bodies = g.torch, p["bodies"]
    pos, vel = g.randn(bodies, 4), g.randn(bodies, 4)
    pos[:, 3] = g.rand(bodies)
    pos2, vel2 = torch.empty_like(pos), torch.empty_like(vel)
    call = g.kernel("bench", "nbody_step")(blocks(bodies), 256, I32(bodies), pos, vel, pos2, vel2)

    def check() -> float:
        call()
        some = slice(0, min(bodies, 512))
        d = pos.double()[None, :, :3] - pos.double()[some, None, :3]
        r = ((d**2).sum(-1) + 1e-3).rsqrt()
        pull = (pos.double()[None, :, 3] * r**3)[..., None] * d
        return g.error(vel2[some, :3], vel.double()[some, :3] + 0.01 * pull.sum(1))

    return Case(call, check, 1e-4)


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


def lud(g: Gpu, p: Params, precision: str) -> Case:
    torch, n, edge = g.torch, p["n"], 16
    start = g.rand(n, n, precision=precision) / n + torch.eye(n, dtype=g.dtype[precision], device="cuda")
    a, steps = start.clone(), []
    for at in range(0, n, edge):
        left = (n - at) // edge - 1
        steps.append(g.kernel("bench", "lud_diagonal", precision)(1, edge, I32(n), I32(at), a))
        if left:
            steps.append(g.kernel("bench", "lud_perimeter", precision)((left, 2), edge, I32(n), I32(at), a))
            steps.append(g.kernel("bench", "lud_internal", precision)((left, left), (edge, edge), I32(n), I32(at), a))
    call = in_turn(steps)

    def check() -> float:
        a.copy_(start)
        call()
        d = a.double()
        unit = torch.eye(n, dtype=torch.float64, device="cuda")
        return g.error((d.tril(-1) + unit) @ d.triu(), start)

    return Case(call, check, TOLERANCE[precision] * 5, reset=lambda: a.copy_(start))


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


def floydwarshall(g: Gpu, p: Params, precision: str) -> Case:
    torch, n = g.torch, p["nodes"]
    start = g.integers(1000, n, n, low=1)
    dist, via = start.clone(), torch.zeros_like(start)
    grid = (blocks(n, 8), blocks(n, 8))
    kernel = g.kernel("dense", "floyd_step")
    call = in_turn([kernel(grid, (8, 8), I32(n), I32(k), dist, via) for k in range(n)])

    def check() -> float:
        dist.copy_(start)
        call()
        want = start.clone()
        for k in range(n):
            want = torch.minimum(want, want[:, k : k + 1] + want[k : k + 1])
        return g.equal(dist, want)

    return Case(call, check, 0.0, reset=lambda: dist.copy_(start))


def fastwalshtransform(g: Gpu, p: Params, precision: str) -> Case:
    torch, n = g.torch, p["n"]
    start = g.randn(n, precision=precision)
    x, step, steps = start.clone(), 1, []
    while step < n:
        steps.append(g.kernel("dense", "walsh_step", precision)(blocks(n // 2), 256, np.int64(n), np.int64(step), x))
        step *= 2
    call = in_turn(steps)

    def check() -> float:
        x.copy_(start)
        call()
        want, span = start.double(), 1
        while span < n:
            pairs = want.reshape(-1, 2, span)
            want, span = torch.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], 1).reshape(-1), span * 2
        return g.error(x, want)

    return Case(call, check, TOLERANCE[precision], reset=lambda: x.copy_(start))


def bitonicsort(g: Gpu, p: Params, precision: str) -> Case:
    n = p["n"]
    start = g.integers(2**31 - 1, n)
    x, run, steps = start.clone(), 2, []
    while run <= n:
        gap = run // 2
        while gap:
            steps.append(
                g.kernel("dense", "bitonic_step")(blocks(n // 2, 64), 64, np.int64(n), np.int64(run), np.int64(gap), x)
            )
            gap //= 2
        run *= 2
    call = in_turn(steps)

    def check() -> float:
        x.copy_(start)
        call()
        return g.equal(x, start.sort()[0])

    return Case(call, check, 0.0, reset=lambda: x.copy_(start))


BUILDERS: dict[tuple[str, str], Builder] = {
    ("kmeans", "thread_point"): kmeans,
    ("nbody", "shared_tile"): nbody,
    ("backprop", "two_kernels"): backprop,
    ("streamcluster", "thread_point"): streamcluster,
    ("lud", "blocked16"): lud,
    ("nw", "tile16"): nw,
    ("floydwarshall", "step_launch"): floydwarshall,
    ("fastwalshtransform", "step_launch"): fastwalshtransform,
    ("bitonicsort", "step_launch"): bitonicsort,
}
