"""Platforms: a GPU and its numbers, loaded from `configs/platforms/<id>.yaml`.

A platform never guesses: a parameter that is missing, or known to be unknown, raises by name. The few rates that follow
from others (an FP16 vector rate from the FP32 one, a sustained rate from a peak) follow rules written here, and
`rate_note` says which rule a number came from.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from .architecture import Architecture, load_architecture
from .errors import InputError, nearest_names
from .overrides import overridden
from .platform_file import Parameter, PlatformFile, nearest_parameters, read_platform_file
from .platform_file import write_platform_file as _write
from .platform_schema import PARAMETERS, PRECISIONS, canonical_name
from .plausibility import Flag, plausibility_flags
from .strict_yaml import read_yaml

__all__ = ["Flag", "Parameter", "Platform", "load_platform", "load_platform_file", "platform_ids", "write_platform"]

# Vector rates that no file gives, as (base rate, parameter with the factor). FP16 and BF16 arithmetic on the vector
# units is taken at the FP32 rate: packed half instructions can double it, but compilers rarely emit them, and the
# kernels that ask for a vector rate are bound by memory. INT8 is widened to INT32.
_VECTOR_RULES: dict[str, tuple[str, str | None]] = {
    "fp16": ("fp32_vector", None),
    "bf16": ("fp32_vector", None),
    "tf32": ("fp32_vector", None),
    "fp8": ("fp32_vector", None),
    "fp6": ("fp32_vector", None),
    "fp4": ("fp32_vector", None),
    "int8": ("fp32_vector", "int32_vector_fraction"),
    "int32": ("fp32_vector", "int32_vector_fraction"),
}
# Formats that only exist where the matrix units have them.
_MATRIX_ONLY = frozenset({"fp8", "fp6", "fp4"})
# Without a matrix mode these run on the vector units at full accuracy, as the vendors' libraries do.
_VECTOR_FALLBACK = frozenset({"fp64", "fp32", "int32"})


@dataclass(frozen=True)
class Rate:
    """A rate as `factor` x a base ("fp32_vector"), with the rule in words (empty when the file gives it directly)."""

    base: str
    factor: float = 1.0
    rule: str = ""


@dataclass(frozen=True, eq=False)
class Platform:
    """A GPU: identity, parameters (SI values with kind, source and date) and plausibility flags. Immutable."""

    id: str
    aliases: tuple[str, ...]
    description: str
    vendor: str
    arch: str
    parameters: Mapping[str, Parameter]
    flags: tuple[Flag, ...]
    path: str
    parameter_set: str = "default"

    def parameter(self, name: str) -> Parameter:
        """Return the parameter (aliases allowed). InputError if this platform's file has none of that name."""
        key = canonical_name(name)
        if key in self.parameters:
            return self.parameters[key]
        if key in PARAMETERS:
            raise InputError(f"platform {self.id}: parameter '{key}' is not given ({PARAMETERS[key].meaning}); "
                             f"add it to {self.path} or set it with --set {key}=VALUE")
        raise InputError(f"platform {self.id}: unknown parameter '{name}'{nearest_parameters(name)}")

    def value(self, name: str) -> float:
        """Return the SI number. InputError if it is missing, unknown, or a word rather than a number."""
        parameter = self.parameter(name)
        if parameter.value is None:
            reason = f": {parameter.note}" if parameter.note else ""
            raise InputError(f"platform {self.id}: parameter '{parameter.name}' is not known{reason} "
                             f"(a {parameter.kind} value in {parameter.unit or 'its unit'} is needed); "
                             f"set it with --set {parameter.name}=VALUE")
        if isinstance(parameter.value, str):
            raise InputError(f"platform {self.id}: parameter '{parameter.name}' is a word, not a number")
        return float(parameter.value)

    def get(self, name: str, default: float | None = None) -> float | None:
        """Return the SI number, or `default` where the parameter is missing or unknown."""
        parameter = self.parameters.get(canonical_name(name))
        return default if parameter is None or isinstance(parameter.value, str | None) else float(parameter.value)

    def text(self, name: str) -> str:
        """Return a parameter that is a word (`accumulate_in`, `llc_hit_form`, …). InputError if there is none."""
        value = self.parameter(name).value
        if not isinstance(value, str):
            raise InputError(f"platform {self.id}: parameter '{name}' is not a word")
        return value

    def switch(self, name: str) -> str:
        """Return how an equation is read (`sync_count`, `step_form`, …); where the file says nothing, the first way."""
        return self.text(name) if name in self.parameters else PARAMETERS[name].choices[0]

    def is_true(self, name: str) -> bool:
        """Return a yes/no parameter (`unified_memory`)."""
        return self.value(name) != 0.0

    @property
    def architecture(self) -> Architecture:
        """What this GPU shares with others of its architecture. InputError where there is no file of it."""
        return load_architecture(self.arch)

    @property
    def as_published(self) -> bool:
        """Whether this is a set as a paper prints it, contradictions included, rather than our best numbers."""
        return self.parameter_set == "as-published"

    def cycles_to_s(self, cycles: float) -> float:
        """Return seconds for `cycles` at the boost clock."""
        return cycles / self.value("clock_boost")

    def latency_s(self, name: str) -> float:
        """Return a latency in seconds, whichever way the file gives it (`_time` twin, seconds, or cycles)."""
        twin = self.get(f"{canonical_name(name)}_time")
        if twin is not None:
            return twin
        value = self.value(name)
        return self.cycles_to_s(value) if self.parameter(name).unit == "cycle" else value

    def sustained_hbm_byte_per_s(self) -> float:
        """Return the device memory bandwidth that a tuned streaming kernel reaches [B/s]."""
        return self.value("sustained_hbm_bw")

    def peak_flop_per_s(self, precision: str, unit: str = "matrix") -> float:
        """Return the dense peak [FLOP/s]. InputError if this platform has not that precision.

        Without a matrix mode, FP64, FP32 and INT32 fall back to the vector units (T4 FP64, NVIDIA FP32).
        """
        rate = self._rate(precision, unit)
        return rate.factor * self.value(f"peak_{rate.base}")

    def sustained_flop_per_s(self, precision: str, unit: str = "matrix") -> float:
        """Return the rate of large tuned kernels [FLOP/s]: measured if known, else peak x the typical fraction."""
        rate = self._rate(precision, unit)
        known, peak = self.get(f"sustained_{rate.base}"), self.value(f"peak_{rate.base}")
        if not known:
            return rate.factor * peak * self.value(_fraction_name(rate.base))
        # A rate derived from another one does not inherit what lifted that one above its peak (MI210 packed FP32).
        return rate.factor * (min(known, peak) if rate.factor != 1.0 else known)

    def rate_note(self, precision: str, unit: str = "matrix") -> str:
        """Return in words where `sustained_flop_per_s` comes from: parameter, rule, fraction."""
        rate = self._rate(precision, unit)
        if self.get(f"sustained_{rate.base}"):
            origin = f"sustained_{rate.base}"
        else:
            origin = f"peak_{rate.base} x {_fraction_name(rate.base)}"
        return f"{origin}; {rate.rule}" if rate.rule else origin

    def precisions(self, unit: str = "matrix") -> list[str]:
        """Return the precisions that `peak_flop_per_s` answers for."""
        return [name for name in PRECISIONS if self._find_rate(name, unit) is not None]

    def _rate(self, precision: str, unit: str) -> Rate:
        if precision not in PRECISIONS:
            raise InputError(f"unknown precision '{precision}'{nearest_names(precision, PRECISIONS)}")
        if unit not in ("matrix", "vector"):
            raise InputError(f"unknown unit '{unit}': expected matrix or vector")
        rate = self._find_rate(precision, unit)
        if rate is None:
            raise InputError(f"platform {self.id} has no {precision} {unit} rate; "
                             f"it has {', '.join(self.precisions(unit))}")
        return rate

    def _find_rate(self, precision: str, unit: str) -> Rate | None:
        own = f"{precision}_{unit}"
        if self.get(f"peak_{own}"):
            return Rate(own)
        if unit == "matrix":
            if precision not in _VECTOR_FALLBACK:
                return None
            vector = self._find_rate(precision, "vector")
            rule = f"no {precision} matrix mode, so the vector units"
            return None if vector is None else replace(vector, rule="; ".join(filter(None, (rule, vector.rule))))
        if precision not in _VECTOR_RULES or (precision in _MATRIX_ONLY and not self.get(f"peak_{precision}_matrix")):
            return None
        base, factor_name = _VECTOR_RULES[precision]
        if factor_name is None:
            return Rate(base, 1.0, f"{precision} vector work at the {base} rate")
        factor = self.get(factor_name)
        return None if factor is None else Rate(base, factor, f"{precision} vector work at {factor_name} x {base}")

    def with_overrides(self, overrides: Mapping[str, str | float]) -> Platform:
        """Return a copy with parameters replaced ("6TB/s", 6e12), kind `override`, flags computed anew.

        What is tied to an overridden parameter follows it (rules in `overrides.py`). InputError for an unknown name
        or a wrong unit.
        """
        if not overrides:
            return self
        parameters, notes = overridden(self.parameters, overrides, self.id)
        flags = plausibility_flags(parameters, self.arch, self.path)
        extra = tuple(Flag(self.path, key, message) for key, message in notes)
        return replace(self, parameters=parameters, flags=flags + extra)

    def describe(self) -> list[dict[str, Any]]:
        """Return one row per parameter for a listing: name, value, unit, kind, source, date, note, meaning, flags."""
        messages: dict[str, list[str]] = {}
        for flag in self.flags:
            messages.setdefault(flag.key, []).append(flag.message)
        return [
            {
                "name": name,
                "value": parameter.value,
                "unit": parameter.unit,
                "kind": parameter.kind,
                "source": parameter.source,
                "date": parameter.date,
                "note": parameter.note,
                "meaning": PARAMETERS[name].meaning,
                "flags": messages.get(name, []),
            }
            for name, parameter in self.parameters.items()
        ]


def _fraction_name(base: str) -> str:
    return f"typical_sustained_fraction_{base.rpartition('_')[2]}"


def _folder() -> Path:
    return Path(str(resources.files("kernelcast.configs").joinpath("platforms")))


@lru_cache(maxsize=1)
def _shipped() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _folder().glob("*.yaml")))


def platform_ids() -> list[str]:
    """Return the ids of the shipped parameter files, sorted."""
    return list(_shipped())


@lru_cache(maxsize=1)
def _aliases() -> dict[str, str]:
    """Return alias -> id, from the headers of the shipped files (the part before `parameters:`)."""
    names: dict[str, str] = {}
    for platform_id in _shipped():
        path = _folder() / f"{platform_id}.yaml"
        header = read_yaml(path.read_text(encoding="utf-8").partition("\nparameters:")[0], str(path))
        for alias in header.get("aliases", []):
            names[alias] = platform_id
    return names


def load_platform(name: str) -> Platform:
    """Return a platform by id, alias, or path of a parameter file (anything ending in .yaml or .yml).

    Kept, a file of yours until it changes, and shared between callers: change it by `with_overrides`, which copies.

    InputError for an unknown name, with the nearest ones.
    """
    if not isinstance(name, str):
        raise InputError(f"a platform is named by its id or the path of a parameter file, not by {name!r:.60}")
    if name.endswith((".yaml", ".yml")):
        try:
            stat, folder = os.stat(name), os.getcwd()
        except OSError:
            return load_platform_file(name)  # which says what is wrong
        return _load_unchanged(name, folder, stat.st_size, stat.st_mtime_ns, stat.st_ino)
    return _load_shipped(name if name in _shipped() else name.lower())


@lru_cache(maxsize=64)
def _load_unchanged(name: str, folder: str, size: int, changed_ns: int, number: int) -> Platform:
    """The platform of a file as long as it is the same one: reading it costs as much as a prediction."""
    return load_platform_file(name)


@lru_cache(maxsize=64)
def _load_shipped(name: str) -> Platform:
    if name in _shipped():
        return load_platform_file(_folder() / f"{name}.yaml")
    aliases = _aliases()
    if name in aliases:
        return _load_shipped(aliases[name])
    hint = nearest_names(name, (*_shipped(), *aliases))
    raise InputError(f"unknown platform '{name}'{hint}; a parameter file of your own is given by its path (*.yaml)")


def load_platform_file(path: str | Path) -> Platform:
    """Return the platform that `path` describes. InputError naming the file and the key for anything wrong in it."""
    source = Path(path)
    header, parameters = read_platform_file(source)
    shown = source.name if source.parent == _folder() else str(source)
    return Platform(
        id=header.id,
        aliases=tuple(header.aliases),
        description=header.description,
        vendor=header.vendor,
        arch=header.arch,
        parameters=parameters,
        flags=plausibility_flags(parameters, header.arch, shown),
        path=shown,
        parameter_set=header.parameter_set,
    )


def write_platform(platform: Platform, path: str | Path, comment: str = "") -> None:
    """Write `platform` as a parameter file, `comment` first; reading it back gives the same parameters."""
    header = PlatformFile.model_validate(
        {
            "id": platform.id,
            "aliases": list(platform.aliases),
            "description": platform.description,
            "vendor": platform.vendor,
            "arch": platform.arch,
            "parameter_set": platform.parameter_set,
            "parameters": {},
        }
    )
    _write(header, platform.parameters, Path(path), comment)
