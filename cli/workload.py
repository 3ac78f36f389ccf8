"""Applications on the command line: `predict` and `explain` of a workload file, and the list of those that ship."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..analytic.errors import InputError
from . import ask
from .parse import settings
from .show import add_row, amount, band, console, plot_path, print_json, print_table, seconds, table, text, warn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ..registry.application import SegmentPrediction, WorkloadPrediction


def is_workload(name: str | None) -> bool:
    """Whether the word after `predict` names an application: a YAML file, or a shipped workload by its name."""
    if not name:
        return False
    if name.endswith((".yaml", ".yml")):
        return True
    if "-" not in name:  # no shipped workload is without one, no kernel family with one
        return False
    from ..analytic.workload_file import shipped_workloads

    return name in shipped_workloads()


def predictions(
    name: str,
    words: Sequence[str] | None,
    platforms: Sequence[str] | None,
    *,
    level: float,
    cache: str,
    model: str | None,
    analytic: bool,
    changes: Sequence[str] | None,
) -> list[WorkloadPrediction]:
    """One prediction of an application for each platform. InputError for a question that is not whole."""
    if words:
        raise InputError(f"'{words[0]}': an application takes its sizes from its file; change them with "
                         f"--set segment.field={words[0].partition('=')[2] or 'VALUE'}")  # fmt: skip
    if not platforms:
        raise InputError("say for which platform: -p PLATFORM (see `kernelcast platforms`)")
    from ..analytic.workload import load_workload
    from ..registry.application import predict_workload

    loaded, made = load_workload(name), settings(changes or [])
    return [
        predict_workload(loaded, platform=one, level=level, cache=cache, model=model, analytic=analytic, settings=made)
        for one in dict.fromkeys(platforms)
    ]


def predict(
    name: str,
    words: Sequence[str] | None,
    platforms: Sequence[str] | None,
    changes: Sequence[str] | None,
    as_json: bool,
    *,
    full: bool = False,
    plot: str | None = None,
    **options: Any,
) -> None:
    """Print an application's prediction; `full` adds steps, terms and parameters (`explain`)."""
    found = predictions(name, words, platforms, changes=changes, **options)
    if plot is not None:
        _draw(found, plot, list(dict.fromkeys(platforms or [])), changes)
    if as_json:
        print_json(found[0].to_dict() if len(found) == 1 else [item.to_dict() for item in found])
        return
    where = console()
    _head(where, found)
    print_table(where, "segments", _segments(found))
    _published(where, found)
    if full:
        _explain(where, found)
    for item in found:
        prefix = f"{item.platform}: " if len(found) > 1 else ""
        where.print(text(f"note: {prefix}{item.note}"))


def _draw(found: list[WorkloadPrediction], plot: str, platforms: list[str], changes: Sequence[str] | None) -> None:
    from ..analytic.platform import load_platform
    from ..registry.application import picture, split_settings

    overrides = split_settings(settings(changes or []))[0]
    for item, name in zip(found, platforms, strict=True):
        platform = load_platform(name).with_overrides(overrides)
        warn(f"picture written to {picture(item, platform, plot_path(plot, item.platform, len(found)))}")


def _head(where: Console, found: list[WorkloadPrediction]) -> None:
    from ..analytic.whatif import ratios

    first = found[0]
    where.print(text(f"{first.workload}  ({first.characterisation} inputs; {first.source})", "bold"))
    percent = f"{100 * first.level:g} % band"
    numbers = ["predicted", percent, "analytic", "bound", "ratio"]
    made = table(["platform", "predicted", percent, "analytic", "bound", "ratio", "decided by", "model"], numbers)
    for item, ratio in zip(found, ratios([item.predicted_s for item in found]), strict=True):
        add_row(made, [item.platform, seconds(item.predicted_s), band(item.lower_s, item.upper_s),
                       seconds(item.baseline_s), seconds(item.bound_s), f"{ratio:.3g}",
                       f"{item.deciding_segment}: {item.deciding_limit}", item.model])  # fmt: skip
    where.print(made)


def _segments(found: list[WorkloadPrediction]) -> Table:
    platforms = [item.platform for item in found]
    made = table(["segment", "kernel or class", "times", *platforms, "route"], ["times", *platforms])
    for row in zip(*(item.segments for item in found), strict=True):
        first = row[0]
        cells = [f"{seconds(part.predicted_s)} ({part.limit})" for part in row]
        route = " / ".join(dict.fromkeys(part.route for part in row))
        add_row(made, [first.name, f"{first.kernel} {first.precision}", f"{first.n_exec:g}", *cells, route])
    return made


def _published(where: Console, found: list[WorkloadPrediction]) -> None:
    """Figures others printed, beside ours; never mixed into them."""
    rows = []
    for item in found:
        entries = [(item.workload, entry) for entry in item.published]
        entries += [(part.name, entry) for part in item.segments for entry in part.published]
        ours = {item.workload: item.predicted_s} | {part.name: part.predicted_s for part in item.segments}
        rows += [(item.platform, name, entry, ours[name]) for name, entry in entries
                 if entry["platform"] == item.platform]  # fmt: skip
    if not rows:
        return
    made = table(["platform", "of", "published", "value", "ours", "source"], ["value", "ours"])
    for platform, name, entry, predicted in rows:
        is_time = entry["quantity"].endswith("_s")
        value = seconds(entry["value"]) if is_time else f"{entry['value']:g}"
        add_row(made, [platform, name, entry["quantity"], value, seconds(predicted) if is_time else "-",
                       entry["source"]])  # fmt: skip
    print_table(where, "published by others", made)


def _explain(where: Console, found: list[WorkloadPrediction]) -> None:
    for item in found:
        print_table(where, f"terms of the analytic time on {item.platform}", _terms(item))
        for part in item.segments:
            where.print(text(f"  {part.name}: {_words(part)}"))
            if part.note:
                where.print(text(f"    {part.note}"))
        made = table(["parameter", "value", "kind", "source", "date"], ["value"])
        for row in item.parameters:
            add_row(made, [row["name"], amount(row["value"], row["unit"]), row["kind"], row["source"], row["date"]],
                    "yellow" if row["kind"] in ("assumed", "override") else "")  # fmt: skip
        print_table(where, f"parameters looked up on {item.platform}", made)


def _terms(item: WorkloadPrediction) -> Table:
    from .show import percent

    made = table(["term", "time", "share"], ["time", "share"])
    for name, value in item.terms.items():
        add_row(made, [name, seconds(value), percent(100.0 * value / item.baseline_s)])
    return made


def _words(part: SegmentPrediction) -> str:
    """`40 × (launch 0.88 us + memory 1.2 ms) = 48 ms; bound 45 ms (HBM bytes)`."""
    terms = " + ".join(f"{name} {seconds(value)}" for name, value in part.terms.items())
    count = f" in {part.n_exec:g} executions" if part.n_exec != 1 else ""
    return (f"{terms} = {seconds(part.baseline_s)}{count}; physical bound {seconds(part.bound_s)}; "
            f"decided by {part.limit}")  # fmt: skip


def workloads(as_json: ask.AsJson = False) -> None:
    """Applications that come with the package: where their inputs come from, and which are open."""
    from ..analytic.workload import load_workload
    from ..analytic.workload_file import shipped_workloads

    loaded = [(name, load_workload(path)) for name, path in shipped_workloads().items()]
    if as_json:
        print_json([
            {"name": name, "description": item.description, "characterisation": item.characterisation,
             "source": item.source, "note": item.note, "open_fields": item.open_fields(),
             "published": [entry.model_dump() for entry in item.published]}
            for name, item in loaded
        ])  # fmt: skip
        return
    made = table(["workload", "inputs", "open", "what"])
    for name, item in loaded:
        missing = item.open_fields()
        state = ", ".join(field.partition(".")[2] for field in missing) if missing else "-"
        add_row(made, [name, item.characterisation, state, item.description])
    print_table(console(), "", made)
