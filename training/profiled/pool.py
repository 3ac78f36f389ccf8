"""What the residual of profiled kernels learns from: calls of many families, each as a profiler would have seen it.

A measured run of a family tells its time; what a profiler counts of it is known for few calls. Where a table of counted
calls is at hand (configs/runs/<platform>-counted.parquet) a call that is in it has its own counts, and any other call
of the family has its first-principles work scaled by counted ÷ first-principles of the counted call nearest to it. A
family nobody counted keeps its first-principles FLOP and bytes and knows nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...analytic.baseline import Baseline, baseline_of_work
from ...analytic.families import FAMILIES
from ...analytic.platform import Platform
from ...analytic.work import Work, arguments
from ...configs import folder
from ...features.counted import FLOP_OF_FP, SEGMENT, Counts, counts_of_work, make_counts, stack, work_of
from ...features.describe import Described, describe
from ...features.params import canonical_params, parse_distinct
from ..tables.splits import group_draw

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

MOST_GROUPS = 60
"""Groups of one family that are learned from: fifty families count alike, however often one was measured."""
MOST_OF_GROUP = 4
KEY = ("kernel", "implementation", "precision", "params", "cache")
STRANGE_PRECISION, STRANGE_IMPLEMENTATION = 3.0, 2.0
"""What another precision or implementation adds to the distance of a counted call, in octaves of its size."""


@dataclass(frozen=True)
class Pool:
    """n calls: counts, time [s], family and group; `counted` where a profiler saw this very call."""

    counts: Counts
    time_s: Floats
    family: NDArray[Any]
    group: NDArray[Any]
    counted: NDArray[np.bool_]

    def take(self, rows: Any) -> Pool:
        """The named rows."""
        return Pool(self.counts.take(rows), self.time_s[rows], self.family[rows], self.group[rows], self.counted[rows])

    @property
    def families(self) -> list[str]:
        return sorted({str(name) for name in self.family})

    def weight(self) -> Floats:
        """Weights that let every family count the same, and within it counted calls as much as all others together."""
        labels = np.char.add(self.family.astype(str), np.where(self.counted, "|counted", "|"))
        _, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        weight = 1.0 / sizes[codes]
        return np.asarray(weight * len(weight) / weight.sum())


def counted_table(platform: str) -> pd.DataFrame | None:
    """The shipped table of counted calls of a platform, as families; None where there is none."""
    import pandas as pd

    path = folder("runs", f"{platform}-counted.parquet")
    if not path.is_file():
        return None
    frame = pd.read_parquet(path)
    return frame[frame["kernel"] != SEGMENT].reset_index(drop=True)


def build_pool(frame: pd.DataFrame, described: Described, counted: pd.DataFrame | None, seed: int = 0,
               most: int = MOST_GROUPS) -> Pool | None:
    """The pool of a run table of one platform; None where no row of it can be used.

    frame, described: the table and its description. counted: a table of counted calls (`counted_table`); their times
    are never read, those of `frame` are.
    """
    keys = _keys(frame, counted)
    seen = None if counted is None else _Counted(counted)
    chosen = _chosen(frame, described, seed, most)
    if seen is not None:
        chosen |= np.isfinite(described.baseline_s) & np.array([key in seen.key for key in keys], dtype=bool)
    if not chosen.any():
        return None
    parts, places, exact = [], [], []
    for group in described.groups:
        keep = chosen[group.index]
        if group.family == SEGMENT or not keep.any():
            continue
        index = group.index[keep]
        work = _rows(group.baseline.work, keep)
        counts = counts_of_work(work, group.precision, group.cache)
        known = np.zeros(index.size, dtype=bool)
        if seen is not None:
            labels = group.rows.categories["implementation"][keep].astype(str)
            counts, known = seen.counts(group.family, counts, work, labels, keys[index])
        parts.append(_launched(counts, frame, index, known))
        places.append(index)
        exact.append(known)
    if not parts:
        return None
    index = np.concatenate(places)
    order = np.argsort(index, kind="stable")
    index = index[order]
    return Pool(stack(parts).take(order), np.asarray(frame["time_s"], dtype=np.float64)[index],
                np.asarray(frame["kernel"].astype(str), dtype=object)[index],
                np.asarray(frame["group"].astype(str), dtype=object)[index], np.concatenate(exact)[order])


def _rows(work: Work, keep: NDArray[np.bool_]) -> Work:
    columns = {name: getattr(work, name)[keep] for name in Work.__dataclass_fields__ if name not in ("unit", "gemm")}
    return Work(**columns)


def _launched(counts: Counts, frame: pd.DataFrame, index: NDArray[np.intp], known: NDArray[np.bool_]) -> Counts:
    """Launches as the table has them; counted calls have their own already."""
    if "launches" in frame:
        given = np.asarray(frame["launches"], dtype=np.float64)[index]
        use = np.isfinite(given) & (given >= 1.0) & ~known
        counts.launches[use] = given[use]
    return counts


def _keys(frame: pd.DataFrame, counted: pd.DataFrame | None) -> NDArray[Any]:
    """One text a row that names the call, '' in families nobody counted."""
    keys = np.full(len(frame), "", dtype=object)
    if counted is None or not set(KEY) <= set(frame.columns):
        return keys
    rows = np.flatnonzero(np.asarray(frame["kernel"].isin(set(counted["kernel"]))))
    keys[rows] = call_keys(frame.iloc[rows])
    return keys


def call_keys(frame: pd.DataFrame) -> NDArray[Any]:
    """One text a row that names the call: family, implementation, precision, parameters, cache state."""
    import pandas as pd

    codes, texts = pd.factorize(frame["params"].astype(object), use_na_sentinel=False)
    objects, _ = parse_distinct([str(text) for text in texts])
    params = np.array([str(t) if o is None else canonical_params(o) for t, o in zip(texts, objects, strict=True)],
                      dtype=object)[codes]
    out = params
    for name in KEY:
        if name != "params":
            out = out + "|" + np.asarray(frame[name].astype(str), dtype=object)
    return out


def _chosen(frame: pd.DataFrame, described: Described, seed: int, most: int) -> NDArray[np.bool_]:
    """At most `most` groups a family and MOST_OF_GROUP rows of each by a fixed draw."""
    import pandas as pd

    usable = np.isfinite(described.baseline_s)
    family = np.asarray(frame["kernel"].astype(str), dtype=object)
    group = np.asarray(frame["group"].astype(str), dtype=object)
    usable &= family != SEGMENT
    rank = pd.DataFrame({"family": family, "group": group, "draw": group_draw(group, seed + 7)})
    first = rank[usable].drop_duplicates(["family", "group"]).sort_values(["family", "draw"])
    first = first[first.groupby("family").cumcount() < most]
    chosen = usable & np.asarray(rank["group"].isin(set(first["group"])))
    order = np.random.default_rng(seed).permutation(len(frame))
    place = rank.iloc[order].groupby(["family", "group"], sort=False).cumcount().sort_index().to_numpy()
    return np.asarray(chosen & (place < MOST_OF_GROUP))


class _Counted:
    """The counted calls, and what they say of calls nobody counted."""

    def __init__(self, table: pd.DataFrame) -> None:
        described = describe(table.drop(columns=["name", "grid", "block"], errors="ignore"))
        usable = np.isfinite(described.baseline_s)
        self._own = counts_of_table(table)
        self.key = {str(key): i for i, key in enumerate(call_keys(table)) if usable[i]}
        self._cold = np.asarray(table["cache"] == "cold")
        self._precision = np.asarray(table["precision"].astype(str), dtype=object)
        self._implementation = np.asarray(table["implementation"].astype(str), dtype=object)
        self._rows: dict[str, list[int]] = {}
        self._work = np.full((len(table), 4), np.nan)
        for group in described.groups:
            self._work[group.index] = _sizes(group.baseline.work)
            self._rows.setdefault(group.family, []).extend(int(i) for i in group.index)

    def counts(self, family: str, counts: Counts, work: Work, implementation: NDArray[Any], keys: NDArray[Any]
               ) -> tuple[Counts, NDArray[np.bool_]]:
        """(counts of the calls as a profiler would see them, which of them it did see)."""
        if family not in self._rows:
            return counts, np.zeros(len(counts), dtype=bool)
        rows = np.array(self._rows[family])
        cold = rows[self._cold[rows]]
        rows = cold if cold.size else rows  # a warm call has read next to nothing: its bytes scale no other call
        size, own = _sizes(work), self._work[rows]
        distance = np.sqrt(((size[:, None, :3] - own[None, :, :3]) ** 2).sum(axis=2))
        distance += STRANGE_PRECISION * (counts.precision[:, None] != self._precision[rows][None])
        distance += STRANGE_IMPLEMENTATION * (implementation[:, None] != self._implementation[rows][None])
        near = rows[np.argmin(distance, axis=1)]
        found, factor = self._own.take(near), 2.0 ** (size - self._work[near])
        flop, byte, threads, traffic = factor.T
        amount = (work.flop + work.compulsory_byte / 4.0) / _amount(self._work[near])
        scaled = make_counts(
            len(counts), counts.precision, flop=np.where(self._work[near, 0] > 0.0, found.flop * flop, found.flop),
            byte=found.byte * byte, l2_byte=found.l2_byte * traffic, launches=counts.launches,
            threads=np.maximum(found.threads * threads, found.block), block=found.block, registers=found.registers,
            smem_byte=found.smem_byte, int_ops=found.int_ops * amount, fp_inst=found.fp_inst * amount,
            cold=counts.cold,
        )
        exact = np.array([self.key.get(str(key), -1) for key in keys])
        known = exact >= 0
        if known.any():
            own_counts = self._own.take(exact[known])
            for name in Counts.__dataclass_fields__:
                if name != "precision":
                    getattr(scaled, name)[known] = getattr(own_counts, name)
        return scaled, known


def _sizes(work: Work) -> Floats:
    """log₂ of FLOP, compulsory bytes, threads and bytes through the L2, shape (n, 4)."""
    columns = (work.flop, work.compulsory_byte, work.threads, work.cache_byte)
    return np.log2(np.maximum(np.column_stack(columns), 1.0))


def _amount(sizes: Floats) -> Floats:
    return np.asarray(np.where(sizes[:, 0] > 0.0, 2.0 ** sizes[:, 0], 0.0) + 2.0 ** sizes[:, 1] / 4.0)


def counts_of_table(table: pd.DataFrame) -> Counts:
    """Counts of the rows of a table of counted calls (`python -m kernelcast.measure.counted fold`)."""
    import json

    def number(name: str) -> Floats:
        return np.asarray(table[name], dtype=np.float64)

    def size(name: str) -> Floats:
        return np.array([float(np.prod(json.loads(text))) for text in table[name]])

    vector = number("fp_inst_fp32") + number("fp_inst_fp64") + number("fp_inst_fp16")
    flop = np.where(np.isnan(number("flops")), number("flops_tensor") + FLOP_OF_FP * vector, number("flops"))
    block = size("block")
    return make_counts(
        len(table), np.asarray(table["precision"].astype(str), dtype=object), flop=flop, byte=number("bytes"),
        l2_byte=number("l2_bytes"), launches=number("launches"), threads=size("grid") * block, block=block,
        registers=number("registers"), smem_byte=number("smem_bytes"), int_ops=number("int_ops"), fp_inst=vector,
        cold=np.asarray(table["cache"] == "cold", dtype=np.float64),
    )


def analytic_parts(counts: Counts, platform: Platform) -> list[tuple[NDArray[np.intp], Baseline]]:
    """(rows, analytic baseline) of the calls as family `segment`, one part for each precision and cache state."""
    names, family = counts.precision.astype(str), FAMILIES[SEGMENT]
    out = []
    for precision in np.unique(names):
        for cold in (0.0, 1.0):
            rows = np.flatnonzero((names == precision) & (counts.cold == cold))
            if not rows.size:
                continue
            part = counts.take(rows)
            given = {"flops": part.flop, "bytes": part.byte, "l2_bytes": part.l2_byte, "launches": part.launches,
                     "working_set": part.working_set_byte, "threads": part.threads}
            work = work_of(family, arguments(family, given), str(precision))
            out.append((rows, baseline_of_work(family, work, str(precision), platform,
                                               cache="cold" if cold else "warm")))
    return out


def analytic_s(counts: Counts, platform: Platform) -> Floats:
    """Analytic time of the calls as family `segment` [s]."""
    out = np.full(len(counts), np.nan)
    for rows, base in analytic_parts(counts, platform):
        out[rows] = base.time_s
    return out
