"""What is wrong with a workload file, in one line: the field, with the segment's name, the fault and what is right."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from .errors import nearest_names

_SKIPPED = ("function-before", "constrained-float", "float", "tuple[", "function-after")
"""Places that the checking library names and a person never wrote."""


def _at_most(fault: Any) -> str:
    return f"it must be {fault['ctx']['le']:g} or less"


def _at_least(fault: Any) -> str:
    return f"it must be {fault['ctx']['ge']:g} or more"


def _above(fault: Any) -> str:
    return f"it must be more than {fault['ctx']['gt']:g}"


def _unknown(fault: Any) -> str:
    valid = [word.strip("' ") for word in re.split(r", | or ", str(fault["ctx"]["expected"]))]
    return f"unknown value{nearest_names(str(fault['input']), valid)}"


_WORDS: dict[str, Callable[[Any], str]] = {
    "less_than_equal": _at_most, "greater_than_equal": _at_least, "greater_than": _above, "literal_error": _unknown,
    "tuple_type": lambda _: "a list is needed", "dict_type": lambda _: "'name: value' entries are needed",
    "float_type": lambda _: "a number is needed", "string_type": lambda _: "a word is needed",
    "model_type": lambda _: "'field: value' entries are needed",
}
"""Faults that the checking library words for programmers, worded for people."""


def _places(places: tuple[int | str, ...], data: Mapping[str, Any]) -> list[str]:
    """`segments[0] (name)`, `alpha`: the way to the field."""
    words: list[str] = []
    for place in places:
        if isinstance(place, str) and place.startswith(_SKIPPED):
            continue
        if isinstance(place, int) and words:
            items = data.get(words[0]) if len(words) == 1 else None
            entry = items[place] if isinstance(items, list) and place < len(items) else None
            label = entry.get("name") if isinstance(entry, dict) else None
            words[-1] += f"[{place}]" + (f" ({label})" if label else "")
        else:
            words.append(str(place))
    return words


def _names(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def first_fault(error: ValidationError, data: Mapping[str, Any], root: type[BaseModel],
                lists: Mapping[str, type[BaseModel]]) -> str:
    """Field and fault of the first error in `data`, which should have been a `root`.

    lists: the model of the entries of each list, to say which fields they have.
    """
    faults = error.errors()  # a misspelt field also leaves the right one missing: the misspelling is the better message
    fault = next((item for item in faults if item["type"] == "extra_forbidden"), faults[0])
    words, kind = _places(fault["loc"], data), fault["type"]
    message = str(fault["msg"]).removeprefix("Value error, ")
    models = [lists[name] for name in (word.split("[")[0] for word in reversed(words)) if name in lists]
    nearest = models[0] if models else root
    if kind == "missing":
        return f"required field '{'.'.join(words)}' is missing"
    if kind == "extra_forbidden":
        return f"{'.'.join(words)}: unknown field{nearest_names(words[-1], _names(nearest))}"
    if kind == "value_error" and message.split(":")[0].split(".")[0] in _names(nearest):
        return ".".join([*words, message])  # the check of a whole entry names the field itself
    if kind in _WORDS:
        message = _WORDS[kind](fault)
    return f"{'.'.join(words)}: {message} (found {fault['input']!r:.60})"
