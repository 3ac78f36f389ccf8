"""Adapting as a service: find the source, adapt, judge against the champion by runs left out, store and track."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analytic.errors import InputError, nearest_names
from ..analytic.platform import Platform, load_platform
from ..registry import index
from ..registry.origin import origin
from ..registry.promotion import Verdict, paired_better
from ..registry.publish import Trained, check_store, publish
from ..training.tables.shipped import shipped_tables
from .batch import check_frame, checked_runs

if TYPE_CHECKING:
    import pandas as pd

    from ..training.hybrid.model import Model

ALONE = "parameters"
"""Name that asks for no source at all: the parameter file alone."""


def adapt(frame: pd.DataFrame, *, platform: str | Platform, source: str | None = None, name: str | None = None,
          register: bool = True, seed: int = 0) -> Model:
    """Adapt to a platform from a few measured runs of it (time_s in seconds), starting from another model.

    source: NAME, NAME@VERSION, a model folder or a platform (its champion); the shipped model across platforms where
    left out, `parameters` for the parameter file alone. name: `kernelcast-PLATFORM-adapted` where left out. register:
    store and track it, and make it the champion where there is none, or where it is better on runs left out. Raises
    InputError for a bad table or store, an unknown source, or where no run is of the platform.
    """
    return adapt_platform(checked_runs(frame), platform, source=source, name=name, runs="table", seed=seed,
                          register=register).model


def suggest(platform: str | Platform, n: int = 20, *, source: str | None = None, candidates: pd.DataFrame | None = None,
            measured: pd.DataFrame | None = None, families: Sequence[str] = (), seed: int = 0
            ) -> pd.DataFrame:
    """The n runs to measure on a platform next, most telling first: a run table without times.

    source: as `adapt` takes it. candidates: a table to choose from, the shipped runs where left out; `families`: only
    these of it. measured: runs of the platform that are there already. Adds expected_s, the time [s] as the source has
    it. Raises InputError where there is no candidate or n is less than 1.
    """
    from ..training.adapting.suggest import candidate_pool
    from ..training.adapting.suggest import suggest as choose

    target = load_platform(platform) if isinstance(platform, str) else platform
    pool = candidate_pool(target.id) if candidates is None else candidates
    for table in (pool, *([] if measured is None else [measured])):
        check_frame(table)
    if families:
        pool = pool[pool["kernel"].isin(families)]
        if pool.empty:
            raise InputError(f"no candidate of {', '.join(families)}; give a table with --candidates FILE")
    if measured is not None:
        measured = measured[measured["platform"].astype(str) == target.id]
    return choose(target, n, find_source(source, target.id), pool, measured=measured, seed=seed)


def find_source(name: str | None, target: str) -> Model | None:
    """The model to start from. NAME, NAME@VERSION, a model folder, or the id of a platform (its champion).

    None takes the model across platforms that ships, where there is one. `parameters` starts from the parameter file
    alone. InputError where no model has that name.
    """
    if name == ALONE:
        return None
    if name is None:
        return index.open_transfer()
    if index.is_path(name):
        return index.open_folder(index.model_folder(name))
    wanted, _, version = name.partition("@")
    known = index.entries()
    fitting = [e for e in known if e.name == wanted and (not version or e.version == version)]
    fitting = [e for e in fitting if e.platform != target] or fitting
    if fitting:
        return index.open_model(fitting[-1].platform, fitting[-1].label)
    champion = index.open_champion(wanted) if not version and wanted in {e.platform for e in known} else None
    if champion is None:
        names = {e.name for e in known} | {e.platform for e in known}
        hint = nearest_names(name, names) if names else ""
        raise InputError(f"no model {name!r} to start from{hint}; --from {ALONE} starts from the parameter file alone")
    return champion


def source_runs(source: Model | None, target: str, few: pd.DataFrame) -> pd.DataFrame | None:
    """Shipped runs of the source's platform of the families at hand, for the joint learners; None where none ship."""
    from ..training.tables.shipped import read_tables

    path = None if source is None or source.platform == target else shipped_tables().get(source.platform)
    if path is None:
        return None
    frame, _ = read_tables([path])
    frame = frame[frame["kernel"].isin(set(few["kernel"]))].reset_index(drop=True)
    return frame if len(frame) else None


def adapt_platform(few: pd.DataFrame, platform: Platform | str, *, source: str | None = None, name: str | None = None,
                   runs: str = "", seed: int = 0, register: bool = True) -> Trained:
    """Adapt to a platform from a few runs of it, store the model, and make it the champion if it is the better one.

    Without a champion it becomes it; against one it must win a paired test on the runs, each predicted by a fit that
    left it out. InputError for an unknown source, no usable run, or a store that cannot be written.
    """
    from ..training.adapting.adapt import adapt_model

    target = load_platform(platform) if isinstance(platform, str) else platform
    own = index.check_name(name or f"{index.default_name(target.id)}-adapted")
    if register:
        check_store()
    start = find_source(source, target.id)
    here = few[few["platform"].astype(str) == target.id].reset_index(drop=True)
    model = adapt_model(few, target, start, source_rows=source_runs(start, target.id, few), name=own, seed=seed)
    model.meta |= {**origin(here, target, runs), "heldout": _heldout(model)}
    if not register:
        return Trained(model, None, False, "not registered")
    return publish(model, None, judge(model, here, target))


def _heldout(model: Model) -> dict[str, Any]:
    error = np.abs(np.expm1(-model.meta["left_out_rows"]["error"]))
    return {"n": len(error), "split": "each run predicted by a fit that left it (and its group) out",
            "mape": 100.0 * float(error.mean()), "median_ape": 100.0 * float(np.median(error)),
            "p90_ape": 100.0 * float(np.quantile(error, 0.9))}


def judge(model: Model, few: pd.DataFrame, target: Platform) -> tuple[bool, str]:
    """(whether the adapted model becomes champion, why)."""
    rival = index.open_champion(target.id)
    if rival is None:
        return True, f"{target.id} had no model"
    verdict = against(model, few, rival, target)
    return verdict.better, f"{verdict.words} (against {index.label(rival)}, runs left out)"


def against(model: Model, few: pd.DataFrame, rival: Model, target: Platform) -> Verdict:
    """Paired test of an adapted model's left-out errors against another model's errors on the same runs."""
    from ..features.describe import describe

    rows = model.meta["left_out_rows"]
    at = np.asarray(rows["at"], dtype=np.intp)
    predicted = rival.predict(describe(few, {target.id: target})).predicted_s[at]
    with np.errstate(divide="ignore", invalid="ignore"):
        old = np.log(np.asarray(few["time_s"], dtype=np.float64)[at] / predicted)
    group = np.asarray(few["group"].astype(str))[at] if "group" in few else None
    return paired_better(np.asarray(rows["error"]), old, group)
