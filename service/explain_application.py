"""Why an application takes what it takes: every segment step by step, and which parameters would move the sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..analytic.explain_segment import explain_segment
from ..analytic.platform import Platform, load_platform
from ..analytic.units import format_quantity
from ..analytic.workload import Workload, load_workload, workload_baseline
from ..analytic.workload_file import CHARACTERISATIONS
from .application import WorkloadPrediction, predict_workload, split_settings
from .explain import as_rows, moved_by, said_words

EXTRAS = {"concurrency": ("concurrent_kernels", "concurrent_kernel_overhead"),
          "devices": ("devices", "multi_device_overhead")}


def application_explanation(
    prediction: WorkloadPrediction, workload: Workload, platform: Platform, *, cache: str = "warm"
) -> dict[str, Any]:
    """A prediction with what `explain` adds to it, JSON-safe.

    workload, platform: as changed for the prediction (fields, fusions, parameters). Each segment gains its steps of one
    execution, what binds it and what would have to change, the equations and whether the guard acted.
    """
    base = workload_baseline(workload, platform, cache=cache)
    document = prediction.to_dict()
    equations: dict[str, None] = {}
    for part, segment, time in zip(document["segments"], workload.segments, base.segments, strict=True):
        said = explain_segment(segment, time, platform, cache=cache)
        equations |= dict.fromkeys(said.equations)
        part |= said_words(said) | {"once_s": time.time_s / time.n_exec, "work_words": _work_words(part)}
    if base.extra:
        equations["(N - 1) · tau of concurrent kernels and devices (sections IV.A.6, IV.B)"] = None

    def total(changed: Platform) -> float:
        return workload_baseline(workload, changed, cache=cache).total_s

    return document | {
        "characterisation_words": CHARACTERISATIONS[workload.characterisation],
        "extra_words": [_extra_words(name, workload, platform, time_s) for name, time_s in base.extra.items()],
        "equations": list(equations),
        "sensitivity": as_rows(moved_by(platform, prediction.parameters, base.total_s, total)),
    }


def _work_words(part: dict[str, Any]) -> str:
    """`200 GFLOP, 80 GB HBM ↔ cache, 2.5 FLOP a byte`, of one execution."""
    flop, byte = part["flop"] / part["n_exec"], part["bytes"] / part["n_exec"]
    said = [format_quantity(flop, "FLOP")] if flop else []
    said += [f"{format_quantity(byte, 'B', binary=False)} HBM ↔ cache (each operand once)"] if byte else []
    said += [f"{flop / byte:.4g} FLOP a byte"] if flop and byte else []
    return ", ".join(said) or "no work on the device"


def _extra_words(name: str, workload: Workload, platform: Platform, time_s: float) -> str:
    field, parameter = EXTRAS[name]
    count, tau = getattr(workload, field), platform.value(parameter)
    return (f"{name}: ({count:g} - 1) × {format_quantity(tau, 's')} ({parameter}) = {format_quantity(time_s, 's')}")


def explain_application(workload: Workload | str, *, platform: str | Platform, cache: str = "warm",
                        settings: Mapping[str, str | float] | None = None, **question: Any
                        ) -> dict[str, Any]:
    """`application_explanation` of an application by name, file or as loaded; asked as `predict_workload` is."""
    overrides, fields = split_settings(settings or {})
    loaded = load_workload(workload) if isinstance(workload, str) else workload
    changed = loaded.with_settings(fields) if fields else loaded
    target = load_platform(platform) if isinstance(platform, str) else platform
    found = predict_workload(changed, platform=target, cache=cache, settings=overrides, **question)
    return application_explanation(found, changed, target.with_overrides(overrides), cache=cache)
