"""What `kernelcast explain` says of the learned part of a prediction, and of what whoever asks could change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .show import add_row, band, params_words, print_table, seconds, table, text

if TYPE_CHECKING:
    from rich.console import Console

SHOWN_CHANGES, SHOWN_COLUMNS = 12, 4
SMALLEST_PART = 0.01
"""Parts that move the correction by less are shown together."""


def print_advice(where: Console, facts: Mapping[str, Any]) -> None:
    """The gist in sentences, the parts of the correction, and the changes by their predicted times."""
    for line in facts["said"]:
        where.print(text(line, "bold"))
    if facts["said"]:
        where.print()
    if facts["learned"] is not None:
        _print_learned(where, facts["learned"])
    if facts["whatif"]:
        _print_changes(where, facts["whatif"])


def _print_learned(where: Console, learned: Mapping[str, Any]) -> None:
    if not learned["parts"]:
        where.print(text(f"learned correction x {learned['factor']:.4g}: {learned['words']}"))
        where.print()
        return
    of = learned["reference"]
    whose = " ".join(word for word in (of["precision"], of["implementation"], of["cache"]) if word)
    made = table(["what makes it so", "factor", "columns"], ["factor"])
    rest = 0.0
    for part in learned["parts"]:
        log = math.log(part["factor"])
        if abs(log) < SMALLEST_PART:
            rest += log
            continue
        names = part["columns"][:SHOWN_COLUMNS]
        more = f" and {len(part['columns']) - len(names)} more" if len(names) < len(part["columns"]) else ""
        add_row(made, [part["word"], f"x {part['factor']:.3g}", ", ".join(names) + more])
    add_row(made, ["everything else", f"x {math.exp(rest):.3g}", ""])
    print_table(where, f"learned correction x {learned['factor']:.4g} = x {of['factor']:.3g} at {whose} "
                       f"{params_words(of['params'])}, times", made)


def _print_changes(where: Console, found: Sequence[Mapping[str, Any]]) -> None:
    made = table(["change", "time", "band", "times faster", "verdict", "trained range"], ["time", "times faster"])
    for item in found[:SHOWN_CHANGES]:
        add_row(made, [item["change"], seconds(item["predicted_s"]), band(item["lower_s"], item["upper_s"]),
                       f"{item['gain']:.3g}", item["verdict"], "inside" if item["in_domain"] else "outside"],
                "green" if item["verdict"] == "faster" else "")
    print_table(where, "what you could change, each asked like the question itself", made)
    left = len(found) - SHOWN_CHANGES
    if left > 0:
        where.print(text(f"{left} more that promise less: --json"))
    for kind, caution in dict.fromkeys((item["kind"], item["caution"]) for item in found[:SHOWN_CHANGES]):
        if caution:
            where.print(text(f"{kind}: {caution}"))
    where.print()
