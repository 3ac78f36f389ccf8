"""What is supported: platforms, whether they are measured and with what error, and what of them is assumed."""

from __future__ import annotations

from typing import Any

from ..analytic.platform import Platform, load_platform, platform_ids
from ..registry import index


def platforms() -> list[str]:
    """Ids of the supported platforms, sorted; `load_platform` takes them."""
    return platform_ids()


def platform_line(name: str) -> dict[str, Any]:
    """One line of `kernelcast platforms`: what it is, whether it is measured and with what error, what is assumed.

    `model` is the one that predictions use; without a champion that is the model across platforms, and `measured` is
    False. `fault` is there where something stored is damaged.
    """
    platform = load_platform(name)
    unknown = index.pointer_fault(platform.id)
    line: dict[str, Any] = {
        "id": platform.id, "aliases": list(platform.aliases), "description": platform.description,
        "vendor": platform.vendor, "arch": platform.arch, "parameter_set": platform.parameter_set,
        "measured": False, "model": None, "rows": None, "heldout": None,
        "assumed": _assumed(platform), "flags": [f"{flag.key}: {flag.message}" for flag in platform.flags],
    }
    if unknown is not None:
        return line | {"fault": unknown}
    entry = index.champion_entry(platform.id)
    if entry is None:
        stand_in = None if platform.as_published else index.transfer_entry()
        return line | {"model": None if stand_in is None else stand_in.label}
    found = index.summary(entry)
    line |= {"measured": found["fault"] is None, "model": entry.label, "rows": found.get("rows"),
             "heldout": found.get("heldout")}
    return line | ({"fault": found["fault"]} if found["fault"] else {})


def _assumed(platform: Platform) -> list[str]:
    return [p.name for p in platform.parameters.values() if p.kind == "assumed" and p.value is not None]


def platform_lines() -> list[dict[str, Any]]:
    """`platform_line` of every supported platform."""
    return [platform_line(name) for name in platform_ids()]


def platform_detail(name: str) -> dict[str, Any]:
    """A platform's line and all of its parameters with value, unit, kind, source, date, note and flags."""
    return platform_line(name) | {"parameters": load_platform(name).describe()}
