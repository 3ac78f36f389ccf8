"""Which models there are, which one a platform uses (its champion), and how a name finds one.

Models of the user lie in KERNELCAST_HOME/models/<platform>/<name>/<version>/, those that ship with the package in
configs/champions/<platform>/. The champion of a platform is the one its `champion.json` names, else the shipped one.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..analytic.errors import InputError, KernelcastError, nearest_names
from ..training.hybrid.meta import TRANSFER
from .home import models_folder, write_whole
from .opened import OPENED
from .store import MODEL_FILE, read_meta, verify_model, write_model

if TYPE_CHECKING:
    from ..training.hybrid.model import Model

CHAMPION_FILE = "champion.json"
SHIPPED = "shipped"
"""Version of a model that came with the package."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class _DamagedPointerError(InputError):
    """The file that names a champion holds something else."""


@dataclass(frozen=True)
class Entry:
    """One stored model: where it lies and whether its platform uses it."""

    platform: str
    name: str
    version: str
    folder: Path
    champion: bool = False

    @property
    def label(self) -> str:
        """`name@version`, as --model takes it and as predictions name it."""
        return f"{self.name}@{self.version}"


def default_name(platform: str) -> str:
    """Name of a platform's models where none is given; also that of its registered MLflow model."""
    return f"kernelcast-{platform}"


def check_name(name: str) -> str:
    """`name` if it can name a model (and a folder), else InputError."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"model name {name[:80]!r}: up to 64 letters, digits, '.', '_' and '-' are allowed, a letter or digit first"
        )
    return name


def label(model: Model) -> str:
    """`name@version` of a model; a model that was never stored has no version."""
    version = model.meta.get("version")
    return f"{model.name}@{version}" if version else model.name


def shipped_folder(platform: str) -> Path:
    return Path(str(resources.files("kernelcast.configs").joinpath("champions", platform)))


def _shipped(platform: str) -> Entry | None:
    folder = shipped_folder(platform)
    if not (folder / MODEL_FILE).is_file():
        return None
    return Entry(platform, default_name(platform), SHIPPED, folder)


def _subfolders(folder: Path) -> list[Path]:
    try:
        return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as fault:
        raise InputError(f"{folder}: cannot be read ({fault.strerror or fault})") from None


def _own(platform: str) -> Iterator[Entry]:
    for named in _subfolders(models_folder() / platform):
        versions = [p for p in _subfolders(named) if p.name.isdigit()]
        for folder in sorted(versions, key=lambda p: int(p.name)):
            yield Entry(platform, named.name, folder.name, folder)


def _pointer(platform: str) -> tuple[str, str] | None:
    path = models_folder() / platform / CHAMPION_FILE
    try:
        data = json.loads(path.read_bytes())
        return str(data["name"]), str(data["version"])
    except FileNotFoundError:
        return None
    except NotADirectoryError:  # KERNELCAST_HOME is a file: nothing is stored there
        return None
    except OSError as fault:
        raise InputError(f"{path}: cannot be read ({fault.strerror or fault})") from None
    except (ValueError, KeyError, TypeError):
        raise _DamagedPointerError(
            f"{path}: damaged champion file; choose one anew with `kernelcast promote NAME`, or delete it"
        ) from None


def pointer_fault(platform: str) -> str | None:
    """What is damaged in the file that names the platform's champion; None where nothing is.

    InputError where the store cannot be read at all.
    """
    try:
        _pointer(platform)
    except _DamagedPointerError as fault:
        return str(fault)
    return None


def champion_entry(platform: str) -> Entry | None:
    """The model a platform uses: the user's champion, else the shipped one, else None."""
    chosen = _pointer(platform)
    if chosen is None or chosen[1] == SHIPPED:
        found = _shipped(platform)
        return None if found is None else Entry(platform, found.name, SHIPPED, found.folder, True)
    folder = models_folder() / platform / check_name(chosen[0]) / check_name(chosen[1])
    return Entry(platform, chosen[0], chosen[1], folder, True)


def own_champion(platform: str) -> Entry | None:
    """The champion that the user's store names, shipped models not counted."""
    return champion_entry(platform) if _pointer(platform) is not None else None


def entries(platform: str | None = None) -> list[Entry]:
    """Every model, by platform, name and version; the shipped ones come first.

    Where the file that names the champion is damaged none is marked: a list is what one mends it with.
    """
    if platform is None:
        shipped = Path(str(resources.files("kernelcast.configs").joinpath("champions")))
        names = {p.name for p in _subfolders(shipped)} | {p.name for p in _subfolders(models_folder())}
        return [entry for name in sorted(names - {TRANSFER}) for entry in entries(name)]
    found = _shipped(platform)
    listed = [*([found] if found else []), *_own(platform)]
    champion = champion_entry(platform) if pointer_fault(platform) is None else None
    return [
        Entry(e.platform, e.name, e.version, e.folder, champion is not None and e.folder == champion.folder)
        for e in listed
    ]


def find_entry(platform: str, name: str) -> Entry:
    """The model called NAME or NAME@VERSION on a platform (newest version first). InputError with the nearest names."""
    wanted, _, version = name.partition("@")
    known = entries(platform)
    fitting = [e for e in known if e.name == wanted and (not version or e.version == version)]
    if not fitting:
        labels = {e.label for e in known} | {e.name for e in known}
        hint = nearest_names(name, labels) if labels else f"; train one with `kernelcast train -p {platform}`"
        raise InputError(f"no model {name!r} for platform {platform}{hint}")
    own = [e for e in fitting if e.version != SHIPPED]
    return own[-1] if own else fitting[-1]


def _opened(entry: Entry) -> Model:
    model = open_folder(entry.folder)
    model.meta["version"] = entry.version
    return model


def open_folder(folder: Path) -> Model:
    """The model of a folder, kept open until its files change; its `meta` is the caller's own. InputError if damaged.

    Families and scores are shared with whoever else opened it: change nothing in them.
    """
    kept = OPENED.read(folder)
    return replace(kept, meta=kept.meta.copy())


def model_folder(name: str) -> Path:
    """The folder of a model given by its path. InputError where it is none."""
    folder = Path(name)
    if not (folder / MODEL_FILE).is_file():
        raise InputError(f"{name}: no model folder (it has no {MODEL_FILE})")
    return folder


def is_path(name: str) -> bool:
    """Whether a model is named by the path of its folder, and not by NAME or NAME@VERSION."""
    return "/" in name or "\\" in name


def open_champion(platform: str) -> Model | None:
    """The model a platform uses, or None where it has none. InputError for a damaged one."""
    entry = champion_entry(platform)
    return None if entry is None else _opened(entry)


def transfer_entry() -> Entry | None:
    """The shipped model across platforms, for one without a champion; None where none ships."""
    folder = shipped_folder(TRANSFER)
    return Entry(TRANSFER, TRANSFER, SHIPPED, folder) if (folder / MODEL_FILE).is_file() else None


def open_transfer() -> Model | None:
    """`transfer_entry` opened."""
    entry = transfer_entry()
    return None if entry is None else _opened(entry)


def open_model(platform: str, name: str) -> Model:
    """A model by NAME, NAME@VERSION or path of its folder. InputError where there is none for the platform."""
    if is_path(name):
        model = open_folder(model_folder(name))
        if model.platform != platform:
            raise InputError(f"{name}: a model for {model.platform}, not for {platform}")
        return model
    return _opened(find_entry(platform, name))


def add_model(model: Model) -> Entry:
    """Store a model under the next free version. InputError where the store cannot be written."""
    parent = models_folder() / model.platform / check_name(model.name)
    version = 1 + max((int(p.name) for p in _subfolders(parent) if p.name.isdigit()), default=0)
    folder = parent / str(version)
    write_model(model, folder)
    model.meta["version"] = str(version)
    return Entry(model.platform, model.name, str(version), folder)


def drop_model(entry: Entry) -> None:
    """Take back a model that was just added; its folder disappears whole, and so do the folders it leaves empty."""
    shutil.rmtree(entry.folder, ignore_errors=True)
    with suppress(OSError):
        entry.folder.parent.rmdir()
        entry.folder.parent.parent.rmdir()


def pointer_bytes(platform: str) -> bytes | None:
    """What the champion file of a platform holds now, to be given back to `restore_pointer`."""
    try:
        return (models_folder() / platform / CHAMPION_FILE).read_bytes()
    except OSError:
        return None


def restore_pointer(platform: str, before: bytes | None) -> None:
    """Put the champion file back as it was (no file where there was none)."""
    path = models_folder() / platform / CHAMPION_FILE
    if pointer_bytes(platform) == before:
        return
    with suppress(OSError, InputError):
        path.unlink(missing_ok=True) if before is None else write_whole(path, before)


def point_champion(entry: Entry) -> None:
    """Make a stored model the champion of its platform. InputError for a damaged model or an unwritable store."""
    verify_model(entry.folder)
    text = json.dumps({"name": entry.name, "version": entry.version}) + "\n"
    write_whole(models_folder() / entry.platform / CHAMPION_FILE, text.encode())


def summary(entry: Entry) -> dict[str, Any]:
    """One line of `kernelcast models`: where the model comes from and its held-out error. A damaged one says so."""
    line: dict[str, Any] = {"platform": entry.platform, "name": entry.name, "version": entry.version,
                            "champion": entry.champion, "path": str(entry.folder)}
    try:
        found = read_meta(entry.folder)
    except KernelcastError as fault:
        return line | {"fault": str(fault)}
    meta = found["meta"]
    return line | {
        "families": found["families"], "bytes": found["bytes"], "rows": meta.get("rows"),
        "trained": meta.get("trained"), "runs": meta.get("runs"), "runs_digest": meta.get("runs_digest"),
        "heldout": meta.get("heldout"), "fault": None,
    }
