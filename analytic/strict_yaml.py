"""YAML in which a key may appear once; whatever is wrong is one InputError that names the file."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from .errors import InputError

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Strict(BaseModel):
    """A record of a file: no key that it does not know, no value of another type, never changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _DuplicateKeyError(Exception):
    """Carries the key and the line of a key written twice."""


class _StrictLoader(_Loader):  # type: ignore[misc]
    """Safe YAML in which a key may appear once."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable):
                if key in seen:
                    raise _DuplicateKeyError(f"key '{key}' appears twice (line {key_node.start_mark.line + 1})")
                seen.add(key)
        return dict(super().construct_mapping(node, deep=deep))


def _a(what: str) -> str:
    return f"a{'n' if what[0] in 'aeiou' else ''} {what}"


def read_yaml(text: str, where: str, what: str = "platform parameter file") -> dict[str, Any]:
    """Return the mapping in `text`; InputError naming `where` if it is empty, no YAML, no mapping, or repeats a key.

    what: the kind of file expected, for the words of the error.
    """
    try:
        data = yaml.load(text, Loader=_StrictLoader)
    except _DuplicateKeyError as error:
        raise InputError(f"{where}: {error}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"{where}: not valid YAML: {' '.join(str(error).split())}") from None
    if data is None:
        raise InputError(f"{where}: the file is empty; expected {_a(what)}")
    if not isinstance(data, dict):
        raise InputError(f"{where}: expected 'key: value' lines at the top level, found a {type(data).__name__}")
    return data


def read_text(path: Path, what: str) -> str:
    """Return the text of a file. InputError naming it if it is not there or cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such {what}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as {_a(what)}: {error}") from None


def first_fault(error: ValidationError) -> str:
    """The first thing a schema finds wrong, in words: place, fault and what was found."""
    # A union reports one fault per member; the first location is the one a person looks for.
    fault = error.errors()[0]
    places = [str(part) for part in fault["loc"] if part not in ("bool", "int", "float", "str")]
    if fault["type"] == "missing" and len(places) == 1:
        return f"required key '{places[0]}' is missing"
    return f"{'.'.join(places)}: {fault['msg']} (found {fault['input']!r:.60})"
