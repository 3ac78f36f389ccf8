"""How things look: numbers with units, tables, and text from outside made harmless."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
PLAIN_WIDTH = 140
"""Columns of a table that goes to a file or a pipe, where nobody says how wide the window is."""

UNFOLDED = 10_000
"""Columns in which no table needs to fold a cell."""


def clean(value: object) -> str:
    """Text without control characters: what a table or a file name holds must not drive the terminal."""
    return _CONTROL.sub("", str(value)).replace("\t", " ").replace("\n", " ")


def clean_lines(value: object) -> str:
    """As `clean`, line breaks kept: for messages of our own that quote text from outside."""
    return "\n".join(clean(line) for line in str(value).splitlines())


def text(value: object, style: str = "") -> Text:
    """A cell that is shown as it is: no markup is read in it."""
    from rich.text import Text

    return Text(clean(value), style=style)


def console() -> Console:
    """Where tables go: standard output, as wide as the terminal."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PLAIN_WIDTH
    made = Console(width=width, highlight=False, emoji=False, markup=False, soft_wrap=False)
    # rich ends the process with status 1 when the reader has gone; main knows better
    made.on_broken_pipe = _reader_gone  # type: ignore[method-assign]
    return made


def _reader_gone() -> NoReturn:
    raise BrokenPipeError


def table(columns: Sequence[str], numbers: Sequence[str] = ()) -> Table:
    """An empty table; columns named in `numbers` are aligned to the right, the first one is folded last of all."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(columns):
        made.add_column(clean(name), justify="right" if name in numbers else "left", overflow="fold", no_wrap=i == 0)
    return made


def print_table(where: Console, title: str, made: Table) -> None:
    """A table under its title (a title of rich's own would be folded to the table's width)."""
    if title:
        where.print(text(title, "bold"))
    where.print(made)


def print_sides(where: Console, columns: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[str]
                ) -> None:
    """A table of few rows: as it is where the window is wide enough, else turned, one column for each row."""
    wide = table(columns, numbers)
    for row in rows:
        add_row(wide, row)
    if where.measure(wide, options=where.options.update(max_width=UNFOLDED)).maximum <= where.width:
        where.print(wide)
        return
    heads = [clean(row[0]) for row in rows]
    turned = table([columns[0], *heads], heads)
    for i, name in enumerate(columns[1:], 1):
        add_row(turned, [name, *(row[i] for row in rows)])
    where.print(turned)


def print_fitting(where: Console, columns: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[str],
                  optional: Sequence[str]) -> list[str]:
    """A table of many rows: in a window too narrow for it, without columns of `optional` (first given, first left out);
    returns those left out."""
    left: list[str] = []
    while True:
        shown = [i for i, name in enumerate(columns) if name not in left]
        made = table([columns[i] for i in shown], numbers)
        for row in rows:
            add_row(made, [row[i] for i in shown])
        needed = where.measure(made, options=where.options.update(max_width=UNFOLDED)).maximum
        if needed <= where.width or len(left) == len(optional):
            where.print(made)
            return left
        left.append(optional[len(left)])


def print_facts(where: Console, facts: Sequence[tuple[str, str]]) -> None:
    """`name   words` lines; words that do not fit continue below themselves."""
    from rich.table import Table

    made = Table.grid(padding=(0, 1), pad_edge=True)
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    for name, words in facts:
        made.add_row(text(f" {name}"), text(words))
    where.print(made)


def add_row(made: Table, cells: Sequence[object], style: str = "") -> None:
    made.add_row(*(text(cell, style) for cell in cells))


def print_json(document: Any) -> None:
    """One JSON document and nothing else."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def warn(message: str) -> None:
    """A line on standard error."""
    sys.stderr.write(f"kernelcast: {clean_lines(message)}\n")


def seconds(value: float | None) -> str:
    """A time for people, four significant digits: `1.432 ms`; `-` where there is none."""
    from ...analytic.units import format_quantity

    return "-" if value is None else format_quantity(value, "s")


def percent(value: float | None, digits: int = 1) -> str:
    """`12.3 %`; `-` where there is none."""
    return "-" if value is None else f"{value:.{digits}f} %"


def band(lower: float | None, upper: float | None) -> str:
    """`1.38 ms … 1.49 ms`, or that there is no bound."""
    return "unbounded" if lower is None or upper is None else f"{seconds(lower)} … {seconds(upper)}"


def amount(value: object, unit: str) -> str:
    """A parameter's value for people: `4.8 TB/s`, a word as it is, `not known`."""
    from ...analytic.units import format_quantity

    if value is None:
        return "not known"
    return format_quantity(float(value), unit) if isinstance(value, int | float) else str(value)


def params_words(params: dict[str, Any]) -> str:
    """`m=8192 n=8192 k=8192`."""
    return " ".join(f"{key}={value}" for key, value in params.items())


def plot_path(plot: str, platform: str, platforms: int) -> str:
    """Where a platform's picture goes: the file asked for, with the platform in its name when there are several."""
    from pathlib import Path

    path = Path(plot)
    return plot if platforms == 1 else str(path.with_name(f"{path.stem}-{platform}{path.suffix}"))
