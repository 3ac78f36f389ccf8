"""How known kernels cut their work into blocks, rounds and passes: numbers that explain steps in the measured times.

Each function takes a family's arguments, its baseline, bytes an element and the platform, and gives named columns of
shape (n,). The rules are those of widely used kernels (PyTorch, cuDNN, cuFFT, FlashAttention 2, plain CUDA); another
library cuts differently, but at sizes that the same numbers describe.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.baseline import Baseline
from ..analytic.factors import exponent_of, largest_prime, next_power_of_two, rough_part
from ..analytic.platform import Platform
from ..analytic.work import FloatArray
from .numbers import alignment_log2, log2, padding_log2, tail

Arguments = Mapping[str, NDArray[Any]]
Columns = dict[str, FloatArray]

SECTOR_KEYS = 8.0  # 4-byte keys in a 32-byte sector
EULER = 0.5772


def transform(a: Arguments, base: Baseline, byte: float, *_: Any) -> Columns:
    """Radix plan of a Fourier transform: factors of n, and the padded length of Bluestein's algorithm (1970), which
    lengths with a large prime factor go through."""
    n = np.asarray(a["n"], dtype=np.float64)
    prime, powers = largest_prime(n), {f"power_{p}": exponent_of(n, p) for p in (2, 3, 5, 7)}
    rough = (prime > 127).astype(np.float64)
    padded = next_power_of_two(2.0 * n - 1.0)
    return {
        "rough_part": log2(rough_part(n)), "largest_prime": log2(prime), "log2_points": log2(n * a["batch"]), **powers,
        "bluestein": rough, "log2_padded": log2(np.where(rough > 0, padded, n)), "log2_cofactor": log2(n / prime),
        "log2_pad_ratio": np.where(rough > 0, log2(padded / n), 0.0),
        "medium_prime": ((prime > 31) & (prime <= 127)) * 1.0, "power_of_two": (prime <= 2) * 1.0,
        "one_block": (2.0 * n * byte <= 32768.0) * 1.0, "two_passes": (n > 16384) * 1.0,
    }  # fmt: skip


def matrix_vector(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """A row to a warp, to a block, or cut among several blocks."""
    slots = platform.value("compute_units")
    m, n = np.asarray(a["m"], dtype=np.float64), np.asarray(a["n"], dtype=np.float64)
    waves = np.ceil(m / (64.0 * slots))
    return {"log2_n_over_m": log2(n / m), "tail_rows": tail(m, slots), "tail_rows_4": tail(m / 4.0, slots),
            "align_row": alignment_log2(n, byte), "row_is_whole": (n * byte % 16.0 == 0) * 1.0,
            "log2_row_steps": log2(np.ceil(n / 32.0)), "log2_rows_per_warp": log2(m / (64.0 * slots)),
            "log2_warp_rounds": log2(waves * np.ceil(n / 32.0)), "short_row": (n < 128) * 1.0,
            "log2_row_byte": log2(n * byte)}  # fmt: skip


def segment_length(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """Random cuts: lengths are exponential, and the longest of s segments is H(s) ≈ ln s + γ times the mean."""
    slots = platform.value("compute_units")
    segments = np.asarray(a["segments"], dtype=np.float64)
    mean = a["n"] / segments
    longest = np.maximum(mean * (np.log(segments) + EULER), 1.0)
    steps = segments * (mean / 32.0 + 0.5)
    return {"log2_length": log2(mean), "tail_segments": tail(segments / 64.0, slots),
            "log2_segments_per_unit": log2(segments / slots), "log2_longest_steps": log2(np.ceil(longest / 32.0)),
            "log2_steps_per_unit": log2(steps / slots),
            "log2_longest_share": log2(longest / 32.0 / np.maximum(steps / (64.0 * slots), 1e-3))}  # fmt: skip


def probes(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """Linear probing (Knuth 1963): probes of a hit and a miss, and how slowly long runs of full slots die out."""
    load = np.clip(np.asarray(a["load"], dtype=np.float64), 0.01, 0.95)
    hit, miss = 0.5 * (1.0 + 1.0 / (1.0 - load)), 0.5 * (1.0 + 1.0 / (1.0 - load) ** 2)
    run = 1.0 / (load - 1.0 - np.log(load))
    table, n = np.asarray(a["table"], dtype=np.float64), np.asarray(a["n"], dtype=np.float64)
    longest = np.minimum(miss + run * np.log(32.0), table * load)
    cache = platform.value("l2_size")
    return {"log2_draws_per_entry": log2(n / table), "log2_run": log2(run), "log2_warp_probes": log2(longest),
            "log2_grid_probes": log2(np.minimum(miss + run * np.log(np.minimum(n, table)), table * load)),
            "log2_sectors": log2(0.5 * hit + 0.5 * miss + SECTOR_KEYS),
            "log2_table_over_cache": log2(8.0 * table / cache), "log2_table_over_l1": log2(8.0 * table / 2.0**18),
            "log2_queries_per_unit": log2(n / (2048.0 * platform.value("compute_units"))),
            "tail_queries": tail(n / 2048.0, platform.value("compute_units"))}  # fmt: skip


WARP_COLS = 2048.0
"""Rows up to so many columns are normalised by one warp in registers, padded to a power of two (PyTorch's softmax)."""


def normalised_rows(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """A row to a warp or to a block; vectors of 16 bytes where the row is aligned, single elements where not."""
    slots = platform.value("compute_units")
    rows, cols = np.asarray(a["rows"], dtype=np.float64), np.asarray(a["cols"], dtype=np.float64)
    warp, padded = cols <= WARP_COLS, next_power_of_two(cols)
    whole = (cols * byte % 16.0 == 0) * 1.0
    steps = np.ceil(cols / 512.0)
    return {
        "log2_rows_per_unit": log2(rows / slots), "tail_rows": tail(rows, slots), "by_warp": warp * 1.0,
        "small_row": (cols <= 1024) * 1.0, "row_is_whole": whole, "row_of_fours": (cols % 4 == 0) * 1.0,
        "log2_lane_work": log2(np.where(warp, padded / 32.0, cols / 1024.0)),
        "log2_pad_ratio": np.where(warp, log2(padded / cols), 0.0),
        "log2_block_rounds": log2(np.ceil(rows / (4.0 * slots)) * steps), "log2_steps": log2(steps),
        "fits_shared": (cols * byte <= 200e3) * 1.0, "tail_rows_2": tail(rows, 8.0 * slots),
    }  # fmt: skip


def table_density(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """Draws an entry, and the size of the table against the caches it may live in."""
    table, n = np.asarray(a["table"], dtype=np.float64), np.asarray(a["n"], dtype=np.float64)
    cache, slots = platform.value("l2_size"), platform.value("compute_units")
    half = np.clip((table * byte / cache - 0.25) * 4.0, 0.0, 1.0)
    return {"log2_draws_per_entry": log2(n / table), "log2_table_over_cache": log2(table * byte / cache),
            "beyond_half_cache": half, "log2_draws_per_unit": log2(n / (2048.0 * slots)),
            "tail_draws": tail(n / 2048.0, slots)}  # fmt: skip


def bins(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """Counts in shared memory where they fit in 48 KiB: blocks that fit on a unit, and what each clears and merges."""
    count, n = np.asarray(a["bins"], dtype=np.float64), np.asarray(a["n"], dtype=np.float64)
    slots = platform.value("compute_units")
    shared = (count * 4.0 <= 49152.0).astype(np.float64)
    resident = np.clip(np.floor((platform.get("shared_mem_per_cu") or 65536.0) / (4.0 * count + 1024.0)), 1.0, 8.0)
    blocks = np.minimum(np.ceil(n / 256.0), 4.0 * slots)
    return {"log2_draws_per_entry": log2(n / count), "bins_shared": shared, "log2_resident": log2(resident),
            "log2_merged": log2(count * blocks), "log2_merged_over_n": log2(count * blocks / n),
            "log2_blocks": log2(blocks / slots), "log2_rounds": log2(np.ceil(blocks / (slots * resident))),
            "log2_per_thread": log2(np.ceil(n / (256.0 * blocks)))}  # fmt: skip


TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (32, 128), (128, 32))


def tile_costs(m: FloatArray, n: FloatArray, k: FloatArray, batch: FloatArray, slots: float) -> Columns:
    """Time of whole waves of padded tiles over that of the bare product, for usual tiles; and the least of them.

    log₂ of ceil(tiles ÷ units) · tile area ÷ (m·n·batch ÷ units). With so few tiles that units idle, cutting k in
    parts wins back what it can: the same once more with up to 16 parts of at least 256.
    """
    ideal = m * n * batch / slots
    out: Columns = {}
    best, best_cut = np.full(m.shape, np.inf), np.full(m.shape, np.inf)
    for tm, tn in TILES:
        tiles = np.ceil(m / tm) * np.ceil(n / tn) * batch
        cost = np.ceil(tiles / slots) * (tm * tn) / ideal
        parts = np.clip(np.floor(np.minimum(slots / tiles, k / 256.0)), 1.0, 16.0)
        cut = np.ceil(tiles * parts / slots) * (tm * tn) / parts / ideal
        out[f"cost_{tm}x{tn}"] = np.minimum(log2(cost), 10.0)
        if tm == tn:
            out[f"log2_walk_{tm}"] = log2(np.ceil(tiles / slots) * k)
        best, best_cut = np.minimum(best, cost), np.minimum(best_cut, cut)
    return out | {"cost_best": np.minimum(log2(best), 10.0), "cost_cut": np.minimum(log2(best_cut), 10.0)}


def batched(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """Tiles of a batch of products, and whether each dimension is a multiple of 16 bytes."""
    if base.work.gemm is None:
        return {}
    m, n, k, batch = base.work.gemm
    whole = {f"whole_{name}": (size * byte % 16.0 == 0) * 1.0 for name, size in (("n", n), ("k", k))}
    each = {"log2_one_flop": log2(m * n * k), "log2_one_byte": log2((m * k + k * n + m * n) * byte),
            "log2_batch_per_unit": log2(batch / platform.value("compute_units")),
            "log2_least": log2(np.minimum(np.minimum(m, n), k)), "log2_min_mn": log2(np.minimum(m, n))}  # fmt: skip
    return tile_costs(m, n, k, batch, platform.value("compute_units")) | whole | each


def convolution(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """An implicit product whose k walks the window a block of channels at a time: channels are padded for each tap."""
    cin, cout = (np.asarray(a[name], dtype=np.float64) for name in ("cin", "cout"))
    taps, pixels = a["kernel_h"] * a["kernel_w"], a["height"] * a["width"]
    slots = platform.value("compute_units")
    positions = a["batch"] * pixels
    return tile_costs(positions, cout, cin * taps, np.ones_like(cin), slots) | {
        "align_cin": alignment_log2(cin, byte), "align_cout": alignment_log2(cout, byte), "log2_pixels": log2(pixels),
        "log2_image_set": log2(a["batch"] * cin * pixels), "log2_window": log2(cin * taps), "log2_taps": log2(taps),
        "odd_pixels": np.asarray(a["height"] % 4.0), "cin_of_eights": (cin % 8 == 0) * 1.0,
        "needs_padding": ((cin % 8 != 0) & (taps > 1)) * 1.0, "pointwise": (taps == 1) * 1.0,
        "pad_cin_16": padding_log2(cin, 16.0), "pad_cin_32": padding_log2(cin, 32.0),
        "pad_cin_64": padding_log2(cin, 64.0),
        "log2_k_steps": log2(np.ceil(cin / 64.0) * taps), "log2_output": log2(positions * cout),
        "log2_convert": log2(positions * (cin + cout) * byte),
    }  # fmt: skip


def key_block(head_dim: FloatArray) -> FloatArray:
    """Keys of a block in FlashAttention 2's split kernel: 256 up to a head size of 64, 128 up to 128, 64 beyond."""
    return np.where(head_dim <= 64, 256.0, np.where(head_dim <= 128, 128.0, 64.0))


def split_count(blocks: FloatArray, key_blocks: FloatArray, units: float) -> FloatArray:
    """Parts FlashAttention 2 cuts the keys into: the fewest whose last wave is within 85 % of the fullest one.

    1 where the grid fills 80 % of `units` anyway. blocks, key_blocks: (n,).
    """
    parts = np.arange(1.0, 129.0)[None, :]
    waves = blocks[:, None] * parts / units
    each = np.ceil(key_blocks[:, None] / parts)
    before = np.ceil(key_blocks[:, None] / np.maximum(parts - 1.0, 1.0))
    allowed = ((parts == 1) | (each != before)) & (parts <= np.minimum(key_blocks, min(128.0, units))[:, None])
    full = np.where(allowed, waves / np.ceil(waves), 0.0)
    good = allowed & (full >= 0.85 * full.max(axis=1, keepdims=True))
    return np.where(blocks >= 0.8 * units, 1.0, parts[0, np.argmax(good, axis=1)])


def attention(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """Blocks of queries and parts of keys. A single query of grouped heads is taken as the group's queries of one
    head, so the keys are read once a group; with two queries or more each head reads them for itself."""
    slots = platform.value("compute_units")
    batch, heads, kv_heads, q, kv, dim = (
        np.asarray(a[name], dtype=np.float64) for name in ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim")
    )
    group, causal = heads / kv_heads, np.asarray(a["causal"], dtype=np.float64)
    swapped = (q == 1) & (group > 1)
    rows, columns = np.where(swapped, group, q), np.where(swapped, kv_heads, heads)
    key_blocks = np.ceil(kv / key_block(dim))
    split_blocks = batch * columns * np.ceil(rows / 64.0)
    parts = split_count(split_blocks, key_blocks, 2.0 * slots)
    edge = np.where(parts > 1, 64.0, 128.0)
    blocks = batch * columns * np.ceil(rows / edge) * parts
    serial = np.ceil(key_blocks / parts)
    rounds = np.ceil(blocks / (2.0 * slots)) * serial
    old = batch * heads * np.ceil(q / 128.0)
    return {
        "log2_blocks": log2(old / slots), "tail_blocks": tail(old, slots), "tail_blocks_2": tail(old, 2.0 * slots),
        "log2_group": log2(group), "log2_kv_over_q": log2(kv / q), "log2_bh": log2(batch * heads),
        "log2_batch_kv_heads": log2(batch * kv_heads),
        "swapped": swapped.astype(np.float64), "log2_parts": log2(parts), "is_split": (parts > 1).astype(np.float64),
        "log2_grid": log2(blocks / slots), "log2_serial": log2(serial), "log2_rounds": log2(rounds),
        "log2_round_flop": log2(rounds * key_block(dim) * dim), "tail_grid": tail(blocks, 2.0 * slots),
        "pad_rows_64": padding_log2(rows, 64.0), "pad_rows_128": padding_log2(rows, 128.0),
        "pad_keys": padding_log2(kv, key_block(dim)), "log2_rows": log2(rows),
        "short_rows": (rows <= 64).astype(np.float64),
        "log2_key_reads": log2(batch * columns * np.ceil(rows / edge) * kv * dim * byte),
        "causal_serial": causal * log2(np.maximum(kv / key_block(dim), 1.0)),
        "whole_keys": (kv % 64 == 0) * 1.0, "whole_rows": (q % 64 == 0) * 1.0,
    }  # fmt: skip


def stream(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """Whole vectors and whole blocks: an incomplete block of PyTorch's element-wise kernels takes a slower path."""
    n = np.asarray(a["n"], dtype=np.float64)
    slots = platform.value("compute_units")
    whole = {f"whole_{block}": (n % block == 0) * 1.0 for block in (4, 8, 512, 1024, 2048)}
    waves = {"tail_vectors": tail(np.ceil(n / 512.0), 16.0 * slots), "tail_wide": tail(np.ceil(n / 1024.0), slots)}
    return whole | waves | {"log2_n_per_unit": log2(n / slots)}


def weighted_sums(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """Sums over all inputs by a block of 16 outputs: few blocks, each with a long walk."""
    inputs, hidden = np.asarray(a["inputs"], dtype=np.float64), np.asarray(a["hidden"], dtype=np.float64)
    slots = platform.value("compute_units")
    blocks = np.ceil(hidden / 16.0)
    weights = inputs * hidden * byte
    return {"log2_walk": log2(np.ceil(blocks / (8.0 * slots)) * inputs), "log2_blocks": log2(blocks / slots),
            "tail_blocks": tail(blocks, slots), "log2_weights_over_cache": log2(weights / platform.value("l2_size")),
            "pad_hidden_16": padding_log2(hidden, 16.0), "pad_hidden_32": padding_log2(hidden, 32.0),
            "row_is_whole": (hidden * byte % 32.0 == 0) * 1.0}  # fmt: skip


def grid_blocks(across: str, down: str, width: float, height: float, deep: str = "") -> Any:
    """Columns of a kernel with a thread a cell in blocks of width × height: padding at the edges, last wave."""

    def columns(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
        x, y = np.asarray(a[across], dtype=np.float64), np.asarray(a[down], dtype=np.float64)
        z = np.asarray(a[deep], dtype=np.float64) if deep else 1.0
        blocks, slots = np.ceil(x / width) * np.ceil(y / height) * z, 8.0 * platform.value("compute_units")
        return {"pad_across": padding_log2(x, width), "pad_down": padding_log2(y, height),
                "log2_blocks": log2(blocks / slots), "tail_blocks": tail(blocks, slots),
                "log2_line": log2(x * byte), "log2_plane": log2(x * y * byte),
                "line_is_whole": (x * byte % 32.0 == 0) * 1.0}  # fmt: skip

    return columns


def dense_columns(dense: FloatArray, row_mean: FloatArray, row_max: FloatArray) -> Columns:
    """A warp walks a sparse row once for every 32 dense columns: idle lanes, and the longest walk."""
    walks = np.ceil(dense / 32.0)
    return {"pad_dense_32": padding_log2(dense, 32.0), "log2_walks": log2(walks),
            "log2_row_walk": log2(row_mean * walks), "log2_longest_walk": log2(row_max * walks),
            "dense_of_fours": (dense % 4 == 0) * 1.0}  # fmt: skip
