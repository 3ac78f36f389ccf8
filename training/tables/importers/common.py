"""What every corpus adapter needs: its facts, its file, its sample, and `params` texts built column by column."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from numpy.typing import NDArray

from .... import configs
from ....analytic.errors import InputError
from ....features.implementation import short_name
from ..schema import validate_runs

if TYPE_CHECKING:
    import pandas as pd

DATA_VARIABLE = "KERNELCAST_DATA"


def corpus_facts(name: str) -> dict[str, Any]:
    """What configs/corpora/<name>.yaml says: source, version, license, meaning of the times, caveats, test rule."""
    path = configs.folder("corpora", f"{name}.yaml")
    facts: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return facts


def data_folder(data_dir: str | Path | None) -> Path | None:
    """The folder of the converted tables: the argument, else the variable KERNELCAST_DATA, else None."""
    folder = data_dir or os.environ.get(DATA_VARIABLE)
    return Path(folder) if folder else None


def read_converted(name: str, data_dir: str | Path | None, columns: Collection[str] | None = None) -> pd.DataFrame:
    """Read a corpus which lies as one Parquet file in run-table form. Raises InputError saying how to get it."""
    import pandas as pd
    import pyarrow as pa

    facts = corpus_facts(name)
    file_name, how = facts["file"], facts["get"]
    folder = data_folder(data_dir)
    if folder is None:
        raise InputError(
            f"corpus {name}: no data folder given; set {DATA_VARIABLE} to the folder of {file_name} ({how})"
        )
    path = folder / file_name
    if not path.is_file():
        raise InputError(f"corpus {name}: {path} is missing; {how}")
    try:
        return pd.read_parquet(path, columns=None if columns is None else list(columns))
    except (pa.ArrowException, OSError, ValueError) as fault:
        raise InputError(f"corpus {name}: {path} cannot be read as Parquet ({str(fault)[:120]})") from None


def keep_platforms(frame: pd.DataFrame, platforms: Collection[str] | None) -> pd.DataFrame:
    """The rows of the named platforms, all rows for None."""
    return frame if platforms is None else frame[frame["platform"].isin(list(platforms))]


def sample_rows(frame: pd.DataFrame, max_rows: int | None, seed: int) -> pd.DataFrame:
    """At most `max_rows` rows drawn without replacement, in their old order; the same seed gives the same rows."""
    if max_rows is None or len(frame) <= max_rows:
        return frame
    chosen = np.random.default_rng(seed).choice(len(frame), size=max_rows, replace=False)
    return frame.iloc[np.sort(chosen)]


def rename_implementations(frame: pd.DataFrame, short: Callable[[str], str]) -> pd.DataFrame:
    """Short stable names in `implementation`, the published string in `implementation_raw`."""
    frame = frame.assign(implementation_raw=frame["implementation"])
    names = {raw: short(raw) for raw in frame["implementation"].unique()}
    return frame.assign(implementation=frame["implementation"].map(names))


def finished(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Pass an adapter's table through the same checks as anyone's. Raises InputError for an empty or broken one."""
    if frame.empty:
        raise InputError(f"corpus {name}: no row is left for the chosen platforms and families")
    return validate_runs(frame, where=f"corpus {name}", platforms=set(frame["platform"]))[0]


def json_params(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.object_]:
    """Canonical JSON objects of n rows from whole columns: keys sorted, None left out.

    Every column has few distinct values, so each is spelled once and spread by its codes; no row is visited in Python.
    The alphabetically first column must have no None.
    """
    import json

    import pandas as pd

    text: Any = "{"
    for position, key in enumerate(sorted(columns)):
        codes, values = pd.factorize(np.asarray(columns[key]), use_na_sentinel=True)
        start = "," if position else ""
        pieces = [f'{start}"{key}":{json.dumps(getattr(value, "tolist", lambda v=value: v)())}' for value in values]
        if position == 0 and (codes < 0).any():
            raise ValueError(f"the first parameter ({key}) must be present in every row")
        text = text + np.array([*pieces, ""], dtype=object)[codes]  # code −1, a missing value, takes the empty piece
    result: NDArray[np.object_] = text + "}"
    return result


def short_or_refuse(corpus: str, raw: str, wanted: str) -> str:
    """The short name of a table's implementation label. InputError where the label has not the table's form."""
    short = short_name(raw)
    if short == raw:
        raise InputError(f"corpus {corpus}: implementation {raw[:80]!r} {wanted}")
    return short
