"""Steps of a calculation in words: an amount over a rate, a count times a latency, the arithmetic of tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .gemm_tiles import Machine
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


def shown_time(value: float) -> str:
    """A time with its unit: `1.432 ms`."""
    return format_quantity(value, "s")


def quotient(name: str, amount: float, unit: str, rate: float, rate_name: str, equation: str, ends: str) -> Step:
    """`12 MB HBM ↔ L2 ÷ 4 TB/s (name of the rate) = 3 µs`."""
    time_s = amount / rate
    speed = format_quantity(rate, f"{unit}/s")
    words = f"{format_quantity(amount, unit, binary=False)} {ends} ÷ {speed} ({rate_name}) = {shown_time(time_s)}"
    return Step(name, words, time_s, equation, amount, rate, unit + "/s", rate_name)


ONE_OF = {"launches": "launch", "accesses in a row": "access", "synchronisations": "synchronisation"}


def product(name: str, count: float, what: str, each_s: float, each_name: str, equation: str, *,
             competes: bool = False) -> Step:
    """`3 launches × 863 ns (name of the latency) = 2.589 µs`; `what` in the plural."""
    things = ONE_OF.get(what, what) if count == 1 else what
    words = f"{count:g} {things} × {shown_time(each_s)} ({each_name}) = {shown_time(count * each_s)}"
    return Step(name, words, count * each_s, equation, count, 1.0 / each_s if each_s else 0.0, "", each_name,
                competes)


def rescaled(step: Step, scale: float, name: str = "class_scale") -> Step:
    """A step whose time is multiplied by a calibrated scale."""
    time_s = step.time_s * scale
    return replace(step, words=f"{step.words}; × {scale:.4g} ({name}) = {shown_time(time_s)}", time_s=time_s,
                   rate=step.rate / scale)


def _counted(count: float, what: str) -> str:
    return f"{count:g} {what}{'' if count == 1 else 's'}"


def arithmetic_step(
    d: dict[str, float], mach: Machine, k_steps: float, rate_name: str, route: str, extra: str = ""
) -> Step:
    """Arithmetic of a tiled matrix product: a K-step at a unit's share of the rate, times K-steps, times waves.

    d: details of the row. extra: what an equation makes of the K-step beside FLOP over rate.
    """
    tile = f"{d['tile_m']:g}×{d['tile_n']:g}×{d['tile_k']:g}"
    step_flop = 2.0 * d["tile_m"] * d["tile_n"] * d["tile_k"]
    number = "Eq. (3)" if route == "stage" else "Eq. (11)"
    split = f", K split {d['split']:g} ways" if d["split"] > 1 else ""
    whole = d["waves"] * k_steps * step_flop * mach.units  # what the units could do in the time, idle ones included
    return Step(
        "arithmetic",
        f"{format_quantity(step_flop, 'FLOP')} of a K-step of tile {tile} ÷ "
        f"{format_quantity(mach.unit_flop_per_s, 'FLOP/s')} (one unit's share of {rate_name}) = "
        f"{shown_time(step_flop / mach.unit_flop_per_s)}{extra}"
        f"; × {_counted(k_steps, 'K-step')} × {_counted(d['waves'], 'wave')} ({_counted(d['ctas'], 'tile')} on "
        f"{mach.units:g} units{split}) = {shown_time(d['compute_s'])}",
        d["compute_s"], f"{number}, waves", whole, whole / d["compute_s"], "FLOP/s", rate_name,
    )
