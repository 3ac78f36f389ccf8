"""What can be measured of each kernel family, in files named after those of analytic/families.

A family is a `Measured` in the tuple FAMILIES of one of the modules here; nothing else lists them."""

from __future__ import annotations

import importlib
import pkgutil

from ...analytic.errors import InputError, nearest_names
from ..case import Builder, Measured, Params
from ..groups import size

MEASURED: dict[str, Measured] = {}
BUILDERS: dict[tuple[str, str], Builder] = {}
"""Every (family, implementation) that can be measured."""


def discover() -> None:
    """Fill MEASURED and BUILDERS from every module of this folder, and of what was added to its `__path__` since."""
    for module in sorted(item.name for item in pkgutil.iter_modules(__path__)):
        for item in importlib.import_module(f"{__name__}.{module}").FAMILIES:
            MEASURED[item.name] = item
            BUILDERS.update({(item.name, name): builder for name, builder in item.builders.items()})


def measured(name: str) -> Measured:
    """How the family `name` is measured. Raises InputError with the nearest names."""
    if name not in MEASURED:
        raise InputError(f"no kernels to measure of family {name!r}{nearest_names(name, MEASURED)}")
    return MEASURED[name]


def group_key(family: str, params: Params, seed: int) -> str:
    """`gemm:n4096k11008`, `spmv:banded:<matrix>`, `bfs:rmat:<graph>`, else `<family>:<size>`: shared by both cache
    states and by every format, implementation and precision of the same inputs."""
    record = measured(family)
    return f"{record.group_name or family}:{(record.group or size)(params, seed)}"


discover()
