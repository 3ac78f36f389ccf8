"""The modules that lie in a package's folder, whoever put them there."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import ModuleType


def found_in(package: str, path: Iterable[str]) -> Iterator[ModuleType]:
    """Every module of a package in the order of its name, imported; those whose name begins with _ are left out."""
    for name in sorted(item.name for item in pkgutil.iter_modules(path) if not item.name.startswith("_")):
        yield import_module(f"{package}.{name}")
