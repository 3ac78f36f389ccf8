"""What is wrong with a configuration, judged by its own values: so that a bad row of a table spoils no other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.errors import nearest_names
from ..analytic.families import FAMILIES
from ..analytic.work import Family, usage

if TYPE_CHECKING:
    import pandas as pd

Columns = Mapping[str, NDArray[Any]]

LARGEST = {"size": 2.0**53, "real": 1e30}
"""Beyond these a number is no size of anything: counts would not be exact, products would overflow."""

WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    **{family: {"order": ("random", "sorted")} for family in ("gather", "scatter_add", "histogram")},
    "mesh_gather_scatter": {"order": ("natural", "random")},
}
"""Text parameters that change the work: the words they may be."""


@dataclass(frozen=True)
class Contradiction:
    """Parameters that cannot hold together: what to say, and where it is so (NaN: not given, so no contradiction)."""

    words: str
    where: Callable[[Columns], NDArray[np.bool_]]


ROUNDING = 1.0 + 1e-6
"""Tables hold means with some six digits."""


def _cols(c: Columns) -> NDArray[Any]:
    return np.where(np.isnan(c["cols"]), c["rows"], c["cols"])


_MATRIX = (
    Contradiction("'nnz' is more than rows x cols", lambda c: c["nnz"] > c["rows"] * _cols(c)),
    Contradiction("'row_max' is more than cols", lambda c: c["row_max"] > _cols(c)),
    Contradiction("'row_max' is less than nnz / rows", lambda c: c["row_max"] * c["rows"] * ROUNDING < c["nnz"]),
    Contradiction("'row_mean' is more than row_max", lambda c: c["row_mean"] > c["row_max"] * ROUNDING),
    Contradiction("'row_min' is more than row_mean", lambda c: c["row_min"] > c["row_mean"] * ROUNDING),
)
_SPARSE = ("spmv_csr", "spmv_coo", "spmv_ell", "spmv_sellp", "spmv_hybrid", "spmm_csr", "sptrsv")
CONTRADICTIONS: dict[str, tuple[Contradiction, ...]] = {
    **dict.fromkeys(_SPARSE, _MATRIX),
    "bfs": (Contradiction("'levels' is more than nodes", lambda c: c["levels"] > c["nodes"]),),
    "attention": (Contradiction("'kv_heads' is more than heads", lambda c: c["kv_heads"] > c["heads"]),),
}


def contradictions(family: Family, columns: Columns) -> NDArray[Any]:
    """What cannot be true of each of n configurations, '' where nothing is.

    columns: one array of shape (n,) for every parameter of the family, before anything is filled in: numbers with NaN
    and text with None where a parameter is not given.
    """
    n = len(next(iter(columns.values())))
    out = np.full(n, "", dtype=object)
    for name, words in WORDS.get(family.name, {}).items():
        cells = np.array(["" if v is None or v != v else str(v) for v in columns[name].tolist()], dtype=object)
        for value in {*cells.tolist()} - {"", *words}:
            _say(out, cells == value, f"parameter {name!r} is {value[:40]!r}{nearest_names(value, words)}")
    with np.errstate(invalid="ignore"):
        for item in CONTRADICTIONS.get(family.name, ()):
            _say(out, item.where(columns), f"parameter {item.words}")
    return out


def row_faults(frame: pd.DataFrame) -> NDArray[Any]:
    """Why a row of a run table cannot be described, '' where it can. Needs kernel, params and, if counted, bytes."""
    from .params import params_frame

    out = np.full(len(frame), "", dtype=object)
    params = params_frame(frame["params"])
    for kernel, index in frame.groupby(frame["kernel"].astype(str)).indices.items():
        if kernel in FAMILIES and kernel != "segment":
            out[index] = _family_faults(FAMILIES[kernel], params.iloc[index])
        else:
            out[index] = _counted_faults(str(kernel), frame.iloc[index], params.iloc[index])
    return out


def _counted_faults(kernel: str, rows: pd.DataFrame, params: pd.DataFrame) -> NDArray[Any]:
    counted = np.asarray(rows["bytes"], dtype=np.float64) if "bytes" in rows else np.full(len(rows), np.nan)
    if "bytes" in params:
        counted = np.where(np.isnan(counted), _numbers(params["bytes"]), counted)
    what = "segment" if kernel == "segment" else f"kernel family {kernel!r} is unknown"
    return np.where(np.isnan(counted), f"refused: {what} and the row has no counted bytes", "").astype(object)


def _numbers(column: Any) -> NDArray[np.float64]:
    import pandas as pd

    return np.asarray(pd.to_numeric(column, errors="coerce"), dtype=np.float64)


def _family_faults(family: Family, params: pd.DataFrame) -> NDArray[Any]:
    """Faults of the rows of one family; the rules are those of `analytic.work.arguments`, and `contradictions`."""
    n = len(params)
    out = np.full(n, "", dtype=object)
    columns: dict[str, NDArray[Any]] = {}
    for param in family.params:
        if param.kind in ("text", "list"):
            columns[param.name] = params[param.name].to_numpy() if param.name in params else np.full(n, None, object)
            continue
        columns[param.name] = np.full(n, np.nan)
        if param.name in params:
            columns[param.name] = _column(params[param.name], param.name, out)
    stated = dict(columns)
    if family.derive is not None:
        columns = {name: values.copy() for name, values in columns.items()}
        with np.errstate(invalid="ignore", divide="ignore"):
            family.derive(columns)
    for param in family.params:
        if param.kind in ("text", "list"):
            continue
        values = columns[param.name]
        floor = {"size": 1.0, "real": 0.0}.get(param.kind, -math.inf)
        with np.errstate(invalid="ignore"):
            wrong = np.isinf(values) | (values < floor)
        _say(out, wrong, f"parameter {param.name!r} must be finite and at least {floor:g}")
        _say(out, values > LARGEST.get(param.kind, math.inf), f"parameter {param.name!r} is too large")
        if param.required:
            _say(out, np.isnan(values), f"parameter {param.name!r} is missing; {usage(family)}")
    said = contradictions(family, stated)
    return np.where(out == "", said, out)


def _column(column: pd.Series, name: str, out: NDArray[Any]) -> NDArray[np.float64]:
    plain = column.astype(object)
    truth = plain.astype(str).str.lower().map({"true": 1.0, "false": 0.0})
    values = np.where(truth.notna(), truth.astype(float), _numbers(plain))
    _say(out, np.isnan(values) & np.asarray(plain.notna()), f"parameter {name!r} is not a number")
    return values


def _say(out: NDArray[Any], where: NDArray[np.bool_], text: str) -> None:
    out[where & (out == "")] = text
