"""Tables for notebooks: every cell is escaped, since names and notes come from files and people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as HTML. header: one word a column, or none."""
    head = "".join(f"<th>{escape(str(cell))}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    top = f"<thead><tr>{head}</tr></thead>" if header else ""
    return f"<table><caption>{escape(caption)}</caption>{top}<tbody>{body}</tbody></table>"
