"""Words of the command line: key=value, platforms, --set."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from ...analytic.errors import InputError
from .show import clean

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SETTING = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_WORDS: dict[str, Any] = {"true": True, "false": False}
RESERVED = ("precision", "implementation", "cache")
"""Keys among the parameters that describe the call and not the sizes."""


def value_of(word: str) -> Any:
    """A number (also 1e6), true or false, a JSON list, else the text itself."""
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    if word.startswith("["):
        try:
            return json.loads(word)
        except ValueError:
            raise InputError(f"'{clean(word)}' is not a list; write it as [1,2,3]") from None
    try:
        return int(word)
    except ValueError:
        pass
    try:
        number = float(word)
    except ValueError:
        return word
    # 1e6 is the whole number 1000000 wherever a count is asked for
    return int(number) if math.isfinite(number) and number == int(number) and abs(number) < 2**53 else number


def pairs(words: Sequence[str], what: str = "parameter", example: str = "m=8192") -> dict[str, str]:
    """`key=value` words as a dictionary of text. InputError for a malformed or repeated one.

    what: what such a word is called; example: one, for the message.
    """
    out: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not _KEY.fullmatch(key):
            raise InputError(f"'{clean(word)}' is not a {what}; write key=value, such as {example}")
        if value == "":
            raise InputError(f"{what} '{key}' has no value; write {key}=VALUE")
        if key in out:
            raise InputError(f"{what} '{key}' is given twice: {key}={clean(out[key])} and {key}={clean(value)}")
        out[key] = value
    return out


def parameters(words: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """(family parameters, reserved words) of the `key=value` words of a prediction."""
    given = pairs(words)
    return ({k: value_of(v) for k, v in given.items() if k not in RESERVED},
            {k: v for k, v in given.items() if k in RESERVED})


def settings(words: Sequence[str]) -> dict[str, str | float]:
    """`--set` words of an application: platform parameters, and fields of the file as `segment.field`."""
    out: dict[str, str | float] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not _SETTING.fullmatch(key) or value == "":
            raise InputError(f"'{clean(word)}' is not a --set value; write parameter=VALUE or segment.field=VALUE")
        if key in out:
            raise InputError(f"--set '{key}' is given twice")
        out[key] = value
    return out


def tile_of(word: str) -> tuple[int, ...]:
    """`128x128x64` or `128x128x64x4` of `--tile`: rows, columns, depth of a K-step, ways the K loop is split."""
    parts = re.split("[x×*]", word.lower())
    if len(parts) not in (3, 4) or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise InputError(f"'{clean(word)}' is not a tile; write --tile MxNxK or MxNxKxSPLIT, such as 128x128x64")
    return tuple(int(part) for part in parts)


def fusion(word: str) -> tuple[list[str], float]:
    """`a,b=BYTES` of `--fuse`: the segments, and the bytes between them that stay on chip in an execution."""
    from ...analytic.units import parse_quantity

    names, equals, byte = word.partition("=")
    parts = [name.strip() for name in names.split(",")]
    if not equals or len(parts) < 2 or not all(parts):
        raise InputError(f"'{clean(word)}' is not a fusion; write --fuse SEGMENT,SEGMENT=BYTES, such as a,b=16MB")
    try:
        value = parse_quantity(byte, "B")
    except InputError as fault:
        raise InputError(f"--fuse {clean(word)}: {fault}") from None
    if value < 0.0:
        raise InputError(f"--fuse {clean(word)}: {byte} of traffic cannot stay on chip; give 0 B or more")
    return parts, value


def overrides(words: Sequence[str]) -> dict[str, str]:
    """`--set parameter=value` words."""
    for word in words:
        if "." in word.partition("=")[0]:
            raise InputError(f"--set {clean(word)}: segment.field and workload.devices are of an application file; of "
                             "a kernel only platform parameters can be set")
    return pairs(words, "--set parameter", "hbm_peak_bw=6TB/s")
