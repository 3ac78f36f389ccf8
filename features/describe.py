"""A measured-runs frame, described: baseline and feature rows of every row, one array call a group."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.baseline import Baseline, baseline_of_work
from ..analytic.errors import InputError, KernelcastError
from ..analytic.families import FAMILIES
from ..analytic.platform import Platform, load_platform
from ..analytic.work import Family, FloatArray, arguments
from .checks import row_faults
from .counted import Counts, counts_of, work_of
from .rows import Rows, family_rows
from .unsaid import unsaid

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Group:
    """Rows of one platform, family, precision and cache state, as positions into the frame."""

    platform: Platform
    family: str
    precision: str
    cache: str
    index: NDArray[np.intp]
    baseline: Baseline
    rows: Rows
    counts: Counts | None = None
    """What was counted of each row, for the family `segment`."""
    unsaid: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    """Where a number that the family's time depends on is not given; see `features.unsaid`."""
    raw: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Parameters as given, of families that may be asked without some of them; arrays of shape (n,)."""

    def leaving_out(self, rows: NDArray[np.bool_], names: Collection[str]) -> Group:
        """The flagged rows (n,) as they would be described had nobody given the parameters `names`."""
        raw = {name: values[rows] for name, values in self.raw.items() if name not in names}
        labels = self.rows.categories["implementation"][rows]
        return group_of(self.platform, FAMILIES[self.family], self.family, self.precision, self.cache,
                        self.index[rows], raw, labels)


@dataclass(frozen=True)
class Described:
    """Baselines and features of a frame of n rows. Arrays of shape (n,); rows in `refused` are NaN."""

    baseline_s: FloatArray
    naive_s: FloatArray
    bound_s: FloatArray
    route: NDArray[Any]
    guard: NDArray[np.bool_]
    groups: tuple[Group, ...]
    refused: dict[int, str]
    """Row position → why no baseline could be made."""


def _text(frame: pd.DataFrame, column: str, default: str) -> NDArray[Any]:
    if column not in frame:
        return np.full(len(frame), default, dtype=object)
    values = frame[column].astype(object)
    return np.asarray(values.where(values.notna(), default).astype(str), dtype=object)


def _segment_params(frame: pd.DataFrame, index: NDArray[np.intp], params: dict[str, Any]) -> dict[str, Any]:
    """Counted FLOP and bytes lie in columns of their own; they join the parameters of a segment."""
    for column in ("flops", "bytes", "launches"):
        if column in frame:
            values = np.asarray(frame[column].iloc[index], dtype=np.float64)
            params[column] = np.where(np.isnan(values), params.get(column, np.nan), values)
    return params


def describe(frame: pd.DataFrame, platforms: dict[str, Platform] | None = None, *, strict: bool = False) -> Described:
    """Baselines and feature rows of a measured-runs frame (time_s is not looked at).

    platforms: parameter sets to use instead of the shipped files, by id. strict: raise for the first row that cannot
    be described instead of listing it in `refused`.
    """
    from .params import params_frame

    n = len(frame)
    nan = np.full(n, np.nan)
    out = Described(nan.copy(), nan.copy(), nan.copy(), np.full(n, "", dtype=object), np.zeros(n, dtype=bool), (), {})
    if n == 0:
        return out
    params = params_frame(frame["params"])
    implementation = _text(frame, "implementation", "")
    keys = {
        "platform": _text(frame, "platform", ""), "kernel": _text(frame, "kernel", ""),
        "precision": _text(frame, "precision", ""), "cache": _text(frame, "cache", "unknown"),
    }
    import pandas as pd

    groups: list[Group] = []
    parts: Any = pd.DataFrame(keys).groupby(list(keys), sort=True).indices
    waiting = list(parts.items())
    while waiting:
        (platform_id, kernel, precision, cache), index = waiting.pop(0)
        try:
            group = _group(frame, params, implementation, platform_id, kernel, precision, cache,
                           index, platforms)
        except KernelcastError as error:
            if strict:
                raise
            sound, said = _judged(frame, index, str(error))
            out.refused.update(said)
            if sound.size:  # what one row says wrongly is no reason to refuse the others
                waiting.insert(0, ((platform_id, kernel, precision, cache), sound))
            continue
        index = group.index
        groups.append(group)
        base = group.baseline
        out.baseline_s[index], out.naive_s[index], out.bound_s[index] = base.time_s, base.naive_s, base.bound.seconds
        out.route[index], out.guard[index] = base.route, base.guard
    return Described(out.baseline_s, out.naive_s, out.bound_s, out.route, out.guard, tuple(groups), out.refused)


def _judged(frame: pd.DataFrame, index: NDArray[np.intp], error: str) -> tuple[NDArray[np.intp], dict[int, str]]:
    """(rows that may be sound, reasons of the others) of a group that raised; no row sound where none is to blame."""
    faults = row_faults(frame.iloc[index])
    bad = faults != ""
    if not bad.any():
        return index[:0], {int(i): error for i in index}
    return index[~bad], {int(i): str(fault) for i, fault in zip(index[bad], faults[bad], strict=True)}


def _group(frame: pd.DataFrame, params: pd.DataFrame, implementation: NDArray[Any], platform_id: str, kernel: str,
           precision: str, cache: str, index: NDArray[np.intp], platforms: dict[str, Platform] | None
           ) -> Group:
    platform = (platforms or {}).get(platform_id) or load_platform(platform_id)
    counted = kernel not in FAMILIES
    family = FAMILIES["segment" if counted else kernel]
    part = params.iloc[index]
    raw = {p.name: part[p.name].to_numpy() for p in family.params if p.name in part.columns}
    if family.name == "segment":
        raw = _segment_params(frame, index, raw)
        if counted and "bytes" not in raw:
            raise InputError(f"kernel family {kernel!r} is unknown and the row has no counted flops and bytes")
    raw = raw or {family.params[0].name: np.full(index.size, np.nan)}
    return group_of(platform, family, kernel, precision, cache, index, raw, implementation[index])


def group_of(platform: Platform, family: Family, kernel: str, precision: str, cache: str, index: NDArray[np.intp],
             raw: Mapping[str, NDArray[Any]], implementation: NDArray[Any], *, watched: Platform | None = None
             ) -> Group:
    """Baseline and features of rows whose parameters are arrays of shape (n,). InputError names parameter and row.

    watched: a copy of `platform` in which the baseline looks its parameters up, so that somebody sees which.
    """
    arrays = arguments(family, raw, kernel)
    work = work_of(family, arrays, precision)
    base = baseline_of_work(family, work, precision, watched or platform, cache=cache)
    rows = family_rows(family, arrays, base, precision, cache, platform, implementation)
    counts = counts_of(family, arrays, precision, cache)
    return Group(platform, family.name, precision, cache, index, base, rows, counts,
                 unsaid(family, raw, index.size), raw if family.asked_without else {})
