"""`kernelcast explain` of an application: every segment step by step, and what would move the sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .show import add_row, amount, band, percent, print_facts, print_table, seconds, table, text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ..application import WorkloadPrediction
    from .workload_question import Question

MOVES = "what would change it: analytic time with a parameter a tenth higher"


def explanations(asked: Question, found: list[WorkloadPrediction], platforms: list[str], cache: str
                 ) -> list[dict[str, Any]]:
    """What there is to say of each prediction, JSON-safe."""
    from ...analytic.platform import load_platform
    from ..explain_application import application_explanation

    return [
        application_explanation(item, asked.workload, load_platform(name).with_overrides(asked.overrides), cache=cache)
        for item, name in zip(found, platforms, strict=True)
    ]


def show_explanation(where: Console, item: WorkloadPrediction, facts: dict[str, Any]) -> None:
    """The segments of one prediction in words, then terms, what would move the sum, and the parameters."""
    where.print(text(f"on {item.platform}, segment by segment, steps of one execution (what runs side by side counts "
                     "once, the longest)", "bold"))
    for part in facts["segments"]:
        _segment(where, part)
    for words in facts["extra_words"]:
        where.print(text(f" {words}"))
    where.print(text("equations, numbered as in arXiv 2605.04178", "bold"))
    for line in facts["equations"]:
        where.print(text(f"  {line}"))
    where.print()
    print_table(where, f"terms of the analytic time on {item.platform}", _terms(item))
    print_table(where, MOVES, sensitivity(facts["sensitivity"]))
    print_table(where, f"parameters looked up on {item.platform}", parameters(item.parameters))


def _segment(where: Console, part: dict[str, Any]) -> None:
    times = f"{part['n_exec']:g} times" if part["n_exec"] != 1 else "once"
    name = f", {part['implementation']}" if part["implementation"] else ""
    precision = "" if part["precision"] == "none" else f" {part['precision']}"
    where.print(text(f"{part['name']}: {part['kernel']}{precision}, {times}, route {part['route']}{name}", "bold"))
    total = "" if part["n_exec"] == 1 else f" × {part['n_exec']:g} = {seconds(part['baseline_s'])}"
    facts = [
        ("work", f"{part['work_words']} ({part['characterisation']})"),
        ("analytic", f"{seconds(part['once_s'])}{total}"),
        ("predicted", f"{seconds(part['predicted_s'])} ({band(part['lower_s'], part['upper_s'])}) by {part['model']}"),
        ("physical bound", f"{seconds(part['bound_s'])} in all"),
        ("what binds", part["binding"]),
        ("to move it", part["to_move"]),
        ("guard", part["guard"]),
        ("note", part["note"]),
    ]
    print_facts(where, [(name, words) for name, words in facts if words])
    made = table(["step", "amount ÷ rate = time", "equation"])
    for step in part["steps"]:
        add_row(made, [step["name"], step["words"], step["equation"]])
    where.print(made)


def _terms(item: WorkloadPrediction) -> Table:
    made = table(["term", "time", "share"], ["time", "share"])
    for name, value in item.terms.items():
        add_row(made, [name, seconds(value), percent(100.0 * value / item.baseline_s)])
    return made


def sensitivity(rows: Sequence[dict[str, Any]]) -> Table:
    """Parameters by what a tenth more of them does."""
    made = table(["parameter", "change"], ["change"])
    for line in rows[:8]:
        add_row(made, [line["parameter"], f"{100.0 * line['change']:+.1f} %"])
    if not rows:
        add_row(made, ["no single parameter", "below 0.1 %"])
    return made


def parameters(rows: Sequence[dict[str, Any]]) -> Table:
    """Parameters with kind, source and date; assumed and changed ones stand out."""
    made = table(["parameter", "value", "kind", "source", "date"], ["value"])
    for row in rows:
        add_row(made, [row["name"], amount(row["value"], row["unit"]), row["kind"], row["source"], row["date"]],
                "yellow" if row["kind"] in ("assumed", "override") else "")
    return made
