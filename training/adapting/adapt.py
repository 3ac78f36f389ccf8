"""Retrain on new hardware from a few runs of it.

What is known beforehand (source models of other platforms, or the baseline of the parameter file alone) is corrected
family by family, and the correction is judged by leaving runs out: one that does not beat the un-adapted source there
is not shipped, or only as far as it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...analytic.errors import InputError
from ...analytic.families import FAMILIES
from ...analytic.platform import Platform, load_platform
from ...features.describe import Group, describe
from ..hybrid.bands import fit_bands
from ..hybrid.domain import Domain, fit_domain
from ..hybrid.encode import Encoder
from ..hybrid.family import Part, by_family, part_of, reference_implementations
from ..hybrid.meta import Meta
from ..hybrid.model import SMALLEST_SIGMA, Model
from ..hybrid.protocol import LearnedFamily
from ..hybrid.settings import ROOMS, settings
from ..learners.residual import to_residual
from .adapted import AdaptedFamily, contributions, prior_multipliers, process_scales, transferred_log
from .corrections import AS_IS, Correction, Few, correct, correct_alone
from .transfer import Across, across_platforms, fit_across

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

TYPICAL_ROWS = 8.0
"""Half of a family's typical left-out error is believed after so many runs; a handful tells little of it."""
SOURCE_ROWS = 8000
SOURCE_EPOCHS = 20
"""Of the network of a source that is made of its rows."""


def _merged(domains: Sequence[Domain], own: Domain) -> Domain:
    """The box of sources and own runs together; precisions and implementations of the own runs only."""
    low = {name: float(v) for name, v in zip(own.names, own.low, strict=True)}
    high = {name: float(v) for name, v in zip(own.names, own.high, strict=True)}
    for domain in domains:
        for name, a, b in zip(domain.names, domain.low, domain.high, strict=True):
            if name in low:
                low[name], high[name] = min(low[name], float(a)), max(high[name], float(b))
    return Domain(own.names, np.array([low[n] for n in own.names]), np.array([high[n] for n in own.names]),
                  own.precisions, own.implementations)


def _few_of(parts: Sequence[Part], times: Sequence[Floats], groups: NDArray[Any], sources: Sequence[LearnedFamily],
            family: str, encoder: Encoder, rows: Across | None, compute_units: float) -> Few:
    terms = np.concatenate([contributions(sources, part, compute_units) for part in parts])
    prior = prior_multipliers(sources, terms.shape[1])
    prior_log = np.log(np.maximum(terms @ prior, 1e-9))
    carried = np.zeros(len(prior_log))
    if sources:
        carried = np.concatenate([transferred_log(sources, part) for part in parts]) - prior_log
    source_x = source_y = None
    if rows is not None and sources:
        source_x = np.concatenate([encoder.matrix(part.rows) for part in rows.parts])
        base = [contributions(sources, part, compute_units) @ prior for part in rows.parts]
        source_y = to_residual(np.concatenate(rows.times), np.maximum(np.concatenate(base), 1e-9))
    sizes = [p.name for p in FAMILIES[family].params if p.kind in ("size", "real")]
    return Few(terms, prior, prior_log, carried, np.concatenate([encoder.matrix(p.rows) for p in parts]),
                np.log(np.concatenate(list(times))), groups, process_scales(encoder.columns, sizes), source_x, source_y)


@dataclass(frozen=True)
class _Task:
    """One family to adapt."""

    family: str
    parts: list[Part]
    few: Few
    encoder: Encoder
    reference: dict[str, str]
    sources: list[LearnedFamily]
    origin: str
    compute_units: float


@dataclass(frozen=True)
class _Adapted:
    model: AdaptedFamily
    parts: list[Part]
    error: Floats
    scores: Mapping[str, float]
    analytic: Floats


def _task(family: str, groups: Sequence[Group], time_s: Floats, group: NDArray[Any], sources: list[LearnedFamily],
          origin: str, rows: Across | None) -> _Task:
    reference = reference_implementations(groups)
    parts = [part_of(g, reference) for g in groups]
    encoder = Encoder.fit([*(p.rows for p in parts), *(p.rows for p in (rows.parts if rows else ()))])
    index = np.concatenate([part.index for part in parts])
    units = groups[0].platform.value("compute_units")
    few = _few_of(parts, [time_s[p.index] for p in parts], group[index], sources, family, encoder, rows, units)
    return _Task(family, parts, few, encoder, reference, sources, origin, units)


def _finish(task: _Task, found: Correction) -> _Adapted:
    few = task.few
    domain = _merged([s.domain for s in task.sources], fit_domain(task.family, [p.rows for p in task.parts]))
    model = AdaptedFamily(task.family, task.encoder, domain, task.reference, len(few.log_time),
                          _words(len(few.log_time), task.origin, found), sources=task.sources,
                          compute_units=task.compute_units, multipliers=found.multipliers, process=found.process,
                          joint=found.joint, network=found.network, joint_share=found.joint_share, kind=found.kind,
                          share=found.share)
    analytic = few.log_time - np.log(np.concatenate([p.analytic_s for p in task.parts]))
    return _Adapted(model, task.parts, found.error, found.scores, analytic)


def _adapt_all(tasks: Sequence[_Task], seed: int) -> list[_Adapted]:
    found = {task.family: correct(task.few, seed) for task in tasks if task.sources}
    alone = {task.family: task.few for task in tasks if not task.sources}
    if alone:
        found |= correct_alone(alone, seed)
    return [_finish(task, found[task.family]) for task in tasks]


def _words(rows: int, origin: str, found: Correction) -> str:
    before, after = 100.0 * found.scores[AS_IS], 100.0 * found.scores[found.kind]
    head = f"adapted from {origin} with {rows} run{'s' * (rows != 1)}"
    if found.kind == AS_IS:
        return f"{head}: no correction beat it with runs left out ({before:.1f} %), kept as it is"
    part = "" if found.share == 1.0 else f" (by {found.share:.0%} of its logarithm, more of it loses there)"
    return f"{head}: {found.kind}{part}, error with runs left out {after:.1f} % ({before:.1f} % un-adapted)"


def adapt_model(few: pd.DataFrame, platform: Platform | str, source: Model | Sequence[Model] | None = None, *,
                source_rows: pd.DataFrame | None = None, platforms: Mapping[str, Platform] | None = None,
                name: str | None = None, seed: int = 0) -> Model:
    """A model of `platform` from a few runs of it.

    few: run table (rows of other platforms are left out). source: models of other platforms (or the one across
    platforms); None starts from source_rows, else from the parameter file alone. source_rows: runs of other platforms
    for the joint trees. platforms: parameter sets to use instead of the shipped ones, by id.
    Raises InputError where no row of the platform can be used.
    """
    target = load_platform(platform) if isinstance(platform, str) else platform
    known = {**(platforms or {}), target.id: target}
    here = few[few["platform"].astype(str) == target.id].reset_index(drop=True)
    if here.empty:
        held = ", ".join(sorted(set(few["platform"].astype(str)))) or "none"
        raise InputError(f"the table has no run of {target.id}; it holds {held}")
    models = [source] if isinstance(source, Model) else list(source or ())
    rows = _source_rows(source_rows, target.id, known, seed)
    described = describe(here, known)
    time_s = np.asarray(here["time_s"], dtype=np.float64)
    group = np.asarray(here["group"].astype(str)) if "group" in here else np.arange(len(here)).astype(str)
    if not described.groups:
        raise InputError(f"no run of {target.id} can be used: {next(iter(described.refused.values()))}")
    tasks = [
        _task(family, groups, time_s, group, *_sources(family, models, rows, seed), rows.get(family))
        for family, groups in sorted(by_family(described.groups).items())
    ]
    done = _adapt_all(tasks, seed)
    return _assemble(target.id, name or f"{target.id}-adapted", done, models, len(described.refused), seed)


def _source_rows(frame: pd.DataFrame | None, target: str, known: Mapping[str, Platform], seed: int
                 ) -> dict[str, Across]:
    if frame is None:
        return {}
    other = frame[frame["platform"].astype(str) != target]
    count = max(other["platform"].nunique(), 1)
    return across_platforms(other, known, most=SOURCE_ROWS // count, seed=seed) if len(other) else {}


def _sources(family: str, models: Sequence[Model], rows: Mapping[str, Across], seed: int
             ) -> tuple[list[LearnedFamily], str]:
    having = [model for model in models if family in model.families]
    if having:
        return [model.families[family] for model in having], " and ".join(model.name for model in having)
    if family in rows:
        return [fit_across(rows[family], seed, epochs=SOURCE_EPOCHS)], " and ".join(sorted(set(rows[family].platforms)))
    return [], "the parameter file alone"


def _assemble(platform: str, name: str, done: Sequence[_Adapted], models: Sequence[Model], refused: int, seed: int
              ) -> Model:
    """Families, the sources' families that no run was made of, and bands from the errors of left-out runs."""
    families: dict[str, LearnedFamily] = {item.model.family: item.model for item in done}
    for model in models:
        for family in model.families:
            if family not in families:
                families[family] = taken = copy(model.families[family])
                taken.note = f"no run of {family} on {platform}: as {model.name} has it"
    size = {item.model.family: np.log(np.abs(item.error) + SMALLEST_SIGMA / 2.0) for item in done}
    whole = float(np.median(np.concatenate(list(size.values()))))
    typical = {f: float((np.median(v) * len(v) + whole * TYPICAL_ROWS) / (len(v) + TYPICAL_ROWS))
               for f, v in size.items()}
    typical[""] = max(whole, *typical.values())
    error = np.concatenate([item.error for item in done])
    label = np.concatenate([np.full(len(item.error), item.model.family) for item in done])
    analytic = np.sort(np.abs(np.concatenate([item.analytic for item in done])))[::-1]
    difficulty = models[0].difficulty if len(models) == 1 else None
    left_out = {item.model.family: {"kind": item.model.kind, "rows": len(item.error),
                                    **{name: 100.0 * value for name, value in item.scores.items()}}
                for item in done}
    at = np.concatenate([part.index for item in done for part in item.parts])
    meta: Meta = {"rows": len(error), "refused": refused, "seed": seed, "folds": 0, "left_out": left_out,
            "adapted_from": [m.name for m in models], "left_out_rows": {"at": at, "error": error},
            "settings": settings((*ROOMS, "adapting.corrections", "adapting.adapted", "adapting.adapt"))}
    bands = fit_bands(error, np.ones(len(error)), label)
    model = Model(platform, name, families, difficulty, typical, bands, analytic, meta)
    sigma = [model.sigma(item.model.family, part, *reversed(item.model.log_correction(part)))
             for item in done for part in item.parts]
    model.bands = fit_bands(error, np.concatenate(sigma), label)
    return model
