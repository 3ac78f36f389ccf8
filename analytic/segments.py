"""Time of one execution of each segment: by its kernel family, by the generic roofline, or by the published routing.

arXiv 2605.04178 section IV.F (generic path) and V.B (routing: stencil → transpose, compute → GEMM, memory → vector
copy). Segments that can share arrays are evaluated in one call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .baseline import (
    Baseline,
    arithmetic_precision,
    baseline,
    baseline_of_work,
    memory_of,
)
from .equation_sets import equation_set
from .errors import KernelcastError
from .families import FAMILIES
from .generic import PUBLISHED_ROUTE, class_scale, effective_bandwidth, extra_launch_time
from .platform import Platform
from .roofline import combine_overlap, guard_bound
from .traffic import bandwidth_mix_of, hit_rate_of
from .wavefront import latency_bound_time
from .work import FloatArray, arguments, element_byte
from .workload_file import Segment


@dataclass(frozen=True)
class Evaluated:
    """One execution of a segment on the device; `terms` add up to `time_s`."""

    time_s: float
    terms: dict[str, float]
    bound_s: float
    naive_s: float
    limit: str
    route: str
    guard: bool
    flop: float
    byte: float
    precision: str
    notes: tuple[str, ...]
    details: dict[str, float]


Key = tuple[Any, ...]
Evaluator = Callable[[list[Segment], Platform, str, str], list[Evaluated]]


def evaluate(segments: Sequence[Segment], platform: Platform, cache: str, routing: str) -> list[Evaluated]:
    """Evaluate segments in groups; the order is kept. Raises InputError naming the segment and the field."""
    groups: dict[Key, list[int]] = {}
    for i, segment in enumerate(segments):
        groups.setdefault(_key(segment, cache, routing), []).append(i)
    out: list[Evaluated | None] = [None] * len(segments)
    for key, members in groups.items():
        parts = [segments[i] for i in members]
        for i, done in zip(members, _evaluate_group(key, parts, platform), strict=True):
            out[i] = done
    return [done for done in out if done is not None]


def _key(segment: Segment, cache: str, routing: str) -> Key:
    state = segment.cache or cache
    if segment.kernel is not None:
        precision = segment.precision or FAMILIES[segment.kernel].precision
        return ("family", segment.kernel, precision, state, segment.tile)
    precision = segment.precision or "none"
    if routing == "published" and segment.work_class in PUBLISHED_ROUTE:
        return ("published", segment.work_class, precision, state, segment.unit)
    return ("generic", "", precision, state, segment.unit)


def _evaluate_group(key: Key, segments: list[Segment], platform: Platform) -> list[Evaluated]:
    kind, _, precision, state, *_ = key
    try:
        return _EVALUATORS[kind](segments, platform, precision, state)
    except KernelcastError as error:
        if len(segments) > 1:  # name the one at fault
            for segment in segments:
                _evaluate_group(key, [segment], platform)
        raise type(error)(f"segments ({segments[0].name}){_field_of(segments[0], str(error))}: {error}") from None


def _field_of(segment: Segment, message: str) -> str:
    """`.tile`, `.params`, `.precision`: the field an error of the equations speaks of."""
    if message.startswith("tile"):
        return ".tile"
    if "parameter '" in message and segment.kernel is not None and "platform" not in message:
        return ".params"
    return ".precision" if "rate; it has" in message else ""


def family_params(segments: list[Segment]) -> dict[str, Any]:
    """Parameters of segments of one family as columns of shape (n,); None where a segment leaves one out."""
    names = dict.fromkeys(name for segment in segments for name in segment.params)
    columns: dict[str, Any] = {}
    for name in names:
        cells = np.empty(len(segments), dtype=object)
        for i, segment in enumerate(segments):
            cells[i] = segment.params.get(name)
        columns[name] = cells
    return columns


def _pick(base: Baseline, i: int) -> tuple[dict[str, float], dict[str, float]]:
    terms = {name: float(values[i]) for name, values in base.terms.items()}
    return terms, {name: float(values[i]) for name, values in base.details.items()}


def _of_family(segments: list[Segment], platform: Platform, precision: str, cache: str) -> list[Evaluated]:
    family = str(segments[0].kernel)
    base = baseline(family, family_params(segments), precision, platform, cache=cache, tile=segments[0].tile)  # type: ignore[arg-type]
    out = []
    for i, segment in enumerate(segments):
        terms, details = _pick(base, i)
        scaled = {name: value * segment.m_case for name, value in terms.items()}
        notes = () if segment.precision else (f"precision not given: {precision} assumed",)
        out.append(
            Evaluated(
                time_s=sum(scaled.values()), terms=scaled, bound_s=float(base.bound.seconds[i]),
                naive_s=float(base.naive_s[i]),
                limit=_longest(scaled, _slowest_boundary(details, platform), base.work.unit),
                route=f"{base.route} ({family})", guard=bool(base.guard[i]), flop=float(base.work.flop[i]),
                byte=float(base.work.compulsory_byte[i]), precision=precision, notes=notes, details=details,
            )
        )
    return out


def _slowest_boundary(details: dict[str, float], platform: Platform) -> str:
    """The boundary whose bytes take longest at the platform's sustained rates: "HBM bytes", "cache bytes", …"""
    memory = memory_of(platform)
    seconds = {
        "HBM bytes": (details.get("hbm_byte", details.get("hbm_traffic_byte", 0.0)) / memory.hbm_byte_per_s),
        "cache bytes": details.get("cache_byte", details.get("llc_traffic_byte", 0.0)) / memory.cache_byte_per_s,
    }
    if details.get("l2_traffic_byte"):
        seconds["L2 bytes"] = details["l2_traffic_byte"] / max(platform.get("l2_bw") or 1e300, memory.hbm_byte_per_s)
    return max(seconds, key=lambda name: seconds[name])


def _longest(terms: dict[str, float], boundary: str, unit: str) -> str:
    """The limit in words: what the longest term waits for."""
    words = {"compute": f"{unit} FLOP", "tail": "last wave", "memory": boundary, "memory_exposed": boundary,
             "latency": "latency", "guard": "physical bound", "bound": "physical bound"}
    name = max(terms, key=lambda key: terms[key])
    return words.get(name, name)


def _column(segments: list[Segment], name: str, default: float = np.nan) -> FloatArray:
    raw = [getattr(segment, name) for segment in segments]
    return np.array([default if value is None else value for value in raw], dtype=np.float64)


@dataclass(frozen=True)
class _Counted:
    """Counted work of n segments and what follows from it; arrays of shape (n,)."""

    flop: FloatArray
    byte: FloatArray
    working_set: FloatArray
    hit: FloatArray
    scale: FloatArray
    memory_s: FloatArray
    compute_s: FloatArray
    rates: dict[str, FloatArray]
    """What the times rest on: `hbm_byte_per_s`, `cache_byte_per_s`, `memory_byte_per_s` (their mix), `flop_per_s`."""
    bound_s: FloatArray
    naive_s: FloatArray
    unit: str


def _counted(segments: list[Segment], platform: Platform, precision: str, cache: str, unit: str) -> _Counted:
    memory = memory_of(platform)
    flop, byte = _column(segments, "flop", 0.0), _column(segments, "bytes", 0.0)
    working_set = _column(segments, "working_set")
    working_set = np.where(np.isnan(working_set), byte, working_set)
    resident = hit_rate_of(platform, working_set, memory.knee_start_byte, memory.knee_end_byte)
    found = np.zeros_like(byte) if cache == "cold" else resident
    given = _column(segments, "hit_rate")
    hit = np.where(np.isnan(given), found, given)
    hbm = effective_bandwidth(
        working_set, memory.hbm_byte_per_s, max(memory.hbm_peak_byte_per_s, memory.hbm_byte_per_s),
        platform.get("working_set_scale") or 0.0,
    )
    cache_rate = np.maximum(memory.cache_byte_per_s, hbm)
    mixed = bandwidth_mix_of(platform)(hit, cache_rate, hbm)
    memory_s = byte / mixed
    in_flight = _column(segments, "bytes_in_flight")
    small = ~np.isnan(in_flight)
    if small.any():
        latency = latency_bound_time(byte, platform.latency_s("latency_hbm"), np.where(small, in_flight, 1.0))
        memory_s = np.where(small, np.maximum(memory_s, latency), memory_s)
    arithmetic = arithmetic_precision(precision)
    if flop.any():
        peak = platform.peak_flop_per_s(arithmetic, unit)
        rate = platform.sustained_flop_per_s(arithmetic, unit)
        rate *= platform.get(f"precision_efficiency_{arithmetic}") or 1.0
        compute_s, flop_s = flop / rate, flop / peak
    else:
        rate, compute_s, flop_s = 0.0, np.zeros_like(flop), np.zeros_like(flop)
    rates = {"hbm_byte_per_s": hbm, "cache_byte_per_s": cache_rate, "memory_byte_per_s": mixed, "flop_per_s": rate}
    kinds: list[str] = sorted({segment.work_class for segment in segments})
    scales = {name: platform.get(f"class_scale_{name}") or 1.0 for name in kinds}
    scale = np.array([class_scale(s.work_class, scales) * s.m_case for s in segments])
    bounds = np.stack(
        [flop_s, byte * (1.0 - hit) / max(memory.hbm_peak_byte_per_s, memory.hbm_byte_per_s), byte * hit / cache_rate]
    )
    naive = np.maximum(flop_s, byte / platform.value("hbm_peak_bw"))
    full = {name: np.broadcast_to(np.asarray(value, dtype=np.float64), flop.shape) for name, value in rates.items()}
    return _Counted(flop, byte, working_set, hit, scale, memory_s, compute_s, full, bounds.max(axis=0), naive,
                    unit)


def _generic(segments: list[Segment], platform: Platform, precision: str, cache: str) -> list[Evaluated]:
    """Launches + class scale · max(arithmetic, traffic), overlapped by alpha. arXiv 2605.04178 Eq. (1), sec. IV.F."""
    work = _counted(segments, platform, precision, cache, segments[0].unit)
    alpha = _column(segments, "alpha", 1.0)
    compute_first = work.compute_s > work.memory_s
    body = combine_overlap(work.compute_s, work.memory_s, alpha)
    hidden = (1.0 - alpha) * np.minimum(work.compute_s, work.memory_s)
    columns = {
        "compute": np.where(compute_first, work.compute_s, hidden) * work.scale,
        "memory": (body - np.where(compute_first, work.compute_s, hidden)) * work.scale,
    }
    routes = [f"generic ({segment.work_class})" for segment in segments]
    return _finish(segments, platform, precision, work, columns, routes)


def _proxy_params(kind: str, work: _Counted, element: float) -> dict[str, FloatArray]:
    """Parameters of the family that stands for a segment: the same bytes (a copy, a square transpose), or the same FLOP
    (a cube)."""
    elements = np.maximum(work.byte / (2.0 * element), 1.0)
    side, edge = np.sqrt(elements), np.maximum(np.cbrt(work.flop / 2.0), 1.0)
    return {
        "vector_copy": {"n": elements},
        "transpose": {"m": side, "n": side},
        "gemm": {"m": edge, "n": edge, "k": edge},
    }[kind]


def _published(segments: list[Segment], platform: Platform, precision: str, cache: str) -> list[Evaluated]:
    """The segment's class decides a family that stands for it. arXiv 2605.04178 section V.B.

    The proxy moves the segment's bytes (or does its FLOP); the other side of the roofline still counts where it is
    longer. The proxy's launch is left to the segment's own.
    """
    kind = PUBLISHED_ROUTE[segments[0].work_class]
    family = FAMILIES[kind]
    work = _counted(segments, platform, precision, cache, "matrix" if family.route == "matrix" else segments[0].unit)
    proxy = family.work(arguments(family, _proxy_params(kind, work, element_byte(precision))), element_byte(precision))
    base = baseline_of_work(family, replace(proxy, working_set_byte=work.working_set), precision, platform, cache=cache)
    body = base.time_s - base.terms["launch"]
    other = work.memory_s if family.route == "matrix" else work.compute_s
    columns = {kind: np.maximum(body, other) * work.scale}
    routes = [f"{segment.work_class} → {kind} ({base.route}), as published" for segment in segments]
    return _finish(segments, platform, precision, work, columns, routes)


def _finish(
    segments: list[Segment],
    platform: Platform,
    precision: str,
    work: _Counted,
    columns: dict[str, FloatArray],
    routes: list[str],
) -> list[Evaluated]:
    """Add launches and the guard of the physical bound; one record a segment."""
    launch = platform.value(equation_set(platform).launch_parameter(platform))
    any_work = (work.flop > 0.0) | (work.byte > 0.0)
    launch_s = np.where(any_work, launch + extra_launch_time(_column(segments, "kernels", 1.0), launch), 0.0)
    total = sum(columns.values(), start=launch_s)
    lifted, guard = guard_bound(total, work.bound_s)
    everything = {"launch": launch_s, **columns, "guard": lifted - total}
    out = []
    for i in range(len(segments)):
        terms = {name: float(values[i]) for name, values in everything.items()}
        out.append(
            Evaluated(
                time_s=sum(terms.values()), terms=terms, bound_s=float(work.bound_s[i]), naive_s=float(work.naive_s[i]),
                limit=_limit(work, i, terms), route=routes[i], guard=bool(guard[i]), flop=float(work.flop[i]),
                byte=float(work.byte[i]), precision=precision,
                notes=(*_left_out(segments[i]), *(("guard: lifted to the physical bound",) if guard[i] else ())),
                details={"hit_rate": float(work.hit[i]), "working_set_byte": float(work.working_set[i]),
                         "compute_s": float(work.compute_s[i]), "memory_s": float(work.memory_s[i]),
                         "scale": float(work.scale[i]),
                         **{name: float(values[i]) for name, values in work.rates.items()}},
            )
        )
    return out


def _left_out(segment: Segment) -> tuple[str, ...]:
    """What a counted segment does not say, and is taken as 0."""
    if not (segment.flop or segment.bytes):  # copies and synchronisations only
        return ()
    open_words = {"flop": "no FLOP given: taken as 0", "bytes": "no bytes given: taken as 0"}
    return tuple(words for name, words in open_words.items() if name not in segment.model_fields_set)


def _limit(work: _Counted, i: int, terms: dict[str, float]) -> str:
    """What decides the segment: launches, arithmetic, or the bytes of the slower boundary."""
    if terms["launch"] > 0.5 * sum(terms.values()):
        return "launch"
    if work.compute_s[i] > work.memory_s[i]:
        return f"{work.unit} FLOP"
    cached = work.hit[i] / work.rates["cache_byte_per_s"][i]
    return "cache bytes" if cached > (1.0 - work.hit[i]) / work.rates["hbm_byte_per_s"][i] else "HBM bytes"


_EVALUATORS: dict[str, Evaluator] = {"family": _of_family, "generic": _generic, "published": _published}
