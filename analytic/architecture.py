"""What all GPUs of one architecture have in common, from `configs/architectures/<id>.yaml`.

A platform file names its architecture; a new architecture is one more file here. Nothing is guessed from the vendor:
the equations that time a matrix product are a field of the file.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator

from .errors import InputError, nearest_names
from .platform_schema import PRECISIONS
from .strict_yaml import Strict, first_fault, read_text, read_yaml

_RATES = frozenset(f"{precision}_{unit}" for precision in PRECISIONS for unit in ("matrix", "vector"))


class _Sourced(Strict):
    kind: Literal["spec", "measured", "published", "derived", "assumed"]
    source: str = Field(min_length=1)


class Count(_Sourced):
    """A count of 1 or more, with where it comes from."""

    value: int = Field(ge=1)


class FlopPerCycle(_Sourced):
    """Dense FLOP per cycle of one SM/CU by rate ("fp16_matrix"; FMA = 2). Rates the table lacks are not checked."""

    value: dict[str, int]

    @field_validator("value")
    @classmethod
    def _known_rates(cls, value: dict[str, int]) -> dict[str, int]:
        for name, rate in value.items():
            if name not in _RATES:
                raise ValueError(f"unknown rate '{name}'{nearest_names(name, _RATES)}")
            if rate < 1:
                raise ValueError(f"{name} is {rate}; FLOP per cycle of one unit, 1 or more, are needed")
        return value


class Architecture(Strict):
    """A file as written. `matrix_route` chooses the equations of matrix products: stage (2)-(8), wavefront (9)-(14)."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    vendor: str = Field(min_length=1)
    description: str = Field(min_length=1)
    matrix_route: Literal["stage", "wavefront"]
    multicast: Count
    """CTAs that share one copy of a B tile: a cluster, or the CTA pair of Eq. (6)."""
    flop_per_cycle: FlopPerCycle


def _folder() -> Path:
    return Path(str(resources.files("kernelcast.configs").joinpath("architectures")))


@lru_cache(maxsize=1)
def architecture_ids() -> tuple[str, ...]:
    """The architectures there is a file of, sorted."""
    return tuple(sorted(path.stem for path in _folder().glob("*.yaml")))


def read_architecture(path: Path) -> Architecture:
    """The architecture that a file describes. InputError naming the file and the key for anything wrong in it."""
    data = read_yaml(read_text(path, "architecture file"), str(path), "architecture file")
    for key in data:
        if key not in Architecture.model_fields:
            raise InputError(f"{path}: unknown key '{key}'{nearest_names(str(key), Architecture.model_fields)}")
    try:
        found = Architecture.model_validate(data)
    except ValidationError as error:
        raise InputError(f"{path}: {first_fault(error)}") from None
    if found.id != path.stem:
        raise InputError(f"{path}: id: '{found.id}' is not the name of the file; expected '{path.stem}'")
    return found


@lru_cache(maxsize=64)
def load_architecture(name: str) -> Architecture:
    """The shipped architecture of that id. InputError for an unknown one, with the nearest."""
    if name not in architecture_ids():
        raise InputError(f"unknown architecture '{name}'{nearest_names(name, architecture_ids())}; "
                         f"a new one is a file {name}.yaml in configs/architectures")
    return read_architecture(_folder() / f"{name}.yaml")


def check_architecture(arch: str, vendor: str) -> None:
    """InputError, beginning with the key, where there is no such architecture or it is another vendor's."""
    vendors = list(dict.fromkeys(load_architecture(name).vendor for name in architecture_ids()))
    if vendor not in vendors:
        raise InputError(f"vendor: expected {' or '.join(map(repr, vendors))} (found {vendor!r:.60})")
    try:
        own = load_architecture(arch).vendor
    except InputError as error:
        raise InputError(f"arch: {error}") from None
    if own != vendor:
        raise InputError(f"arch: '{arch}' is an architecture of {own}, not of {vendor}")
