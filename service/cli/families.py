"""`kernelcast families`: what can be asked, parameter by parameter, and a question that runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .ask import AsJson
from .show import add_row, console, print_facts, print_json, print_table, table, text, warn


def families(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show all that is known of this family.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the kernel families; with NAME its parameters, words, implementations and an example."""
    from ..families import families as found

    known = found(name)
    if isinstance(known, dict):
        for fault in known["damaged"]:
            warn(fault)
    if as_json:
        print_json(known)
    elif isinstance(known, dict):
        _detail(known)
    else:
        _list(known)


def _list(lines: list[dict[str, Any]]) -> None:
    made = table(["family", "what it does", "parameters"])
    for line in lines:
        add_row(made, [line["name"], line["meaning"], line["usage"].partition(" takes ")[2]])
    where = console()
    print_table(where, "", made)
    where.print(text("Parameters in [brackets] may be left out. `kernelcast families NAME` shows what they mean."))


def _default(param: dict[str, Any]) -> str:
    if param["follows"]:
        return f"as {param['follows']}"
    if param["required"]:
        return "required"
    return "-" if param["default"] is None else f"{param['default']:g}"


def _value(param: dict[str, Any]) -> str:
    """What a value is: its unit, its words, true or false."""
    if param["words"]:
        return ", ".join([*param["words"], *(["or what a model was trained on"] if param["open"] else [])])
    unit = str(param["unit"])
    return {"flag": "true or false", "text": "any text", "list": f"a list of {unit}"}.get(param["kind"], unit)


def _detail(record: dict[str, Any]) -> None:
    where = console()
    where.print(text(f"{record['name']}  {record['meaning']}", "bold"))
    made = table(["parameter", "default", "unit or words", "meaning"])
    for param in record["parameters"]:
        add_row(made, [param["name"], _default(param), _value(param), param["meaning"]])
    print_table(where, "parameters", made)
    known = [(f"on {platform}", ", ".join(labels)) for platform, labels in record["implementations"].items()]
    usual = [(f"usual, {vendor}", label) for vendor, label in record["reference"].items()]
    where.print(text("implementations", "bold"))
    print_facts(where, [*known, *usual] or [("none", "is known by name")])
    facts = [("precision", f"{record['precision']} where none is given")]
    if record["told_by"]:
        facts.append(("worth saying", f"{', '.join(record['told_by'])}: the time hangs on them beyond the sizes"))
    facts += [("impossible", words.replace("'", "")) for words in record["contradictions"]]
    facts.append(("example", record["example"]["command"]))
    where.print(text("questions", "bold"))
    print_facts(where, facts)
