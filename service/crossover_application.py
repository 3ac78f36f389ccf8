"""From which size of an application one platform overtakes another: fields of its segments are swept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..analytic.errors import InputError, nearest_names
from ..analytic.families import FAMILIES
from ..analytic.platform import load_platform
from ..analytic.validity import FloatArray
from ..analytic.whatif import SWEEP_POINTS, TOLERANCE, Range
from ..analytic.workload import WHOLE, Workload, workload_baseline
from .answer import check_level
from .application import predict_workload
from .crossover import Crossover, Times, answered

HYBRID_POINTS, HYBRID_TOLERANCE = 33, 1e-3
"""An application takes a model a tenth of a second: fewer steps, and coarser ones, than for a kernel."""
UNITS = {"flop": "FLOP", "bytes": "B", "working_set": "B", "bytes_in_flight": "B"}
_WHOLE_NUMBERS = ("n_exec", "kernels", "syncs")


def field_of(workload: Workload, key: str) -> tuple[str, bool]:
    """(unit, whether whole numbers only) of `segment.field`. InputError for a segment there is not."""
    name, dot, field = key.partition(".")
    segments = {segment.name: segment for segment in workload.segments}
    if not dot:
        raise InputError(f"{workload.path}: '{key}' is no field of an application; write segment.field=LOW..HIGH, such "
                         f"as {workload.segments[0].name}.n_exec=1..100")
    if name == WHOLE:
        return "count", True
    if name not in segments:
        raise InputError(f"{workload.path}: cannot sweep {key}: no segment {name!r}{nearest_names(name, segments)}")
    kernel = segments[name].kernel
    sizes = {param.name for param in FAMILIES[kernel].params if param.kind == "size"} if kernel else set()
    last = field.rpartition(".")[2]
    return UNITS.get(last, "count"), field in sizes or field in _WHOLE_NUMBERS


def application_crossover(
    workload: Workload,
    platforms: Sequence[str],
    ranges: Sequence[Range],
    *,
    level: float = 0.9,
    cache: str = "warm",
    model: str | None = None,
    analytic: bool = False,
    overrides: Mapping[str, str | float] | None = None,
) -> Crossover:
    """Sweep fields of an application together (logarithmic steps); where does the faster one of two platforms change?

    ranges are named `segment.field`. Raises InputError for other than two platforms or nothing to sweep, RefusedError
    where inputs of the application are not known.
    """
    check_level(level)
    if len(platforms) != 2:
        raise InputError(f"a crossover is between two platforms: -p A -p B; these are {len(platforms)}")
    if not ranges:
        first = workload.segments[0].name
        raise InputError(f"say what to sweep: segment.field=LOW..HIGH, such as {first}.n_exec=1..100")
    changed = dict(overrides or {})
    loaded = [load_platform(name).with_overrides(changed) for name in platforms]
    plain = [load_platform(name) for name in platforms]

    def one(index: int, position: float) -> tuple[float, float, float]:
        made = workload.with_settings({item.name: float(item.at(position)) for item in ranges})
        if analytic:
            return workload_baseline(made, loaded[index], cache=cache).total_s, 0.0, np.inf
        found = predict_workload(made, platform=plain[index], level=level, cache=cache, model=model, settings=changed)
        bounded = found.lower_s is not None and found.upper_s is not None
        return found.predicted_s, found.lower_s or 0.0, (found.upper_s or np.inf) if bounded else np.inf

    def times(index: int, positions: FloatArray) -> Times:
        # another application at each position: there is no array of them to evaluate
        rows = np.array([one(index, float(position)) for position in positions]).reshape(-1, 3)
        return rows[:, 0], rows[:, 1], rows[:, 2]

    said = dict(word.partition("=")[::2] for word in workload.changed) | changed
    points, tolerance = (SWEEP_POINTS, TOLERANCE) if analytic else (HYBRID_POINTS, HYBRID_TOLERANCE)
    return answered([platform.id for platform in plain], workload.name, ranges, times, level=level, analytic=analytic,
                    points=points, tolerance=tolerance, changed=said)
