"""Reads workload files: an application as a list of segments, in YAML, checked.

A value nobody published is written `null`: the file loads, its open fields are known by name, and predicting it is
refused until they are set. Everything wrong with a file is one InputError that names the file and the field.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from .errors import InputError, nearest_names
from .families import FAMILIES
from .rules import word_faults
from .strict_yaml import read_yaml
from .units import parse_quantity
from .work import PRECISION_BYTE, Param, usage
from .workload_faults import first_fault

CHARACTERISATIONS = {
    "first-principles": "counted from the algorithm and its sizes",
    "profiler-derived": "counted by a profiler",
    "published": "as a publication states them, which does not say whether counted by hand or by a profiler",
    "worked-back": "worked back from a measured time, not counted",
}
"""Where the FLOP and bytes of a file come from, and what each word means."""
SUFFIXES = (".yaml", ".yml")


def _quantity(unit: str) -> BeforeValidator:
    def parse(value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError(f"a number in {unit} is needed, not true or false")
        if not isinstance(value, int | float | str):
            return value
        try:
            return parse_quantity(value, unit)
        except InputError as error:
            raise ValueError(str(error)) from None

    return BeforeValidator(parse)


Flop = Annotated[float, _quantity("FLOP"), Field(ge=0.0, allow_inf_nan=False)]
Byte = Annotated[float, _quantity("B"), Field(ge=0.0, allow_inf_nan=False)]
SomeByte = Annotated[float, _quantity("B"), Field(gt=0.0, allow_inf_nan=False)]
Count = Annotated[float, _quantity("count"), Field(ge=1.0, allow_inf_nan=False)]
CountOrNone = Annotated[float, _quantity("count"), Field(ge=0.0, allow_inf_nan=False)]
Fraction = Annotated[float, _quantity("ratio"), Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Positive = Annotated[float, _quantity("ratio"), Field(gt=0.0, allow_inf_nan=False)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Transfer(_Model):
    """One kind of copy between host and device in each execution of a segment."""

    bytes: Byte | None
    direction: Literal["h2d", "d2h"]
    episodes: CountOrNone = 1.0
    compression_ratio: float = Field(default=1.0, ge=1.0, allow_inf_nan=False)
    """`bytes` are those before compression; above 1 they are unpacked by the device, on the way in only."""

    @model_validator(mode="after")
    def _only_inwards(self) -> Transfer:
        if self.compression_ratio > 1.0 and self.direction != "h2d":
            raise ValueError("compression_ratio: only what goes to the device (h2d) is unpacked there")
        return self


class Published(_Model):
    """A figure others printed about this workload or segment, shown beside ours. Never an input of a prediction."""

    platform: str
    quantity: str = Field(min_length=1)
    value: float
    source: str = ""

    @model_validator(mode="before")
    @classmethod
    def _seconds(cls, data: Any) -> Any:
        """A published time may carry its unit: `{quantity: time_s, value: 157 ms}`."""
        if not isinstance(data, dict) or not isinstance(data.get("value"), str):
            return data
        if not str(data.get("quantity", "")).endswith("_s"):
            return data
        try:
            return data | {"value": parse_quantity(data["value"], "s")}
        except InputError as error:
            raise ValueError(str(error)) from None


class Segment(_Model):
    """A part of an application. Either counted work (flop, bytes, class) or a kernel family with its parameters.

    All amounts are of one execution. `bytes` cross HBM↔last-level cache, read and written together.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_+-]*$")
    note: str = ""
    kernel: str | None = None
    params: dict[str, Any] = {}
    tile: tuple[int, int, int] | tuple[int, int, int, int] | None = None
    implementation: str | None = None
    flop: Flop | None = None
    bytes: Byte | None = None
    work_class: Literal["memory", "compute", "balanced", "stencil", "irregular"] = Field("balanced", alias="class")
    precision: str | None = None
    unit: Literal["vector", "matrix"] = "vector"
    n_exec: Count | None = 1.0
    kernels: Count | None = 1.0
    working_set: Byte | None = None
    cache: Literal["warm", "cold", "unknown"] | None = None
    hit_rate: Fraction | None = None
    """Share of `bytes` found in the last-level cache; from the working set where it is not given."""
    alpha: Fraction | None = None
    """Share of the shorter of arithmetic and traffic that hides behind the longer; 1 (all of it) where not given."""
    bytes_in_flight: SomeByte | None = None
    """Bytes outstanding at a time, where the kernel is too small to keep memory busy (Little's law)."""
    m_case: Positive = 1.0
    m_case_source: str = ""
    transfers: tuple[Transfer, ...] = ()
    syncs: CountOrNone | None = 0.0
    published: tuple[Published, ...] = ()

    @field_validator("params", mode="before")
    @classmethod
    def _numbers(cls, params: Any) -> Any:
        """YAML 1.1 reads 1e6 as text: numbers written so are numbers here."""
        return {name: _plain(value) for name, value in params.items()} if isinstance(params, dict) else params

    @model_validator(mode="after")
    def _consistent(self) -> Segment:
        given = self.model_fields_set
        if self.kernel is not None:
            _check_family(self)
        elif alone := [name for name in ("params", "tile", "implementation") if name in given]:
            raise ValueError(f"{alone[0]}: only with kernel, which is not given")
        elif not self.open_fields() and not (self.flop or self.bytes or self.transfers or self.syncs):
            raise ValueError("flop: the segment has no work: give flop and bytes, or kernel and params")
        if self.precision is not None and self.precision not in PRECISION_BYTE:
            raise ValueError(f"precision: unknown {self.precision!r}{nearest_names(self.precision, PRECISION_BYTE)}")
        if self.kernel is None and self._asks_precision():
            raise ValueError("precision: FLOP without a precision cannot be turned into time; give fp64, fp32, …")
        if self.m_case != 1.0 and not self.m_case_source:
            raise ValueError("m_case_source: a fitted multiplier must say on which runs it was fitted")
        return self

    def _asks_precision(self) -> bool:
        if self.precision is None:
            return "flop" in self.model_fields_set and self.flop != 0.0 and "precision" not in self.model_fields_set
        return self.precision == "none" and bool(self.flop)

    def open_fields(self) -> list[str]:
        """Names of the inputs left open (`null`) in this segment."""
        names = ("flop", "bytes", "precision", "n_exec", "kernels", "working_set", "syncs", "bytes_in_flight")
        found = [name for name in names if name in self.model_fields_set and getattr(self, name) is None]
        found += [name for name, value in self.params.items() if value is None]
        found += [f"transfers.{i}.bytes" for i, transfer in enumerate(self.transfers) if transfer.bytes is None]
        return [f"{self.name}.{name}" for name in found]


_COUNTED = ("flop", "bytes", "class", "work_class", "kernels", "working_set", "hit_rate", "alpha", "unit",
            "bytes_in_flight")


def _check_family(segment: Segment) -> None:
    """A kernel segment names a known family and its parameters, and leaves counting to the family."""
    name = str(segment.kernel)
    if name not in FAMILIES:
        raise ValueError(f"kernel: unknown family {name!r}{nearest_names(name, FAMILIES)}")
    family = FAMILIES[name]
    for key in segment.params:
        if key not in family.names:
            raise ValueError(f"params.{key}: unknown parameter{nearest_names(key, family.names)}; {usage(family)}")
    for param in family.params:
        _check_param(param, segment.params.get(param.name))
    if segment.tile is not None and family.route != "matrix":
        raise ValueError(f"tile: only a matrix product has one, not {name}")
    for field in _COUNTED:
        if field in segment.model_fields_set:
            raise ValueError(f"{field}: not with kernel: the family {name} counts its own work")


def _check_param(param: Param, value: Any) -> None:
    """Raise ValueError where a value is not of the kind of its parameter; None is an open field."""
    if value is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    fits = {
        "size": number and value >= 1 and value == int(value), "real": number and value >= 0,
        "flag": isinstance(value, bool) or value in (0, 1), "list": isinstance(value, list),
        "text": isinstance(value, str | int | float),
    }
    wanted = {"size": "a whole number, 1 or more", "real": "a number, 0 or more", "flag": "true or false",
              "list": "a list", "text": "a word"}
    if not fits[param.kind]:
        raise ValueError(f"params.{param.name}: {wanted[param.kind]} is needed, not {value!r:.40}")
    if param.kind == "text":
        for fault in word_faults(param, np.array([value], dtype=object)):
            raise ValueError(f"params.{param.name}: {fault.words}")


class Include(_Model):
    """Segments of another file, each executed `n_exec` times as often as it says there."""

    file: str = Field(min_length=1)
    n_exec: Count = 1.0


class Fusion(_Model):
    """Segments run as one kernel: FLOP and bytes add up, less the intermediate traffic that stays on chip."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_+-]*$")
    segments: tuple[str, ...] = Field(min_length=2)
    intermediate_bytes: Byte


class WorkloadFile(_Model):
    """A whole file as written."""

    name: str = Field(min_length=1)
    description: str = ""
    characterisation: Literal["first-principles", "profiler-derived", "published", "worked-back"]
    source: str = Field(min_length=1)
    note: str = ""
    routing: Literal["generic", "published"] | None = None
    concurrent_kernels: Count = 1.0
    devices: Count = 1.0
    include: tuple[Include, ...] = ()
    fusions: tuple[Fusion, ...] = ()
    published: tuple[Published, ...] = ()
    segments: tuple[Segment, ...] = ()


_LISTS: dict[str, type[BaseModel]] = {
    "segments": Segment, "transfers": Transfer, "include": Include, "fusions": Fusion, "published": Published
}


def shipped_workloads() -> dict[str, Path]:
    """Name → path of the workload files that come with the package."""
    folder = Path(str(resources.files("kernelcast.configs").joinpath("workloads")))
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def find_workload(name: str) -> Path:
    """The file called `name`: a path, or the name of a shipped workload with or without its suffix."""
    path = Path(name)
    if path.is_file():
        return path
    shipped = shipped_workloads()
    stem = path.name.removesuffix(".yaml").removesuffix(".yml")
    if len(path.parts) == 1 and stem in shipped:
        return shipped[stem]
    hint = nearest_names(stem, shipped)
    hint = hint if "did you mean" in hint else ""
    raise InputError(f"{name}: no such workload file{hint}; `kernelcast workloads` lists those of the package")


def shown_path(path: Path) -> str:
    """How messages name a file: a shipped one by its name alone."""
    return path.name if path in shipped_workloads().values() else str(path)


def _include_entries(data: dict[str, Any]) -> dict[str, Any]:
    """`include: x.yaml`, `include: [x.yaml]` and `include: [{file: x.yaml}]` mean the same."""
    entries = data.get("include")
    if entries is None:
        return data
    listed = entries if isinstance(entries, list) else [entries]
    return data | {"include": [{"file": entry} if isinstance(entry, str) else entry for entry in listed]}


def _without_empty_lists(data: dict[str, Any]) -> dict[str, Any]:
    """`segments:` with nothing under it is an empty list."""
    return {name: [] if value is None and name in _LISTS else value for name, value in data.items()}


def parse_workload(data: Mapping[str, Any], where: str) -> WorkloadFile:
    """Check a mapping as read from YAML. Raises InputError naming `where` and the field."""
    full = _without_empty_lists(_include_entries(dict(data)))
    try:
        return WorkloadFile.model_validate(full)
    except ValidationError as error:
        raise InputError(f"{where}: {first_fault(error, full, WorkloadFile, _LISTS)}") from None


def read_workload_file(path: Path) -> WorkloadFile:
    """The checked contents of one file, includes not yet followed. Raises InputError."""
    where = shown_path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{where}: no such workload file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{where}: cannot be read as a workload file: {error}") from None
    if not any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines()):
        raise InputError(f"{where}: the file is empty; expected a workload (name, characterisation, source, segments)")
    return parse_workload(read_yaml(text, where), where)


def changed_segment(segment: Segment, field: str, value: str | float, where: str) -> Segment:
    """`segment` with one field set (`flop`, `class`, a family parameter, `transfers.0.bytes`), checked again."""
    data = segment.model_dump(by_alias=True, exclude_unset=True)
    head, *rest = field.split(".")
    if head == "transfers" and len(rest) == 2 and rest[0].isdigit() and int(rest[0]) < len(segment.transfers):
        entries = [dict(entry) for entry in data["transfers"]]
        entries[int(rest[0])][rest[1]] = value
        data["transfers"] = entries
    elif segment.kernel is not None and head in FAMILIES[segment.kernel].names and not rest:
        data["params"] = {**segment.params, head: _plain(value)}
    else:
        data[field] = _tile(value) if field == "tile" else value
    try:
        return Segment.model_validate(data)
    except ValidationError as error:
        fault = first_fault(error, {}, Segment, _LISTS)
        raise InputError(f"{where}: cannot set {segment.name}.{field}={value}: {fault}") from None


def _tile(value: str | float) -> Any:
    """`128x128x64` as the list of numbers that a file would have; anything else as it is."""
    parts = str(value).strip("[]").replace(",", "x").split("x")
    whole = len(parts) > 1 and all(part.strip().isdecimal() for part in parts)
    return [int(part) for part in parts] if whole else value


def _plain(value: Any) -> Any:
    """A number where a text is one (whole where it is whole), else the value as it is."""
    if not isinstance(value, str):
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if math.isfinite(number) and number == int(number) and abs(number) < 2**53 else number
