"""The constants that shaped a model: every upper-case name of the modules that learn, with its value when it learned.

They are written down beside what they mean and cannot be told from a fitted model; stored in its meta, a later reader
knows with which it was made, whatever the code says then.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from functools import cache
from types import ModuleType
from typing import Any

ROOMS = (
    "learners.trees", "learners.process", "learners.network", "learners.residual",
    "hybrid.bands", "hybrid.calibration", "hybrid.domain", "hybrid.encode", "hybrid.family", "hybrid.fit",
    "hybrid.model", "hybrid.partial",
    "profiled.pool", "profiled.segment",
)
"""Modules of `training` whose constants shape a model of one platform."""
_PLAIN = (bool, int, float, str, type(None))


def settings(rooms: tuple[str, ...] = ROOMS) -> dict[str, dict[str, Any]]:
    """Module of `training` → name of each constant → its value: numbers, texts, and tuples, lists and dicts of them."""
    root = __name__.rpartition(".hybrid.")[0]
    return {room: constants(importlib.import_module(f"{root}.{room}")) for room in rooms}


def constants(module: ModuleType) -> dict[str, Any]:
    """Upper-case names that a module itself assigns, with their values now, where these are plain data."""
    found = {}
    for name in _assigned(module):
        if _is_plain(value := getattr(module, name, ...)):
            found[name] = sorted(value) if isinstance(value, frozenset) else value
    return found


@cache  # the text of a loaded module stays, and parsing all of them takes a quarter of a small fit
def _assigned(module: ModuleType) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        targets: list[ast.expr] = getattr(node, "targets", []) or [t for t in [getattr(node, "target", None)] if t]
        names = (leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name))
        found |= dict.fromkeys(name for name in names if name.isupper() and not name.startswith("_"))
    return tuple(found)


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(key) and _is_plain(item) for key, item in value.items())
    if isinstance(value, tuple | list | frozenset):
        return all(_is_plain(item) for item in value)
    return isinstance(value, _PLAIN)
