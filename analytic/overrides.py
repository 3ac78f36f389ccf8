"""What-if values: `--set hbm_peak_bw=6TB/s` on a copy of a platform's parameters.

Rules, so that an overridden set still describes one machine:
- a peak scales its sustained partner by the same ratio (a faster memory of the same efficiency), unless both are set;
- a sustained value set above its peak raises the peak to it, and is flagged;
- `dram_bandwidth` (and its other spellings) sets `sustained_hbm_bw` and raises `hbm_peak_bw` to at least that;
- a latency in cycles and its `_time` twin follow one another.
Nothing else moves: `compute_units` leaves the rates as they are; the plausibility flags say when they no longer fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real

from .errors import InputError
from .platform_file import Parameter, nearest_parameters, parameter_value
from .platform_schema import BOOL, DRAM_BANDWIDTH, PARAMETERS, TEXT, canonical_name
from .units import format_quantity, is_number

OVERRIDE = "override"


def overridden(
    parameters: Mapping[str, Parameter], overrides: Mapping[str, str | float], platform_id: str
) -> tuple[dict[str, Parameter], list[tuple[str, str]]]:
    """Return the new parameters and (key, message) of every consequence a person should see. Raises InputError."""
    changed = dict(parameters)
    given, bare = _given(overrides, platform_id)
    for name, value in given.items():
        changed[name] = _override(name, value, parameters.get(name), bare.get(name, "set by the user"))
    notes: list[tuple[str, str]] = []
    for name in given:
        _follow_peak(name, given, parameters, changed)
        _follow_twin(name, given, parameters, changed)
        _raise_peak(name, changed, notes)
    return changed, notes


def _given(
    overrides: Mapping[str, str | float], platform_id: str
) -> tuple[dict[str, float | str], dict[str, str]]:
    """(value by parameter, words on those a person wrote without their unit)."""
    given: dict[str, float | str] = {}
    bare: dict[str, str] = {}
    for written, raw in overrides.items():
        name = "sustained_hbm_bw" if written in DRAM_BANDWIDTH else canonical_name(written)
        if name not in PARAMETERS:
            raise InputError(f"platform {platform_id}: cannot set '{written}': no such parameter"
                             f"{nearest_parameters(written)}")
        if name in given:
            raise InputError(f"platform {platform_id}: '{written}' sets {name}, which is set twice")
        if not isinstance(raw, str | Real):
            raise InputError(f"platform {platform_id}: cannot set {written} to {raw!r:.60}: a number is needed, or "
                             "text with a unit")
        try:
            given[name] = parameter_value(PARAMETERS[name], raw)
        except InputError as error:
            raise InputError(f"platform {platform_id}: cannot set {written}={raw}: {error}") from None
        if isinstance(raw, str) and PARAMETERS[name].unit in PREFIXED and is_number(raw):
            bare[name] = f"set by the user without a unit, taken in {PARAMETERS[name].unit}"
    return given, bare


PREFIXED = ("B", "B/s", "FLOP/s", "OP/s", "Hz", "W", "s")
"""Units that are written with a prefix: 6 for a bandwidth of 6 TB/s is a slip worth showing."""


def _override(name: str, value: float | str, before: Parameter | None, how: str) -> Parameter:
    unit = "" if PARAMETERS[name].unit in (TEXT, BOOL) else PARAMETERS[name].unit
    was = "not given" if before is None or before.value is None else _shown(before)
    return Parameter(name, value, unit, OVERRIDE, how, "", f"was {was}")


def _shown(parameter: Parameter) -> str:
    value = parameter.value
    return format_quantity(value, parameter.unit) if isinstance(value, int | float) else f"{value}"


def _partners(name: str) -> tuple[str, ...]:
    """Return the sustained values that go with a peak, or the peak that goes with a sustained value."""
    if name == "hbm_peak_bw":
        return ("sustained_hbm_bw",)
    if name.startswith("peak_"):
        rate = name.removeprefix("peak_")
        return (f"sustained_{rate}", f"sustained_{rate}_max")
    if name == "sustained_hbm_bw":
        return ("hbm_peak_bw",)
    if name.startswith("sustained_"):
        return ("peak_" + name.removeprefix("sustained_").removesuffix("_max"),)
    return ()


def _number(parameters: Mapping[str, Parameter], name: str) -> float:
    parameter = parameters.get(name)
    return 0.0 if parameter is None or isinstance(parameter.value, str | None) else float(parameter.value)


def _follow_peak(
    name: str, given: Mapping[str, float | str], before: Mapping[str, Parameter], changed: dict[str, Parameter]
) -> None:
    old = _number(before, name)
    if not (name.startswith("peak_") or name == "hbm_peak_bw") or not old:
        return
    for partner in _partners(name):
        if partner not in given and _number(before, partner):
            scaled = _number(before, partner) * _number(changed, name) / old
            changed[partner] = _override(partner, scaled, before.get(partner), f"scaled with {name}")


def _follow_twin(
    name: str, given: Mapping[str, float | str], before: Mapping[str, Parameter], changed: dict[str, Parameter]
) -> None:
    twin = name.removesuffix("_time") if name.endswith("_time") else f"{name}_time"
    old, old_twin = _number(before, name), _number(before, twin)
    if twin in PARAMETERS and twin not in given and old and old_twin:
        scaled = old_twin * _number(changed, name) / old
        changed[twin] = _override(twin, scaled, before.get(twin), f"follows {name}")


def _raise_peak(name: str, changed: dict[str, Parameter], notes: list[tuple[str, str]]) -> None:
    if not name.startswith("sustained_"):
        return
    value = _number(changed, name)
    for peak in _partners(name):
        old = _number(changed, peak)
        if old and value > old:
            changed[peak] = _override(peak, value, changed[peak], f"raised to {name}")
            notes.append((name, f"set above the peak; {peak} was raised from {old:.4g} to {value:.4g} to match"))
