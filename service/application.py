"""Applications predicted: each segment with the model of its platform, and a band for the sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..analytic.errors import InputError, KernelcastError
from ..analytic.families import FAMILIES
from ..analytic.platform import Platform, load_platform
from ..analytic.workload import SegmentTime, Workload, WorkloadTime, load_workload, workload_baseline
from ..analytic.workload_file import Segment
from ..features.counted import SEGMENT
from ..training.hybrid.notes import Note, joined
from .answer import ANALYTIC, Prediction, check_level, predict, resolve_model
from .recorded import changed_parameters, recording, used_parameters

if TYPE_CHECKING:
    from ..training.hybrid.model import Model

REGULAR = ("memory", "compute", "stencil")
"""Classes of segments whose stated regularity tells more than other families do. Of our corpus, whole families left out
and only FLOP and bytes known: mean error of regular ones 39 % analytic, 49 % learned; of all others 93 and 54 %."""
SUM_NOTE = ("band of the sum: the segments' bands added end to end, as if their errors moved together; copies, "
            "synchronisations and waits for others carry no band")


@dataclass(frozen=True)
class SegmentPrediction:
    """One segment, all its executions: analytic time, prediction, band. Times in seconds; unbounded is None."""

    name: str
    kernel: str
    precision: str
    n_exec: float
    baseline_s: float
    predicted_s: float
    lower_s: float | None
    upper_s: float | None
    bound_s: float
    limit: str
    route: str
    in_domain: bool
    note: str
    model: str
    implementation: str
    characterisation: str
    """Of a kernel family first-principles, as it counts its own work; of counted work what the file says."""
    terms: dict[str, float]
    published: list[dict[str, Any]]
    flop: float
    bytes: float
    """Compulsory bytes HBM ↔ cache, all executions."""


@dataclass(frozen=True)
class WorkloadPrediction:
    """An application on one platform. `terms` are analytic and add up to `baseline_s`."""

    workload: str
    platform: str
    characterisation: str
    source: str
    inputs_note: str
    """What the file says of its inputs."""
    predicted_s: float
    lower_s: float | None
    upper_s: float | None
    level: float
    baseline_s: float
    bound_s: float
    naive_s: float
    deciding_segment: str
    deciding_limit: str
    in_domain: bool
    note: str
    model: str
    terms: dict[str, float]
    extra: dict[str, float]
    """Of the terms, those of the whole application: concurrency, devices."""
    segments: list[SegmentPrediction]
    published: list[dict[str, Any]]
    changed: list[str]
    """Fields and fusions set by hand."""
    changed_parameters: list[dict[str, Any]]
    """Platform parameters set by hand, and those that followed: name, value, unit, source, note, used or not."""
    parameters: list[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe dictionary."""
        return asdict(self)


def split_settings(settings: Mapping[str, str | float]) -> tuple[dict[str, str | float], dict[str, str | float]]:
    """(platform parameters, workload fields): the latter are written `segment.field`."""
    return ({key: value for key, value in settings.items() if "." not in key},
            {key: value for key, value in settings.items() if "." in key})


def predict_workload(
    workload: Workload | str,
    *,
    platform: str | Platform,
    level: float = 0.9,
    cache: str = "warm",
    model: Model | str | None = None,
    analytic: bool = False,
    settings: Mapping[str, str | float] | None = None,
) -> WorkloadPrediction:
    """Time of an application on one platform, with a band for the sum.

    workload: a loaded one, a path, or the name of a shipped file. settings: platform parameters (`dram_bandwidth`) and
    workload fields (`segment.field`). Raises InputError for bad input, RefusedError where inputs are not known.
    """
    check_level(level)
    overrides, fields = split_settings(settings or {})
    loaded = load_workload(workload) if isinstance(workload, str) else workload
    changed = loaded.with_settings(fields) if fields else loaded
    target = load_platform(platform) if isinstance(platform, str) else platform
    watched, recorder = recording(target.with_overrides(overrides))
    base = workload_baseline(changed, watched, cache=cache)
    found = None if analytic else resolve_model(target, model)
    parts = []
    for segment, time in zip(changed.segments, base.segments, strict=True):
        try:
            part = _segment(segment, time, target, overrides, level, cache, found or model, analytic)
            counted = changed.characterisation if segment.kernel is None else "first-principles"
            parts.append(SegmentPrediction(**part, characterisation=counted))
        except KernelcastError as error:
            raise type(error)(f"{changed.path}: segments ({segment.name}): {error}") from None
    used = tuple(recorder.read)
    return _sum(changed, target, base, parts, level, overrides, used_parameters(watched, used),
                changed_parameters(watched, used))


def _asked(segment: Segment) -> tuple[str, dict[str, Any]]:
    """The family and parameters that a model is asked about: a counted segment is asked as family `segment`."""
    if segment.kernel is not None:
        return segment.kernel, dict(segment.params)
    params = {"flops": segment.flop or 0.0, "bytes": segment.bytes or 0.0, "launches": int(segment.kernels or 1)}
    if segment.working_set is not None:
        params["working_set"] = segment.working_set
    return SEGMENT, params


def _segment(segment: Segment, time: SegmentTime, platform: Platform, overrides: Mapping[str, str | float],
             level: float, cache: str, model: Model | str | None, analytic: bool) -> dict[str, Any]:
    """The fields of a SegmentPrediction but the characterisation."""
    on_host = segment.kernel is None and not segment.flop and not segment.bytes
    fields: dict[str, Any] = {
        "name": segment.name, "kernel": "host" if on_host else segment.kernel or segment.work_class,
        "precision": "none" if on_host else time.precision,
        "n_exec": time.n_exec, "baseline_s": time.time_s, "bound_s": time.bound_s, "limit": time.limit,
        "route": "host side" if on_host else time.route, "terms": {k: v for k, v in time.terms.items() if v},
        "published": [entry.model_dump() for entry in segment.published], "flop": time.flop, "bytes": time.byte,
    }
    if on_host:
        once = time.time_s  # copies and synchronisations only
        host: dict[str, Any] = {"predicted_s": once, "lower_s": once, "upper_s": once, "in_domain": True,
                                "note": joined(time.notes), "model": ANALYTIC, "implementation": ""}
        return fields | host
    family, params = _asked(segment)
    precision = time.precision if segment.kernel is None else segment.precision or FAMILIES[family].precision
    given = predict(family, platform=platform, precision=precision, level=level, cache=segment.cache or cache,
                    model=model, analytic=analytic, overrides=overrides,
                    implementation=segment.implementation, **params)
    learned = given.lower_s is not None and given.predicted_s != given.baseline_s
    if segment.kernel is None and segment.work_class in REGULAR and learned:
        given = _kept_analytic(given, segment.work_class)
    return fields | _scaled(given, time)


def _kept_analytic(given: Prediction, work_class: str) -> Prediction:
    """The analytic time in the place of what other families' FLOP and bytes teach, within a band that holds both."""
    assert given.lower_s is not None and given.upper_s is not None
    time_s = given.baseline_s
    note = f"class {work_class} is stated, so the analytic time is taken; band of kernels known by FLOP and bytes alone"
    return replace(given, predicted_s=time_s, lower_s=min(given.lower_s, time_s), upper_s=max(given.upper_s, time_s),
                   notes=(*given.notes, Note("class_stated", note)))


def _scaled(given: Prediction, time: SegmentTime) -> dict[str, Any]:
    """The model's correction and band, as factors on its baseline, carried over to the segment's own analytic time."""
    host = time.time_s - time.kernel_s
    unit = time.kernel_s / given.baseline_s
    lower = None if given.lower_s is None else given.lower_s * unit + host
    upper = None if given.upper_s is None else given.upper_s * unit + host
    notes = dict.fromkeys(text for text in (*time.notes, given.note) if text)
    return {"predicted_s": given.predicted_s * unit + host, "lower_s": lower, "upper_s": upper,
            "in_domain": given.in_domain, "note": joined(notes), "model": given.model,
            "implementation": given.implementation if time.route.endswith(f"({given.kernel})") else ""}


def _added(values: list[float | None], extra: float) -> float | None:
    return None if any(value is None for value in values) else sum(value or 0.0 for value in values) + extra


def _sum(workload: Workload, platform: Platform, base: WorkloadTime, parts: list[SegmentPrediction], level: float,
         overrides: Mapping[str, str | float], parameters: list[dict[str, Any]], set_by_hand: list[dict[str, Any]]
         ) -> WorkloadPrediction:
    extra = sum(base.extra.values())
    lower = _added([part.lower_s for part in parts], extra)
    upper = _added([part.upper_s for part in parts], extra)
    without = [part.name for part in parts if part.upper_s is None]
    notes = [f"inputs: {workload.characterisation}"]
    if without:
        notes.append(f"no band: none for {', '.join(without[:4])}{' and others' if len(without) > 4 else ''}")
    elif len(parts) > 1:
        notes.append(SUM_NOTE)
    if outside := [part.name for part in parts if not part.in_domain and part.model != ANALYTIC]:
        named = ", ".join(outside) if len(outside) < len(parts) or len(parts) == 1 else "every segment"
        notes.append(f"outside of what a model learned: {named} (`explain` says why)")
    if base.extra:
        notes.append("the work is not divided among devices or kernels: (N - 1) · tau is added to that of one")
    if workload.changed:
        notes.append(f"set by hand: {', '.join(workload.changed)}")
    if overrides:
        notes.append(f"with {', '.join(overrides)} set by hand: the band was not measured for that")
    longest = max(parts, key=lambda part: part.predicted_s)
    return WorkloadPrediction(
        workload=workload.name,
        platform=platform.id,
        characterisation=workload.characterisation,
        source=workload.source,
        inputs_note=workload.note,
        predicted_s=sum(part.predicted_s for part in parts) + extra,
        lower_s=lower,
        upper_s=upper,
        level=level,
        baseline_s=base.total_s,
        bound_s=base.bound_s,
        naive_s=base.naive_s,
        deciding_segment=longest.name,
        deciding_limit=longest.limit,
        in_domain=all(part.in_domain for part in parts),
        note=joined(notes),
        model=", ".join(dict.fromkeys(part.model for part in parts)),
        terms=base.terms,
        extra=dict(base.extra),
        segments=parts,
        published=[entry.model_dump() for entry in workload.published],
        changed=list(workload.changed),
        changed_parameters=set_by_hand,
        parameters=parameters,
    )


def picture(prediction: WorkloadPrediction, platform: Platform, path: str | Path) -> Path:
    """Roofline picture of the segments, under the ceilings of the precision that takes most of the time.

    Raises InputError for a file that is no picture, without matplotlib, or where no segment has FLOP and bytes.
    """
    from .plot import Point, roofline

    shown = [part for part in prediction.segments if part.flop > 0.0 and part.bytes > 0.0]
    if not shown:
        raise InputError(f"{prediction.workload}: no segment has both FLOP and bytes, so there is nothing to draw")
    precisions = {part.precision: 0.0 for part in shown}
    for part in shown:
        precisions[part.precision] += part.predicted_s
    points = [Point(part.name, part.flop, part.bytes, part.predicted_s, part.lower_s, part.upper_s) for part in shown]
    return roofline(platform, max(precisions, key=lambda name: precisions[name]), points, path)
