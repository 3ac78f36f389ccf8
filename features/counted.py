"""A profiled kernel of no known family as numbers: what a profiler counted, the seconds it stands for, its columns.

Three levels of knowledge, each with the columns of those before it: *work* (FLOP and device-memory bytes), *traffic*
(and L2 bytes), *profile* (and launch shape and integer operations). Everything is a launch's share of the call: a call
of several launches pays every floor as often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.baseline import arithmetic_precision, launch_floor_s, memory_of
from ..analytic.cachemodel import knee_hit_rate
from ..analytic.errors import InputError
from ..analytic.platform import Platform
from ..analytic.work import Family, FloatArray, Work, element_byte

SEGMENT = "segment"
LEVELS = ("work", "traffic", "profile")
LAUNCH_L2_BYTE = 150e3
"""L2 traffic of a launch that does nothing: the least counted on the H200 is 0.14 to 0.21 MB a launch."""
FLOP_OF_FP = 1.5
"""FLOP of a floating-point instruction of unknown kind: an addition is one, a multiply-add two."""
MATRIX = frozenset({"bf16", "fp16", "fp8", "fp6", "fp4", "tf32", "int8"})
"""Precisions whose FLOP are taken for the matrix units'; of the others only what no instruction explains."""
MATRIX_SHARE = 0.05
INTEGER_LANES = 64.0
"""Integer instructions a compute unit starts in a clock; all kinds together twice that, with FP64 among them less."""
ALL_LANES = {"fp64": 1.5 * INTEGER_LANES}
LANE_BYTE = 16.0
"""Widest access of one thread [B]."""
BLOCK_S = 50e-9
"""Order of what it takes a unit to be dealt one more block [s]; its multiplier, like every other, is fitted."""
SECOND = 1e-6


@dataclass(frozen=True)
class Counts:
    """What is known of n calls: arrays of shape (n,), NaN where not known. Totals of the call, except a launch's shape
    (`threads`, `block`, `registers`, `smem_byte`)."""

    flop: FloatArray
    byte: FloatArray
    """Device-memory bytes, read and written, with empty caches before the call."""
    l2_byte: FloatArray
    launches: FloatArray
    threads: FloatArray
    block: FloatArray
    registers: FloatArray
    smem_byte: FloatArray
    int_ops: FloatArray
    fp_inst: FloatArray
    working_set_byte: FloatArray
    cold: FloatArray
    """1 where the caches are empty before the call."""
    precision: NDArray[Any]

    def take(self, rows: Any) -> Counts:
        """The named rows."""
        return Counts(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    def __len__(self) -> int:
        return int(self.byte.size)


def stack(parts: Sequence[Counts]) -> Counts:
    """Several as one."""
    return Counts(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Counts)})


def make_counts(n: int, precision: Any, **columns: Any) -> Counts:
    """Counts of n calls from some of the columns; the others are not known (one launch, warm)."""
    blank: dict[str, Any] = {f.name: np.nan for f in fields(Counts)} | {"launches": 1.0, "cold": 0.0, "flop": 0.0}
    full = {name: np.broadcast_to(np.asarray(value, dtype=np.float64), (n,)).copy()
            for name, value in (blank | columns).items() if name != "precision"}
    full["launches"] = np.maximum(np.nan_to_num(full["launches"], nan=1.0), 1.0)
    return Counts(**full, precision=np.broadcast_to(np.asarray(precision, dtype=object), (n,)))


def _product(cells: NDArray[Any]) -> FloatArray:
    """Product of each cell that is a list of positive numbers; NaN for anything else."""
    texts = [repr(cell) for cell in cells]
    found = {text: _one_product(cell) for text, cell in dict(zip(texts, cells, strict=True)).items()}
    return np.array([found[text] for text in texts])


def _one_product(cell: Any) -> float:
    if not isinstance(cell, list | tuple) or not cell:
        return np.nan
    try:
        sizes = np.asarray(cell, dtype=np.float64)
    except (TypeError, ValueError):
        return np.nan
    return float(np.prod(sizes)) if np.isfinite(sizes).all() and (sizes >= 1.0).all() else np.nan


def counts_of_arguments(a: Mapping[str, NDArray[Any]], precision: str, cache: str) -> Counts:
    """Counts of rows of the family `segment` from their validated arguments."""
    grid, block = _product(a["grid"]), _product(a["block"])
    flop, fp_inst = a["flops"], a["fp_inst"]
    flop = np.where((flop <= 0.0) & (fp_inst > 0.0), FLOP_OF_FP * fp_inst, flop)
    return make_counts(
        a["bytes"].size, precision, flop=flop, byte=a["bytes"], l2_byte=a["l2_bytes"], launches=a["launches"],
        threads=grid * block, block=block, registers=a["registers"], smem_byte=a["smem_bytes"], int_ops=a["int_ops"],
        fp_inst=fp_inst, working_set_byte=a["working_set"], cold=float(cache == "cold"),
    )


def work_of(family: Family, a: Mapping[str, NDArray[Any]], precision: str) -> Work:
    """Work of a family's validated arguments; a segment's FLOP on the units that its precision is taken to run on."""
    work = family.work(a, element_byte(precision))
    return replace(work, unit="matrix") if family.name == SEGMENT and precision in MATRIX else work


def counts_of(family: Family, a: Mapping[str, NDArray[Any]], precision: str, cache: str) -> Counts | None:
    """Counts of the family `segment`; None for any other, which has parameters of its own."""
    return counts_of_arguments(a, precision, cache) if family.name == SEGMENT else None


def counts_of_work(work: Work, precision: str, cache: str) -> Counts:
    """First-principles work in the place of counted work: FLOP, compulsory bytes and launches, nothing else."""
    return make_counts(work.flop.size, precision, flop=work.flop, byte=work.compulsory_byte, launches=work.launches,
                       cold=float(cache == "cold"))


def level_of(counts: Counts, platform: Platform) -> NDArray[np.intp]:
    """The highest of LEVELS each row has everything of, as its position."""
    shape = np.isfinite(counts.threads * counts.block * counts.int_ops) & (counts.block >= 1.0)
    if not all(platform.get(name) for name in ("clock_boost", "max_warps_per_cu", "registers_per_cu")):
        shape = np.zeros_like(shape)
    traffic = np.isfinite(counts.l2_byte)
    return np.where(traffic & shape, 2, np.where(traffic, 1, 0)).astype(np.intp)


def missed_share(counts: Counts, platform: Platform) -> FloatArray:
    """Share of the device-memory bytes that no cache has: what a launch has fetched the next one finds, so that only
    the first of a cold call pays for what fits."""
    memory = memory_of(platform)
    own = np.maximum(counts.byte, 1.0) / counts.launches
    resident = np.where(np.isnan(counts.working_set_byte), own, counts.working_set_byte)
    hit = knee_hit_rate(resident, memory.knee_start_byte, memory.knee_end_byte)
    return (1.0 - hit) + counts.cold * hit / counts.launches


def least_s(counts: Counts, platform: Platform) -> FloatArray:
    """What no call can beat [s]: its bytes at the peak of the memory, or an empty kernel a launch."""
    byte_s = counts.byte * missed_share(counts, platform) / platform.value("hbm_peak_bw")
    return np.maximum(byte_s, counts.launches * launch_floor_s(platform))


def _rates(platform: Platform, precision: NDArray[Any], matrix: bool) -> FloatArray:
    """FLOP/s of each row's precision on the matrix or the usual units; the vector units where there is no other."""
    names, codes = np.unique(precision.astype(str), return_inverse=True)
    return np.array([_rate(platform, arithmetic_precision(str(name)), matrix) for name in names])[codes]


def _rate(platform: Platform, precision: str, matrix: bool) -> float:
    wanted = "tf32" if matrix and precision == "fp32" else precision
    for name, unit in ((wanted, "matrix" if matrix or precision in MATRIX else "vector"), (precision, "vector"),
                       ("fp32", "vector")):
        try:
            return platform.sustained_flop_per_s(name, unit)
        except InputError:
            continue
    raise InputError(f"platform {platform.id}: no rate for {precision} arithmetic")


def occupancy(counts: Counts, platform: Platform) -> FloatArray:
    """Share of a compute unit's thread slots that registers, shared memory and block slots leave a kernel: (0, 1]."""
    warp, slots = platform.value("warp_size"), platform.value("max_warps_per_cu")
    warps = np.ceil(np.maximum(np.nan_to_num(counts.block, nan=256.0), 1.0) / warp)
    held = np.maximum(np.nan_to_num(counts.registers), 1.0) * warps * warp
    blocks = np.floor(slots / warps)
    blocks = np.minimum(blocks, np.floor((platform.get("registers_per_cu") or np.inf) / held))
    shared = np.maximum(np.nan_to_num(counts.smem_byte), 1.0)
    blocks = np.minimum(blocks, np.floor((platform.get("shared_mem_per_cu") or np.inf) / shared))
    blocks = np.minimum(blocks, platform.get("max_ctas_per_cu") or np.inf)
    return np.clip(np.maximum(blocks, 1.0) * warps / slots, 1.0 / slots, 1.0)


def fp_instructions(counts: Counts) -> FloatArray:
    """Floating-point instructions of the vector units: counted, else what the FLOP of a vector precision imply."""
    implied = np.where(np.isin(counts.precision.astype(str), list(MATRIX)), 0.0, counts.flop / FLOP_OF_FP)
    return np.where(np.isnan(counts.fp_inst), implied, counts.fp_inst)


def segment_terms(counts: Counts, platform: Platform, level: str) -> dict[str, FloatArray]:
    """Seconds of one launch that each limit alone would take, shape (n,) each; never falling in any amount of work.

    Memory and L2 at their rates; arithmetic of the matrix units; and from a profile on: instructions at the rate they
    are issued, blocks at the rate they are dealt out, and the accesses one thread makes one after the other, wave by
    wave. A launch of fewer blocks than there are units has the issue and L2 rate of those alone.
    """
    memory = memory_of(platform)
    launches = counts.launches
    byte = np.maximum(counts.byte, 1.0)
    l2_byte = byte
    if level != "work":
        l2_byte = np.maximum(np.nan_to_num(counts.l2_byte) - launches * LAUNCH_L2_BYTE, byte)
    missed = missed_share(counts, platform)
    out = {"memory": byte * missed / memory.hbm_byte_per_s / launches,
           "cache": l2_byte / memory.cache_byte_per_s / launches}
    if level != "profile":
        return out | {"compute": counts.flop / _rates(platform, counts.precision, False) / launches}
    units, vector = platform.value("compute_units"), fp_instructions(counts)
    matrix = counts.flop - 2.0 * vector
    matrix = np.where(matrix > MATRIX_SHARE * counts.flop, matrix, 0.0)
    slots = np.array([ALL_LANES.get(str(name), 2.0 * INTEGER_LANES) for name in counts.precision])
    issued = np.maximum(counts.int_ops / INTEGER_LANES, (counts.int_ops + vector) / slots)
    blocks = np.maximum(counts.threads / counts.block, 1.0)
    busy = np.minimum(blocks, units) / units
    room = units * platform.value("max_warps_per_cu") * platform.value("warp_size") * occupancy(counts, platform)
    waves = np.maximum(counts.threads / room, 1.0)
    latency = platform.latency_s("latency_hbm") if platform.get("latency_hbm") else 3e-7
    out["cache"] = out["cache"] / busy
    return out | {
        "compute": matrix / _rates(platform, counts.precision, True) / launches,
        "issue": issued / (units * platform.value("clock_boost")) / launches / busy,
        "chain": l2_byte / launches / counts.threads * waves / LANE_BYTE * latency,
        "blocks": blocks / units * BLOCK_S,
    }


def _log2(x: FloatArray, least: float) -> FloatArray:
    return np.asarray(np.log2(np.maximum(np.nan_to_num(x), 0.0) + least))


def segment_columns(counts: Counts, terms: Mapping[str, FloatArray], platform: Platform, level: str
                    ) -> tuple[list[str], FloatArray]:
    """(names, matrix (n, columns)) of a level. Columns in RISING grow with work at an unchanged launch shape."""
    out = {f"log2_{name}": _log2(value / SECOND, 1e-3) for name, value in terms.items()}
    names = counts.precision.astype(str)
    out |= {
        "cold": counts.cold / counts.launches, "log2_launches": np.log2(counts.launches),
        "matrix": np.isin(names, list(MATRIX)).astype(np.float64),
        "element_byte": np.array([element_byte(name) for name in names], dtype=np.float64),
    }
    if level == "traffic":
        out["log2_reuse"] = np.clip(_log2(counts.l2_byte / np.maximum(counts.byte, 1.0), 0.25), -2.0, 8.0)
    if level == "profile":
        threads = counts.launches * np.maximum(counts.threads, 1.0)
        out |= {
            "occupancy": occupancy(counts, platform), "log2_block": np.log2(counts.block),
            "registers": counts.registers, "log2_shared": _log2(counts.smem_byte, 256.0),
            "log2_blocks": _log2(counts.threads / counts.block / platform.value("compute_units"), 1e-6),
            "log2_steps": _log2((counts.int_ops + fp_instructions(counts)) / threads, 0.1),
            "log2_thread_byte": _log2(counts.l2_byte / threads, 0.1),
        }
    return list(out), np.column_stack([np.broadcast_to(value, (len(counts),)) for value in out.values()])


RISING = frozenset({
    *(f"log2_{name}" for name in ("memory", "cache", "compute", "issue", "chain")), "log2_steps", "log2_thread_byte",
})
"""Columns in which a residual of the profile level may only rise: more work is then never predicted to be faster."""
