"""Applications on the command line: `predict` and `explain` of a workload file, and the list of those that ship."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...analytic.errors import InputError
from . import ask
from .columns import (
    documents,
    print_changes,
    print_what_is_compared,
    ratio_columns,
    ratios,
    with_ratios,
    without_changes,
)
from .explain_workload import explanations, show_explanation
from .parse import fusion, settings
from .show import (
    add_row,
    amount,
    band,
    console,
    plot_path,
    print_facts,
    print_json,
    print_sides,
    print_table,
    seconds,
    table,
    text,
    warn,
)
from .workload_question import Question

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ...analytic.workload import Workload
    from ...analytic.workload_file import Segment
    from ..application import WorkloadPrediction


def is_workload(name: str | None) -> bool:
    """Whether the word after `predict` names an application: a YAML file, or a shipped workload by its name."""
    from ..names import is_application

    return bool(name) and is_application(str(name))


def question(name: str, words: Sequence[str] | None, changes: Sequence[str] | None, fusions: Sequence[str] | None
             ) -> Question:
    """The application named, changed by `--set` and `--fuse`. InputError for words it has no place for."""
    if words:
        raise InputError(f"'{words[0]}': an application takes its sizes from its file; change them with "
                         f"--set segment.field={words[0].partition('=')[2] or 'VALUE'}")
    from ...analytic.workload import load_workload
    from ..application import split_settings

    original = load_workload(name)
    overrides, fields = split_settings(settings(changes or []))
    made = original.with_settings(fields) if fields else original
    for parts, byte in map(fusion, fusions or []):
        made = made.with_fusion(parts, byte)
    return Question(made, overrides, original)


def predictions(asked: Question, platforms: Sequence[str] | None, **options: Any) -> list[WorkloadPrediction]:
    """One prediction of an application for each platform. InputError for a question that is not whole."""
    if not platforms:
        raise InputError("say for which platform: -p PLATFORM (see `kernelcast platforms`)")
    from ..application import predict_workload

    return [predict_workload(asked.workload, platform=one, settings=asked.overrides, **options)
            for one in dict.fromkeys(platforms)]


def predict(
    name: str,
    words: Sequence[str] | None,
    platforms: Sequence[str] | None,
    changes: Sequence[str] | None,
    as_json: bool,
    *,
    fusions: Sequence[str] | None = None,
    full: bool = False,
    plot: str | None = None,
    **options: Any,
) -> None:
    """Print an application's prediction; `full` adds steps, terms and parameters (`explain`)."""
    asked = question(name, words, changes, fusions)
    found = predictions(asked, platforms, **options)
    before = None
    if changes or fusions:
        plain = Question(asked.original, {}, asked.original)
        before = without_changes(lambda: predictions(plain, platforms, **options))
    said = explanations(asked, found, list(dict.fromkeys(platforms or [])), options["cache"]) if full else None
    if plot is not None:
        _draw(found, plot, list(dict.fromkeys(platforms or [])), asked.overrides)
    if as_json:
        print_json(documents(found, decided_by, before, said))
        return
    where = console()
    _head(where, found)
    print_table(where, "segments", _segments(found))
    print_what_is_compared(where, found, _implementations)
    _published(where, found)
    if said is not None:
        for item, facts in zip(found, said, strict=True):
            show_explanation(where, item, facts)
    for item in found:
        prefix = f"{item.platform}: " if len(found) > 1 else ""
        for words_of in item.changed:
            where.print(text(f"changed: {prefix}{words_of}"))
    print_changes(where, found, before, lambda item: item.changed_parameters)
    for item in found:
        prefix = f"{item.platform}: " if len(found) > 1 else ""
        where.print(text(f"note: {prefix}{item.note}"))


def decided_by(item: WorkloadPrediction) -> str:
    """The segment that takes longest, and what it waits for."""
    return f"{item.deciding_segment}: {item.deciding_limit}"


def _implementations(item: WorkloadPrediction) -> str:
    return ", ".join(dict.fromkeys(part.implementation for part in item.segments if part.implementation))


def _draw(found: list[WorkloadPrediction], plot: str, platforms: list[str], overrides: dict[str, str | float]) -> None:
    from ...analytic.platform import load_platform
    from ..application import picture

    for item, name in zip(found, platforms, strict=True):
        platform = load_platform(name).with_overrides(overrides)
        warn(f"picture written to {picture(item, platform, plot_path(plot, item.platform, len(found)))}")


def _head(where: Console, found: list[WorkloadPrediction]) -> None:
    from ...analytic.workload_file import CHARACTERISATIONS

    first = found[0]
    where.print(text(first.workload, "bold"))
    meaning = CHARACTERISATIONS[first.characterisation]
    facts = [("inputs", f"{first.characterisation}: {meaning}"), ("source", first.source)]
    print_facts(where, [*facts, *([("note", first.inputs_note)] if first.inputs_note else [])])
    percent = f"{100 * first.level:g} % band"
    several = ["ratio"] if len(found) > 1 else []
    rows = [
        [item.platform, seconds(item.predicted_s), band(item.lower_s, item.upper_s), seconds(item.baseline_s),
         seconds(item.bound_s), *([f"{ratio:.3g}"] if several else []), decided_by(item), item.model]
        for item, ratio in zip(found, ratios(found), strict=True)
    ]
    print_sides(where, ["platform", "predicted", percent, "analytic", "bound", *several, "decided by", "model"], rows,
                ["predicted", percent, "analytic", "bound", "ratio"])


def _segments(found: list[WorkloadPrediction]) -> Table:
    """Times of the segments, and how much longer each takes than on the first platform."""
    beside = ratio_columns([item.platform for item in found])
    made = table(["segment", "kernel or class", "times", *beside, "route"], ["times", *beside])
    for row in zip(*(item.segments for item in found), strict=True):
        first = row[0]
        cells = [f"{seconds(part.predicted_s)} ({part.limit})" for part in row]
        route = " / ".join(dict.fromkeys(part.route for part in row))
        precision = "" if first.precision == "none" else f" {first.precision}"
        add_row(made, [first.name, f"{first.kernel}{precision}", f"{first.n_exec:g}",
                       *with_ratios(cells, [part.predicted_s for part in row]), route])
    for name in dict.fromkeys(name for item in found for name in item.extra):
        values = [item.extra.get(name) for item in found]
        add_row(made, [name, "whole application", "", *with_ratios([seconds(v) for v in values], values), ""])
    return made


def _published(where: Console, found: list[WorkloadPrediction]) -> None:
    """Figures others printed, beside ours; never mixed into them."""
    rows = []
    for item in found:
        entries = [(item.workload, entry) for entry in item.published]
        entries += [(part.name, entry) for part in item.segments for entry in part.published]
        ours = {item.workload: item.predicted_s} | {part.name: part.predicted_s for part in item.segments}
        rows += [(item.platform, name, entry, ours[name]) for name, entry in entries
                 if entry["platform"] == item.platform]
    if not rows:
        return
    made = table(["platform", "of", "published", "value", "ours", "source"], ["value", "ours"])
    for platform, name, entry, predicted in rows:
        is_time = entry["quantity"].endswith("_s")
        value = seconds(entry["value"]) if is_time else f"{entry['value']:g}"
        add_row(made, [platform, name, entry["quantity"], value, seconds(predicted) if is_time else "-",
                       entry["source"]])
    print_table(where, "published by others", made)


def workloads(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show this one: a shipped name or a file.")] = None,
    as_json: ask.AsJson = False,
) -> None:
    """Applications that come with the package: where their inputs come from, and which are open."""
    from ...analytic.workload import load_workload
    from ...analytic.workload_file import shipped_workloads

    loaded = [load_workload(one) for one in ([name] if name else shipped_workloads())]
    if as_json:
        made = [_document(item) for item in loaded]
        print_json(made[0] if name else made)
    elif name:
        _show_one(loaded[0])
    else:
        made_table = table(["workload", "inputs", "open", "what"])
        for item in loaded:
            missing = [field.partition(".")[2] for field in item.open_fields()]
            add_row(made_table, [item.name, item.characterisation, ", ".join(missing) or "-", item.description])
        print_table(console(), "", made_table)
        console().print(text("open: nobody published it; give it with --set segment.field=VALUE. `kernelcast workloads "
                             "NAME` shows one with what others printed about it"))


def _document(item: Workload) -> dict[str, Any]:
    return {
        "name": item.name, "description": item.description, "characterisation": item.characterisation,
        "source": item.source, "note": item.note, "open_fields": item.open_fields(),
        "segments": [segment.model_dump(by_alias=True, exclude_unset=True) for segment in item.segments],
        "published": [entry.model_dump() for entry in item.published],
    }


def _show_one(item: Workload) -> None:
    from ...analytic.workload_file import CHARACTERISATIONS

    where = console()
    where.print(text(f"{item.name}: {item.description}", "bold"))
    facts = [("inputs", f"{item.characterisation}: {CHARACTERISATIONS[item.characterisation]}"),
             ("source", item.source), ("note", item.note), ("open", ", ".join(item.open_fields()))]
    print_facts(where, [(name, words) for name, words in facts if words])
    made = table(["segment", "what", "times", "inputs"], ["times"])
    for segment in item.segments:
        times = "open" if segment.n_exec is None else f"{segment.n_exec:g}"
        kind = f"{segment.kernel or segment.work_class} {segment.precision or ''}"
        add_row(made, [segment.name, kind, times, _inputs(segment)])
    print_table(where, "segments", made)
    entries = [(item.name, entry) for entry in item.published]
    entries += [(segment.name, entry) for segment in item.segments for entry in segment.published]
    if entries:
        shown = table(["platform", "of", "published", "value", "source"], ["value"])
        for of, entry in entries:
            value = seconds(entry.value) if entry.quantity.endswith("_s") else f"{entry.value:g}"
            add_row(shown, [entry.platform, of, entry.quantity, value, entry.source])
        print_table(where, "published by others", shown)


_UNITS = {"flop": "FLOP", "bytes": "B", "working_set": "B", "bytes_in_flight": "B"}


def _inputs(segment: Segment) -> str:
    """`flop 4.8 TFLOP, bytes open`: what the file says of a segment."""
    said = [f"{name}={'open' if value is None else value}" for name, value in segment.params.items()]
    for name, unit in _UNITS.items():
        if name in segment.model_fields_set:
            value = getattr(segment, name)
            said.append(f"{name} {'open' if value is None else amount(value, unit)}")
    said += [f"{t.direction} {'open' if t.bytes is None else amount(t.bytes, 'B')} × {t.episodes:g}"
             for t in segment.transfers]
    return ", ".join([*said, *([f"{segment.syncs:g} syncs"] if segment.syncs else [])])
