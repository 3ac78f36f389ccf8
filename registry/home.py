"""Where state lives: KERNELCAST_HOME, its folders, and files that appear whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ..analytic.errors import InputError

HOME_VARIABLE = "KERNELCAST_HOME"


def home() -> Path:
    """The state folder: KERNELCAST_HOME, else the user data folder of the system. Not created here."""
    given = os.environ.get(HOME_VARIABLE)
    if given:
        return Path(given).expanduser().absolute()
    from platformdirs import user_data_dir

    return Path(user_data_dir("kernelcast", appauthor=False))


def models_folder() -> Path:
    return home() / "models"


def database_path() -> Path:
    return home() / "mlflow.db"


def artifacts_folder() -> Path:
    return home() / "artifacts"


def cannot_write(path: Path, fault: OSError) -> InputError:
    """The error of a store that cannot be written, with the way out."""
    return InputError(
        f"{path}: cannot be written ({fault.strerror or fault}); free it, or set {HOME_VARIABLE} to a folder of yours"
    )


def make_folder(path: Path) -> Path:
    """Create a folder and its parents, or raise InputError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise cannot_write(path, fault) from None
    return path


def check_writable(folder: Path) -> None:
    """Raise InputError where a file cannot be created in `folder`: before the work rather than after it."""
    make_folder(folder)
    probe = folder / f".probe.{os.getpid()}"
    try:
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as fault:
        raise cannot_write(folder, fault) from None


def write_whole(path: Path, data: bytes) -> None:
    """Write beside the target and rename over it; InputError where that is not possible."""
    make_folder(path.parent)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        os.replace(part, path)
    except OSError as fault:
        raise cannot_write(path, fault) from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
