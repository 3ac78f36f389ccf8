"""Streaming families: vectors, reductions, scans, sorts, transposes, row-wise normalisations, copies.

Byte counts are compulsory traffic (each operand crosses HBM↔L2 once); what takes several passes says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..work import SECTOR_BYTE, Arguments, Family, FloatArray, Param, Work, WorkClass, make_work


def _vector(flop: float, reads: float, writes: float) -> Callable[[Arguments, float], Work]:
    """Element-wise kernel on n elements: `flop`, `reads`, `writes` per element."""

    def work(a: Arguments, byte: float) -> Work:
        n = a["n"]
        return make_work(flop * n, reads * n * byte, writes * n * byte, threads=n)

    return work


def _reduction(a: Arguments, byte: float) -> Work:
    n = a["n"]
    # one value is written; a second launch adds up the partial sums of the first
    return make_work(n, n * byte, byte, threads=n, launches=2.0, chain=2.0)


def _scan(a: Arguments, byte: float) -> Work:
    n = a["n"]
    # decoupled look-back: each element is read and written once, after an initialising launch
    return make_work(n, n * byte, n * byte, threads=n, launches=2.0, chain=2.0)


def _sort(a: Arguments, byte: float) -> Work:
    n = a["n"]
    passes = byte  # radix sort, 8 bits a pass: one pass for each byte of the key
    traffic = 2.0 * n * byte * passes  # every pass reads and writes the keys; the first read, last write are compulsory
    return make_work(
        n * passes, n * byte, n * byte, threads=n, working_set_byte=2.0 * n * byte,
        reread_byte=traffic - 2.0 * n * byte + n * byte, launches=1.0 + passes, chain=2.0 * passes,
    )


def _merge(a: Arguments, byte: float) -> Work:
    n = a["m"] + a["n"]
    # a binary search of the merge path finds where each thread starts, then one compare a key
    return make_work(n, n * byte, n * byte, threads=n, chain=np.log2(np.maximum(n, 2.0)))


def _bitonic(a: Arguments, byte: float) -> Work:
    n = a["n"]
    stages = np.ceil(np.log2(np.maximum(n, 2.0)))
    launches = stages * (stages + 1.0) / 2.0
    return make_work(
        launches * n / 2.0, n * byte, n * byte, threads=n / 2.0, working_set_byte=n * byte, launches=launches,
        reread_byte=2.0 * n * byte * (launches - 1.0), chain=launches,
    )


def _walsh(a: Arguments, byte: float) -> Work:
    n = a["n"]
    launches = np.ceil(np.log2(np.maximum(n, 2.0)))
    return make_work(
        launches * n, n * byte, n * byte, threads=n / 2.0, working_set_byte=n * byte, launches=launches,
        reread_byte=2.0 * n * byte * (launches - 1.0), chain=launches,
    )


def _transpose(a: Arguments, byte: float) -> Work:
    size = a["m"] * a["n"]
    return make_work(0.0, size * byte, size * byte, threads=size)


def _rows(flop: float) -> Callable[[Arguments, float], Work]:
    """Row-wise normalisation of a rows × cols matrix: read once, written once, `flop` an element."""

    def work(a: Arguments, byte: float) -> Work:
        size = a["rows"] * a["cols"]
        # a block of up to 1,024 threads a row: long rows are walked in steps
        return make_work(
            flop * size, size * byte, size * byte, threads=a["rows"] * np.minimum(a["cols"], 1024.0),
            chain=2.0 + np.ceil(a["cols"] / 1024.0),
        )

    return work


def _touched(table: FloatArray, n: FloatArray) -> FloatArray:
    """Expected distinct entries of a table touched by n uniform draws: table · (1 − e^(−n/table))."""
    return np.asarray(-table * np.expm1(-n / table), dtype=np.float64)


def _random_order(a: Arguments) -> FloatArray:
    """1 where the accesses are in random order (also where nothing is said), 0 where they are sorted."""
    return np.asarray(a["order"] != "sorted", dtype=np.float64)


def _gather(a: Arguments, byte: float) -> Work:
    table, n = a["table"], a["n"]
    # a sector holds several neighbours: a random draw brings the whole sector, a sorted one shares it
    sectors = _touched(np.maximum(table * byte / SECTOR_BYTE, 1.0), n)
    distinct = np.minimum(sectors * SECTOR_BYTE, table * byte)
    reread = _random_order(a) * np.maximum(n * SECTOR_BYTE - distinct, 0.0)
    return make_work(
        0.0, n * 4.0 + np.minimum(distinct, n * SECTOR_BYTE), n * byte, threads=n,
        working_set_byte=table * byte + n * (4.0 + byte), reread_byte=reread, chain=2.0,
    )


def _scatter(table_name: str) -> Callable[[Arguments, float], Work]:
    """n atomic additions into a table (or the bins of a histogram)."""

    def work(a: Arguments, byte: float) -> Work:
        table, n = a[table_name], a["n"]
        sectors = _touched(np.maximum(table * byte / SECTOR_BYTE, 1.0), n)
        distinct = np.minimum(np.minimum(sectors * SECTOR_BYTE, table * byte), n * SECTOR_BYTE)
        reread = _random_order(a) * np.maximum(n * SECTOR_BYTE - distinct, 0.0)
        return make_work(
            n, n * (4.0 + byte) + distinct, distinct, threads=n,
            working_set_byte=table * byte + n * (4.0 + byte), reread_byte=reread, chain=2.0,
        )

    return work


def _histogram(a: Arguments, byte: float) -> Work:
    bins, n = a["bins"], a["n"]
    # some five hundred blocks count for themselves and add what they have, at most a value a count
    merged = np.minimum(bins * np.minimum(np.ceil(n / 256.0), 512.0), n)
    return make_work(n, n * byte + bins * 4.0, bins * 4.0, threads=n, launches=2.0, reread_byte=4.0 * merged,
                     chain=2.0)


def _hash_probe(a: Arguments, byte: float) -> Work:
    table, n = a["table"], a["n"]
    # linear probing (Knuth 1963): probes of a hit and of a miss; half of the look-ups are taken for hits
    load = np.clip(a["load"], 0.0, 0.95)
    hit, miss = 0.5 * (1.0 + 1.0 / (1.0 - load)), 0.5 * (1.0 + 1.0 / (1.0 - load) ** 2)
    probes = 0.5 * (hit + miss)
    # probes follow each other in memory: a new sector every few keys, and the value of a hit in another table
    sectors = 1.0 + (probes - 1.0) * byte / SECTOR_BYTE + 0.5
    distinct = np.minimum(_touched(np.maximum(table * 2.0 * byte / SECTOR_BYTE, 1.0), n * sectors) * SECTOR_BYTE,
                          table * 2.0 * byte)
    return make_work(
        n * probes, n * byte + distinct, n * byte, threads=n, working_set_byte=2.0 * table * byte + 2.0 * n * byte,
        reread_byte=np.maximum(n * sectors * SECTOR_BYTE - distinct, 0.0), chain=miss,
    )


def _segmented_scan(a: Arguments, byte: float) -> Work:
    n, segments = a["n"], a["segments"]
    # a warp a segment walks it 32 elements at a time, each step waiting for the carry of the one before; of segments
    # cut at random the longest is about ln s + 0.58 times the mean
    longest = np.minimum(n / segments * (np.log(segments) + 0.5772), n)
    chain = 1.0 + np.ceil(np.maximum(longest, n / segments) / 32.0)
    # warps at work on average while the longest segment lasts
    warps = np.maximum(segments * (1.0 + n / segments / 32.0) / chain, 1.0)
    return make_work(2.0 * n, n * byte + segments * 4.0, n * byte, threads=32.0 * warps, chain=chain)


def _copy_bytes(a: Arguments, byte: float) -> Work:
    size = a["bytes"]
    return make_work(0.0, size, size, threads=np.maximum(size / 16.0, 1.0))


def _family(name: str, work: Callable[[Arguments, float], Work], meaning: str, *params: Param,
            kind: WorkClass = "memory", **more: Any) -> Family:
    return Family(name, params, work, kind, meaning=meaning, **more)


N = Param("n", meaning="length of the vector", unit="elements")
KEYS = Param("n", meaning="keys to be sorted", unit="keys")
ORDER = Param("order", "text", required=False, meaning="order in which the table is touched",
              words=("random", "sorted"), follows="random")
TABLE = Param("table", meaning="length of the table", unit="elements")
DRAWS = Param("n", meaning="accesses to the table", unit="accesses")
ROWS = (Param("rows", meaning="rows, each normalised by itself", unit="rows"),
        Param("cols", meaning="length of a row", unit="elements"))
VECTOR: dict[str, Any] = {"n": 10_000_000}
MATRIX: dict[str, Any] = {"rows": 4096, "cols": 4096}
DRAWN: dict[str, Any] = {"table": 1_000_000, "n": 10_000_000, "order": "random"}

FAMILIES: tuple[Family, ...] = (
    _family("vector_copy", _vector(0.0, 1.0, 1.0), "b = a", N, example=VECTOR),
    _family("vector_scale", _vector(1.0, 1.0, 1.0), "b = s·a", N, example=VECTOR),
    _family("vector_add", _vector(1.0, 2.0, 1.0), "c = a + b", N, example=VECTOR),
    _family("triad", _vector(2.0, 2.0, 1.0), "c = a + s·b", N, example=VECTOR),
    _family("relu", _vector(1.0, 1.0, 1.0), "b = max(a, 0)", N, example=VECTOR),
    _family("dot", lambda a, b: make_work(2.0 * a["n"], 2.0 * a["n"] * b, b, threads=a["n"], launches=2.0, chain=2.0),
            "a·b", N, example=VECTOR),
    _family("reduction", _reduction, "sum of n elements", N, example=VECTOR),
    _family("scan", _scan, "prefix sums", N, example=VECTOR),
    _family("segmented_scan", _segmented_scan, "prefix sums within segments", N,
            Param("segments", meaning="segments the vector is cut into, at random places", unit="segments"),
            kind="balanced", example={"n": 10_000_000, "segments": 100_000}),
    _family("sort", _sort, "radix sort of keys", KEYS, kind="balanced", example=VECTOR),
    _family("radix_sort", _sort, "radix sort of keys", KEYS, kind="balanced",
            example={"n": 1_000_000, "precision": "int32"}),
    _family("merge_sorted", _merge, "sorted lists of m and n keys into one",
            Param("m", meaning="keys of the first list", unit="keys"),
            Param("n", meaning="keys of the second list", unit="keys"), kind="balanced",
            example={"m": 1_000_000, "n": 1_000_000}),
    _family("bitonicsort", _bitonic, "bitonic sorting network, a launch a step", KEYS, precision="int32",
            example={"n": 1_048_576}),
    _family("fastwalshtransform", _walsh, "Walsh–Hadamard transform, a launch a step", N, example={"n": 1_048_576}),
    _family("transpose", _transpose, "out-of-place transpose", Param("m", meaning="rows of the matrix", unit="rows"),
            Param("n", meaning="columns of the matrix", unit="columns"), example={"m": 4096, "n": 4096}),
    _family("softmax", _rows(5.0), "softmax of each row", *ROWS, example=MATRIX),
    _family("layernorm", _rows(8.0), "layer normalisation of each row", *ROWS, example=MATRIX),
    _family("rmsnorm", _rows(4.0), "root-mean-square normalisation of each row", *ROWS, example=MATRIX),
    _family("gather", _gather, "b[i] = table[index[i]]", TABLE, DRAWS, ORDER, kind="irregular", example=DRAWN,
            statistics=("order",), asked_without=(("order",),)),
    _family("scatter_add", _scatter("table"), "table[index[i]] += a[i]", TABLE, DRAWS, ORDER, kind="irregular",
            example=DRAWN),
    _family("histogram", _histogram, "counts of n values in bins", Param("bins", meaning="counters", unit="bins"),
            Param("n", meaning="values counted", unit="values"), ORDER, kind="irregular",
            example={"bins": 256, "n": 10_000_000, "order": "random"}),
    _family("hash_probe", _hash_probe, "look-ups in an open-addressing table",
            Param("table", meaning="slots of the table", unit="slots"),
            Param("n", meaning="keys looked up", unit="keys"),
            Param("load", "real", required=False, default=0.5, meaning="share of the slots that are full, below 1",
                  unit="1"), kind="irregular", precision="int32",
            example={"table": 1_048_576, "n": 4_194_304, "load": 0.5}),
    _family("memcopy_d2d", _copy_bytes, "device-to-device copy",
            Param("bytes", meaning="size of what is copied", unit="B"), precision="none",
            example={"bytes": 100_000_000}),
)
