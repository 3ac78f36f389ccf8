"""Reads and writes platform parameter files: YAML in, checked records out.

Everything wrong with a file is one InputError that names the file and the key.
"""

from __future__ import annotations

import datetime
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError, field_validator

from .architecture import check_architecture
from .errors import InputError, nearest_names
from .platform_schema import BOOL, PARAMETERS, REQUIRED, TEXT, ParameterSpec
from .strict_yaml import Strict, first_fault, read_text, read_yaml
from .units import is_number, parse_quantity


@dataclass(frozen=True)
class Parameter:
    """A hardware or model number with where it comes from. `value` is SI (`unit`); None means not known."""

    name: str
    value: float | str | None
    unit: str
    kind: str
    source: str
    date: str
    note: str = ""


class ParameterEntry(Strict):
    """One entry under `parameters:` as written."""

    value: bool | int | float | str | None
    unit: str = ""
    kind: Literal["spec", "measured", "published", "derived", "assumed", "override"]
    source: str = Field(min_length=1)
    date: str = ""
    note: str = ""

    @field_validator("date", mode="before")
    @classmethod
    def _date_text(cls, value: object) -> object:
        """YAML turns 2026-11-03 into a date and 2026 into a number."""
        if isinstance(value, datetime.date):
            return value.isoformat()
        return str(value) if isinstance(value, int) else value


class PlatformFile(Strict):
    """A whole file as written."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    aliases: list[str] = Field(default_factory=list)
    description: str = Field(min_length=1)
    vendor: str
    arch: str
    parameter_set: Literal["default", "as-published"] = "default"
    parameters: dict[str, ParameterEntry]


def read_platform_file(path: Path) -> tuple[PlatformFile, dict[str, Parameter]]:
    """Return header and parameters of `path`, units converted and ranges checked. Raises InputError."""
    where = str(path)
    data = read_yaml(read_text(path, "platform file"), where)
    _refuse_unknown_names(data, where)
    try:
        header = PlatformFile.model_validate(data)
    except ValidationError as error:
        raise InputError(f"{where}: {first_fault(error)}") from None
    try:
        check_architecture(header.arch, header.vendor)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    parameters = {name: _checked(name, entry, where) for name, entry in header.parameters.items()}
    for name in REQUIRED:
        if name not in parameters or parameters[name].value is None:
            spec = PARAMETERS[name]
            raise InputError(f"{where}: required parameter '{name}' is missing ({spec.meaning}; unit {spec.unit})")
    return header, _with_time_twins(parameters)


def _with_time_twins(parameters: dict[str, Parameter]) -> dict[str, Parameter]:
    """Add `<latency>_time` [s] where a file gives only cycles: cycles over the boost clock, kind `derived`."""
    clock = parameters["clock_boost"].value
    twins = {}
    for name, parameter in parameters.items():
        twin = f"{name}_time"
        if twin not in PARAMETERS or (twin in parameters and parameters[twin].value is not None):
            continue
        if isinstance(parameter.value, float) and isinstance(clock, float):
            source = f"{name} / clock_boost; {parameter.source}"
            kind = "assumed" if parameter.kind == "assumed" else "derived"
            twins[twin] = Parameter(twin, parameter.value / clock, "s", kind, source, parameter.date, parameter.note)
    return parameters | twins


def _refuse_unknown_names(data: Mapping[str, Any], where: str) -> None:
    """Raise for keys that no file has, with the nearest valid ones: more help than a schema error gives."""
    for key in data:
        if key not in PlatformFile.model_fields:
            raise InputError(f"{where}: unknown key '{key}'{nearest_names(str(key), PlatformFile.model_fields)}")
    parameters = data.get("parameters")
    if not isinstance(parameters, dict):
        return
    for name, entry in parameters.items():
        if name not in PARAMETERS:
            raise InputError(f"{where}: unknown parameter '{name}'{nearest_parameters(str(name))}")
        for key in entry if isinstance(entry, dict) else ():
            if key not in ParameterEntry.model_fields:
                nearest = nearest_names(str(key), ParameterEntry.model_fields)
                raise InputError(f"{where}: parameters.{name}: unknown key '{key}'{nearest}")


def nearest_parameters(name: str) -> str:
    """Return ` (did you mean …?)` for a parameter name; without a close one, where the names are listed."""
    hint = nearest_names(name, PARAMETERS)
    return hint if "did you mean" in hint else " (`kernelcast platforms --json` lists the names)"


def _checked(name: str, entry: ParameterEntry, where: str) -> Parameter:
    spec = PARAMETERS[name]
    try:
        value = None if entry.value is None else parameter_value(spec, entry.value, entry.unit)
    except InputError as error:
        raise InputError(f"{where}: parameters.{name}: {error}") from None
    unit = "" if spec.unit in (TEXT, BOOL) else spec.unit
    return Parameter(name, value, unit, entry.kind, entry.source, entry.date, entry.note)


def parameter_value(spec: ParameterSpec, raw: bool | float | str, unit: str = "") -> float | str:
    """Return `raw` in the SI unit of `spec`, range checked. `unit` is the unit of a bare number ("" = already SI).

    Booleans become 1.0 or 0.0; text must be one of the allowed words. Raises InputError.
    """
    if spec.unit == TEXT:
        if raw not in spec.choices:
            raise InputError(f"'{raw}' is not one of {', '.join(spec.choices)}")
        return str(raw)
    if spec.unit == BOOL:
        words = {True: 1.0, False: 0.0, "true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
        if isinstance(raw, float) or raw not in words:
            raise InputError(f"'{raw}' is not true or false")
        return words[raw]
    if isinstance(raw, bool):
        raise InputError(f"'{raw}' is not a number in {spec.unit}")
    # YAML 1.1 reads 4.8e12 (no sign in the exponent) as text
    bare = not isinstance(raw, str) or is_number(raw)
    text = f"{float(raw)!r} {unit}" if bare and unit else raw
    value = parse_quantity(text, spec.unit)
    if not spec.minimum <= value <= spec.maximum:
        wanted = f"at least {spec.minimum:g}" if math.isinf(spec.maximum) else f"{spec.minimum:g} to {spec.maximum:g}"
        wanted = "more than 0" if 0 < spec.minimum < 1e-6 else wanted
        raise InputError(f"{value:g} {spec.unit} is out of range: expected {wanted}")
    return value


def write_platform_file(
    header: PlatformFile, parameters: Mapping[str, Parameter], path: Path, comment: str = ""
) -> None:
    """Write a file that `read_platform_file` reads back to the same parameters. Replaces `path` in one step.

    comment: lines to put first, for the reader.
    """
    lines = [f"# {line}\n" for line in comment.splitlines()]
    lines += [yaml.safe_dump(header.model_dump(exclude={"parameters"}), sort_keys=False, allow_unicode=True, width=110)]
    lines.append("parameters:\n")
    for name in PARAMETERS:
        if name in parameters:
            lines.append(_parameter_text(parameters[name]))
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write("".join(lines))
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _parameter_text(parameter: Parameter) -> str:
    entry: dict[str, object] = {"unit": parameter.unit} if parameter.unit else {}
    entry |= {"kind": parameter.kind, "source": parameter.source}
    entry |= {key: text for key, text in (("date", parameter.date), ("note", parameter.note)) if text}
    body = yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=110)
    value = _value_text(parameter.value, PARAMETERS[parameter.name].unit)
    return f"  {parameter.name}:\n    value: {value}\n" + "".join(f"    {line}\n" for line in body.splitlines())


def _value_text(value: float | str | None, unit: str) -> str:
    """Return YAML for a value: whole numbers plain, large and small ones as 4.8e+12 (with a dot, as YAML 1.1 needs)."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    if unit == BOOL:
        return "true" if value else "false"
    if value == int(value) and (abs(value) < 1e6 or (unit == "B" and abs(value) < 1e15)):
        return str(int(value))
    if 1e-3 <= abs(value) < 1e6:
        return repr(value)
    digits = next(count for count in range(1, 18) if float(f"{value:.{count}e}") == value)
    return f"{value:.{digits}e}"
