"""A trained model as a folder: `model.json`, `<family>.ubj.gz`, `<family>.npz`. No pickles; families are read on use.

`model.json` holds everything scalar, the SHA-256 of every other file and of itself. A folder is written under another
name and renamed into place, so that a reader sees a whole model or none. What a model says it was trained for is
held against what the code makes when it is opened (`hybrid.contract`).
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analytic.errors import InputError
from ..analytic.rules import ABSENT
from .codec import CodecError, Sink, Source, load_booster, pack, unpack
from .home import cannot_write, make_folder

if TYPE_CHECKING:
    from ..training.hybrid.model import Model
    from ..training.hybrid.protocol import LearnedFamily

FORMAT = 1
MODEL_FILE = "model.json"
WHOLE = "difficulty"
"""Stem of the files that belong to the model and not to one family."""
LAZY = ("families", "partials")
"""Fields that hold family models, each read on first use."""
_FILE_NAME = re.compile(r"[A-Za-z0-9_]+(\.[0-9]+)?\.(ubj\.gz|npz)")
_WAY_OUT = "train it anew with `kernelcast train`, or choose another with --model (see `kernelcast models`)"


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path}: damaged model file ({why}); {_WAY_OUT}")


def _canonical(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _packed(stem: str, value: Any, files: dict[str, bytes]) -> dict[str, Any]:
    """`value` as JSON beside the names of its files, whose bytes join `files`."""
    sink = Sink()
    data = pack(value, sink)
    boosters = [f"{stem}.ubj.gz" if i == 0 else f"{stem}.{i}.ubj.gz" for i in range(len(sink.boosters))]
    # UBJSON spells out statistics that prediction never reads: gzip takes two thirds off
    files |= {name: gzip.compress(data, 9, mtime=0) for name, data in zip(boosters, sink.boosters, strict=True)}
    arrays = f"{stem}.npz" if sink.arrays else None
    if arrays:
        files[arrays] = sink.npz()
    return {"data": data, "boosters": boosters, "arrays": arrays}


def model_files(model: Model) -> dict[str, bytes]:
    """Every file of a model, by name."""
    from ..training.hybrid.contract import columns_digest, signature

    files: dict[str, bytes] = {}
    lazy = {kind: {name: _packed(name, models[name], files) | {"columns": columns_digest(models[name])}
                   for name in sorted(models)}
            for kind in LAZY for models in [getattr(model, kind)]}
    whole = {f.name: getattr(model, f.name) for f in dataclasses.fields(model) if f.name not in LAZY}
    content = {
        "model": _packed(WHOLE, whole, files) | {"trained_for": signature(model.segments)},
        **lazy,
        "files": {name: {"sha256": _sha256(data), "bytes": len(data)} for name, data in files.items()},
    }
    outer = {"format": FORMAT, "sha256": _sha256(_canonical(content)), "content": content}
    files[MODEL_FILE] = json.dumps(outer, allow_nan=False, indent=1).encode()
    return files


def write_model(model: Model, folder: Path) -> None:
    """Write a model to `folder`, which must not exist. InputError where it cannot be written; nothing half-written."""
    files = model_files(model)
    make_folder(folder.parent)
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        for name, data in files.items():
            (part / name).write_bytes(data)
        os.rename(part, folder)
    except OSError as fault:
        raise cannot_write(folder, fault) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise _damaged(path, "the file is missing") from None
    except OSError as fault:
        raise InputError(f"{path}: cannot be read ({fault.strerror or fault}); {_WAY_OUT}") from None


def read_content(folder: Path) -> dict[str, Any]:
    """The checked content of `model.json`. InputError naming the file for anything wrong in it."""
    path = folder / MODEL_FILE
    try:
        outer = json.loads(_read_bytes(path))
    except (ValueError, RecursionError):
        raise _damaged(path, "it is not JSON") from None
    if not isinstance(outer, dict) or "format" not in outer:
        raise _damaged(path, "it is not a model description")
    if outer["format"] != FORMAT:
        raise InputError(
            f"{path}: format {outer['format']!r}, this version of kernelcast reads format {FORMAT}; {_WAY_OUT}"
        )
    content = outer.get("content")
    if not isinstance(content, dict) or not {"model", "families", "files"} <= set(content):
        raise _damaged(path, "parts of it are missing")
    if _sha256(_canonical(content)) != outer.get("sha256"):
        raise _damaged(path, "its content does not match its SHA-256")
    return content


def trained_implementations(folder: Path) -> dict[str, list[str]]:
    """Labels that each family of a stored model was trained on, from model.json alone: no tree is read.

    InputError for a damaged or missing file.
    """
    out = {}
    for family, entry in read_content(folder)["families"].items():
        try:
            domain = entry["data"]["fields"]["domain"]["fields"]
            labels = [str(label) for label in domain["implementations"]]
        except (KeyError, TypeError):
            raise _damaged(folder / MODEL_FILE, f"{family} does not say what it was trained on") from None
        out[str(family)] = sorted(label for label in labels if label not in ABSENT)
    return out


class _Files:
    """The files of one model folder, each checked against its SHA-256 when it is read."""

    def __init__(self, folder: Path, listed: Mapping[str, Any]) -> None:
        self._folder, self._listed = folder, listed

    def read(self, name: str) -> bytes:
        path = self._folder / MODEL_FILE
        if not _FILE_NAME.fullmatch(name) or name not in self._listed:
            raise _damaged(path, f"it names a file {name!r} that it does not list")
        data = _read_bytes(self._folder / name)
        if _sha256(data) != self._listed[name].get("sha256"):
            raise _damaged(self._folder / name, "its content does not match the SHA-256 in model.json")
        return data

    def unpack(self, entry: Mapping[str, Any]) -> Any:
        """The family behind an entry, for the columns that the code makes today; else InputError with the column."""
        from ..training.hybrid.contract import column_fault, columns_digest

        family = self.plain(entry)
        if "columns" in entry and columns_digest(family) != entry["columns"]:
            raise self.foreign(f"the learners of family {family.family} take their columns in another order")
        if fault := column_fault(family):
            raise self.foreign(fault)
        return family

    def foreign(self, why: str) -> InputError:
        """What to raise where a sound model is for other columns or terms than the code has."""
        return InputError(f"{self._folder / MODEL_FILE}: trained by another version of kernelcast: {why}; {_WAY_OUT}")

    def plain(self, entry: Mapping[str, Any]) -> Any:
        """The object behind an entry that `_packed` wrote."""
        arrays: dict[str, np.ndarray] = {}
        current = MODEL_FILE
        try:
            if entry["arrays"]:
                current = str(entry["arrays"])
                with np.load(io.BytesIO(self.read(current)), allow_pickle=False) as loaded:
                    arrays = {key: loaded[key] for key in loaded.files}
            boosters = []
            for name in entry["boosters"]:
                current = str(name)
                boosters.append(load_booster(gzip.decompress(self.read(current))))
            current = MODEL_FILE
            return unpack(entry["data"], Source(arrays.__getitem__, boosters.__getitem__))
        except (CodecError, KeyError, TypeError, ValueError, EOFError, gzip.BadGzipFile, zlib.error) as fault:
            raise _damaged(self._folder / current, str(fault)) from None


class LazyFamilies(Mapping[str, "LearnedFamily"]):
    """Family models of a stored model; the files of a family are read on first use."""

    def __init__(self, files: _Files, entries: Mapping[str, Any]) -> None:
        self._files, self._entries = files, entries
        self._loaded: dict[str, LearnedFamily] = {}

    def __getitem__(self, name: str) -> LearnedFamily:
        if name not in self._loaded:  # two threads may both read it: the first one's is kept
            self._loaded.setdefault(name, self._files.unpack(self._entries[name]))
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def loaded(self) -> tuple[str, ...]:
        """Families whose files have been read so far."""
        return tuple(self._loaded)


def read_model(folder: Path) -> Model:
    """A stored model; its families are read when first used. InputError for a damaged or missing file."""
    from ..training.hybrid.contract import place_fault
    from ..training.hybrid.model import Model

    content = read_content(folder)
    files = _Files(folder, content["files"])
    whole = files.plain(content["model"])
    if fault := place_fault(content["model"].get("trained_for", {}), whole.get("segments")):
        raise files.foreign(fault)
    try:
        families, partials = (LazyFamilies(files, content.get(kind, {})) for kind in LAZY)
        return Model(families=families, partials=partials, **whole)
    except TypeError:
        raise InputError(f"{folder / MODEL_FILE}: written by another version of kernelcast; {_WAY_OUT}") from None


def read_meta(folder: Path) -> dict[str, Any]:
    """Name, platform, families and the plain entries of `meta`, without reading any other file."""
    content = read_content(folder)
    data = content["model"]["data"]
    meta = {k: v for k, v in data.get("meta", {}).items() if not (isinstance(v, dict) and any(c[0] == "$" for c in v))}
    size = (folder / MODEL_FILE).stat().st_size + sum(int(item["bytes"]) for item in content["files"].values())
    return {"name": data["name"], "platform": data["platform"], "families": sorted(content["families"]),
            "bytes": size, "meta": meta}


def verify_model(folder: Path) -> None:
    """Read every file of a model and check it. InputError for the first that is damaged."""
    content = read_content(folder)
    files = _Files(folder, content["files"])
    for name in content["files"]:
        files.read(name)
