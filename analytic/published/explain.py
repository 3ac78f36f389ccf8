"""A matrix product by the equations as printed, in words: K-step, input side, what is added once."""

from __future__ import annotations

from ..baseline import Baseline
from ..explain_steps import Step, arithmetic_step, product, shown_time
from ..gemm_common import resolve_unit
from ..platform import Platform
from .gemm import printed_machine


def printed_steps(base: Baseline, i: int, platform: Platform, precision: str) -> list[Step]:
    """Steps of row `i` of a baseline made by the equations of arXiv 2605.04178 as printed."""
    d = {name: float(values[i]) for name, values in base.details.items()}
    terms = {name: float(values[i]) for name, values in base.terms.items()}
    unit = resolve_unit(platform, precision, "matrix")
    mach = printed_machine(platform, precision, unit)
    plain_s = 2.0 * d["tile_m"] * d["tile_n"] * d["tile_k"] / mach.unit_flop_per_s
    rate = f"peak_{precision}_{unit}"
    busy = arithmetic_step(d, mach, d["k_tiles"], rate, base.route, _extra(d, plain_s))
    return [busy, *_rest(d, terms, d["k_tiles"], base.route)]


def _extra(d: dict[str, float], plain_s: float) -> str:
    """What the printed Eqs. (3), (6) and (11) make of the arithmetic of a K-step beside FLOP over rate."""
    printed_s, tmem_s = d["t_compute_s"], d.get("t_tmem_s")
    if tmem_s is None:
        return f", ÷ {plain_s / printed_s:.3g} (mfma_utilisation) = {shown_time(printed_s)}"
    faster = " a CTA pair's speed-up," if printed_s < plain_s + tmem_s else ""
    return f", with{faster} T_TMEM {shown_time(tmem_s)} and its management = {shown_time(printed_s)}"


def _rest(d: dict[str, float], terms: dict[str, float], k_steps: float, route: str) -> list[Step]:
    """Input side of the printed equations, the K-step they give, and what is added once."""
    count = d["waves"] * k_steps
    name, number = ("T_io", "Eq. (7)") if route == "stage" else ("T_mem", "Eq. (10)")
    each = d["t_io_s"] if route == "stage" else d["t_memory_s"]
    loop = d["compute_s"] + terms["memory_exposed"] if route == "stage" else terms["compute"] + terms["tail"] + terms[
        "memory_exposed"]
    combined = "Eq. (8)" if route == "stage" else f"Eq. (12) with overlap {d['eta_overlap']:.3g}"
    rows = [
        product("input", count, "K-steps over all waves", each, f"{name} of one", number, competes=True),
        Step("K loop", f"T_compute {shown_time(d['t_compute_s'])} and {name} {shown_time(each)} make T_step "
             f"{shown_time(loop / count)}; × {count:g} K-steps over all waves = {shown_time(loop)}", loop, combined,
             competes=None),
    ]
    closing = "kernel time under Eq. (8)" if route == "stage" else "Eq. (13)"
    said = {"writeback": "an output tile, compute unit → HBM", "sync": "barriers, or coherence and cross-XCD",
            "launch": "kernel_launch_latency"}
    rows += [Step(name, f"{words}: {shown_time(terms[name])}", terms[name], closing, competes=False)
             for name, words in said.items() if terms.get(name)]
    return rows
