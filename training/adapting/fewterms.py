"""Physical terms that a handful of runs of one family may scale where no other platform was measured.

Besides the terms of the analytic model: what one thread does alone, how often a unit has to go round, how far a chain
of loads reaches into the memory hierarchy, and what is no longer held by the caches in front of the last one. Each is
a function of the feature row alone, in seconds of the order that the platform takes, so that a multiplier near one is
likely and one of a hundred is not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...features.rows import Rows
from ..hybrid.calibration import TERMS

Floats = NDArray[np.float64]

NAMES = ("reaching_baseline", "thread_flop", "thread_byte", "round_flop", "round_byte", "scattered", "pages", "reused")
"""The terms that come before those of the calibration."""
UNITS = 228.0
"""Compute units of the platform that the scales below are meant for (MI300A); elsewhere they are off by a factor."""
FLOP_S, BYTE_S = 1e-9 * UNITS, 1e-10 * UNITS
"""One thread's time [s] for an operation whose operand comes from a cache, and for a byte that does."""
REUSED_S = 1e-10
"""One thread's time [s] for a byte that a second-level cache has to give again."""
UNIT_THREADS = 256.0
"""Threads that a unit works on at a time: four SIMDs of 64 lanes."""
NEAR, NEAREST_BYTE, FARTHEST_BYTE = 0.4, 2.0**15, 2.0**30
"""Wait of a load that is found in the first cache, as a share of one from memory, and the two working sets [B] between
which it grows; by the logarithm, because caches grow by powers (arXiv 2605.04178 Eq. (10) in one straight line)."""
PRIVATE_SHARE = 0.1
"""Size of the caches before the last-level one, all together, as a share of it (24 of 256 MB on CDNA 3)."""
LINE_BYTE, LINE_ELEMENTS = 128.0, 16.0
"""A thread that walks through memory by itself draws a line for each element once its lines are no longer held."""
PAGE_REACH_BYTE, PAGE_COST = 2.0**31, 8.0
"""Bytes that the translation caches reach (1024 pages of 2 MiB), and how much dearer an access beyond may be."""
FIRST_CACHE_BYTE = 32768.0
"""First-level cache of a unit, which a workgroup of UNIT_THREADS re-reads from."""


def beyond(set_byte: Floats, reach_byte: Floats | float) -> Floats:
    """Share of the accesses to a working set that miss what reaches `reach_byte` of it: max(0, 1 − reach ÷ set)."""
    return np.asarray(np.maximum(1.0 - reach_byte / np.maximum(set_byte, 1.0), 0.0))


def reach_share(set_byte: Floats) -> Floats:
    """Wait of a dependent load as a share of one from memory, NEAR to 1, by the logarithm of the working set."""
    depth = np.log2(np.maximum(set_byte, 1.0) / NEAREST_BYTE) / np.log2(FARTHEST_BYTE / NEAREST_BYTE)
    return np.asarray(NEAR + (1.0 - NEAR) * np.clip(depth, 0.0, 1.0))


def _amounts(rows: Rows) -> dict[str, Floats]:
    at = {name: i for i, name in enumerate(rows.names)}

    def two_to(name: str) -> Floats:
        return np.asarray(np.exp2(np.nan_to_num(rows.values[:, at[name]], nan=0.0)))

    reread = np.exp2(np.maximum(rows.values[:, at["log2_reread"]], 0.0))
    flop = np.exp2(np.maximum(rows.values[:, at["log2_flop"]], 0.0))
    return {"threads": two_to("log2_threads_per_unit"), "flop": flop, "byte": two_to("log2_byte"), "reread": reread,
            "set": two_to("log2_working_set"), "set_over_cache": two_to("log2_set_over_cache")}  # fmt: skip


def few_terms(terms: Floats, rows: Rows) -> Floats:
    """Columns NAMES, then those of `terms` (n, len(TERMS)), all [s]; shape (n, len(NAMES) + len(TERMS)).

    The chain among the latter waits as long as its working set asks for.
    """
    launch, compute, memory, chain, baseline = (
        terms[:, TERMS.index(name)] for name in ("launch", "compute", "memory", "chain", "baseline")
    )
    a = _amounts(rows)
    set_byte, threads = a["set"], np.maximum(a["threads"], 1e-9)  # threads of one unit
    near = chain * reach_share(set_byte)
    longest = launch + np.maximum(np.maximum(memory, compute), chain)
    reaching = baseline * (launch + np.maximum(np.maximum(memory, compute), near)) / np.maximum(longest, 1e-12)
    all_threads = threads * UNITS
    thread = np.column_stack([a["flop"] * FLOP_S, (a["byte"] + a["reread"]) * BYTE_S]) / all_threads[:, None]
    own_byte = a["byte"] / all_threads
    caches = PRIVATE_SHARE * set_byte / np.maximum(a["set_over_cache"], 1e-12)
    scattered = LINE_ELEMENTS * memory * beyond(set_byte, caches) * np.minimum(own_byte / LINE_BYTE, 1.0)
    reused = a["reread"] / all_threads * REUSED_S * beyond(UNIT_THREADS * own_byte, FIRST_CACHE_BYTE)
    rest = terms.copy()
    rest[:, TERMS.index("chain")] = near
    return np.column_stack([
        reaching, thread, thread * np.maximum(np.ceil(threads / UNIT_THREADS), 1.0)[:, None], scattered,
        PAGE_COST * memory * beyond(set_byte, PAGE_REACH_BYTE), reused, rest,
    ])  # fmt: skip


def plain() -> Floats:
    """Multipliers that give the analytic time of the parameter file as it is."""
    return (np.arange(len(NAMES) + len(TERMS)) == len(NAMES) + TERMS.index("baseline")).astype(np.float64)


def expected() -> Floats:
    """Multipliers that few runs are pulled to: the terms one by one, so that one of them may be found wrong without the
    others."""
    out = np.zeros(len(NAMES) + len(TERMS))
    out[[len(NAMES) + TERMS.index(name) for name in ("launch", "compute", "memory", "chain")]] = 1.0
    return out
