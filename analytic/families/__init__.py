"""Kernel families: one record each. A file of this folder with FAMILIES is found without being listed anywhere.

Of a family `x` of `analytic/families/F.py`, the feature columns that sizes alone do not tell are in
`features/families/F.py`, and what measures it in `measure/families/F.py`.
"""

from __future__ import annotations

from ..errors import InputError, nearest_names
from ..found import found_in
from ..work import Family

FAMILIES: dict[str, Family] = {}


def find() -> None:
    """Read every module on this package's path into FAMILIES; again after the path was extended."""
    for module in found_in(__name__, __path__):
        for one in module.FAMILIES:
            if FAMILIES.setdefault(one.name, one) is not one:
                raise InputError(f"kernel family {one.name!r} is described twice: {module.__file__} is the second")


def family(name: str) -> Family:
    """The family called `name`. Raises InputError with the nearest names."""
    try:
        return FAMILIES[name]
    except KeyError:
        raise InputError(f"unknown kernel family {name!r}{nearest_names(name, FAMILIES)}") from None


find()
