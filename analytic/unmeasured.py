"""Physical terms that a handful of runs of one family may scale where no other platform was measured.

Besides the terms of the analytic model: what one thread does alone, how often a unit has to go round, how far a chain
of loads reaches into the memory hierarchy, and what is no longer held by the caches in front of the last one. Each is
in seconds of the order that the platform takes, so that a multiplier near one is likely and one of a hundred is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NAMES = ("reaching_baseline", "thread_flop", "thread_byte", "round_flop", "round_byte", "scattered", "pages", "reused")
FLOP_S, BYTE_S = 2.28e-7, 2.28e-8
"""One thread's time [s] for an operation whose operand comes from a cache, and for a byte that does: some hundred
cycles of a chain of dependent loads."""
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


@dataclass(frozen=True)
class Asked:
    """What n questions of one family ask of a platform; arrays of shape (n,).

    The terms of the analytic model [s] and its whole time (`baseline_s`), operations, bytes from memory and from caches
    once more, the working set [B] and as a share of the last-level cache, threads of one compute unit.
    """

    launch_s: Floats
    compute_s: Floats
    memory_s: Floats
    chain_s: Floats
    baseline_s: Floats
    flop: Floats
    byte: Floats
    reread_byte: Floats
    set_byte: Floats
    set_over_cache: Floats
    threads_per_unit: Floats


def near_chain(asked: Asked) -> Floats:
    """The chain of dependent loads [s], which waits as long as its working set asks for."""
    return asked.chain_s * reach_share(asked.set_byte)


def unmeasured_terms(asked: Asked, compute_units: float) -> Floats:
    """Columns NAMES [s], shape (n, len(NAMES)). compute_units: of the platform (`platform.value("compute_units")`)."""
    threads = np.maximum(asked.threads_per_unit, 1e-9)
    all_threads = threads * compute_units
    under = np.maximum(asked.memory_s, asked.compute_s)
    longest = asked.launch_s + np.maximum(under, asked.chain_s)
    reaching = asked.baseline_s * (asked.launch_s + np.maximum(under, near_chain(asked))) / np.maximum(longest, 1e-12)
    flop, byte = asked.flop * FLOP_S, (asked.byte + asked.reread_byte) * BYTE_S
    thread = np.column_stack([flop, byte]) / all_threads[:, None]
    own_byte = asked.byte / all_threads
    caches = PRIVATE_SHARE * asked.set_byte / np.maximum(asked.set_over_cache, 1e-12)
    beyond_caches = beyond(asked.set_byte, caches) * np.minimum(own_byte / LINE_BYTE, 1.0)
    reused = asked.reread_byte / all_threads * REUSED_S * beyond(UNIT_THREADS * own_byte, FIRST_CACHE_BYTE)
    return np.column_stack([
        reaching, thread, thread * np.maximum(np.ceil(threads / UNIT_THREADS), 1.0)[:, None],
        LINE_ELEMENTS * asked.memory_s * beyond_caches,
        PAGE_COST * asked.memory_s * beyond(asked.set_byte, PAGE_REACH_BYTE), reused,
    ])
