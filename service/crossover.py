"""Where one platform or variant overtakes another, by the models of the platforms or by the analytic baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.baseline import baseline
from ..analytic.errors import InputError
from ..analytic.families import family as find_family
from ..analytic.platform import Platform, load_platform
from ..analytic.validity import FloatArray
from ..analytic.whatif import SWEEP_POINTS, TOLERANCE, Range, crossings, parse_range
from ..training.hybrid.notes import joined
from .answer import check_level

HYBRID_TOLERANCE = 1e-4
"""Models answer in steps: a finer position than this would only find the step's edge."""


@dataclass(frozen=True)
class Candidate:
    """One of the two that are compared: a platform and a variant of the kernel."""

    label: str
    platform: str
    kernel: str
    precision: str
    params: dict[str, Any]
    implementation: str | None = None
    cache: str = "warm"


@dataclass(frozen=True)
class Stretch:
    """A stretch of the sweep on which one candidate is the faster one, ends included."""

    faster: str
    start: dict[str, float]
    end: dict[str, float]
    advantage_start: float
    """Time of the slower one over that of the faster one at the start."""
    advantage_end: float
    certain: bool | None
    """Whether the bands are apart all along it; None where a band is unbounded."""


@dataclass(frozen=True)
class Crossover:
    """Answer: the sizes at which the faster one changes, and the stretches between them."""

    candidates: list[str]
    kernel: str
    level: float
    analytic: bool
    crossings: list[dict[str, float]]
    stretches: list[Stretch]
    note: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


Times = tuple[FloatArray, FloatArray, FloatArray]
"""(predicted, lower, upper), shape (n,); infinite upper where there is no band."""
TimesAt = Callable[[int, FloatArray], Times]
"""(0 or 1: which candidate, positions in [0, 1]) → times."""


def _analytic_times(candidate: Candidate, platform: Platform, columns: Mapping[str, FloatArray]) -> Times:
    size = next(iter(columns.values())).size
    fixed = {name: np.full(size, value, dtype=object) for name, value in candidate.params.items()}
    time = baseline(candidate.kernel, fixed | dict(columns), candidate.precision, platform,
                    cache=candidate.cache).time_s
    return time, np.zeros_like(time), np.full_like(time, np.inf)


def _model_times(candidate: Candidate, columns: Mapping[str, FloatArray], ranges: Sequence[Range], level: float,
                 model: str | None, overrides: Mapping[str, str | float]) -> Times:
    import json

    import pandas as pd

    from .batch import predict_runs

    names = [item.name for item in ranges]
    whole = {item.name: item.whole for item in ranges}
    rows = [
        json.dumps(candidate.params | {k: int(v) if whole[k] else float(v) for k, v in zip(names, row, strict=True)})
        for row in zip(*(columns[name] for name in names), strict=True)
    ]
    frame = pd.DataFrame({"platform": candidate.platform, "kernel": candidate.kernel,
                          "precision": candidate.precision, "params": rows, "cache": candidate.cache})
    if candidate.implementation:
        frame["implementation"] = candidate.implementation
    done = predict_runs(frame, level=level, model=model, overrides=overrides)
    bad = done["predicted_s"].isna()
    if bad.any():
        raise InputError(f"{candidate.label}: {done.loc[bad, 'note'].iloc[0]}")
    predicted, lower, upper = (done[name].to_numpy(float) for name in ("predicted_s", "lower_s", "upper_s"))
    return predicted, np.where(np.isnan(lower), 0.0, lower), np.where(np.isnan(upper), np.inf, upper)


def _check(candidates: Sequence[Candidate], ranges: Sequence[Range]) -> None:
    if len(candidates) != 2:
        raise InputError(f"a crossover is between two: give two platforms (-p A -p B), or one and a --variant; "
                         f"these are {len(candidates)}")
    if not ranges:
        raise InputError("say what to sweep: PARAMETER=LOW..HIGH, such as n=1000..1000000")
    for candidate in candidates:
        known = find_family(candidate.kernel).names
        for name in (*(item.name for item in ranges), *candidate.params):
            if name not in known:
                raise InputError(f"{candidate.kernel}: unknown parameter {name!r} (valid: {', '.join(known)})")


def range_of(name: str, low: float, high: float, whole: bool) -> Range:
    """A range from two numbers. InputError for one that runs nowhere."""
    found = parse_range(name, f"{low}..{high}", whole)
    assert found is not None
    return found


CALL_WORDS = ("precision", "implementation", "cache")
"""What describes a call beside the sizes of its kernel."""


def candidates_of(family: str, given: Mapping[str, Any], platforms: Sequence[str], variant: Mapping[str, Any],
                  cache: str, words: str = "") -> list[Candidate]:
    """The platforms' candidates, and where something varies that of the last platform with it.

    given: parameters and `CALL_WORDS` of all. variant: those that the second one changes, or `kernel`. words: its name.
    """
    plain = [_candidate(family, given, name, cache, name) for name in platforms]
    if not variant:
        return plain
    label = f"{platforms[-1]} with {words or ', '.join(f'{key}={value}' for key, value in variant.items())}"
    changed = {**given, **{key: value for key, value in variant.items() if key != "kernel"}}
    other = _candidate(variant.get("kernel", family), changed, platforms[-1], cache, label)
    return [*plain[:1], other] if len(platforms) <= 2 else [*plain, other]


def _candidate(family: str, given: Mapping[str, Any], platform: str, cache: str, label: str) -> Candidate:
    sizes = {key: value for key, value in given.items() if key not in CALL_WORDS}
    precision = given.get("precision") or find_family(family).precision
    return Candidate(label, platform, family, precision, sizes, given.get("implementation"), given.get("cache", cache))


def crossover_of(
    candidates: Sequence[Candidate],
    ranges: Sequence[Range],
    *,
    level: float = 0.9,
    model: str | None = None,
    analytic: bool = False,
    overrides: Mapping[str, str | float] | None = None,
    points: int = SWEEP_POINTS,
) -> Crossover:
    """Sweep `ranges` together (logarithmic steps) and bisect where the faster one of two candidates changes.

    Raises InputError for other than two candidates, nothing to sweep, or a parameter the kernel has not.
    """
    check_level(level)
    _check(candidates, ranges)
    changed = dict(overrides or {})
    platforms = [load_platform(item.platform).with_overrides(changed) for item in candidates]

    def times(index: int, position: FloatArray) -> Times:
        columns = {item.name: item.at(position) for item in ranges}
        if analytic:
            return _analytic_times(candidates[index], platforms[index], columns)
        return _model_times(candidates[index], columns, ranges, level, model, changed)

    tolerance = TOLERANCE if analytic else HYBRID_TOLERANCE
    return answered([item.label for item in candidates], candidates[0].kernel, ranges, times, level=level,
                    analytic=analytic, points=points, tolerance=tolerance, changed=changed)


def answered(labels: list[str], kernel: str, ranges: Sequence[Range], times: TimesAt, *, level: float, analytic: bool,
             points: int, tolerance: float, changed: Mapping[str, str | float]) -> Crossover:
    """The crossovers of two candidates whose times at positions in [0, 1] are `times(index, positions)`.

    changed: what was set by hand, to be said in the note.
    """

    def log_ratio(position: FloatArray) -> FloatArray:
        return np.log(times(0, position)[0] / times(1, position)[0])

    found = crossings(ranges, log_ratio, points, tolerance)
    edges = [{item.name: float(item.at(0.0)) for item in ranges}, *(item.values for item in found),
             {item.name: float(item.at(1.0)) for item in ranges}]
    stretches = _stretches(labels, ranges, times, edges, points)
    notes = ["by the analytic models: no band"] if analytic else []
    if changed:
        made = ", ".join(f"{name}={value}" for name, value in changed.items())
        notes.append(f"with {made} set by hand{'' if analytic else ': the bands were not measured for that'}")
    return Crossover(labels, kernel, level, analytic, [item.values for item in found], stretches, joined(notes))


def _stretches(labels: Sequence[str], ranges: Sequence[Range], times: TimesAt, edges: list[dict[str, float]],
               points: int) -> list[Stretch]:
    grid = np.linspace(0.0, 1.0, points)
    first, second = times(0, grid), times(1, grid)
    lead = ranges[0]
    values = lead.at(grid)
    out = []
    for start, end in pairwise(edges):
        inside = (values >= start[lead.name]) & (values <= end[lead.name])
        if end is not edges[-1]:
            inside &= values < end[lead.name]
        if not inside.any():  # narrower than a sweep step: look at its ends
            position = np.array([_position(lead, start[lead.name])])
            a, b = times(0, position), times(1, position)
        else:
            a, b = _part(first, inside), _part(second, inside)
        faster = int(np.sum(np.log(a[0] / b[0])) > 0)
        quick, slow = (a, b) if faster == 0 else (b, a)
        ratio = slow[0] / quick[0]
        bounded = bool(np.isfinite(quick[2]).all() and np.isfinite(slow[2]).all())
        certain = bool((quick[2] < slow[1]).all()) if bounded else None
        out.append(Stretch(labels[faster], start, end, float(ratio[0]), float(ratio[-1]), certain))
    return out


def _part(times: Times, inside: NDArray[np.bool_]) -> Times:
    return times[0][inside], times[1][inside], times[2][inside]


def _position(item: Range, value: float) -> float:
    return float(np.log(value / item.low) / np.log(item.high / item.low))
