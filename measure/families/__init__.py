"""What can be measured of each kernel family, in files named after those of analytic/families.

A family is a `Measured` in the tuple FAMILIES of one of the modules here; nothing else lists them."""

from __future__ import annotations

from ...analytic.errors import InputError, nearest_names
from ...analytic.found import found_in
from ..case import Builder, Measured, Params
from ..groups import size

MEASURED: dict[str, Measured] = {}
BUILDERS: dict[tuple[str, str], Builder] = {}
"""Every (family, implementation) that can be measured."""


def find() -> None:
    """Read every module on this package's path into MEASURED and BUILDERS; again after the path was extended."""
    for module in found_in(__name__, __path__):
        for item in module.FAMILIES:
            if MEASURED.setdefault(item.name, item) is not item:
                raise InputError(f"how {item.name!r} is measured is said twice: {module.__file__} is the second")
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


find()
