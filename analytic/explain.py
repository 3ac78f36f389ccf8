"""A baseline in words: steps as amount ÷ rate = time, both ends of every byte count, what binds, what moves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .baseline import (
    Baseline,
    arithmetic_precision,
    arithmetic_rate,
    hbm_rate,
    launch_floor_s,
    memory_of,
)
from .equation_sets import equation_set, launch_floor_parameter
from .equations import equation, out_of_range
from .explain_steps import Step, arithmetic_step, product, quotient, rescaled, shown_time
from .gemm_common import resolve_unit
from .gemm_tiles import KERNEL_TRIPS, Machine, machine, output_byte
from .platform import Platform
from .published.explain import printed_steps
from .traffic import mixed_rate, mixes_rates
from .units import format_quantity


@dataclass(frozen=True)
class Explanation:
    """Steps, the binding one, what would have to change, the equations used (and inputs outside the range of one), and
    what the guard did."""

    steps: tuple[Step, ...]
    binding: str
    to_move: str
    equations: tuple[str, ...]
    guard: str


def rate_name(platform: Platform, precision: str, unit: str) -> str:
    """The parameter a sustained arithmetic rate comes from, and by which rule."""
    return platform.rate_note(arithmetic_precision(precision), unit)


def _efficiency_note(platform: Platform, precision: str) -> str:
    name = f"precision_efficiency_{arithmetic_precision(precision)}"
    efficiency = platform.get(name) or 1.0
    return "" if efficiency == 1.0 else f" x {name} {efficiency:g}"


def _compulsory(base: Baseline, i: int) -> str:
    work = base.work
    read, write = (format_quantity(float(x[i]), "B", binary=False) for x in (work.read_byte, work.write_byte))
    return f"compulsory: read {read}, write {write}"


def _generic(base: Baseline, i: int, platform: Platform, precision: str) -> list[Step]:
    memory, work, details = memory_of(platform), base.work, base.details
    steps: list[Step] = []
    if work.flop[i]:
        rate = arithmetic_rate(platform, precision, work.unit)
        note = rate_name(platform, precision, work.unit) + _efficiency_note(platform, precision)
        steps.append(quotient("arithmetic", float(work.flop[i]), "FLOP", rate, note, "Eq. (1), T_compute",
                               f"on the {work.unit} units"))
    steps += _traffic(base, i, platform)
    plain_s = sum(step.time_s for step in steps if step.name.endswith(" traffic"))
    scale = float(details["memory_s"][i]) / plain_s if plain_s else 1.0
    if abs(scale - 1.0) > 1e-9:
        steps = [rescaled(step, scale) if step.name.endswith(" traffic") else step for step in steps]
    if memory.latency_s and work.chain[i]:
        steps.append(product("dependent accesses", float(work.chain[i]), "accesses in a row", memory.latency_s,
                              "latency_hbm", "Little's law, latency side", competes=True))
    steps.append(product("launches", float(work.launches[i]), "launches", launch_floor_s(platform),
                          launch_floor_parameter(platform), "Eq. (1), T_overhead"))
    return steps


def _traffic(base: Baseline, i: int, platform: Platform) -> list[Step]:
    """Bytes over the rates of the boundaries they cross; in one line where the platform mixes rates, not times.

    What is re-read and not found in the cache is a line of its own: it is memory traffic only because the *whole*
    working set does not fit, and a kernel whose blocks in flight share a smaller part of it pays less.
    """
    memory, work, details = memory_of(platform), base.work, base.details
    level, cache_rate_name = memory.level, f"{memory.level.lower()}_bw"
    hbm_byte_per_s = float(hbm_rate(platform, memory, work.working_set_byte[i]))
    cache_byte_per_s = max(memory.cache_byte_per_s, hbm_byte_per_s)
    blended = hbm_byte_per_s > memory.hbm_byte_per_s
    hbm_byte, cache_byte = float(details["hbm_byte"][i]), float(details["cache_byte"][i])
    both = hbm_byte + cache_byte
    if mixes_rates(platform) and both:
        rate = float(mixed_rate(platform, hbm_byte, cache_byte, hbm_byte_per_s, cache_byte_per_s))
        name = f"h · {cache_rate_name} + (1 - h) · sustained_hbm_bw at h = {cache_byte / both:.3g}"
        return [quotient("memory traffic", both, "B", rate, name, "mix under Eq. (10) as printed",
                         f"HBM, {level} ↔ compute units ({_compulsory(base, i)})")]
    missed = _missed_again(base, i)
    again = float(work.reread_byte[i])
    hit = 1.0 - missed / again if again else float(details["hit_rate"][i])
    held = f"hit rate {hit:.3g} of a working set of {format_quantity(float(work.working_set_byte[i]), 'B')}"
    name = "sustained_hbm_bw to hbm_peak_bw by working_set_scale" if blended else "sustained_hbm_bw"
    equation_words = "Eq. (1), T_memory; Eq. (16)" if blended else "Eq. (1), T_memory"
    steps: list[Step] = []
    if hbm_byte > missed:
        steps.append(quotient("memory traffic", hbm_byte - missed, "B", hbm_byte_per_s, name, equation_words,
                              f"HBM ↔ {level} ({_compulsory(base, i)})"))
    if missed:
        steps.append(quotient(REREADS, missed, "B", hbm_byte_per_s, name, equation_words,
                              f"read again past {level} ({held}; an upper estimate: what the blocks in flight share "
                              "may be less)"))
    if cache_byte:
        steps.append(quotient("cache traffic", cache_byte, "B", cache_byte_per_s, cache_rate_name,
                              "Eq. (10) as bandwidth, times added",
                              f"{level} ↔ compute units ({level}, {held})"))
    return steps


REREADS = "re-read traffic"


def _missed_again(base: Baseline, i: int) -> float:
    """Re-read bytes that are not found in the cache [B]: what crosses from memory beyond the compulsory misses."""
    work, details = base.work, base.details
    first = float(work.compulsory_byte[i]) * (1.0 - float(details["hit_rate"][i]))
    missed = float(details["hbm_byte"][i]) - first
    # the difference of two large numbers: less than rounding leaves is none
    return missed if work.reread_byte[i] and missed > 1e-9 * first else 0.0


def _if_held(base: Baseline, i: int, platform: Platform) -> str:
    """What re-reads that are counted from memory would take if the cache held what is in flight."""
    missed, memory = _missed_again(base, i), memory_of(platform)
    if base.route != "generic" or mixes_rates(platform) or not missed:
        return ""
    scale = float(base.details["memory_s"][i]) / sum(step.time_s for step in _traffic(base, i, platform))
    held_s = missed / max(memory.cache_byte_per_s, memory.hbm_byte_per_s) * scale
    return f"; were all of it found in {memory.level}, {REREADS} would take {shown_time(held_s)}"


def _tiled(base: Baseline, i: int, platform: Platform, precision: str) -> list[Step]:
    """Matrix product by tiles, our form: one K-step at a unit's share of the rate, waves, and whole-kernel traffic."""
    d = {name: float(values[i]) for name, values in base.details.items()}
    terms = {name: float(values[i]) for name, values in base.terms.items()}
    unit = resolve_unit(platform, precision, "matrix")
    mach = machine(platform, precision, unit)
    busy = arithmetic_step(d, mach, -(-d["k_tiles"] // d["split"]), rate_name(platform, precision, unit), base.route)
    steps = [busy]
    cache = "LLC" if mach.llc_byte_per_s else "L2"
    steps.append(quotient("memory traffic", d["hbm_traffic_byte"], "B", mach.hbm_byte_per_s, "sustained_hbm_bw",
                          "Eq. (1), T_memory", f"HBM ↔ {cache}"))
    if d["llc_traffic_byte"]:
        steps.append(quotient("LLC traffic", d["llc_traffic_byte"], "B", mach.llc_byte_per_s, "llc_bw",
                              "Eq. (10) as bandwidth", "LLC ↔ L2"))
    steps.append(quotient("L2 traffic", d["l2_traffic_byte"], "B", mach.l2_byte_per_s, "l2_bw",
                          "Eq. (4), all units together", "L2 ↔ compute units"))
    steps += _once(d, terms, mach, precision, launch_floor_parameter(platform))
    exposed = terms.get("memory_exposed", 0.0)
    longest = max(step.time_s for step in steps if step.competes)
    if exposed and busy.time_s + exposed > longest * (1 + 1e-9):
        pipeline = busy.time_s + exposed
        words = f"the K-step's copy stage is longer than its arithmetic: {shown_time(pipeline)} for all K-steps"
        steps.insert(1, Step("copy stage", words, pipeline, "steady state above Eq. (8)"))
    return steps


def _once(d: dict[str, float], terms: dict[str, float], mach: Machine, precision: str, launch: str) -> list[Step]:
    """What is added once a kernel: the last store, filling the pipeline, barriers, the launch."""
    tile_byte = d["tile_m"] * d["tile_n"] * output_byte(precision)
    store_s = tile_byte / mach.port_byte_per_s
    bare = terms["writeback"] / store_s
    trips = bare + KERNEL_TRIPS
    fixed_s = mach.barrier_s + (mach.reduction_s if d["split"] > 1.0 else 0.0)
    trip_s = (terms["sync"] - fixed_s) / trips
    barrier = f" + {shown_time(mach.barrier_s)} (mbarrier_latency)" if mach.barrier_s else ""
    reduction = f" + {shown_time(mach.reduction_s)} (reduction of the split K)" if d["split"] > 1.0 else ""
    hidden = f", of the others what alpha {mach.overlap_alpha:g} leaves bare" if d["waves"] > 1 else ""
    store = (f"{format_quantity(tile_byte, 'B', binary=False)} of a tile compute unit → L2 ÷ "
             f"{format_quantity(mach.port_byte_per_s, 'B/s')} (a unit's port) = {shown_time(store_s)}; × {bare:.3g} "
             f"(the last store{hidden}) = {shown_time(terms['writeback'])}")
    sync = (f"{trips:.3g} round trips × {shown_time(trip_s)} (latency of a load; pipeline fills, arguments and drained "
            f"output){barrier}{reduction} = {shown_time(terms['sync'])}")
    start = f"1 launch × {shown_time(terms['launch'])} ({launch}) = {shown_time(terms['launch'])}"
    return [
        Step("writeback", store, terms["writeback"], "store of the last tile, and 1 - alpha of the others, Eq. (7)",
             competes=False),
        Step("sync", sync, terms["sync"], "pipeline fill and barriers, Eqs. (7), (8)", competes=False),
        Step("launch", start, terms["launch"], "Eq. (1), T_overhead", competes=False),
    ]


GENERIC_EQUATION = "Eq. (1): the longer of arithmetic and memory, plus launches"
EQUATIONS = {
    ("stage", "calibrated"): (
        "Eq. (3): tensor-core time of a K-step, T_TMEM inside the measured rate",
        "Eq. (4): copies into a unit; Eq. (7): overlap alpha of fill and store",
        "steady state above Eq. (8): the slowest stage; waves of tiles over the units with the tail"),
    ("stage", "published"): ("Eqs. (2), (3), (4), (7), (8) as printed, and the kernel time under them with waves",),
    ("wavefront", "calibrated"): (
        "Eq. (11): MFMA time, utilisation inside the sustained rate",
        "Eqs. (9), (12) in their consistent form: max(N·T_compute, T_compute + T_mem)",
        "Eq. (13) with waves; Eq. (10) as bandwidth"),
    ("wavefront", "published"): ("Eqs. (9) to (13) as printed, with waves",),
}
"""By route and equation set."""

HIT_FORMS = {"knees": "hit rate h(W) of the last-level cache: fitted knees in the place of Table III",
             "table3": "hit rate h(W) of the last-level cache: Table III as printed"}
MIXES = {False: "traffic: h/BW_cache + (1-h)/BW_HBM, the consistent form of the mix under Eq. (10)",
         True: "traffic over h·BW_cache + (1-h)·BW_HBM, the mix under Eq. (10) as printed"}


def _generic_equations(platform: Platform) -> tuple[str, ...]:
    """What the generic path used, by the platform's `llc_hit_form` and `bandwidth_mix`."""
    form = platform.switch("llc_hit_form")
    return (GENERIC_EQUATION, HIT_FORMS[form], MIXES[mixes_rates(platform)])


# Parameters with a validity range that a route looks up: "as printed" with more of the equations than ours.
_RANGED = {
    ("generic", "calibrated"): ("working_set_scale",),
    ("generic", "published"): ("working_set_scale",),
    ("stage", "calibrated"): ("pipeline_overlap_alpha",),
    ("stage", "published"): (
        "pipeline_overlap_alpha", "tmem_read_bw_per_cu", "tmem_write_bw_per_cu", "tensor_instr_latency", "tma_latency",
        "tma_participants_a", "tma_participants_b", "step_misc_overhead"),
    ("wavefront", "calibrated"): ("pipeline_overlap_alpha",),
    ("wavefront", "published"): ("mfma_utilisation", "coherence_latency", "cross_xcd_latency"),
}


def _left_ranges(base: Baseline, platform: Platform, row: int) -> tuple[str, ...]:
    """Sentences on inputs outside the range in which their equation was published or checked."""
    said = out_of_range(platform, _RANGED[base.route, equation_set(platform).name])
    sizes: dict[str, float] = {
        name: float(base.details[name][row]) for name in ("tile_m", "tile_n", "tile_k") if name in base.details
    }
    said += [f"{name} = {sizes[name]:g} is outside its range of Eq. (3)"
             for name, left in equation(3).outside(**sizes).items() if left.any()]
    return tuple(f"outside its validity: {sentence}" for sentence in said)


_STEPS: dict[tuple[str, str], Callable[[Baseline, int, Platform, str], list[Step]]] = {
    ("generic", "calibrated"): _generic,
    ("generic", "published"): _generic,
    ("stage", "calibrated"): _tiled,
    ("stage", "published"): printed_steps,
    ("wavefront", "calibrated"): _tiled,
    ("wavefront", "published"): printed_steps,
}
"""By route and equation set."""


def explain_baseline(base: Baseline, platform: Platform, precision: str, row: int = 0) -> Explanation:
    """Explain one row of a baseline that was made on `platform` at `precision`."""
    name = equation_set(platform).name
    steps = tuple(_STEPS[base.route, name](base, row, platform, precision))
    groups = competitors(steps)
    binding, to_move = what_binds(groups, steps, float(base.time_s[row]))
    equations = _generic_equations(platform) if base.route == "generic" else EQUATIONS[base.route, name]
    equations = (*equations, *_left_ranges(base, platform, row))
    if binding.startswith("traffic"):
        to_move += _if_held(base, row, platform)
    acted = bool(base.guard[row]) or bool(base.terms.get("bound", base.terms["guard"])[row])
    guard = "acted: the time was below the physical bound and was lifted to it" if acted else "did not act"
    return Explanation(steps, binding, to_move, equations, guard)


def competitors(steps: tuple[Step, ...]) -> list[tuple[str, float, Step]]:
    """(name, time, its longest step) of what runs side by side; the traffic of the generic path adds up."""
    side = [step for step in steps if step.competes]
    traffic = [step for step in side if step.name in ("memory traffic", REREADS, "cache traffic")]
    if len(traffic) > 1:
        total = sum(step.time_s for step in traffic)
        rest = [(step.name, step.time_s, step) for step in side if step not in traffic]
        longest = max(traffic, key=lambda step: step.time_s)
        return [("traffic, mostly re-reads" if longest.name == REREADS else "traffic", total, longest), *rest]
    return [(step.name, step.time_s, step) for step in side]


def what_binds(groups: list[tuple[str, float, Step]], steps: tuple[Step, ...], total_s: float) -> tuple[str, str]:
    """(what binds, what would have to change to move it) of steps that side by side and added make `total_s`."""
    added = [(step.name, step.time_s, step) for step in steps if step.competes is False]
    ranked = sorted(groups, key=lambda item: -item[1])
    largest_added = max(added, key=lambda item: item[1], default=("", 0.0, None))
    if not ranked or largest_added[1] > ranked[0][1]:
        name, time_s, _ = largest_added
        return (f"{name}, {shown_time(time_s)} of {shown_time(total_s)}",
                f"fewer {name}, or more work in each: the rest takes {shown_time(total_s - time_s)}")
    name, time_s, step = ranked[0]
    over = " (Eq. (12) as printed can give less than its longer part)" if time_s > total_s else ""
    binding = f"{name}, {shown_time(time_s)} of {shown_time(total_s)}{over}"
    if len(ranked) < 2 or ranked[1][1] <= 0.0:
        return binding, f"only less {name} or a higher {step.rate_name or 'rate'} makes it faster"
    other, other_s, _ = ranked[1]
    factor = time_s / other_s
    if step.rate and step.rate_unit and step.name == name:
        now = format_quantity(step.rate, step.rate_unit)
        of = f" of {step.rate_name}" if step.rate_name else ""
        reach = f"{format_quantity(step.rate * factor, step.rate_unit)} instead of {now}{of}"
    else:
        reach = "or as much less of it"
    once = f"it binds once {name} is {factor:.3g} times faster ({reach})"
    return binding, f"{other} is next ({shown_time(other_s)}): {once}"
