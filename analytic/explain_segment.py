"""A segment of an application in words: the steps of one execution, copies and waits included, and what binds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .baseline import arithmetic_precision, baseline, memory_of
from .equation_sets import equation_set
from .explain import Explanation, competitors, explain_baseline, rate_name, what_binds
from .explain_steps import Step, product, quotient, rescaled, shown_time
from .platform import Platform
from .segments import family_params
from .traffic import mixes_rates
from .units import format_quantity
from .workload import SegmentTime
from .workload_file import Segment

COUNTED_EQUATIONS = (
    "Eq. (1) on counted work: the longer of arithmetic and memory, plus launches (section IV.F)",
    "hit rate h(W) of the last-level cache where none is given; times of cache and memory added",
)
PUBLISHED_EQUATIONS = ("section V.B: the class of a segment decides the kernel family that stands for it",)
HOST_EQUATION = "Eq. (15): copies and synchronisations"


def _once(time: SegmentTime, name: str) -> float:
    return time.terms.get(name, 0.0) / time.n_exec


def _traffic(segment: Segment, time: SegmentTime, platform: Platform) -> list[Step]:
    """Bytes of a counted segment over the rates of the boundaries they cross."""
    d, byte = time.details, time.byte / time.n_exec
    level = memory_of(platform).level
    hit = d["hit_rate"]
    if segment.bytes_in_flight is not None and d["memory_s"] > byte / d["memory_byte_per_s"] * (1.0 + 1e-9):
        flight = format_quantity(segment.bytes_in_flight, "B")
        step = quotient("traffic", byte, "B", byte / d["memory_s"],
                        f"{flight} in flight ÷ latency_hbm {shown_time(platform.latency_s('latency_hbm'))}",
                        "Little's law", f"HBM ↔ {level}")
        return [replace(step, rate_name="bytes_in_flight ÷ latency_hbm")]
    if mixes_rates(platform):
        return [quotient("memory traffic", byte, "B", d["memory_byte_per_s"],
                         f"h · {level.lower()}_bw + (1 - h) · sustained_hbm_bw at h = {hit:.3g}",
                         "mix under Eq. (10) as printed", f"HBM, {level} ↔ compute units")]
    said = "given" if segment.hit_rate is not None else "of its working set"
    size = format_quantity(d["working_set_byte"], "B")
    steps = []
    if hit < 1.0:
        blended = d["hbm_byte_per_s"] > memory_of(platform).hbm_byte_per_s
        name = "sustained_hbm_bw to hbm_peak_bw by working_set_scale" if blended else "sustained_hbm_bw"
        steps.append(quotient("memory traffic", byte * (1.0 - hit), "B", d["hbm_byte_per_s"], name,
                              "Eq. (16)" if blended else "Eq. (1), T_memory", f"HBM ↔ {level}"))
    if hit > 0.0:
        steps.append(quotient("cache traffic", byte * hit, "B", d["cache_byte_per_s"], f"{level.lower()}_bw",
                              "Eq. (10) as bandwidth, times added",
                              f"{level} ↔ compute units (hit rate {hit:.3g} {said}, {size})"))
    return steps


def _counted(segment: Segment, time: SegmentTime, platform: Platform, cache: str) -> list[Step]:
    """Roofline of counted work: arithmetic, traffic, what of the shorter one does not hide, launches."""
    d, flop, byte = time.details, time.flop / time.n_exec, time.byte / time.n_exec
    steps: list[Step] = []
    if flop:
        name = rate_name(platform, time.precision, segment.unit)
        efficiency = platform.get(f"precision_efficiency_{arithmetic_precision(time.precision)}") or 1.0
        name += f" × precision_efficiency {efficiency:g}" if efficiency != 1.0 else ""
        steps.append(quotient("arithmetic", flop, "FLOP", d["flop_per_s"], name, "Eq. (1), T_compute",
                              f"on the {segment.unit} units"))
    if byte:
        steps += _traffic(segment, time, platform)
    if d["scale"] != 1.0:
        names = "class_scale" if segment.m_case == 1.0 else "class_scale × m_case"
        steps = [rescaled(step, d["scale"], names) for step in steps]
    alpha = 1.0 if segment.alpha is None else segment.alpha
    bare = (1.0 - alpha) * min(d["compute_s"], d["memory_s"]) * d["scale"]
    if bare:
        steps.append(Step("not hidden", f"{1.0 - alpha:.3g} (1 - alpha) of the shorter of arithmetic and traffic = "
                          f"{shown_time(bare)}", bare, "Eq. (7), alpha", competes=False))
    return [*steps, *_launches(segment, time, platform)]


def _launches(segment: Segment, time: SegmentTime, platform: Platform) -> list[Step]:
    if not time.terms.get("launch"):
        return []
    name = equation_set(platform).launch_parameter(platform)
    return [product("launches", segment.kernels or 1.0, "launches", platform.value(name), name,
                    "Eq. (1), T_overhead; section IV.F")]


def _routed(segment: Segment, time: SegmentTime, platform: Platform, cache: str) -> list[Step]:
    """The family that stands for the segment, as published: one step, its terms are those of `explain` for it."""
    stands = next(name for name in time.terms if name in ("vector_copy", "transpose", "gemm"))
    amount = (format_quantity(time.flop / time.n_exec, "FLOP") if stands == "gemm"
              else f"{format_quantity(time.byte / time.n_exec, 'B')} HBM ↔ cache")
    step = Step(stands, f"{amount} as a {stands} of that size = {shown_time(_once(time, stands))}",
                _once(time, stands), "section V.B")
    return [step, *_launches(segment, time, platform)]


def _family(segment: Segment, time: SegmentTime, platform: Platform, cache: str) -> Explanation:
    base = baseline(str(segment.kernel), family_params([segment]), time.precision, platform,
                    cache=segment.cache or cache, tile=segment.tile)  # type: ignore[arg-type]
    said = explain_baseline(base, platform, time.precision)
    if segment.m_case == 1.0:
        return said
    return replace(said, steps=tuple(rescaled(step, segment.m_case, "m_case") for step in said.steps))


def _host(segment: Segment, platform: Platform) -> list[Step]:
    """Copies and synchronisations of one execution."""
    steps: list[Step] = []
    ends = {"h2d": "host → device", "d2h": "device → host"}
    for transfer in segment.transfers if not platform.is_true("unified_memory") else ():
        byte, count = transfer.bytes or 0.0, transfer.episodes
        latency, rate = platform.value("memcpy_latency"), platform.value("memcpy_bandwidth")
        each = byte / rate + latency
        words = (f"{format_quantity(byte, 'B')} {ends[transfer.direction]} ÷ {format_quantity(rate, 'B/s')} "
                 f"(memcpy_bandwidth) + {shown_time(latency)} (memcpy_latency) = {shown_time(each)}")
        words += f"; × {count:g} copies = {shown_time(each * count)}" if count != 1.0 else ""
        steps.append(Step("copies", words, each * count, "Eq. (15)", competes=False))
    if segment.syncs:
        steps.append(product("waits", segment.syncs, "synchronisations", platform.value("sync_latency"),
                             "sync_latency", "section IV.E"))
    return steps


_STEPS: dict[bool, Callable[[Segment, SegmentTime, Platform, str], list[Step]]] = {False: _counted, True: _routed}


def explain_segment(segment: Segment, time: SegmentTime, platform: Platform, *, cache: str = "warm") -> Explanation:
    """Explain one execution of a segment whose time on `platform` is `time`. cache: as the workload was asked with."""
    routed = "as published" in time.route
    if segment.kernel is not None:
        inner = _family(segment, time, platform, cache)
        steps, equations = list(inner.steps), inner.equations
    else:
        empty = not (segment.flop or segment.bytes)
        steps = [] if empty else _STEPS[routed](segment, time, platform, cache)
        equations = () if empty else PUBLISHED_EQUATIONS if routed else COUNTED_EQUATIONS
    if time.terms.get("fusion"):
        steps.append(Step("fusion", f"fusion_overhead = {shown_time(_once(time, 'fusion'))}", _once(time, "fusion"),
                          "section IV.B", competes=False))
    host = _host(segment, platform)
    binding, to_move = what_binds(competitors(tuple(steps)), (*steps, *host), time.time_s / time.n_exec)
    acted = time.guard or bool(_once(time, "guard")) or bool(_once(time, "bound"))
    guard = "acted: the time was below the physical bound and was lifted to it" if acted else "did not act"
    return Explanation((*steps, *host), binding, to_move, (*equations, *((HOST_EQUATION,) if host else ())), guard)
