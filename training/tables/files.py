"""Tables on disk: CSV and Parquet in and out, every way in which a file can be no table told apart."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import itertools
import json
import os
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...analytic.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True)
class LoadedTable:
    """A table as it lies in its file; `place(i)` says where row i (from 0) stands in it."""

    frame: pd.DataFrame
    dropped: int
    place: Callable[[int], str]


def table_suffix(path: Path) -> str:
    """Which of SUFFIXES a file name ends with; InputError where none."""
    name = path.name.lower()
    for suffix in (".csv.gz", ".csv", ".parquet"):
        if name.endswith(suffix):
            return suffix
    raise InputError(f"{path}: unknown kind of table; the name must end in {', '.join(SUFFIXES)}")


def load_table(path: Path, *, skip_bad: bool = False, as_text: Collection[str] = ()) -> LoadedTable:
    """Read a file without judging its content; with `skip_bad`, CSV rows of the wrong length are dropped.

    CSV columns named in `as_text` stay text for the checks to type; others become numbers where every cell is one.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder; a table file ({', '.join(SUFFIXES)}) is needed")
    suffix = table_suffix(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as fault:
        raise InputError(f"{path}: cannot be read ({fault.strerror or fault})") from None
    if not data:
        raise InputError(f"{path}: the file is empty; a table of measured runs is needed")
    loaded = _READERS[suffix](data, path, skip_bad)
    if suffix != ".parquet":
        for name in loaded.frame.columns.difference(list(as_text)):
            loaded.frame[name] = _numbers_if_all_are(loaded.frame[name])
    return loaded


def check_target(path: Path) -> None:
    """InputError where a table cannot be written to `path`: before the work rather than after it. Leaves no file."""
    table_suffix(path)
    probe = path.with_name(f".{path.name}.{os.getpid()}.probe")
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        probe.touch()
        probe.unlink()
    except OSError as fault:
        raise InputError(f"{path}: cannot be written ({fault.strerror or fault})") from None


def save_table(frame: pd.DataFrame, path: Path) -> None:
    """Write beside the target and rename over it, so that a crash or a reader in between sees the old file.

    CSV: missing and infinite numbers are empty cells, lists are JSON.
    """
    suffix = table_suffix(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        _WRITERS[suffix](frame, temporary)
        os.replace(temporary, path)
    except OSError as fault:
        raise InputError(f"{path}: cannot be written ({fault.strerror or fault})") from None
    finally:
        with suppress(OSError):  # a folder that is none has no such file either
            temporary.unlink(missing_ok=True)


def _read_parquet(data: bytes, path: Path, skip_bad: bool) -> LoadedTable:
    import pandas as pd
    import pyarrow as pa

    try:
        frame = pd.read_parquet(io.BytesIO(data))
    except (pa.ArrowException, OSError, ValueError) as fault:
        reason = str(fault).splitlines()[0][:120] if str(fault) else type(fault).__name__
        raise InputError(f"{path}: is not a Parquet file ({reason})") from None
    return LoadedTable(frame, 0, lambda row: f"row {row + 1}")


def _read_gzip(data: bytes, path: Path, skip_bad: bool) -> LoadedTable:
    try:
        plain = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as fault:
        raise InputError(f"{path}: is not a whole gzip file ({fault})") from None
    return _read_csv(plain, path, skip_bad)


def _read_csv(data: bytes, path: Path, skip_bad: bool) -> LoadedTable:
    """Strict comma-separated text: every row has as many fields as the header. Cells stay text where it matters."""
    import pyarrow as pa
    from pyarrow import csv as pa_csv

    text = _csv_text(data, path)
    try:
        header = next((row for row in csv.reader(io.StringIO(text, newline="")) if row), [])
    except csv.Error as fault:
        raise InputError(f"{path}: its header is not comma-separated values ({fault})") from None
    names = [name.strip() for name in header]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise InputError(f"{path}: column {', '.join(doubled)} appears more than once; each needs its own name")
    ragged: list[Any] = []

    def on_ragged(row: Any) -> str:
        ragged.append(row)
        return "skip"

    try:
        table = pa_csv.read_csv(
            io.BytesIO(text.encode()),
            read_options=pa_csv.ReadOptions(use_threads=False, block_size=1 << 24),
            parse_options=pa_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=on_ragged),
            convert_options=pa_csv.ConvertOptions(
                column_types={name: pa.string() for name in header}, strings_can_be_null=False
            ),
        )
    except pa.ArrowException as fault:
        raise InputError(f"{path}: is not comma-separated values ({str(fault).splitlines()[0][:150]})") from None
    places = _Places(text, len(names))
    if ragged and not skip_bad:
        row, line, found = places.first_ragged()
        raise InputError(
            f"{path}: row {row} (line {line}) has {found} fields where the header has {len(names)}; a params cell must "
            f'be quoted, with the quotes inside doubled: "{{""m"": 1024}}"'
            + (f" ({len(ragged) - 1} other such rows)" if len(ragged) > 1 else "")
        )
    frame = table.to_pandas()
    frame.columns = names
    return LoadedTable(frame, len(ragged), places.describe)


def _csv_text(data: bytes, path: Path) -> str:
    if data[:4] == b"PAR1":
        raise InputError(f"{path}: is a Parquet file; its name must end in .parquet")
    if data[:2] == b"\x1f\x8b":
        raise InputError(f"{path}: is a gzip file; its name must end in .csv.gz")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text; a CSV table is needed") from None
    if "\x00" in text:
        raise InputError(f"{path}: holds binary data; a CSV table is needed")
    start = text.lstrip()[:1]
    if not start:
        raise InputError(f"{path}: the file is empty; a table of measured runs is needed")
    if start == "<":
        raise InputError(f"{path}: looks like HTML or XML, not like a CSV table")
    return text


@dataclass(frozen=True)
class _Places:
    """Where rows stand in a CSV file; only worked out when something has to be said about one."""

    text: str
    width: int

    def _rows(self) -> Iterator[tuple[int, int, int]]:
        """(row from 1, its first line, its number of fields) of every non-blank row below the header."""
        reader = csv.reader(io.StringIO(self.text, newline=""))
        number, line = -1, 1
        for fields in reader:
            if fields:
                number += 1
                if number > 0:
                    yield number, line, len(fields)
            line = reader.line_num + 1

    def first_ragged(self) -> tuple[int, int, int]:
        try:
            return next(item for item in self._rows() if item[2] != self.width)
        except (StopIteration, csv.Error):
            return 0, 0, 0

    def describe(self, index: int) -> str:
        """Row and line of the row with this position among those of the right length."""
        try:
            whole = ((row, line) for row, line, width in self._rows() if width == self.width)
            row, line = next(itertools.islice(whole, index, None))
        except (StopIteration, csv.Error):  # the two parsers disagree on a quirk: the row alone still helps
            return f"row {index + 1}"
        return f"row {row} (line {line})"


def _numbers_if_all_are(series: pd.Series) -> pd.Series:
    import pandas as pd

    blank = series == ""
    try:
        return series if blank.all() else pd.to_numeric(series.where(~blank, None))
    except (ValueError, TypeError):
        return series


def _write_parquet(frame: pd.DataFrame, path: Path) -> None:
    import pyarrow as pa

    try:
        frame.to_parquet(path, index=False, compression="zstd")
    except pa.ArrowException as fault:
        raise InputError(f"the table cannot be written as Parquet ({str(fault).splitlines()[0][:150]})") from None


def _write_csv(frame: pd.DataFrame, path: Path) -> None:
    _for_csv(frame).to_csv(path, index=False, lineterminator="\n", compression=None)


def _write_csv_gz(frame: pd.DataFrame, path: Path) -> None:
    # mtime 0: the same table gives the same bytes
    _for_csv(frame).to_csv(path, index=False, lineterminator="\n", compression={"method": "gzip", "mtime": 0})


def _for_csv(frame: pd.DataFrame) -> pd.DataFrame:
    import numpy as np

    table = frame.copy()
    for name in table.columns:
        kind = table[name].dtype
        if kind.kind == "f":
            table[name] = table[name].where(np.isfinite(table[name]), np.nan)
        elif kind.kind == "O":
            table[name] = table[name].map(_cell)
    return table


def _cell(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    return json.dumps(value) if isinstance(value, list | tuple | dict) else value


_READERS: dict[str, Callable[[bytes, Path, bool], LoadedTable]] = {
    ".csv": _read_csv,
    ".csv.gz": _read_gzip,
    ".parquet": _read_parquet,
}
_WRITERS: dict[str, Callable[[Any, Path], None]] = {
    ".csv": _write_csv,
    ".csv.gz": _write_csv_gz,
    ".parquet": _write_parquet,
}
