"""An application as a sum of segments: time of each, terms, route, bound; Eqs. (15) and (16), launches, executions.

arXiv 2605.04178 sections IV.E, IV.F. Segments that share a family (or a precision, on the generic path) are evaluated
together, as arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from .compressed import compressed_load_time
from .equation_sets import equation_set
from .errors import InputError, KernelcastError, RefusedError, nearest_names
from .fusion import fused
from .generic import concurrency_time, fused_time, transfer_time
from .platform import Platform
from .segments import Evaluated, evaluate
from .units import format_quantity, parse_quantity
from .workload_file import (
    Published,
    Segment,
    WorkloadFile,
    changed_segment,
    find_workload,
    read_workload_file,
    shown_path,
)


@dataclass(frozen=True)
class Workload:
    """A loaded application: its segments with includes followed and fusions done, and where they come from."""

    name: str
    description: str
    characterisation: str
    source: str
    note: str
    routing: str | None
    concurrent_kernels: float
    devices: float
    segments: tuple[Segment, ...]
    published: tuple[Published, ...]
    path: str
    fused: frozenset[str] = frozenset()
    """Names of segments that stand for fused ones: each execution pays `fusion_overhead`."""
    changed: tuple[str, ...] = ()
    """`segment.field=value` set by hand."""

    def open_fields(self) -> list[str]:
        """Inputs nobody published, as `segment.field`."""
        return [name for segment in self.segments for name in segment.open_fields()]

    def with_settings(self, settings: Mapping[str, str | float]) -> Workload:
        """A copy with `segment.field` values set. InputError naming the segment, the field and what would be right."""
        segments = {segment.name: segment for segment in self.segments}
        whole: dict[str, float] = {}
        for key, value in settings.items():
            name, _, field_name = key.partition(".")
            if name == WHOLE and name not in segments:
                whole[field_name] = _whole_field(field_name, value, self.path)
                continue
            if name not in segments:
                raise InputError(f"{self.path}: cannot set {key}: no segment {name!r}{nearest_names(name, segments)}")
            segments[name] = changed_segment(segments[name], field_name, value, self.path)
        made = tuple(f"{key}={value}" for key, value in settings.items())
        return replace(self, segments=tuple(segments.values()), changed=self.changed + made, **whole)  # type: ignore[arg-type]


    def with_fusion(self, names: Sequence[str], intermediate_byte: float) -> Workload:
        """A copy in which the named segments are one kernel, `intermediate_byte` [B] an execution staying on chip."""
        name = "+".join(names)
        try:
            segments = fused(self.segments, names, intermediate_byte, name)
        except InputError as error:
            raise InputError(f"{self.path}: cannot fuse {','.join(names)}: {error}") from None
        said = f"fused {', '.join(names)}, {format_quantity(intermediate_byte, 'B')} staying on chip"
        return replace(self, segments=segments, fused=self.fused | {name}, changed=(*self.changed, said))


WHOLE = "workload"
"""`workload.devices=2`: a field of the whole application rather than of a segment."""
_WHOLE_FIELDS = ("concurrent_kernels", "devices")


def _whole_field(name: str, value: str | float, where: str) -> float:
    if name not in _WHOLE_FIELDS:
        raise InputError(f"{where}: cannot set {WHOLE}.{name}: no such field{nearest_names(name, _WHOLE_FIELDS)}")
    try:
        count = parse_quantity(value, "count")
    except InputError as error:
        raise InputError(f"{where}: cannot set {WHOLE}.{name}={value}: {error}") from None
    if count < 1.0:
        raise InputError(f"{where}: {WHOLE}.{name} is {count:g}; a count of 1 or more is needed")
    return count


def load_workload(name: str | Path) -> Workload:
    """A workload from a path or the name of a shipped file; includes are followed. Raises InputError."""
    path = find_workload(str(name))
    data = read_workload_file(path)
    segments = _collect(data, path, (path.resolve(),))
    where = shown_path(path)
    if not segments:
        raise InputError(f"{where}: segments: the workload is empty; it needs at least one segment")
    _refuse_twice([segment.name for segment in segments], where)
    segments, fused = _fuse(data, segments, where)
    return Workload(data.name, data.description, data.characterisation, data.source, data.note, data.routing,
                    data.concurrent_kernels, data.devices, segments, data.published, where, fused)


def _refuse_twice(names: list[str], where: str) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InputError(f"{where}: segments[{i}].name: {name!r} is used twice")


def _collect(data: WorkloadFile, path: Path, stack: tuple[Path, ...]) -> tuple[Segment, ...]:
    """Segments of included files first, then the file's own. InputError for a file that includes itself."""
    found: list[Segment] = []
    for i, entry in enumerate(data.include):
        beside = path.parent / entry.file
        try:
            target = beside if beside.is_file() else find_workload(entry.file)
        except InputError as error:
            raise InputError(f"{shown_path(path)}: include[{i}].file: {error}") from None
        if target.resolve() in stack:
            chain = " → ".join(p.name for p in (*stack, target.resolve()))
            raise InputError(f"{shown_path(path)}: include[{i}].file: files include each other in a circle: {chain}")
        inner = read_workload_file(target)
        for segment in _collect(inner, target, (*stack, target.resolve())):
            times = None if segment.n_exec is None else segment.n_exec * entry.n_exec
            found.append(segment if entry.n_exec == 1.0 else segment.model_copy(update={"n_exec": times}))
    return (*found, *data.segments)


def _fuse(data: WorkloadFile, segments: tuple[Segment, ...], where: str) -> tuple[tuple[Segment, ...], frozenset[str]]:
    for i, fusion in enumerate(data.fusions):
        try:
            segments = fused(segments, fusion.segments, fusion.intermediate_bytes, fusion.name)
        except InputError as error:
            raise InputError(f"{where}: fusions[{i}] ({fusion.name}): {error}") from None
    return segments, frozenset(fusion.name for fusion in data.fusions)


@dataclass(frozen=True)
class SegmentTime:
    """Time of one segment, all its executions: `terms` add up to `time_s`."""

    name: str
    time_s: float
    n_exec: float
    terms: dict[str, float]
    bound_s: float
    naive_s: float
    limit: str
    """What binds: the longest term in words of the bound ("HBM bytes", "vector FLOP", "transfers", …)."""
    route: str
    guard: bool
    flop: float
    byte: float
    precision: str
    notes: tuple[str, ...]
    details: dict[str, float] = field(default_factory=dict)

    @property
    def kernel_s(self) -> float:
        """Time on the device alone: without copies and synchronisations."""
        return self.time_s - self.terms.get("transfers", 0.0) - self.terms.get("syncs", 0.0)


@dataclass(frozen=True)
class WorkloadTime:
    """Analytic time of an application on one platform. `terms` add up to `total_s`."""

    workload: Workload
    platform: Platform
    segments: tuple[SegmentTime, ...]
    extra: dict[str, float]
    """Workload-wide additions: concurrency, devices."""

    @property
    def total_s(self) -> float:
        return sum(segment.time_s for segment in self.segments) + sum(self.extra.values())

    @property
    def bound_s(self) -> float:
        """Sum of the segments' physical bounds: they run one after another."""
        return sum(segment.bound_s for segment in self.segments)

    @property
    def naive_s(self) -> float:
        return sum(segment.naive_s for segment in self.segments)

    @property
    def terms(self) -> dict[str, float]:
        names = dict.fromkeys(name for segment in self.segments for name in segment.terms)
        summed = {name: sum(s.terms.get(name, 0.0) for s in self.segments) for name in names}
        return {name: value for name, value in (summed | self.extra).items() if value > 0.0}


def refuse_open(workload: Workload) -> None:
    """Raise RefusedError when inputs of the workload are not known."""
    missing = workload.open_fields()
    if missing:
        raise RefusedError(
            f"{workload.name}: cannot be predicted: {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not published ({workload.path}). "
            f"Measure or count {'it' if len(missing) == 1 else 'them'} and give "
            f"{' '.join(f'--set {name}=VALUE' for name in missing)}"
        )


def workload_baseline(workload: Workload, platform: Platform, *, cache: str = "warm") -> WorkloadTime:
    """Analytic time of `workload` on `platform`: per-segment terms and the total.

    cache: state of the last-level cache for segments that do not say. Raises RefusedError where inputs are open,
    InputError (file and field named) where a segment cannot run on the platform.
    """
    refuse_open(workload)
    routing = workload.routing or equation_set(platform).routing
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            evaluated = evaluate(workload.segments, platform, cache, routing)
    except KernelcastError as error:
        raise type(error)(f"{workload.path}: {error}") from None
    segments = tuple(
        _segment_time(segment, done, platform, segment.name in workload.fused)
        for segment, done in zip(workload.segments, evaluated, strict=True)
    )
    for segment in segments:
        if not math.isfinite(segment.time_s):
            raise InputError(f"{workload.path}: segments ({segment.name}): too large for a time that a number can hold")
    return WorkloadTime(workload, platform, segments, _together(workload, platform))


def _together(workload: Workload, platform: Platform) -> dict[str, float]:
    """(N - 1)·tau of kernels running beside each other and of further devices. arXiv 2605.04178 sections IV.A.6, IV.B.

    A platform without the parameter is an InputError: a tau is measured or set, never guessed.
    """
    extra = {}
    for name, count, parameter in (
        ("concurrency", workload.concurrent_kernels, "concurrent_kernel_overhead"),
        ("devices", workload.devices, "multi_device_overhead"),
    ):
        if count > 1.0:
            extra[name] = float(concurrency_time(count, platform.value(parameter)))
    return extra


def host_terms(segment: Segment, platform: Platform) -> dict[str, float]:
    """Copies and synchronisations of all executions of a segment [s]. arXiv 2605.04178 Eq. (15)."""
    times = segment.n_exec or 1.0
    terms = {}
    if segment.transfers:
        byte, ratio = np.array([(t.bytes, t.compression_ratio) for t in segment.transfers], dtype=float).T
        episodes = np.array([transfer.episodes for transfer in segment.transfers])
        packed, unified = ratio > 1.0, platform.is_true("unified_memory")
        copies = transfer_time(
            np.where(packed, 0.0, byte), episodes, 0.0, times, byte_per_s=platform.value("memcpy_bandwidth"),
            tau_memcpy_s=platform.value("memcpy_latency"), unified_memory=unified,
        )
        terms["transfers"] = float(copies.sum())
        if packed.any() and not unified:
            loads = compressed_load_time(platform, byte[packed], ratio[packed])
            terms["transfers"] += times * float((episodes[packed] * loads).sum())
    if segment.syncs:
        terms["syncs"] = float(
            transfer_time(0.0, 0.0, segment.syncs, times, tau_sync_s=platform.value("sync_latency"))
        )
    return terms


def _segment_time(segment: Segment, done: Evaluated, platform: Platform, is_fused: bool) -> SegmentTime:
    times = segment.n_exec or 1.0
    terms = {name: value * times for name, value in done.terms.items()}
    if is_fused:
        terms["fusion"] = times * float(fused_time(0.0, platform.value("fusion_overhead")))
    host = host_terms(segment, platform)
    terms |= host
    notes = [note for note in (segment.note, *done.notes) if note]
    if segment.transfers and platform.is_true("unified_memory"):
        notes.append("unified memory: no copies")
    if segment.m_case != 1.0:
        notes.append(f"fitted multiplier m_case = {segment.m_case:g} ({segment.m_case_source})")
    on_device = done.time_s * times
    host_name, host_s = max(host.items(), key=lambda item: item[1], default=("", 0.0))
    return SegmentTime(
        name=segment.name,
        time_s=sum(terms.values()),
        n_exec=times,
        terms=terms,
        bound_s=done.bound_s * times,
        naive_s=done.naive_s * times,
        limit=host_name if host_s > on_device else done.limit,
        route=done.route,
        guard=done.guard,
        flop=done.flop * times,
        byte=done.byte * times,
        precision=done.precision,
        notes=tuple(notes),
        details=done.details,
    )
