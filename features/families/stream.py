"""Streams, rows, tables: whole vectors and blocks, a row to a warp or a block, what a table costs in caches."""

from __future__ import annotations

import numpy as np

from ...analytic.baseline import Baseline
from ...analytic.factors import next_power_of_two
from ...analytic.platform import Platform
from ..grid import Arguments, Columns, grid_blocks
from ..numbers import log2, tail

SECTOR_KEYS = 8.0  # 4-byte keys in a 32-byte sector
EULER = 0.5772


def stream(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """Whole vectors and whole blocks: an incomplete block of PyTorch's element-wise kernels takes a slower path."""
    n = np.asarray(a["n"], dtype=np.float64)
    slots = platform.value("compute_units")
    whole = {f"whole_{block}": (n % block == 0) * 1.0 for block in (4, 8, 512, 1024, 2048)}
    waves = {"tail_vectors": tail(np.ceil(n / 512.0), 16.0 * slots), "tail_wide": tail(np.ceil(n / 1024.0), slots)}
    return whole | waves | {"log2_n_per_unit": log2(n / slots)}


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
            "log2_longest_share": log2(longest / 32.0 / np.maximum(steps / (64.0 * slots), 1e-3))}


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
            "tail_queries": tail(n / 2048.0, platform.value("compute_units"))}


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
    }


def table_density(a: Arguments, base: Baseline, byte: float, platform: Platform) -> Columns:
    """Draws an entry, and the size of the table against the caches it may live in."""
    table, n = np.asarray(a["table"], dtype=np.float64), np.asarray(a["n"], dtype=np.float64)
    cache, slots = platform.value("l2_size"), platform.value("compute_units")
    half = np.clip((table * byte / cache - 0.25) * 4.0, 0.0, 1.0)
    return {"log2_draws_per_entry": log2(n / table), "log2_table_over_cache": log2(table * byte / cache),
            "beyond_half_cache": half, "log2_draws_per_unit": log2(n / (2048.0 * slots)),
            "tail_draws": tail(n / 2048.0, slots)}


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
            "log2_per_thread": log2(np.ceil(n / (256.0 * blocks)))}


COLUMNS = {
    **dict.fromkeys(("vector_copy", "vector_scale", "vector_add", "triad", "relu"), stream),
    "segmented_scan": segment_length, "transpose": grid_blocks("n", "m", 32.0, 32.0),
    "softmax": normalised_rows, "layernorm": normalised_rows, "gather": table_density, "scatter_add": table_density,
    "histogram": bins, "hash_probe": probes,
}
