"""Kernel families: parameters and work. `FAMILIES` is the one dispatch table; add a family by adding an entry."""

from __future__ import annotations

from ..errors import InputError, nearest_names
from ..work import Family
from . import apps, dense, graph, sparse, stencil, stream

FAMILIES: dict[str, Family] = {
    family.name: family
    for module in (stream, dense, stencil, sparse, graph, apps)
    for family in module.FAMILIES
}


def family(name: str) -> Family:
    """The family called `name`. Raises InputError with the nearest names."""
    try:
        return FAMILIES[name]
    except KeyError:
        raise InputError(f"unknown kernel family {name!r}{nearest_names(name, FAMILIES)}") from None
