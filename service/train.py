"""Training as a service: score on held-out groups, fit on all rows, store, track, and decide on the champion."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..analytic.platform import load_platform
from ..registry import index
from ..registry.heldout import record_of
from ..registry.origin import origin
from ..registry.publish import Trained, check_store, publish
from .batch import checked_runs

if TYPE_CHECKING:
    import pandas as pd

    from ..training.hybrid.compare import Comparison
    from ..training.hybrid.fit import Progress
    from ..training.hybrid.model import Model

FEWEST_HELD_OUT = 40
"""Below this a fifth of the rows is too few to score on: the model is trained and stored without a comparison."""


def train(frame: pd.DataFrame, *, name: str | None = None, register: bool = True, seed: int = 0
          ) -> Model | dict[str, Model]:
    """Train the hybrid on measured runs (time_s in seconds): a Model for one platform, a dict by platform for several.

    name: of the model, `kernelcast-PLATFORM` where left out; several platforms get it with theirs behind. register:
    store and track the models, and make each the champion of its platform where there is none, or where a paired test
    on the same held-out rows says it is better; False only fits and scores. Raises InputError for a bad table or store.
    """
    trained = train_platforms(checked_runs(frame), name=name, register=register, runs="table", seed=seed)
    models = {item.model.platform: item.model for item in trained}
    names = sorted(models)
    return models[names[0]] if len(names) == 1 else models


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
        check_store()
    out = []
    for platform in platforms:
        part = frame[frame["platform"].astype(str) == platform].reset_index(drop=True)
        own = index.default_name(platform) if name is None else name if len(platforms) == 1 else f"{name}-{platform}"
        model, comparison = fit_scored(part, own, runs=runs, seed=seed, level=level, quick=quick, progress=progress)
        out.append(publish(model, comparison) if register else Trained(model, comparison, False, "not registered"))
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
    model.meta |= origin(frame, load_platform(model.platform), runs)
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
