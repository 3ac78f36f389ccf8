"""Streams, reductions, scans, sorts, rows, transposes and indexed access."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..case import TOLERANCE, Builder, Case, Cost, Measured, Params, blocks, in_turn
from ..gpu import Gpu, Skip
from ..rough import launches, log2, vectors

FACTOR = 1.25  # the constant of scale and triad, here and in vector.cu


def _reference(g: Gpu, family: str, a: Any, b: Any) -> Any:
    table: dict[str, Callable[[], Any]] = {
        "vector_copy": lambda: a,
        "vector_scale": lambda: FACTOR * a.double(),
        "vector_add": lambda: a.double() + b.double(),
        "triad": lambda: a.double() + FACTOR * b.double(),
        "relu": lambda: a.double().clamp_min(0),
    }
    return table[family]()


def _stream_kernel(family: str, name: str) -> Builder:
    two = family in ("vector_add", "triad")

    def build(g: Gpu, p: Params, precision: str) -> Case:
        n = p["n"]
        a, out = g.randn(n, precision=precision), g.empty(n, precision=precision)
        b = g.randn(n, precision=precision) if two else a
        inputs = (a, b) if two else (a,)
        call = g.kernel("vector", name, precision)(blocks(n), 256, np.int64(n), *inputs, out)

        def check() -> float:
            out.fill_(float("nan"))
            call()
            return g.error(out, _reference(g, family, a, b))

        return Case(call, check, TOLERANCE[precision])

    return build


def _stream_torch(family: str) -> Builder:
    two = family in ("vector_add", "triad")

    def build(g: Gpu, p: Params, precision: str) -> Case:
        torch, n = g.torch, p["n"]
        a, out = g.randn(n, precision=precision), g.empty(n, precision=precision)
        b = g.randn(n, precision=precision) if two else a
        table: dict[str, Callable[[], Any]] = {
            "vector_scale": lambda: torch.mul(a, FACTOR, out=out),
            "vector_add": lambda: torch.add(a, b, out=out),
            "triad": lambda: torch.add(a, b, alpha=FACTOR, out=out),
            "relu": lambda: torch.clamp_min(a, 0, out=out),
        }
        call = table[family]
        return Case(call, lambda: g.error(call(), _reference(g, family, a, b)), TOLERANCE[precision])

    return build


def reduction_torch(g: Gpu, p: Params, precision: str) -> Case:
    torch, a = g.torch, g.rand(p["n"], precision=precision)
    return Case(lambda: torch.sum(a), lambda: g.error(torch.sum(a), a.double().sum()), TOLERANCE[precision] * 10)


def reduction_two_pass(g: Gpu, p: Params, precision: str) -> Case:
    n = p["n"]
    a, grid = g.rand(n, precision=precision), min(blocks(n), 132 * 8)
    part, out = g.empty(grid, precision=precision), g.empty(1, precision=precision)
    kernel = g.kernel("vector", "reduce_sum", precision)
    first, second = kernel(grid, 256, np.int64(n), a, part), kernel(1, 256, np.int64(grid), part, out)

    def call() -> None:
        first()
        second()

    def check() -> float:
        call()
        return g.error(out, a.double().sum().reshape(1))

    return Case(call, check, TOLERANCE[precision] * 10)


def scan_torch(g: Gpu, p: Params, precision: str) -> Case:
    torch = g.torch
    a, out = g.rand(p["n"], precision=precision), g.empty(p["n"], precision=precision)

    def call() -> Any:
        return torch.cumsum(a, 0, out=out)

    return Case(call, lambda: g.error(call(), a.double().cumsum(0)), TOLERANCE[precision] * 100)


def sort_torch(g: Gpu, p: Params, precision: str) -> Case:
    torch, a = g.torch, g.randn(p["n"], precision=precision)

    def check() -> float:
        return g.equal(torch.sort(a)[0].double().cpu(), a.double().cpu().sort()[0])

    return Case(lambda: torch.sort(a), check, 0.0)


def sort_cupy(g: Gpu, p: Params, precision: str) -> Case:
    """CuPy's in-place sort (Thrust, keys only); its input is restored before each repeat."""
    a = g.randn(p["n"], precision=precision)
    work = a.clone()
    view = g.cp.asarray(work)

    def check() -> float:
        work.copy_(a)
        view.sort()
        return g.equal(work, g.torch.sort(a)[0])

    return Case(view.sort, check, 0.0, reset=lambda: work.copy_(a))


def radix_sort_4bit(g: Gpu, p: Params, precision: str) -> Case:
    """Eight passes of count, scan and scatter over 4 bits of 32-bit keys; ends in the array it began in."""
    torch, n = g.torch, p["n"]
    keys = g.integers(2**31 - 1, n)
    src, dst, tiles = keys.clone(), torch.empty_like(keys), blocks(n, 1024)
    count = torch.empty(16 * tiles, dtype=torch.int32, device="cuda")
    offset = torch.zeros(16 * tiles + 1, dtype=torch.int32, device="cuda")
    after = offset[1:]
    counting, scattering = g.kernel("irregular", "radix_count"), g.kernel("irregular", "radix_scatter")
    passes = []
    for step in range(8):
        a, b = (src, dst) if step % 2 == 0 else (dst, src)
        shift = np.int32(4 * step)
        passes.append(
            (
                counting(tiles, 256, np.int32(n), shift, a, count),
                scattering(tiles, 256, np.int32(n), shift, a, offset, b),
            )
        )

    def call() -> None:
        for counts, scatter in passes:
            counts()
            torch.cumsum(count, 0, dtype=torch.int32, out=after)
            scatter()

    def check() -> float:
        src.copy_(keys)
        call()
        return g.equal(src, keys.sort()[0])

    return Case(call, check, 0.0, reset=lambda: src.copy_(keys))


def _index(g: Gpu, p: Params, wide: bool) -> Any:
    index = g.integers(p["table"], p["n"], wide=wide)
    return index.sort()[0] if p.get("order") == "sorted" else index


def gather_torch(g: Gpu, p: Params, precision: str) -> Case:
    torch = g.torch
    table, index, out = (
        g.randn(p["table"], precision=precision),
        _index(g, p, True),
        g.empty(p["n"], precision=precision),
    )

    def call() -> Any:
        return torch.index_select(table, 0, index, out=out)

    return Case(call, lambda: g.equal(call().cpu(), table.cpu()[index.cpu()]), 0.0)


def gather_thread(g: Gpu, p: Params, precision: str) -> Case:
    n, table, index = p["n"], g.randn(p["table"], precision=precision), _index(g, p, False)
    out = g.empty(n, precision=precision)
    call = g.kernel("irregular", "gather_1d", precision)(blocks(n), 256, np.int64(n), index, table, out)

    def check() -> float:
        call()
        return g.equal(out, table[index.long()])

    return Case(call, check, 0.0)


def _added(g: Gpu, p: Params, index: Any, value: Any) -> Any:
    counts = np.bincount(index.cpu().numpy(), weights=value.double().cpu().numpy(), minlength=p["table"])
    return g.torch.from_numpy(counts).cuda()


def scatter_torch(g: Gpu, p: Params, precision: str) -> Case:
    table, index, value = (
        g.randn(p["table"], precision=precision),
        _index(g, p, True),
        g.rand(p["n"], precision=precision),
    )

    def check() -> float:
        table.zero_()
        return g.error(table.index_add_(0, index, value), _added(g, p, index, value))

    return Case(lambda: table.index_add_(0, index, value), check, TOLERANCE[precision] * 10)


def scatter_atomic(g: Gpu, p: Params, precision: str) -> Case:
    n, table, index = p["n"], g.randn(p["table"], precision=precision), _index(g, p, False)
    value = g.rand(n, precision=precision)
    call = g.kernel("irregular", "scatter_add_1d", precision)(blocks(n), 256, np.int64(n), index, value, table)

    def check() -> float:
        table.zero_()
        call()
        return g.error(table, _added(g, p, index, value))

    return Case(call, check, TOLERANCE[precision] * 10)


def histogram_torch(g: Gpu, p: Params, precision: str) -> Case:
    torch, bins, a = g.torch, p["bins"], g.rand(p["n"], precision=precision)

    def check() -> float:
        got = torch.histc(a, bins, 0.0, 1.0)
        want = torch.bincount((a.double() * bins).long().clamp_max(bins - 1), minlength=bins)
        moved = (got.double() - want.double()).abs().sum() / p["n"]  # a value on an edge may fall to either side
        return float(moved)

    return Case(lambda: torch.histc(a, bins, 0.0, 1.0), check, 2e-2 if bins > 4096 else 2e-3)


def _histogram(name: str, shared: bool) -> Builder:
    def build(g: Gpu, p: Params, precision: str) -> Case:
        n, bins = p["n"], p["bins"]
        if shared and bins > 12288:
            raise Skip("the bins do not fit in 48 KiB of shared memory")
        key, count = g.integers(bins, n), g.torch.empty(bins, dtype=g.torch.int32, device="cuda")
        zero = g.kernel("irregular", "fill_u32")(blocks(bins), 256, np.int64(bins), np.uint32(0), count)
        bind = g.kernel("irregular", name, shared=4 * bins if shared else 0)
        grid = min(blocks(n), 132 * 4) if shared else blocks(n)
        body = bind(grid, 256, np.int64(n), *((np.int32(bins),) if shared else ()), key, count)

        def call() -> None:
            zero()
            body()

        def check() -> float:
            call()
            return g.equal(count.long(), g.torch.bincount(key, minlength=bins))

        return Case(call, check, 0.0)

    return build


def hash_probe(g: Gpu, p: Params, precision: str) -> Case:
    """Half of the queries are in the table; `load` is the fraction of slots taken."""
    torch, n, table = g.torch, p["n"], p["table"]
    stored = int(table * p["load"])
    keys = torch.randperm(2 * stored, dtype=torch.int32, device="cuda")[:stored] + 1
    query = g.integers(2 * stored + 1, n, low=1)
    slot_key, slot_value = (torch.zeros(table, dtype=torch.int32, device="cuda") for _ in range(2))
    out, mask = torch.empty(n, dtype=torch.int32, device="cuda"), np.uint32(table - 1)
    g.kernel("irregular", "hash_insert")(blocks(stored), 256, np.int64(stored), mask, keys, slot_key, slot_value)()
    call = g.kernel("irregular", "hash_probe")(blocks(n), 256, np.int64(n), mask, query, slot_key, slot_value, out)

    def check() -> float:
        call()
        return g.equal(out, torch.where(torch.isin(query, keys), query * 3, 0).int())

    return Case(call, check, 0.0)


def merge_path(g: Gpu, p: Params, precision: str) -> Case:
    torch, m, n, span = g.torch, p["m"], p["n"], 8
    a, b = g.randn(m, precision=precision).sort()[0], g.randn(n, precision=precision).sort()[0]
    out = g.empty(m + n, precision=precision)
    call = g.kernel("irregular", "merge_path", precision)(
        blocks(-(-(m + n) // span)), 256, np.int64(m), np.int64(n), np.int32(span), a, b, out
    )

    def check() -> float:
        call()
        return g.equal(out, torch.cat([a, b]).sort()[0])

    return Case(call, check, 0.0)


def segmented_scan(g: Gpu, p: Params, precision: str) -> Case:
    torch, n, segments = g.torch, p["n"], p["segments"]
    cuts = g.integers(n + 1, segments - 1).sort()[0]
    edge = torch.tensor([0], dtype=torch.int32, device="cuda")
    start = torch.cat([edge, cuts, edge + n]).contiguous()
    a, out = g.rand(n, precision=precision), g.empty(n, precision=precision)
    call = g.kernel("irregular", "segment_scan_warp", precision)(
        blocks(segments * g.warp), 256, np.int32(segments), start, a, out
    )

    def check() -> float:
        call()
        total = torch.cat([torch.zeros(1, dtype=torch.float64, device="cuda"), a.double().cumsum(0)])
        lengths = (start[1:] - start[:-1]).long()
        return g.error(out, total[1:] - torch.repeat_interleave(total[start[:-1].long()], lengths))

    return Case(call, check, 1e-4 if precision == "fp32" else 1e-9)


def softmax_torch(g: Gpu, p: Params, precision: str) -> Case:
    torch = g.torch
    x = g.randn(p["rows"], p["cols"], precision=precision)
    return Case(
        lambda: torch.softmax(x, -1),
        lambda: g.error(torch.softmax(x, -1), torch.softmax(x.double(), -1)),
        TOLERANCE[precision],
    )


def layernorm_torch(g: Gpu, p: Params, precision: str) -> Case:
    torch, cols = g.torch, p["cols"]
    x, w, b = (
        g.randn(p["rows"], cols, precision=precision),
        g.randn(cols, precision=precision),
        g.randn(cols, precision=precision),
    )
    norm = torch.nn.functional.layer_norm

    def check() -> float:
        return g.error(norm(x, (cols,), w, b), norm(x.double(), (cols,), w.double(), b.double()))

    return Case(lambda: norm(x, (cols,), w, b), check, TOLERANCE[precision] * 5)


def transpose_torch(g: Gpu, p: Params, precision: str) -> Case:
    a = g.randn(p["m"], p["n"], precision=precision)
    out = a.new_empty((p["n"], p["m"]))

    def check() -> float:
        out.fill_(float("nan"))
        out.copy_(a.t())
        return g.equal(out[: p["n"] // 2 + 1].cpu(), a.cpu().t()[: p["n"] // 2 + 1])

    return Case(lambda: out.copy_(a.t()), check, 0.0)


def transpose_tile32(g: Gpu, p: Params, precision: str) -> Case:
    m, n = p["m"], p["n"]
    a, out = g.randn(m, n, precision=precision), g.empty(n, m, precision=precision)
    grid = (blocks(n, 32), blocks(m, 32))
    call = g.kernel("dense", "transpose_tile", precision)(grid, (32, 8), np.int32(m), np.int32(n), a, out)

    def check() -> float:
        out.fill_(float("nan"))
        call()
        return g.equal(out, a.t())

    return Case(call, check, 0.0)


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


_STREAMS = {
    "vector_copy": "vec_copy",
    "vector_scale": "vec_scale",
    "vector_add": "vec_add",
    "triad": "vec_triad",
    "relu": "vec_relu",
}

def _stream(family: str, cost: Cost | None = None) -> Measured:
    builders = {"thread_element": _stream_kernel(family, _STREAMS[family])}
    if family != "vector_copy":  # torch copies by a driver call, not by a kernel
        builders["torch"] = _stream_torch(family)
    return Measured(family, builders, cost)


FAMILIES: tuple[Measured, ...] = (
    _stream("vector_copy"),
    _stream("vector_scale"),
    _stream("vector_add"),
    _stream("triad"),
    _stream("relu"),
    Measured("reduction", {"torch": reduction_torch, "two_pass": reduction_two_pass}, vectors(1)),
    Measured("scan", {"torch": scan_torch}),
    Measured("sort", {"torch": sort_torch, "cupy": sort_cupy}, vectors(16)),
    Measured("radix_sort", {"lsd_4bit": radix_sort_4bit}, vectors(30)),
    Measured("gather", {"torch": gather_torch, "thread_element": gather_thread},
             lambda p: (0.0, 12.0 * p["n"] + 4.0 * p["table"])),
    Measured("scatter_add", {"torch": scatter_torch, "atomic": scatter_atomic},
             lambda p: (0.0, 12.0 * p["n"] + 4.0 * p["table"])),
    Measured("histogram",
             {"torch": histogram_torch, "shared_bins": _histogram("hist_shared", True),
              "global_atomic": _histogram("hist_global", False)},
             lambda p: (0.0, 6.0 * p["n"] + 8.0 * p["bins"])),
    Measured("hash_probe", {"linear_probing": hash_probe}, lambda p: (0.0, 16.0 * p["n"] + 8.0 * p["table"])),
    Measured("merge_sorted", {"merge_path": merge_path}, lambda p: (0.0, 16.0 * (p["m"] + p["n"]))),
    Measured("segmented_scan", {"warp_segment": segmented_scan},
             lambda p: (0.0, 8.0 * p["n"] + 64.0 * p["segments"])),
    Measured("softmax", {"torch": softmax_torch}),
    Measured("layernorm", {"torch": layernorm_torch}),
    Measured("transpose", {"torch": transpose_torch, "tile32": transpose_tile32}),
    Measured("fastwalshtransform", {"step_launch": fastwalshtransform},
             lambda p: launches(8.0 * p["n"], log2(p["n"]))),
    Measured("bitonicsort", {"step_launch": bitonicsort},
             lambda p: launches(8.0 * p["n"], log2(p["n"]) * (log2(p["n"]) + 1) / 2)),
)
