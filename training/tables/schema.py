"""The measured-runs table: one format which carries every measured time, and the checks at its door.

One row is one measured configuration; `COLUMNS` says what each column means. Whatever is wrong with a table is said
with file, row and column before anything is computed from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...analytic.errors import InputError, nearest_names
from ...features.params import canonical_params, digest_text, params_frame, parse_distinct

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "COLUMNS",
    "REQUIRED",
    "RunTable",
    "canonical_params",
    "order_columns",
    "params_frame",
    "read_runs",
    "runs_digest",
    "validate_runs",
    "write_runs",
]

REQUIRED = ("platform", "kernel", "precision", "params", "time_s")
_TEXT = "text"
_NUMBER = "number"
COLUMNS: dict[str, str] = {
    "platform": _TEXT,
    "kernel": _TEXT,
    "precision": _TEXT,
    "params": _TEXT,
    "time_s": _NUMBER,
    "statistic": _TEXT,
    "spread_s": _NUMBER,
    "n_reps": _NUMBER,
    "cache": _TEXT,
    "launches": _NUMBER,
    "scope": _TEXT,
    "implementation": _TEXT,
    "flops": _NUMBER,
    "bytes": _NUMBER,
    "group": _TEXT,
    "source": _TEXT,
    "license": _TEXT,
}
"""Every column of the format, in the order in which tables are written, with its type."""

# Columns whose few words decide what a time means: a word nobody knows is a fault, not a detail.
_WORDS = {"cache": ("warm", "cold", "unknown"), "scope": ("kernel", "kernel+transfers", "wall")}
_NO_NUMBER = ("", "na", "n/a", "nan", "null", "none")


@dataclass(frozen=True)
class RunTable:
    """A checked table, where it came from, and how many rows were dropped as unusable."""

    frame: pd.DataFrame
    path: Path
    dropped: int


@dataclass(frozen=True)
class _Fault:
    """Rows of one column which break one rule, and what to say about the first of them."""

    column: str
    rows: np.ndarray
    say: Callable[[int], str]


def read_runs(
    path: str | Path,
    *,
    skip_bad: bool = False,
    require_time: bool = True,
    platforms: Collection[str] | None = None,
) -> RunTable:
    """Read and check a table: CSV (also .csv.gz) or Parquet by suffix.

    `skip_bad` drops and counts unusable rows instead of raising; `require_time=False` reads a table of questions;
    `platforms` are ids allowed beyond the supported ones. Raises InputError naming file, row and column.
    """
    from .files import load_table

    path = Path(path)
    loaded = load_table(path, skip_bad=skip_bad, as_text=COLUMNS)
    frame, dropped = _validate(loaded.frame, str(path), skip_bad, require_time, platforms, loaded.place)
    return RunTable(frame=frame, path=path, dropped=dropped + loaded.dropped)


def validate_runs(
    frame: pd.DataFrame,
    where: str = "table",
    skip_bad: bool = False,
    require_time: bool = True,
    platforms: Collection[str] | None = None,
) -> tuple[pd.DataFrame, int]:
    """Check a table and bring its columns to their types: the sound rows and the count of dropped ones.

    Absent optional columns are filled: cache "unknown", group from kernel and parameters, everything else empty.
    """
    return _validate(frame, where, skip_bad, require_time, platforms, lambda row: f"row {row + 1}")


def order_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """The format's columns first and in its order, then whatever else the table carries."""
    known = [name for name in COLUMNS if name in frame.columns]
    return frame[known + [name for name in frame.columns if name not in COLUMNS]]


def write_runs(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a table, CSV (also .csv.gz) or Parquet by suffix; a reader never sees half of it (see runfiles)."""
    from .files import save_table

    save_table(order_columns(frame), Path(path))


def runs_digest(frame: pd.DataFrame) -> str:
    """SHA-256 of what the table says, whatever the order of its rows, of its columns or of the keys in `params`.

    Only the format's columns count, and an empty column counts as an absent one.
    """
    table = frame[[name for name in COLUMNS if name in frame.columns and frame[name].notna().any()]].copy()
    for name in table.columns:
        table[name] = _numbers(table[name])[0] if COLUMNS[name] == _NUMBER else table[name].astype(object)
    if "params" in table.columns:
        table["params"] = _canonical_column(table["params"])
    text = table.to_csv(index=False, lineterminator="\n")
    header, _, body = text.partition("\n")
    return hashlib.sha256("\n".join([header, *sorted(body.splitlines())]).encode()).hexdigest()


def _canonical_column(series: pd.Series) -> np.ndarray:
    import pandas as pd

    codes, texts = pd.factorize(series.astype(object), use_na_sentinel=False)
    objects, _ = parse_distinct([str(text) for text in texts])
    spelled = [str(text) if item is None else canonical_params(item) for item, text in zip(objects, texts, strict=True)]
    return np.array(spelled, dtype=object)[codes]


def _validate(
    frame: pd.DataFrame,
    where: str,
    skip_bad: bool,
    require_time: bool,
    platforms: Collection[str] | None,
    place: Callable[[int], str],
) -> tuple[pd.DataFrame, int]:
    import pandas as pd

    _check_columns(frame, where, require_time)
    table = frame.reset_index(drop=True).copy()
    faults: list[_Fault] = []
    for name, kind in COLUMNS.items():
        if name not in table.columns:
            table[name] = np.nan if kind == _NUMBER else pd.Series(None, index=table.index, dtype=_text_dtype())
        elif kind == _NUMBER:
            table[name], fault = _number_column(table[name], name, require_time)
            faults += fault
        else:
            table[name] = _text_column(table[name], name)
    table["platform"], fault = _platform_column(table["platform"], platforms)
    faults += fault + _missing(table, ("kernel", "precision")) + _unknown_words(table) + _bad_params(table["params"])

    bad = np.zeros(len(table), dtype=bool)
    for item in faults:
        bad[item.rows] = True
    if bad.any():
        if not skip_bad:
            raise InputError(_first_fault(faults, bad, where, place))
        table = table.loc[~bad].reset_index(drop=True)
    if table.empty:
        raise InputError(f"{where}: no usable row is left ({int(bad.sum())} dropped); at least one is needed")
    table["cache"] = table["cache"].fillna("unknown")
    table["group"] = _groups(table)
    return order_columns(table), int(bad.sum())


def _check_columns(frame: pd.DataFrame, where: str, require_time: bool) -> None:
    names = [str(name) for name in frame.columns]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise InputError(f"{where}: column {', '.join(doubled)} appears more than once; each needs its own name")
    needed = [name for name in REQUIRED if require_time or name != "time_s"]
    missing = [name for name in needed if name not in names]
    if missing:
        found = ", ".join([name for name in names if not name.startswith("_")][:30]) or "none"  # _…: columns of ours
        word = "column" if len(missing) == 1 else "columns"
        raise InputError(
            f"{where}: required {word} {', '.join(missing)} missing; a table of "
            f"{'measured runs' if require_time else 'questions'} has {', '.join(needed)}; found: {found[:300]}"
        )
    if frame.empty:
        raise InputError(f"{where}: the table has its header but no rows; at least one is needed")


def _text_dtype() -> Any:
    """Text columns: pandas 3's own `str`, plain objects before it."""
    import pandas as pd

    return "str" if int(pd.__version__.split(".")[0]) >= 3 else object


def _text_column(series: pd.Series, name: str) -> pd.Series:
    """Stripped text, missing where blank; a params column may also hold ready-made dictionaries."""
    import pandas as pd

    if series.dtype == _text_dtype() and series.dtype != object:
        text = series.str.strip()
        return text.where(text != "", None)
    values = series.astype(object)
    if name == "params":
        kinds = pd.api.types.infer_dtype(values, skipna=True)
        if kinds not in ("string", "empty"):
            values = values.map(lambda item: canonical_params(item) if isinstance(item, dict) else item)
    present = values.notna()
    text = values.where(present, "").astype(str).str.strip()
    return text.astype(object).where(present & (text != ""), None).astype(_text_dtype())


def _numbers(series: pd.Series) -> tuple[pd.Series, np.ndarray]:
    """float64 values and a mask of the cells which hold something that is no number."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series):
        return pd.Series(series.to_numpy(dtype=np.float64, na_value=np.nan), index=series.index), np.zeros(
            len(series), dtype=bool
        )
    values = pd.to_numeric(series.astype(object), errors="coerce").astype(np.float64)
    unread = values.isna().to_numpy() & series.notna().to_numpy()
    unread[unread] = ~series[unread].astype(str).str.strip().str.lower().isin(_NO_NUMBER).to_numpy()
    return values, unread


def _number_column(series: pd.Series, name: str, require_time: bool) -> tuple[pd.Series, list[_Fault]]:
    values, unread = _numbers(series)
    number = values.to_numpy()
    raw = series.astype(object).to_numpy()
    if name != "time_s":
        with np.errstate(invalid="ignore"):
            wrong = unread | (number < 0) | np.isinf(number)
        want = "must be a finite number ≥ 0 or empty"
    elif require_time:
        with np.errstate(invalid="ignore"):
            wrong = unread | ~(np.isfinite(number) & (number > 0))
        want = "must be seconds, finite and > 0"
    else:
        return values, []
    rows = np.flatnonzero(wrong)

    def shown(row: int) -> str:
        return "empty" if raw[row] is None or raw[row] == "" else f"'{raw[row]}'"

    return values, [_Fault(name, rows, lambda row: f"{shown(row)} {want}")]


def _platform_column(series: pd.Series, extra: Collection[str] | None) -> tuple[pd.Series, list[_Fault]]:
    """Canonical ids (aliases resolved), and the rows whose platform nobody knows."""
    from ...analytic.platform import load_platform, platform_ids

    known = set(platform_ids()) | set(extra or ())

    def canonical(name: str) -> str | None:
        if name in known:
            return name
        try:
            return str(load_platform(name).id)
        except InputError:
            return None

    ids = {name: canonical(name) for name in series.dropna().unique()}
    mapped = series.map(ids)
    rows = np.flatnonzero(mapped.isna().to_numpy())
    raw = series.astype(object).to_numpy()

    def say(row: int) -> str:
        if not isinstance(raw[row], str):
            return "empty; it must be the id of a supported platform"
        return f"unknown platform '{raw[row]}'{nearest_names(raw[row], known)}"

    return mapped.where(mapped.notna(), series).astype(series.dtype), [_Fault("platform", rows, say)]


def _missing(table: pd.DataFrame, names: tuple[str, ...]) -> list[_Fault]:
    return [_Fault(name, np.flatnonzero(table[name].isna()), lambda _: "empty; every row needs one") for name in names]


def _unknown_words(table: pd.DataFrame) -> list[_Fault]:
    faults = []
    for name, words in _WORDS.items():
        values = table[name].astype(object).to_numpy()
        rows = np.flatnonzero(table[name].notna() & ~table[name].isin(words))
        say = lambda row, values=values, words=words: f"'{values[row]}' must be one of {', '.join(words)}"  # noqa: E731
        faults.append(_Fault(name, rows, say))
    return faults


def _bad_params(series: pd.Series) -> list[_Fault]:
    import pandas as pd

    codes, texts = pd.factorize(series.astype(object), use_na_sentinel=True)
    _, fault_of = parse_distinct([str(text) for text in texts])
    rows = np.flatnonzero(np.array([bool(fault) for fault in fault_of] + [True])[codes])

    def say(row: int) -> str:
        code = int(codes[row])
        what = f"{str(texts[code])[:60]!r} {fault_of[code]}" if code >= 0 else "empty"
        return f'{what}; it must be a JSON object such as {{"m": 1024, "n": 1024, "k": 512}}'

    return [_Fault("params", rows, say)]


def _first_fault(faults: list[_Fault], bad: np.ndarray, where: str, place: Callable[[int], str]) -> str:
    row = int(np.flatnonzero(bad)[0])
    first = next(item for item in faults if row in item.rows)
    others = int(bad.sum()) - 1
    more = f" ({others} other bad row{'s' if others > 1 else ''})" if others else ""
    return f"{where}: {place(row)}, column {first.column}: {first.say(row)}{more}; --skip-bad drops such rows"


def _groups(table: pd.DataFrame) -> pd.Series:
    """The split key, derived from kernel and parameters where absent: equal configurations never straddle a split."""
    import pandas as pd

    absent = table["group"].isna()
    if not absent.any():
        return table["group"]
    texts = pd.Series(_canonical_column(table.loc[absent, "params"]), index=table.index[absent])
    digests = texts.map({text: digest_text(text) for text in texts.unique()})
    filled = table["group"].astype(object).copy()
    filled[absent] = table.loc[absent, "kernel"].astype(object) + ":" + digests.astype(object)
    return filled.astype(_text_dtype())
