"""Memory: streams by size and by grid, the last-level cache over the working set, latencies, atomics, shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from .gpu import Gpu
from .micro_bench import Bench

I32, I64 = np.int32, np.int64
MIB = 2**20
READ_MIB = (0.25, 0.5, 1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 80, 96, 112, 128,
            192, 256, 512, 1024, 4096)
READ_BLOCK, READ_PER_THREAD = 256, 16  # 64 KiB a block


def copy_sweep(g: Gpu, b: Bench) -> list[dict[str, float]]:
    """Copies by size, warm and cold; bytes read and written both count."""
    rows = []
    for power in range(12, 33):
        n = 2**power // 4
        a, out = g.randn(n), g.empty(n)
        call = g.kernel("vector", "vec_copy_wide")(-(-n // 1024), 256, I64(n // 4), a, out)
        row: dict[str, float] = {"byte": 8.0 * n}
        for cache in ("warm", "cold"):
            taken = b.time_s(call, cold=cache == "cold")
            row[f"{cache}_s"], row[f"{cache}_byte_per_s"] = taken, 8.0 * n / taken
        rows.append(row)
    return rows


def grid_sweep(g: Gpu, b: Bench) -> list[dict[str, float]]:
    """Read, write and copy of 1 GiB by the number of blocks of 256 threads: how many units the memory needs."""
    n = 2**30 // 16
    a, out = g.randn(4 * n), g.empty(4 * n)
    rows = []
    for blocks in sorted({1, 2, 4, 8, 16, 24, 32, 48, 64, 96, *(b.units * k for k in (1, 2, 4, 8, 16, 32))}):
        row: dict[str, float] = {"blocks": float(blocks)}
        for kind, factor in (("read", 1), ("write", 1), ("copy", 2)):
            call = g.kernel("micro", f"micro_stream_{kind}")(blocks, 256, I64(n), a, out)
            row[f"{kind}_byte_per_s"] = 16.0 * n * factor / b.time_s(call, 3)
        rows.append(row)
    return rows


def read_sweep(g: Gpu, b: Bench) -> list[dict[str, float]]:
    """Bandwidth of repeated reads by buffer size: the last-level cache's plateau and its knees."""
    rows, out, piece = [], g.empty(4), 16 * READ_BLOCK * READ_PER_THREAD
    for size in READ_MIB:
        pieces = int(size * MIB) // piece
        a = g.randn(pieces * piece // 4)
        rounds = max(2, min(2048, int(4e9 / (pieces * piece))))

        def make(count: int, a: Any = a, pieces: int = pieces) -> Any:
            return g.kernel("micro", "micro_read")(
                count * pieces, READ_BLOCK, I32(pieces), I32(READ_PER_THREAD), a, out
            )

        byte = float(pieces * piece)
        rows.append({"byte": byte, "byte_per_s": byte / b.slope_s(make, rounds)})
    return rows


def chase_sweep(g: Gpu, b: Bench) -> list[dict[str, float]]:
    """Latency of a dependent load by footprint: one link a 128-byte line, in random order.

    Warm: the chain is walked whole once before. Cold: after a flush, so from device memory."""
    torch, rows = g.torch, []
    kernel, out = g.kernel("micro", "micro_chase"), g.torch.empty(1, dtype=g.torch.int32, device="cuda")
    for power in range(13, 31):
        lines = 2**power // 128
        order = torch.randperm(lines, device="cuda").int()
        chain = torch.zeros(lines * 32, dtype=torch.int32, device="cuda")
        chain[order.long() * 32] = order.roll(-1) * 32
        row = {"byte": float(2**power)}

        def make(steps: int, chain: Any = chain) -> Any:
            return kernel(1, 1, I32(steps), chain, out)

        if lines <= 2**19:
            row["latency_warm_s"] = b.slope_s(make, max(4096, lines), 3)
        if lines >= 12288:
            few, many = (b.time_s(make(s), 5, cold=True) for s in (4096, 12288))
            row["latency_cold_s"] = (many - few) / 8192
        rows.append(row)
    return rows


def atomic_sweep(g: Gpu, b: Bench) -> list[dict[str, float]]:
    """Integer additions a second to `slots` addresses, neighbours in neighbouring lanes or a sector apart."""
    rows, rounds, grid = [], 64, b.units * 8
    for slots in (1, 32, 1024, 2**15, 2**20, 2**24):
        table = g.torch.zeros(slots, dtype=g.torch.int32, device="cuda")
        for stride in (1, 33):

            def make(count: int, table: Any = table, slots: int = slots, stride: int = stride) -> Any:
                return g.kernel("micro", "micro_atomic")(grid, 256, I32(count), I32(slots), I32(stride), table)

            rate = grid * 256 / b.slope_s(make, rounds, 3)
            rows.append({"slots": float(slots), "stride": float(stride), "atomic_per_s": rate})
    return rows


def shared_sweep(g: Gpu, b: Bench) -> dict[str, Any]:
    """Shared memory: bytes a second of one unit by lane stride (stride 2^k: 2^k-way conflicts), latency."""
    out, rows = g.torch.empty(4, dtype=g.torch.int32, device="cuda"), []
    threads, per_unit = 512, 2
    for stride in (1, 2, 4, 8, 16, 32, 3, 33):

        def make(count: int, stride: int = stride) -> Any:
            return g.kernel("micro", "micro_shared")(b.units * per_unit, threads, I32(count), I32(stride), out)

        taken = b.slope_s(make, 512)
        rows.append({"stride": float(stride), "byte_per_s_per_unit": 4.0 * 16 * threads * per_unit / taken})

    def chase(steps: int) -> Any:
        return g.kernel("micro", "micro_shared_chase")(1, 32, I32(steps), I32(1), out)

    return {"by_stride": rows, "latency_s": b.slope_s(chase, 20000)}


def barriers(g: Gpu, b: Bench) -> dict[str, float]:
    """A barrier over the whole grid (one block a unit) and within a block of 256 threads [s]."""
    torch, found = g.torch, {}
    for rounds in (500, 1000):
        count = torch.zeros(1, dtype=torch.int32, device="cuda")
        kernel = g.kernel("micro", "micro_grid_barrier")(b.units, 256, I32(rounds), count)

        def call(kernel: Any = kernel, count: Any = count) -> None:
            g.cp.cuda.runtime.memsetAsync(count.data_ptr(), 0, 4, 0)  # a memset is no kernel: not in the time
            kernel()

        found[rounds] = b.time_s(call, 5)
    out = torch.empty(1, dtype=torch.int32, device="cuda")
    block = b.slope_s(lambda r: g.kernel("micro", "micro_block_barrier")(1, 256, I32(r), out), 20000)
    return {"grid_barrier_s": (found[1000] - found[500]) / 500, "block_barrier_s": block}
