"""The `params` column: JSON text to numbers, and the one spelling in which two equal configurations are equal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

_NOT_READABLE = "is not readable as JSON"
_NOT_AN_OBJECT = "is JSON but not an object"


def _reject_constant(name: str) -> Any:
    """NaN and Infinity are no JSON: a parameter which is not a number must not slip in as one."""
    raise ValueError(f"{name} is not allowed")


_DECODER = json.JSONDecoder(parse_constant=_reject_constant)


def parse_distinct(texts: Sequence[str]) -> tuple[list[dict[str, Any] | None], list[str]]:
    """Parse distinct JSON texts: the objects (None where unreadable) and, per text, the fault ("" where sound).

    All texts are read as one JSON list, several times quicker than one by one; only a fault among them costs a second,
    item-wise pass which tells who is to blame.
    """
    if all(text[:1] == "{" and text[-1:] == "}" for text in texts):
        try:
            objects = _DECODER.decode("[" + ",".join(texts) + "]")
        except (ValueError, RecursionError):
            objects = []
        if len(objects) == len(texts) and all(isinstance(item, dict) for item in objects):
            return objects, [""] * len(texts)
    parsed = [_parse_one(text) for text in texts]
    return [item[0] for item in parsed], [item[1] for item in parsed]


def _parse_one(text: str) -> tuple[dict[str, Any] | None, str]:
    try:
        item = _DECODER.decode(text.strip())
    except (ValueError, RecursionError) as fault:
        reason = str(fault) or type(fault).__name__
        return None, f"{_NOT_READABLE} ({reason[:80]})"
    return (item, "") if isinstance(item, dict) else (None, _NOT_AN_OBJECT)


def _plain(value: Any) -> Any:
    """A value as JSON knows it; 1024.0 and 1024 become the same number."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def canonical_params(params: Mapping[str, Any]) -> str:
    """Compact JSON with sorted keys, integral floats written as integers: equal parameters give equal text."""
    return json.dumps(_plain(params), sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_text(text: str) -> str:
    """Sixteen hexadecimal digits which stand for `text`: short enough for a group name, stable between machines."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def params_frame(rows: pd.DataFrame | pd.Series) -> pd.DataFrame:
    """One column per parameter, same index as `rows` (a run table or its `params` column); NaN where absent.

    Numbers and booleans become float64 (True is 1.0), text stays text, lists (a segment's `grid`) stay lists. Every
    distinct text is parsed once. Unreadable params raise InputError naming the first such row.
    """
    import pandas as pd

    from ..analytic.errors import InputError

    series = rows["params"] if isinstance(rows, pd.DataFrame) else rows
    codes, texts = pd.factorize(series.astype(object), use_na_sentinel=True)
    objects, faults = parse_distinct([str(text) for text in texts])
    bad_text = np.array([bool(fault) for fault in faults] + [True])
    bad_rows = np.flatnonzero(bad_text[codes])
    if bad_rows.size:
        row = int(bad_rows[0])
        fault = faults[codes[row]] if codes[row] >= 0 else "is missing"
        raise InputError(f"row {row + 1}, column params: {fault}; it must be a JSON object")
    keys = list(dict.fromkeys(key for item in objects if item for key in item))
    columns = {key: _column([(item or {}).get(key) for item in objects], codes) for key in keys}
    return pd.DataFrame(columns, index=series.index)


def _column(values: list[Any], codes: np.ndarray) -> np.ndarray:
    """Values of the distinct texts spread over the rows, float64 where every value present is a number."""
    if all(value is None or isinstance(value, bool | int | float) for value in values):
        return np.asarray(np.array([np.nan if value is None else float(value) for value in values])[codes])
    distinct = np.empty(len(values), dtype=object)
    distinct[:] = [np.nan if value is None else value for value in values]
    return np.asarray(distinct[codes])
