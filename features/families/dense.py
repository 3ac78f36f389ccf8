"""Products, convolution, attention, transforms: how known kernels cut them into tiles, blocks and passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...analytic.baseline import Baseline
from ...analytic.factors import exponent_of, largest_prime, next_power_of_two, rough_part
from ...analytic.gemm_serial import SHAPES as SERIAL_SHAPES
from ...analytic.gemm_tiles import K_STEP_BYTE
from ...analytic.platform import Platform
from ...analytic.work import FloatArray
from ..grid import Arguments, Columns
from ..numbers import alignment_log2, log2, padding_log2, tail

SKINNY = (1, 8, 16, 32, 64, 128, 256)
"""Rows up to which kernels for few rows are chosen: a vector product, then the tile heights matrix units offer."""
SHAPES = ((64, 256), (64, 128), (128, 64), (128, 192))
"""Tile shapes beside the square ones, one to a unit."""
PAIRED = ((256, 256), (256, 128))
"""Tile shapes that two units share."""
MOST_PER_UNIT = 8.0
"""Tiles a unit from where on their number no longer shows in waves."""
TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (32, 128), (128, 32))


def _tiles(base: Baseline, byte: float, platform: Platform) -> Columns:
    """Alignment, last waves and padding of a product for the usual tiles."""
    if base.work.gemm is None:
        return {}
    m, n, k, batch = base.work.gemm
    slots = platform.value("compute_units")
    out = {
        "align_min": np.minimum(np.minimum(alignment_log2(n, byte), alignment_log2(k, byte)), 4.0),
        "log2_mn": log2(m * n), "log2_n_over_m": log2(n / m), "log2_k_over_mn": log2(k / np.sqrt(m * n)),
        "tail_128x256": tail(np.ceil(m / 128) * np.ceil(n / 256) * batch, slots),
        "tail_256x128": tail(np.ceil(m / 256) * np.ceil(n / 128) * batch, slots),
        "tail_128x128": tail(np.ceil(m / 128) * np.ceil(n / 128) * batch, slots),
        "tail_64x64": tail(np.ceil(m / 64) * np.ceil(n / 64) * batch, slots),
        "log2_ctas_128": log2(np.ceil(m / 128) * np.ceil(n / 128) * batch / slots),
    }
    out |= {f"pad_{name}_{tile}": padding_log2(size, tile) for name, size in (("m", m), ("n", n)) for tile in (64, 128)}
    out["pad_m_256"], out["pad_n_256"] = padding_log2(m, 256.0), padding_log2(n, 256.0)
    details = ("waves", "wave_efficiency", "tile_m", "tile_n", "split_k")
    out |= {f"log2_{name}": log2(base.details[name]) for name in details if name in base.details}
    return out


def cut_columns(base: Baseline, byte: float, platform: Platform) -> Columns:
    """Columns of shape (n,) of products `C[m,n] = A[m,k] B[k,n]`, all of them counts of tiles, steps and waves.

    Few rows: libraries take the narrowest tile that holds them (often with A and B swapped), which leaves units idle;
    those can share the K loop, so what is left of it for each is a column.
    """
    if base.work.gemm is None:
        return {}
    m, n, k, batch = base.work.gemm
    units = platform.value("compute_units")
    steps = np.ceil(k * byte / K_STEP_BYTE)
    narrow = np.clip(2.0 ** np.ceil(np.log2(np.maximum(m, 1.0))), 16.0, 256.0)
    tiles = {edge: np.ceil(n / edge) * np.ceil(m / narrow) * batch for edge in (64, 128)}
    sharing = np.maximum(np.floor(units / tiles[128]), 1.0)
    columns = {f"m_upto_{rows}": np.asarray(m <= rows, dtype=np.float64) for rows in SKINNY}
    columns |= {f"pad_m_{edge}": padding_log2(m, edge) for edge in (16, 32)}
    columns |= {f"tail_{tm}x{tn}": tail(np.ceil(m / tm) * np.ceil(n / tn) * batch, units) for tm, tn in SHAPES}
    columns |= {f"tail_{tm}x{tn}_pair": tail(np.ceil(m / tm) * np.ceil(n / tn) * batch, units / 2.0)
                for tm, tn in PAIRED}
    for tm, tn in SERIAL_SHAPES:
        columns[f"serial_{tm}x{tn}"] = log2(base.details[f"serial_{tm}x{tn}_s"] / base.time_s)
        per_unit = np.ceil(m / tm) * np.ceil(n / tn) * batch / units
        columns[f"per_unit_{tm}x{tn}"] = np.asarray(np.minimum(per_unit, MOST_PER_UNIT))
    return columns | {
        "tail_narrow_64": tail(tiles[64], units), "tail_narrow_128": tail(tiles[128], units),
        "log2_narrow_per_unit": log2(tiles[128] / units),
        "log2_k_steps": log2(steps), "pad_k": log2(steps * K_STEP_BYTE / (k * byte)),
        "log2_steps_shared": log2(steps / sharing), "log2_serial": log2(base.details["rounds_s"] / base.time_s),
    }


def product(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """Tiles of a product, and how few rows or few tiles are dealt with."""
    return _tiles(base, byte, platform) | cut_columns(base, byte, platform)


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
            "log2_least": log2(np.minimum(np.minimum(m, n), k)), "log2_min_mn": log2(np.minimum(m, n))}
    return _tiles(base, byte, platform) | tile_costs(m, n, k, batch, platform.value("compute_units")) | whole | each


def convolution(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """An implicit product whose k walks the window a block of channels at a time: channels are padded for each tap."""
    cin, cout = (np.asarray(a[name], dtype=np.float64) for name in ("cin", "cout"))
    taps, pixels = a["kernel_h"] * a["kernel_w"], a["height"] * a["width"]
    slots = platform.value("compute_units")
    positions = a["batch"] * pixels
    return _tiles(base, byte, platform) | tile_costs(positions, cout, cin * taps, np.ones_like(cin), slots) | {
        "align_cin": alignment_log2(cin, byte), "align_cout": alignment_log2(cout, byte), "log2_pixels": log2(pixels),
        "log2_image_set": log2(a["batch"] * cin * pixels), "log2_window": log2(cin * taps), "log2_taps": log2(taps),
        "odd_pixels": np.asarray(a["height"] % 4.0), "cin_of_eights": (cin % 8 == 0) * 1.0,
        "needs_padding": ((cin % 8 != 0) & (taps > 1)) * 1.0, "pointwise": (taps == 1) * 1.0,
        "pad_cin_16": padding_log2(cin, 16.0), "pad_cin_32": padding_log2(cin, 32.0),
        "pad_cin_64": padding_log2(cin, 64.0),
        "log2_k_steps": log2(np.ceil(cin / 64.0) * taps), "log2_output": log2(positions * cout),
        "log2_convert": log2(positions * (cin + cout) * byte),
    }


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
    }


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
    }


def matrix_vector(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """A row to a warp, to a block, or cut among several blocks."""
    slots = platform.value("compute_units")
    m, n = np.asarray(a["m"], dtype=np.float64), np.asarray(a["n"], dtype=np.float64)
    waves = np.ceil(m / (64.0 * slots))
    return {"log2_n_over_m": log2(n / m), "tail_rows": tail(m, slots), "tail_rows_4": tail(m / 4.0, slots),
            "align_row": alignment_log2(n, byte), "row_is_whole": (n * byte % 16.0 == 0) * 1.0,
            "log2_row_steps": log2(np.ceil(n / 32.0)), "log2_rows_per_warp": log2(m / (64.0 * slots)),
            "log2_warp_rounds": log2(waves * np.ceil(n / 32.0)), "short_row": (n < 128) * 1.0,
            "log2_row_byte": log2(n * byte)}


COLUMNS = {
    "gemm": product, "bmm": batched, "conv2d": convolution, "attention": attention, "fft": transform,
    "gemv": matrix_vector, "bicg": matrix_vector,
}
UNSTEADY = {"gemm": ("log2_serial", "serial_", "share_")}
"""How much of the latency a library hides differs from one generation to the next."""
