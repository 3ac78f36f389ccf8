"""What is known of each kernel family, as plain data: the parameters, who implements it, a question that runs."""

from __future__ import annotations

import json
from typing import Any

from ..analytic.errors import InputError
from ..analytic.families import FAMILIES, family
from ..analytic.platform import platform_ids
from ..analytic.work import Family, Param, usage

EXAMPLE_PLATFORM = "h200"


def families(name: str | None = None) -> list[dict[str, Any]] | dict[str, Any]:
    """Every kernel family in one line, or with a name all that is known of that one. JSON-safe.

    A line has `name`, `meaning`, `usage` and `precision`, the one assumed where a question names none. A record adds
    `parameters` (name, meaning, unit, kind, required, default, follows: from what an absent one is taken, words,
    open: whether a table may bring other words),
    `told_by` (optional parameters the time hangs on), `contradictions`, `implementations` by platform and `reference`
    by vendor, `example` and `damaged` (what is wrong with stored models). Raises InputError for an unknown name.
    """
    if name is None:
        return [_line(found) for _, found in sorted(FAMILIES.items())]
    if not isinstance(name, str):
        raise InputError(f"the kernel family is a name, not {name!r:.60}")
    return _record(family(name))


def _line(found: Family) -> dict[str, Any]:
    return {"name": found.name, "meaning": found.meaning, "usage": usage(found), "precision": found.precision}


def _record(found: Family) -> dict[str, Any]:
    known, damaged = _implementations(found.name)
    return _line(found) | {
        "class": found.kind, "parameters": [_parameter(param) for param in found.params],
        "told_by": list(found.statistics), "contradictions": [item.words for item in found.contradictions],
        "implementations": known, "reference": dict(found.reference), "example": _example(found), "damaged": damaged,
    }


def _parameter(param: Param) -> dict[str, Any]:
    return {"name": param.name, "meaning": param.meaning, "unit": param.unit, "kind": param.kind,
            "required": param.required, "default": param.default, "follows": param.follows,
            "words": list(param.words), "open": param.open}


def _example(found: Family) -> dict[str, Any]:
    given: dict[str, Any] = {"precision": found.precision, **found.example}
    precision = given.pop("precision")
    words = [f"{name}={json.dumps(value) if isinstance(value, bool) else _shown(value)}"
             for name, value in given.items()]
    command = f"kernelcast predict {found.name} {' '.join(words)} precision={precision} -p {EXAMPLE_PLATFORM}"
    return {"params": given, "precision": precision, "platform": EXAMPLE_PLATFORM, "command": command}


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _implementations(name: str) -> tuple[dict[str, list[str]], list[str]]:
    """(labels that the champion of each platform was trained on, what is wrong with those that cannot be read)."""
    from ..registry.index import champion_entry
    from ..registry.store import trained_implementations

    found: dict[str, list[str]] = {}
    damaged: list[str] = []
    for platform in platform_ids():
        try:
            entry = champion_entry(platform)
            labels = [] if entry is None else trained_implementations(entry.folder).get(name, [])
        except InputError as fault:
            damaged.append(str(fault))
            continue
        if labels:
            found[platform] = labels
    return found, damaged
