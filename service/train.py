"""Training as a service: score on held-out groups, fit on all rows, store, track, and decide on the champion."""

from __future__ import annotations

import datetime
import hashlib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..analytic.errors import InputError
from ..analytic.platform import Platform, load_platform
from ..registry import index, tracking
from ..registry.heldout import duel, record_of
from ..registry.home import check_writable, models_folder

if TYPE_CHECKING:
    import pandas as pd

    from ..training.hybrid.compare import Comparison
    from ..training.hybrid.fit import Progress
    from ..training.hybrid.model import Model

FEWEST_HELD_OUT = 40
"""Below this a fifth of the rows is too few to score on: the model is trained and stored without a comparison."""


@dataclass(frozen=True)
class Trained:
    """A freshly trained model and what became of it."""

    model: Model
    comparison: Comparison | None
    champion: bool
    verdict: str
    """Whether it is the champion now, and why, in words."""
    logged: tracking.Logged | None = None


def parameters_digest(platform: Platform) -> str:
    """Fingerprint of a platform's parameter values: a model belongs to the baseline that they give."""
    values = sorted((p.name, p.value) for p in platform.parameters.values())
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]


def train_platforms(
    frame: pd.DataFrame,
    *,
    name: str | None = None,
    register: bool = True,
    runs: str = "",
    seed: int = 0,
    level: float = 0.9,
    quick: bool = False,
    progress: Progress | None = None,
) -> list[Trained]:
    """Train a model for each platform of a validated run table. InputError for a store that cannot be written.

    quick: fewer trees, no Gaussian process; said in the model's meta.

    The store is tried before training, so that an hour of work does not end in a locked file.
    """
    platforms = sorted(set(frame["platform"].astype(str)))
    if name is not None:
        index.check_name(name)
    if register:
        check_writable(models_folder())
        tracking.check_store()
    out = []
    for platform in platforms:
        part = frame[frame["platform"].astype(str) == platform].reset_index(drop=True)
        own = index.default_name(platform) if name is None else name if len(platforms) == 1 else f"{name}-{platform}"
        model, comparison = fit_scored(part, own, runs=runs, seed=seed, level=level, quick=quick, progress=progress)
        out.append(_keep(model, comparison) if register else Trained(model, comparison, False, "not registered"))
    return out


def fit_scored(
    frame: pd.DataFrame,
    name: str,
    *,
    runs: str = "",
    seed: int = 0,
    level: float = 0.9,
    quick: bool = False,
    progress: Progress | None = None,
) -> tuple[Model, Comparison | None]:
    """A model of one platform fitted to all rows, and the comparison on groups held out from a first fit."""
    from ..training.hybrid.compare import compare_split
    from ..training.hybrid.fit import fit_model, refit_model
    from ..training.tables.schema import runs_digest
    from ..training.tables.splits import holdout

    comparison = None
    test = holdout(frame["group"], seed=seed)
    with _quiet_fits():
        if len(frame) >= FEWEST_HELD_OUT and test.any() and not test.all():
            comparison = compare_split(frame, seed=seed, level=level, quick=quick, progress=progress)
            checked = comparison.models[frame["platform"].iloc[0]]
            model = refit_model(frame, checked, name=name, seed=seed, progress=progress)
        else:
            model = fit_model(frame, name=name, seed=seed, quick=quick, progress=progress)
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    model.meta |= {
        "trained": now.isoformat(),
        "runs": runs,
        "runs_digest": runs_digest(frame),
        "parameters_digest": parameters_digest(load_platform(model.platform)),
        "kernelcast": _version(),
    }
    if comparison is not None:
        total = comparison.records[0]
        model.meta["heldout"] = {"n": total["n"], "split": total["split"], **total["hybrid"]}
        model.meta["comparison"] = comparison.records
        model.meta["record"] = record_of(frame, comparison.rows)
    return model, comparison


@contextmanager
def _quiet_fits() -> Iterator[None]:
    """Length scales at the edge of their range are no news; fits run in threads, which see the filters of this one."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _version() -> str:
    from .. import __version__

    return __version__


def _judge(model: Model, comparison: Comparison | None) -> tuple[bool, str]:
    """(becomes champion, why): where there is none always, else only if a paired test on held-out rows says so."""
    try:
        rival = index.open_champion(model.platform)
    except InputError as fault:  # the message tells people to train anew: this is how that mends it
        return True, f"the one before cannot be used: {fault}"
    if rival is None:
        return True, f"first model of {model.platform}"
    against = index.label(rival)
    found = None if comparison is None else duel(comparison.rows, rival)
    if found is None:
        return False, f"not tested: no held-out rows in common with {against}; `kernelcast promote` decides by hand"
    return found.verdict.better, f"{found.verdict.words}, against {against}"


def _keep(model: Model, comparison: Comparison | None, judged: tuple[bool, str] | None = None) -> Trained:
    """Store, track and, where it is better, promote; whatever fails leaves neither folder nor pointer behind.

    judged: (becomes champion, why) where the caller has decided that by other means than held-out groups.
    """
    champion, why = judged or _judge(model, comparison)
    entry = index.add_model(model)
    records = [] if comparison is None else comparison.records
    logged: tracking.Logged | None = None
    before = index.pointer_bytes(model.platform)
    try:
        logged = tracking.log_training(
            model.platform,
            model.name,
            entry.version,
            entry.folder,
            params=_params(model),
            metrics=tracking.metric_items(records) | _sizes(model),
            tags=_tags(model, entry.version),
        )
        if champion:
            index.point_champion(entry)
            tracking.give_alias(logged)
    except BaseException:  # Ctrl-C included: half a registration is worse than none
        index.restore_pointer(model.platform, before)
        index.drop_model(entry)
        if logged is not None:
            tracking.take_back(logged)
        raise
    verdict = f"champion of {model.platform}: {why}" if champion else f"not the champion of {model.platform}: {why}"
    return Trained(model, comparison, champion, verdict, logged)


def _params(model: Model) -> dict[str, Any]:
    keys = ("rows", "refused", "seed", "folds", "runs_digest", "runs")
    return {key: model.meta[key] for key in keys if key in model.meta} | {
        "platform": model.platform,
        "families": len(model.families),
    }


def _sizes(model: Model) -> dict[str, float]:
    return {f"{name}.training_rows": float(family.rows) for name, family in model.families.items()} | {
        "all.training_rows": float(model.meta["rows"])
    }


def _tags(model: Model, version: str) -> dict[str, str]:
    meta = model.meta
    return {
        "kernelcast.platform": model.platform,
        "kernelcast.model": f"{model.name}@{version}",
        "kernelcast.runs_digest": str(meta["runs_digest"]),
        "kernelcast.runs": str(meta["runs"] or "table"),
        "kernelcast.rows": str(meta["rows"]),
        "kernelcast.version": str(meta["kernelcast"]),
    }


def promote(name: str, platforms: Sequence[str] = ()) -> index.Entry:
    """Make NAME or NAME@VERSION the champion of its platform. InputError where no or several platforms fit."""
    ids = [load_platform(p).id for p in platforms]
    wanted, _, version = name.partition("@")
    known = [e for e in index.entries() if not ids or e.platform in ids]
    fitting = [e for e in known if e.name == wanted and (not version or e.version == version)]
    found = sorted({e.platform for e in fitting})
    if not found:
        from ..analytic.errors import nearest_names

        labels = {e.label for e in known} | {e.name for e in known}
        raise InputError(f"no model {name!r}{nearest_names(name, labels) if labels else '; there is none yet'}")
    if len(found) > 1:
        raise InputError(f"{name} is a model of {', '.join(found)}; say which with -p PLATFORM")
    entry = index.find_entry(found[0], name)
    before = index.pointer_bytes(entry.platform)
    index.point_champion(entry)
    try:
        tracking.move_alias(entry.name, entry.platform, entry.version)
    except BaseException:  # champion here and not there would be half a promotion
        index.restore_pointer(entry.platform, before)
        raise
    return entry
