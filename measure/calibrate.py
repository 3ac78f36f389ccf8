"""From microbenchmarks (or a run table) to a parameter file: what was measured replaces, the rest keeps its source."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analytic.errors import InputError
from ..analytic.platform import Parameter, Platform
from ..analytic.platform_schema import PARAMETERS
from ..analytic.plausibility import plausibility_flags
from .calibrate_rules import RULES, Found, Results, product_rate_name

if TYPE_CHECKING:
    import pandas as pd

SIGNIFICANT = 4  # digits written: the sweeps repeat to a few per cent between cards
LARGE_FLOP, LARGE_QUANTILE = 1e12, 95.0


@dataclass
class Calibration:
    """A platform with measured parameters, their fits for the pictures, and what could not be taken, with reasons."""

    platform: Platform
    measured: dict[str, Found]
    fits: dict[str, Any] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    comment: str = ""  # how the file was made, for its first lines


# what the shipped files work out from another parameter follows it: (from, how, the source they name)
FOLLOWERS: dict[str, tuple[str, Callable[[float, Platform], float], str]] = {
    "tma_bw_per_cu": ("l2_bw", lambda v, p: v / p.value("compute_units"), "l2_bw / compute_units"),
    "store_setup_latency": ("latency_hbm", lambda v, p: v, "latency_hbm"),
}


def calibrate(platform: Platform, source: str | Path) -> Calibration:
    """Parameters of `platform` replaced by what `source` measured: a microbenchmark report (JSON) or a run table.

    InputError for a file that is neither, or that was measured on another platform."""
    path = Path(source)
    if path.suffix == ".json":
        report = read_report(path, platform)
        date, driver = report["date"], report["card_before"].get("driver_version", "unknown")
        made = _from_results(platform, report["results"])
        origin = f"kernelcast microbenchmarks on one {report['gpu']}, driver {driver} ({path.name})"
    else:
        made, date = _from_runs(platform, path), ""
        origin = f"measured runs ({path.name})"
    made = _applied(made, origin, date)
    made.comment = _comment(made.platform, path.name, origin, date)
    return made


def read_report(path: Path, platform: Platform) -> dict[str, Any]:
    """A microbenchmark report, checked. InputError naming the file and what is wrong."""
    try:
        report: dict[str, Any] = json.loads(path.read_text())
        measured_on, units = report["platform"], report["units"]
        if not isinstance(report["results"], dict):
            raise TypeError("`results` is no mapping")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; `python -m kernelcast.measure.microbench` writes one") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a microbenchmark report: {error!r}") from None
    if measured_on != platform.id:
        raise InputError(f"{path}: measured on {measured_on!r}, not on {platform.id!r}")
    if units != platform.value("compute_units"):
        raise InputError(f"{path}: the device has {units} units, {platform.path} says "
                         f"{platform.value('compute_units'):g}: another product or a part of one")
    return report | {"date": str(report.get("date", "")), "card_before": report.get("card_before") or {}}


def _from_results(platform: Platform, results: Results) -> Calibration:
    made = Calibration(platform, {})
    for section, rule in RULES.items():
        if section not in results:
            made.left[section] = "not measured"
            continue
        try:
            found = rule(results, platform, made.fits)
        except (InputError, KeyError, TypeError) as error:
            made.left[section] = str(error) if isinstance(error, InputError) else f"the section is not whole: {error!r}"
            continue
        for name, value in found.items():
            if name in PARAMETERS and np.isfinite(value.value) and value.value > 0:
                made.measured[name] = value
            else:
                made.left[name] = f"{value.value:g} is no possible value"
    if not made.measured:
        raise InputError("nothing in the report could be used: " + "; ".join(f"{k}: {v}" for k, v in made.left.items()))
    return made


def _from_runs(platform: Platform, path: Path) -> Calibration:
    """What kernels of the run table can tell: memory and cache from copies, matrix rates from products."""
    from ..training.tables.schema import params_frame, read_runs

    frame = read_runs(path).frame
    frame = frame[frame["platform"] == platform.id]
    made = Calibration(platform, {})
    copies = frame[(frame["kernel"] == "vector_copy") & (frame["cache"] != "cold")]
    if len(copies):
        byte, rate = _copies(copies, params_frame(copies["params"]))
        large = byte >= 16.0 * platform.value("l2_size")
        if large.any():
            made.measured["sustained_hbm_bw"] = Found(
                float(np.percentile(rate[large], LARGE_QUANTILE)), f"95th percentile of {int(large.sum())} large copies"
            )
    products = frame[frame["kernel"] == "gemm"]
    if len(products):
        sizes = params_frame(products["params"])
        flop = 2.0 * sizes["m"].to_numpy(float) * sizes["n"].to_numpy(float) * sizes["k"].to_numpy(float)
        for precision in sorted(set(products["precision"])):
            inside = (products["precision"].to_numpy() == precision) & (flop >= LARGE_FLOP)
            name = product_rate_name(platform, precision)
            if inside.sum() >= 5 and name:
                value = float(np.percentile((flop / products["time_s"].to_numpy())[inside], LARGE_QUANTILE))
                made.measured[name] = Found(
                    value, f"95th percentile of {int(inside.sum())} products of 1e12 FLOP and more"
                )
    if not made.measured:
        raise InputError(f"{path}: no large vector_copy or gemm rows of {platform.id} to calibrate from; "
                         "`python -m kernelcast.measure.microbench` measures what a parameter file holds")
    return made


def _copies(copies: pd.DataFrame, params: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    from ..analytic.work import element_byte

    each = np.array([element_byte(str(p)) for p in copies["precision"]])
    byte = 2.0 * params["n"].to_numpy(float) * each
    return byte, byte / copies["time_s"].to_numpy()


def _rounded(value: float) -> float:
    return float(f"{value:.{SIGNIFICANT}g}")


def _applied(made: Calibration, origin: str, date: str) -> Calibration:
    p = made.platform
    parameters = dict(p.parameters)

    def put(name: str, value: float, kind: str, source: str, note: str) -> None:
        parameters[name] = Parameter(name, _rounded(value), PARAMETERS[name].unit, kind, source, date, note)

    for name, found in made.measured.items():
        put(name, found.value, "measured", origin, found.note)
    for name, (origin_name, rule, says) in FOLLOWERS.items():
        before = p.parameters.get(name)
        if origin_name in made.measured and before is not None and before.source == says:
            put(name, rule(made.measured[origin_name].value, p), "derived", says, before.note)
    order = {name: i for i, name in enumerate(PARAMETERS)}
    parameters = dict(sorted(parameters.items(), key=lambda item: order[item[0]]))
    flags = plausibility_flags(parameters, p.arch, p.path)
    made.platform = replace(p, parameters=parameters, flags=flags)
    return made


def _comment(platform: Platform, name: str, origin: str, date: str) -> str:
    """What a reader of the file has to know first: what made it, how much of it was measured, how to change it."""
    mine = [p for p in platform.parameters.values() if p.source == origin]
    following = [n for n, (_, _, says) in FOLLOWERS.items() if says == platform.parameters[n].source]
    lines = [
        f"Written by `kernelcast calibrate -p {platform.id} --runs {name}`:",
        f"{len(mine)} parameters are from {origin}{f', {date}' if date else ''}.",
    ]
    if following:
        lines.append(f"Derived from those: {', '.join(following)}.")
    lines += [
        "Every other parameter is as it was in the file calibrated, with its own kind and source.",
        "Change a measured value by measuring and calibrating anew, not by hand.",
    ]
    return "\n".join(lines)
