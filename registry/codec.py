"""Objects of `training` as plain data and back: scalars as JSON, arrays as .npz, boosters as XGBoost's UBJSON.

Nothing is ever pickled: reading a file can build the dataclasses of CLASSES, arrays and boosters, and nothing else. The
codec knows no field by name, so a model may gain members without a change here.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SMALL_ARRAY = 64
"""Arrays up to this many entries are written in the JSON: a member of an .npz costs 250 bytes on its own."""
CLASSES = {
    "AdaptedFamily": "training.adapting.adapted",
    "Bands": "training.hybrid.bands",
    "Blend": "training.learners.residual",
    "Calibration": "training.hybrid.calibration",
    "Domain": "training.hybrid.domain",
    "Encoder": "training.hybrid.encode",
    "FamilyModel": "training.hybrid.family",
    "FewProcess": "training.learners.process",
    "Judge": "training.hybrid.partial",
    "Level": "training.profiled.segment",
    "Network": "training.learners.network",
    "Process": "training.learners.process",
    "Residual": "training.learners.residual",
    "SegmentModel": "training.profiled.segment",
}
"""What a model file may hold, by name, and the module that knows it: a file does not name modules, so that code moves
without touching models. Older files wrote the whole path, of which the name is the last part."""
OLD_FIELDS = {"Residual": {"process_weight": "smooth_share"}}
"""Fields by the names that older files have for them, by class."""
_PATH = re.compile(r"(training(\.[a-z_]+)+\.)?([A-Za-z_]+)")
_ROOT = __name__.rpartition(".registry.")[0]


class CodecError(ValueError):
    """Data that is not what `pack` writes; the caller knows the file and says so."""


@dataclass
class Sink:
    """What `pack` puts outside the JSON: arrays by key, boosters (UBJSON bytes) in order."""

    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    boosters: list[bytes] = field(default_factory=list)

    def npz(self) -> bytes:
        """The arrays as one compressed .npz (lossless)."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **self.arrays)
        return buffer.getvalue()


@dataclass
class Source:
    """Where `unpack` finds what lies outside the JSON."""

    array: Callable[[str], np.ndarray]
    booster: Callable[[int], Any]


def is_booster(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "xgboost" and hasattr(value, "save_raw")


def load_booster(data: bytes) -> Any:
    """An XGBoost booster from UBJSON bytes; CodecError where they are none."""
    from ..training.learners.trees import read_trees

    try:
        return read_trees(data)
    except ValueError as fault:  # XGBoost's own errors are ValueErrors, too
        raise CodecError(f"not an XGBoost model ({str(fault).splitlines()[0][:100]})") from None


def pack(value: Any, sink: Sink) -> Any:
    """`value` as JSON data; arrays and boosters go to `sink`. TypeError for what a model file must not hold."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, np.ndarray):
        return _pack_array(value, sink)
    if is_booster(value):
        sink.boosters.append(bytes(value.save_raw("ubj")))
        return {"$booster": len(sink.boosters) - 1}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        name = type(value).__qualname__
        if type(value).__module__ != f"{_ROOT}.{CLASSES.get(name)}":
            raise TypeError(f"a model file cannot hold a {type(value).__module__}.{name}; CLASSES lists what it can")
        fields = {f.name: pack(getattr(value, f.name), sink) for f in dataclasses.fields(value)}
        return {"$class": name, "fields": fields}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: pack(item, sink) for key, item in value.items()}
        return {"$items": [[pack(key, sink), pack(item, sink)] for key, item in value.items()]}
    if isinstance(value, tuple):
        return {"$tuple": [pack(item, sink) for item in value]}
    if isinstance(value, list):
        return [pack(item, sink) for item in value]
    raise TypeError(f"a model file cannot hold a {type(value).__module__}.{type(value).__qualname__}")


def _pack_array(value: np.ndarray, sink: Sink) -> Any:
    if value.dtype == object:
        return {"$objects": [pack(item, sink) for item in value.ravel().tolist()], "shape": list(value.shape)}
    if value.size <= SMALL_ARRAY:
        items = [pack(item, sink) for item in value.ravel().tolist()]
        return {"$small": items, "dtype": value.dtype.str, "shape": list(value.shape)}
    key = f"a{len(sink.arrays)}"
    sink.arrays[key] = value
    return {"$array": key}


def unpack(data: Any, source: Source) -> Any:
    """The inverse of `pack`. CodecError for anything `pack` does not write."""
    if isinstance(data, list):
        return [unpack(item, source) for item in data]
    if not isinstance(data, dict):
        return data
    tag = next((key for key in data if key.startswith("$")), None)
    if tag is None:
        return {key: unpack(item, source) for key, item in data.items()}
    try:
        reader = _READERS[tag]
    except KeyError:
        raise CodecError(f"unknown entry {tag!r}") from None
    try:
        return reader(data, source)
    except (KeyError, TypeError, IndexError, ValueError) as fault:
        if isinstance(fault, CodecError):
            raise
        raise CodecError(f"entry {tag} is malformed ({fault})") from None


def _objects(data: dict[str, Any], source: Source) -> np.ndarray:
    items = [unpack(item, source) for item in data["$objects"]]
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out.reshape(data["shape"])


def _small(data: dict[str, Any], source: Source) -> np.ndarray:
    items = [unpack(item, source) for item in data["$small"]]
    return np.array(items, dtype=np.dtype(str(data["dtype"]))).reshape(data["shape"])


def _float(data: dict[str, Any], _: Source) -> float:
    return float(data["$float"])


def _dataclass(data: dict[str, Any], source: Source) -> Any:
    given = data["$class"]
    path = _PATH.fullmatch(given) if isinstance(given, str) else None
    name = path[3] if path else ""
    if name not in CLASSES:
        raise CodecError(f"class {given!r} is none that a model of this version of kernelcast holds")
    found = getattr(importlib.import_module(f"{_ROOT}.{CLASSES[name]}"), name)
    renamed = OLD_FIELDS.get(name, {})
    fields = {renamed.get(key, key): unpack(item, source) for key, item in data["fields"].items()}
    try:
        return found(**fields)
    except TypeError:
        raise CodecError(f"class {name} has other fields in this version of kernelcast") from None


_READERS: dict[str, Callable[[dict[str, Any], Source], Any]] = {
    "$float": _float,
    "$tuple": lambda data, source: tuple(unpack(item, source) for item in data["$tuple"]),
    "$items": lambda data, source: {unpack(k, source): unpack(v, source) for k, v in data["$items"]},
    "$objects": _objects,
    "$small": _small,
    "$array": lambda data, source: source.array(str(data["$array"])),
    "$booster": lambda data, source: source.booster(int(data["$booster"])),
    "$class": _dataclass,
}
