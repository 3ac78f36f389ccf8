"""`kernelcast platforms`: what is supported, what is measured, what is assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .ask import AsJson
from .show import add_row, amount, console, percent, print_json, print_table, table, text, warn

if TYPE_CHECKING:
    from ...analytic.platform import Platform


def platforms(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show every parameter of this platform.")] = None,
    diff: Annotated[tuple[str, str] | None, typer.Option("--diff", metavar="A B", help="Compare two parameter sets "
                                                         "(names or files).")] = None,
    as_json: AsJson = False,
) -> None:
    """List the supported GPUs: which are measured, with what error; which parameters are assumed."""
    if diff is not None:
        _compare(diff, as_json)
        return
    from ..models import damaged
    from ..platforms import platform_detail, platform_lines

    if name is not None:
        detail = platform_detail(name)
        for fault in damaged([detail]):
            warn(fault)
        if as_json:
            print_json(detail)
        else:
            _detail(detail)
        return
    lines = platform_lines()
    for fault in damaged(lines):
        warn(fault)
    if as_json:
        print_json(lines)
    else:
        _list(lines)


def _error(line: dict[str, Any]) -> str:
    held = line["heldout"]
    if not line["measured"]:
        return "no"
    return percent(held["mape"]) if held else "not scored"


def _list(lines: list[dict[str, Any]]) -> None:
    made = table(["platform", "GPU", "measured rows", "mean error", "assumed", "flags"],
                 ["measured rows", "mean error", "assumed", "flags"])
    for line in lines:
        names = ", ".join([line["id"], *line["aliases"]])
        add_row(made, [names, line["description"], line["rows"] or "-", _error(line) if line["measured"] else "-",
                       len(line["assumed"]), len(line["flags"])])
    where = console()
    print_table(where, "", made)
    where.print(text("mean error: of the champion model on held-out runs; a platform without one is predicted by one "
                     "model across the measured GPUs, with a wide band (as-published sets: analytic only). "
                     "`kernelcast platforms NAME` shows parameters, sources and flags."))


def _model(line: dict[str, Any]) -> str:
    """What answers for the platform: its champion, the model across platforms, or the equations alone."""
    if line["measured"]:
        return f"{line['model']}, {line['rows']} measured rows, mean held-out error {_error(line)}"
    if line.get("fault"):
        return "damaged"
    if line["model"] is None:
        return "none, predictions are analytic only"
    return f"none of its own; predictions come from {line['model']}, one model across the measured GPUs (wide band)"


def _detail(line: dict[str, Any]) -> None:
    where = console()
    where.print(text(f"{line['id']}  {line['description']}", "bold"))
    if line["aliases"]:
        where.print(text(f"also called {', '.join(line['aliases'])}"))
    where.print(text(f"model: {_model(line)}"))
    made = table(["parameter", "value", "kind", "source", "date", "note"], ["value"])
    for row in line["parameters"]:
        note = "; ".join([*([row["note"]] if row["note"] else []), *(f"FLAG: {flag}" for flag in row["flags"])])
        add_row(made, [row["name"], amount(row["value"], row["unit"]), row["kind"], row["source"], row["date"], note],
                "yellow" if row["kind"] == "assumed" or row["flags"] else "")
    print_table(where, "parameters", made)
    where.print(text(f"assumed: {', '.join(line['assumed']) or 'nothing'}"))
    for flag in line["flags"]:
        where.print(text(f"flag: {flag}", "yellow"))


def _compare(names: tuple[str, str], as_json: bool) -> None:
    from ...analytic.platform import load_platform
    from ...analytic.platform_diff import differences

    first, second = (load_platform(name) for name in names)
    if as_json:
        print_json([vars(d) for d in differences(first, second)])
    else:
        show_differences(first, second, *names)


def show_differences(first: Platform, second: Platform, first_name: str, second_name: str) -> None:
    """A table of the parameters whose values differ, with kind and source on either side."""
    from ...analytic.platform_diff import differences

    found = differences(first, second)
    made = table(["parameter", first_name, second_name, "ratio", "kinds", "source of the second"],
                 [first_name, second_name, "ratio"])
    for d in found:
        ratio = "-" if d.ratio is None else f"{d.ratio:.3f}"
        add_row(made, [d.name, amount(d.first, d.unit), amount(d.second, d.unit), ratio,
                       f"{d.first_kind} → {d.second_kind}", d.second_source])
    where = console()
    print_table(where, f"{len(found)} parameters differ", made)
