"""What is wrong with a configuration, judged by its own values: so that a bad row of a table spoils no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.families import FAMILIES
from ..analytic.rules import contradictions, faults
from ..analytic.work import Family, completed, stated

if TYPE_CHECKING:
    import pandas as pd


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
    """Faults of the rows of one family: the rules of `analytic.rules`, and what cannot hold together."""
    out = np.full(len(params), "", dtype=object)
    given, unreadable = stated(family, {name: params[name].to_numpy() for name in family.names if name in params},
                               len(params))
    for fault in (*unreadable, *faults(family, completed(family, given))):
        out[fault.where & (out == "")] = fault.text
    return np.where(out == "", contradictions(family, given), out)
