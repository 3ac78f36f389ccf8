"""A baseline in words: steps as amount ÷ rate = time, both ends of every byte count, what binds, what moves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .baseline import Baseline, arithmetic_precision, arithmetic_rate, hbm_rate, launch_floor_s, memory_of
from .gemm_tiles import machine
from .platform import Platform
from .units import format_quantity


@dataclass(frozen=True)
class Step:
    """One step of the calculation. `rate` is 0 where the time is not an amount over a rate."""

    name: str
    words: str
    time_s: float
    equation: str
    amount: float = 0.0
    rate: float = 0.0
    rate_unit: str = ""
    rate_name: str = ""
    competes: bool | None = True
    """True for what runs at the same time as other steps (the longest counts), False for what is added, None for a
    line that only sums up others."""


@dataclass(frozen=True)
class Explanation:
    """Steps, the binding one, what would have to change, the equations used, and what the guard did."""

    steps: tuple[Step, ...]
    binding: str
    to_move: str
    equations: tuple[str, ...]
    guard: str


def _time(value: float) -> str:
    return format_quantity(value, "s")


def _quotient(name: str, amount: float, unit: str, rate: float, rate_name: str, equation: str, ends: str) -> Step:
    time_s = amount / rate
    speed = format_quantity(rate, f"{unit}/s")
    words = f"{format_quantity(amount, unit)} {ends} ÷ {speed} ({rate_name}) = {_time(time_s)}"
    return Step(name, words, time_s, equation, amount, rate, unit + "/s", rate_name)


def _product(name: str, count: float, what: str, each_s: float, each_name: str, equation: str, *,
             competes: bool = False) -> Step:  # fmt: skip
    words = f"{count:g} {what} × {_time(each_s)} ({each_name}) = {_time(count * each_s)}"
    return Step(name, words, count * each_s, equation, count, 1.0 / each_s if each_s else 0.0, "", each_name,
                competes)  # fmt: skip


def _rate_name(platform: Platform, precision: str, unit: str) -> str:
    return platform.rate_note(arithmetic_precision(precision), unit)


def _efficiency_note(platform: Platform, precision: str) -> str:
    name = f"precision_efficiency_{arithmetic_precision(precision)}"
    efficiency = platform.get(name) or 1.0
    return "" if efficiency == 1.0 else f" x {name} {efficiency:g}"


def _rescaled(step: Step, scale: float) -> Step:
    time_s = step.time_s * scale
    return replace(step, words=f"{step.words}; × {scale:.4g} (class_scale) = {_time(time_s)}", time_s=time_s,
                   rate=step.rate / scale)  # fmt: skip


def _compulsory(base: Baseline, i: int) -> str:
    read, write = (format_quantity(float(x[i]), "B") for x in (base.work.read_byte, base.work.write_byte))
    return f"compulsory: read {read}, write {write}; the rest is re-read past the cache"


def _generic(base: Baseline, i: int, platform: Platform, precision: str) -> list[Step]:
    memory, work, details = memory_of(platform), base.work, base.details
    level = "LLC" if "llc_bw" in memory.parameters else "L2"
    steps = []
    if work.flop[i]:
        rate = arithmetic_rate(platform, precision, work.unit)
        note = _rate_name(platform, precision, work.unit) + _efficiency_note(platform, precision)
        steps.append(_quotient("arithmetic", float(work.flop[i]), "FLOP", rate, note, "Eq. (1), T_compute",
                               f"on the {work.unit} units"))  # fmt: skip
    hit = float(details["hit_rate"][i])
    where = f"{level}, hit rate {hit:.3g} of a working set of {format_quantity(float(work.working_set_byte[i]), 'B')}"
    hbm_byte_per_s = float(hbm_rate(platform, memory, work.working_set_byte[i]))
    blended = hbm_byte_per_s > memory.hbm_byte_per_s
    if details["hbm_byte"][i]:
        steps.append(_quotient("memory traffic", float(details["hbm_byte"][i]), "B", hbm_byte_per_s,
                               "sustained_hbm_bw to hbm_peak_bw by working_set_scale" if blended else "sustained_hbm_bw",
                               "Eq. (1), T_memory; Eq. (16)" if blended else "Eq. (1), T_memory",
                               f"HBM ↔ {level} ({_compulsory(base, i)})"))  # fmt: skip
    if details["cache_byte"][i]:
        steps.append(_quotient("cache traffic", float(details["cache_byte"][i]), "B",
                               max(memory.cache_byte_per_s, hbm_byte_per_s),
                               f"{level.lower()}_bw", "Eq. (10) as bandwidth, times added",
                               f"{level} ↔ compute units ({where})"))  # fmt: skip
    plain_s = sum(step.time_s for step in steps if step.name.endswith(" traffic"))
    scale = float(details["memory_s"][i]) / plain_s if plain_s else 1.0
    if abs(scale - 1.0) > 1e-9:
        steps = [_rescaled(step, scale) if step.name.endswith(" traffic") else step for step in steps]
    if memory.latency_s and work.chain[i]:
        steps.append(_product("dependent accesses", float(work.chain[i]), "accesses in a row", memory.latency_s,
                              "latency_hbm", "Little's law, latency side", competes=True))  # fmt: skip
    steps.append(_product("launches", float(work.launches[i]), "launches", launch_floor_s(platform),
                          "empty_kernel_duration, or kernel_launch_latency", "Eq. (1), T_overhead"))  # fmt: skip
    return steps


def _tiled(base: Baseline, i: int, platform: Platform, precision: str) -> list[Step]:
    """Matrix product by tiles, our form: one K-step at a unit's share of the rate, waves, and whole-kernel traffic."""
    d = {name: float(values[i]) for name, values in base.details.items()}
    terms = {name: float(values[i]) for name, values in base.terms.items()}
    unit = "matrix" if platform.get(f"peak_{precision}_matrix") else "vector"
    mach = machine(platform, precision, unit, platform.as_published)
    tile = f"{d['tile_m']:g}×{d['tile_n']:g}×{d['tile_k']:g}"
    step_flop = 2.0 * d["tile_m"] * d["tile_n"] * d["tile_k"]
    k_steps = d["k_tiles"] if platform.as_published else -(-d["k_tiles"] // d["split"])
    one = d["compute_s"] / (d["waves"] * k_steps)
    rate_name = f"peak_{precision}_{unit}" if platform.as_published else _rate_name(platform, precision, unit)
    number = "Eq. (3)" if base.route == "stage" else "Eq. (11)"
    total_flop = d["waves"] * k_steps * step_flop
    extra = ", with T_TMEM and its management, or the MFMA utilisation" if platform.as_published else ""
    split = f", K split {d['split']:g} ways" if d["split"] > 1 else ""
    busy = Step(
        "arithmetic",
        f"{format_quantity(step_flop, 'FLOP')} of a K-step of tile {tile} ÷ "
        f"{format_quantity(mach.unit_flop_per_s, 'FLOP/s')} (one unit's share of "
        f"{rate_name}{extra}) = {_time(one)}; × {k_steps:g} K-steps × {d['waves']:g} waves "
        f"({d['ctas']:g} tiles on {mach.units:g} units{split}) = {_time(d['compute_s'])}",
        d["compute_s"], f"{number}, waves", total_flop, total_flop / d["compute_s"], "FLOP/s", rate_name,
    )  # fmt: skip
    if platform.as_published:
        return [busy, *_published_rest(d, terms, k_steps, base.route)]
    steps = [busy]
    cache = "LLC" if mach.llc_byte_per_s else "L2"
    steps.append(_quotient("memory traffic", d["hbm_traffic_byte"], "B", mach.hbm_byte_per_s, "sustained_hbm_bw",
                           "Eq. (1), T_memory", f"HBM ↔ {cache}"))  # fmt: skip
    if d["llc_traffic_byte"]:
        steps.append(_quotient("LLC traffic", d["llc_traffic_byte"], "B", mach.llc_byte_per_s, "llc_bw",
                               "Eq. (10) as bandwidth", "LLC ↔ L2"))  # fmt: skip
    steps.append(_quotient("L2 traffic", d["l2_traffic_byte"], "B", mach.l2_byte_per_s, "l2_bw",
                           "Eq. (4), all units together", "L2 ↔ compute units"))  # fmt: skip
    for name, equation in (("writeback", "store of the last tile, and 1 - alpha of the others, Eq. (7)"),
                           ("sync", "pipeline fill and barriers, Eqs. (7), (8)"), ("launch", "Eq. (1), T_overhead")):
        if terms.get(name):
            steps.append(Step(name, f"{_time(terms[name])}", terms[name], equation, competes=False))
    exposed = terms.get("memory_exposed", 0.0)
    longest = max(step.time_s for step in steps if step.competes)
    if exposed and busy.time_s + exposed > longest * (1 + 1e-9):
        pipeline = busy.time_s + exposed
        words = f"the K-step's copy stage is longer than its arithmetic: {_time(pipeline)} for all K-steps"
        steps.insert(1, Step("copy stage", words, pipeline, "steady state above Eq. (8)"))
    return steps


def _published_rest(d: dict[str, float], terms: dict[str, float], k_steps: float, route: str) -> list[Step]:
    """Input side of the printed equations, the K-step they give, and what is added once."""
    count = d["waves"] * k_steps
    name, number = ("T_io", "Eq. (7)") if route == "stage" else ("T_mem", "Eq. (10)")
    each = d["t_io_s"] if route == "stage" else d["t_memory_s"]
    loop = d["compute_s"] + terms["memory_exposed"] if route == "stage" else terms["compute"] + terms["tail"] + terms[
        "memory_exposed"]  # fmt: skip
    combined = "Eq. (8)" if route == "stage" else f"Eq. (12) with overlap {d['eta_overlap']:.3g}"
    rows = [
        _product("input", count, "K-steps over all waves", each, f"{name} of one", number, competes=True),
        Step("K loop", f"T_compute {_time(d['t_compute_s'])} and {name} {_time(each)} make T_step "
             f"{_time(loop / count)}; × {count:g} K-steps over all waves = {_time(loop)}", loop, combined,
             competes=None),
    ]  # fmt: skip
    rows += [Step(name, _time(terms[name]), terms[name], "kernel time under Eq. (8), or (13)", competes=False)
             for name in ("writeback", "sync", "launch") if terms.get(name)]  # fmt: skip
    return rows


EQUATIONS = {
    "generic": ("Eq. (1): the longer of arithmetic and memory, plus launches",
                "hit rate h(W) of the last-level cache: fitted knees in the place of Table III",
                "traffic: h/BW_cache + (1-h)/BW_HBM, the consistent form of the mix under Eq. (10)"),
    "stage": ("Eq. (3): tensor-core time of a K-step, T_TMEM inside the measured rate",
              "Eq. (4): copies into a unit; Eq. (7): overlap alpha of fill and store",
              "steady state above Eq. (8): the slowest stage; waves of tiles over the units with the tail"),
    "wavefront": ("Eq. (11): MFMA time, utilisation inside the sustained rate",
                  "Eqs. (9), (12) in their consistent form: max(N·T_compute, T_compute + T_mem)",
                  "Eq. (13) with waves; Eq. (10) as bandwidth"),
}  # fmt: skip
PUBLISHED_EQUATIONS = {
    "stage": ("Eqs. (2), (3), (4), (7), (8) as printed, and the kernel time under them with waves",),
    "wavefront": ("Eqs. (9) to (13) as printed, with waves",),
}

_STEPS: dict[str, Callable[[Baseline, int, Platform, str], list[Step]]] = {
    "generic": _generic, "stage": _tiled, "wavefront": _tiled
}  # fmt: skip


def explain_baseline(base: Baseline, platform: Platform, precision: str, row: int = 0) -> Explanation:
    """Explain one row of a baseline that was made on `platform` at `precision`."""
    steps = tuple(_STEPS[base.route](base, row, platform, precision))
    groups = _competitors(steps)
    binding, to_move = _binding(groups, steps, float(base.time_s[row]))
    equations: tuple[str, ...] = EQUATIONS[base.route]
    if platform.as_published:
        equations = PUBLISHED_EQUATIONS.get(base.route, equations)
    acted = bool(base.guard[row]) or bool(base.terms.get("bound", base.terms["guard"])[row])
    guard = "acted: the time was below the physical bound and was lifted to it" if acted else "did not act"
    return Explanation(steps, binding, to_move, equations, guard)


def _competitors(steps: tuple[Step, ...]) -> list[tuple[str, float, Step]]:
    """(name, time, its longest step) of what runs side by side; memory and cache traffic of the generic path add up."""
    side = [step for step in steps if step.competes]
    names = [step.name for step in side]
    if "cache traffic" in names and "memory traffic" in names:
        traffic = [step for step in side if step.name.endswith(" traffic")]
        total = sum(step.time_s for step in traffic)
        rest = [(step.name, step.time_s, step) for step in side if step not in traffic]
        return [("traffic", total, max(traffic, key=lambda step: step.time_s)), *rest]
    return [(step.name, step.time_s, step) for step in side]


def _binding(groups: list[tuple[str, float, Step]], steps: tuple[Step, ...], total_s: float) -> tuple[str, str]:
    added = [(step.name, step.time_s, step) for step in steps if step.competes is False]
    ranked = sorted(groups, key=lambda item: -item[1])
    largest_added = max(added, key=lambda item: item[1], default=("", 0.0, None))
    if not ranked or largest_added[1] > ranked[0][1]:
        name, time_s, _ = largest_added
        return (f"{name}, {_time(time_s)} of {_time(total_s)}",
                f"fewer {name}, or more work in each: the rest takes {_time(total_s - time_s)}")  # fmt: skip
    name, time_s, step = ranked[0]
    over = " (Eq. (12) as printed can give less than its longer part)" if time_s > total_s else ""
    binding = f"{name}, {_time(time_s)} of {_time(total_s)}{over}"
    if len(ranked) < 2 or ranked[1][1] <= 0.0:
        return binding, f"only less {name} or a higher {step.rate_name or 'rate'} makes it faster"
    other, other_s, _ = ranked[1]
    factor = time_s / other_s
    if step.rate and step.rate_unit:
        now = format_quantity(step.rate, step.rate_unit)
        reach = f"{format_quantity(step.rate * factor, step.rate_unit)} instead of {now}"
    else:
        reach = "or as much less of it"
    return binding, f"{other} is next ({_time(other_s)}): it binds once {name} is {factor:.3g} times faster ({reach})"
