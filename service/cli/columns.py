"""Several platforms, or a question before and after a change, set beside each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ...analytic.errors import KernelcastError
from .show import amount, seconds, text

if TYPE_CHECKING:
    from rich.console import Console

    from ..answer import Prediction
    from ..application import WorkloadPrediction

Found = TypeVar("Found", "Prediction", "WorkloadPrediction")


def ratios(found: Sequence[Found]) -> list[float]:
    """Predicted times relative to the first one."""
    from ...analytic.whatif import ratios as relative

    return [float(value) for value in relative([item.predicted_s for item in found])]


def analytic_ratio(before: Found, after: Found) -> float:
    """Analytic time relative to another: what a change or a platform itself does, learned corrections left aside."""
    from ...analytic.whatif import ratios as relative

    return float(relative([before.baseline_s, after.baseline_s])[1])


def print_what_is_compared(where: Console, found: Sequence[Found], implementations: Callable[[Found], str]) -> None:
    """Beside a ratio of predicted times: that of the analytic ones, and whose kernels the models learned from."""
    if len(found) < 2 or all(item.predicted_s == item.baseline_s for item in found):
        return
    plain = ", ".join(f"{item.platform} {analytic_ratio(found[0], item):.3g}" for item in found)
    named = {item.platform: implementations(item) for item in found}
    words = "; ".join(f"{platform} {name}" for platform, name in named.items() if name)
    differ = f"; predicted ones also compare implementations ({words})" if len(set(named.values())) > 1 else ""
    where.print(text(f"ratios of the analytic times: {plain}{differ}"))


def ratio_columns(platforms: Sequence[str]) -> list[str]:
    """Columns of a table: every platform, each but the first followed by its ratio to the first."""
    first, *others = platforms
    return [first, *(name for other in others for name in (other, f"÷ {first}{' ' * others.index(other)}"))]


def with_ratios(cells: Sequence[str], times_s: Sequence[float | None]) -> list[str]:
    """Cells for `ratio_columns`; `-` where one of the two times is 0 or none."""
    from ...analytic.whatif import ratios as relative

    first, *others = times_s
    made = [cells[0]]
    for cell, time_s in zip(cells[1:], others, strict=True):
        made += [cell, f"{float(relative([first, time_s])[1]):.3g}" if first and time_s else "-"]
    return made


def longest_term(item: Prediction) -> str:
    """The term that decides the analytic time."""
    return max(item.terms, key=lambda name: item.terms[name])


def without_changes(ask_again: Callable[[], list[Found]]) -> list[Found] | None:
    """The answers to the question as it was before `--set` and the like; None where there was none."""
    try:
        return ask_again()
    except KernelcastError:
        return None  # an input that only the change supplies


def documents(found: Sequence[Found], decided_by: Callable[[Found], str], before: Sequence[Found] | None,
              records: Sequence[dict[str, Any]] | None = None) -> Any:
    """What `--json` prints: one document, or a list; with the ratio to the first, and to the answer before a change."""
    made = [dict(record) for record in records] if records is not None else [item.to_dict() for item in found]
    for i, (document, item) in enumerate(zip(made, found, strict=True)):
        document["decided_by"] = decided_by(item)
        document["ratio"] = ratios(found)[i]
        document["baseline_ratio"] = analytic_ratio(found[0], item)
        if before is not None:
            document["without_changes"] = {
                "predicted_s": before[i].predicted_s, "lower_s": before[i].lower_s, "upper_s": before[i].upper_s,
                "ratio": ratios([before[i], item])[1], "baseline_s": before[i].baseline_s,
                "baseline_ratio": analytic_ratio(before[i], item),
            }
    return made[0] if len(made) == 1 else made


def print_changes(where: Console, found: Sequence[Found], before: Sequence[Found] | None,
                  rows: Callable[[Found], Sequence[dict[str, Any]]]) -> None:
    """Parameters set by hand, and those that followed; then what the change does to the time."""
    for i, item in enumerate(found):
        prefix = f"{item.platform}: " if len(found) > 1 else ""
        print_changed(where, prefix, rows(item))
        if before is not None:
            ratio = ratios([before[i], item])[1]
            plain = analytic_ratio(before[i], item)
            analytic = f" (analytic {plain:.3g} times)" if item.predicted_s != item.baseline_s else ""
            where.print(text(f"without the changes: {prefix}{seconds(before[i].predicted_s)}; the changes make it "
                             f"{ratio:.3g} times that{analytic}"))


def print_changed(where: Console, prefix: str, rows: Sequence[dict[str, Any]]) -> None:
    """Each parameter that is not the platform's own: value, why, what it was."""
    for row in rows:
        unused = "" if row["used"] else "; this time does not depend on it"
        where.print(text(f"changed: {prefix}{row['name']} = {amount(row['value'], row['unit'])} ({row['source']}; "
                         f"{row['note']}{unused})"))
