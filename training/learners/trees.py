"""Boosted trees: the one module that knows XGBoost.

A residual's trees are grown twice, for the mean and for the median, and made one: XGBoost sums its trees, so the
average of two boosters is one booster that holds the trees of both with halved leaves. It is stored, loaded and
explained like any other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...analytic.errors import InputError

Floats = NDArray[np.float64]

BOOSTER: dict[str, Any] = {
    "objective": "reg:absoluteerror",  # the median in log time: what relative error rewards, untouched by outliers
    "tree_method": "hist",
    "max_bin": 256,
    "learning_rate": 0.06,
    "grow_policy": "lossguide",
    "max_depth": 0,
    "max_leaves": 64,
    "min_child_weight": 1.5,
    "subsample": 0.85,
    "colsample_bytree": 1.0,
    "colsample_bynode": 0.6,  # columns dropped for a whole tree hide the flags that tell implementations apart
    "reg_lambda": 1.0,
}
ZERO_START: dict[str, Any] = {"base_score": 0.0, "boost_from_average": 0}
"""Settings of boosters to be averaged: both start from zero, so that only trees are left to add up."""


@dataclass(frozen=True)
class Trees:
    """A booster as a `Learner`."""

    booster: Any

    def predict(self, x: Floats) -> Floats:
        """What the trees say of rows x (n, columns), shape (n,)."""
        from xgboost import DMatrix

        return np.asarray(self.booster.predict(DMatrix(x)), dtype=np.float64)


def read_trees(data: bytes) -> Any:
    """A booster from the bytes of its file (UBJSON or JSON). ValueError where they are none."""
    from xgboost import Booster

    booster = Booster()
    booster.load_model(bytearray(data))
    return booster


def grow(x: Floats, y: Floats, settings: dict[str, Any], rounds: int, weight: Floats | None = None) -> Any:
    """A booster of `rounds` trees on (n, columns) features and (n,) targets, by XGBoost's own `settings`."""
    import xgboost

    return xgboost.train(settings, xgboost.DMatrix(x, label=y, weight=weight), num_boost_round=rounds)


def rounds_for(rows: int) -> int:
    """Boosting rounds by training rows: more data carries more trees before they only repeat the noise."""
    return int(np.clip(45.0 * np.sqrt(rows / 50.0), 100, 800))


def _by_size(rows: int) -> dict[str, Any]:
    """Settings that follow the number of training rows.

    Few rows: the mean of a smooth residual (squared loss), coarse bins, small trees. Many rows from several software
    stacks hold outliers that would drag a mean: the median (absolute loss) wins there on out-of-fold error.
    """
    if rows < 5_000:
        return {"objective": "reg:squarederror", "max_bin": 64, "max_leaves": 24, "learning_rate": 0.08, "nthread": 1}
    return {"max_leaves": 96 if rows > 50_000 else 64, "nthread": 1 if rows < 20_000 else 2}


def fit_booster(x: Floats, y: Floats, seed: int = 0, rounds: int | None = None, weight: Floats | None = None,
                **changes: Any) -> Any:
    """XGBoost regression trees on (n, columns) features and (n,) targets; deterministic for a seed."""
    # small families are fitted side by side, one thread each: threads inside a small fit only wait for each other
    settings = {**BOOSTER, **_by_size(len(y)), "seed": seed, **changes}
    return grow(x, y, settings, rounds or rounds_for(len(y)), weight)


PAIR_FROM = 5_000
"""Families with so many training rows carry large trees."""
SMALL_PAIR: dict[str, Any] = {"max_leaves": 32, "max_bin": 64, "learning_rate": 0.1, "nthread": 1}
PAIR: dict[str, Any] = {"max_leaves": 144, "max_bin": 64, "learning_rate": 0.07, "nthread": 1}
LOSSES: tuple[dict[str, Any], ...] = (
    {"objective": "reg:absoluteerror", "min_child_weight": 1.5},
    {"objective": "reg:squarederror", "min_child_weight": 3.0},
)


def pair_rounds(rows: int) -> int:
    """Boosting rounds of each of the pair in a large family."""
    return int(np.clip(20.0 * np.sqrt(rows / 100.0), 200, 500))


def small_rounds(rows: int) -> int:
    """Boosting rounds of each of the pair in a small family: together about the leaves one booster would have."""
    return int(0.6 * rounds_for(rows))


def fit_trees(x: Floats, y: Floats, seed: int = 0) -> Any:
    """The trees of a residual: the average of a booster for the mean and one for the median.

    Outliers drag a mean, and ties leave a median ragged: the average of both errs less than either.
    """
    shape, rounds = (SMALL_PAIR, small_rounds(len(y))) if len(y) < PAIR_FROM else (PAIR, pair_rounds(len(y)))
    with ThreadPoolExecutor(len(LOSSES)) as pool:
        # one thread each: threads inside a fit wait for each other wherever cores are shared
        fits = [pool.submit(fit_booster, x, y, seed, rounds, **{**shape, **loss, **ZERO_START}) for loss in LOSSES]
    return average([fit.result() for fit in fits])


def _trees(model: dict[str, Any]) -> dict[str, Any]:
    trees: dict[str, Any] = model["learner"]["gradient_booster"]["model"]
    return trees


def _start(model: dict[str, Any]) -> float:
    text = str(model["learner"]["learner_model_param"]["base_score"]).strip("[]")
    return float(text)


def _shrunk(tree: dict[str, Any], share: float, number: int) -> dict[str, Any]:
    """A tree whose leaves count for `share`: a leaf's value lies where an inner node keeps its threshold."""
    leaf = [child == -1 for child in tree["left_children"]]
    values = [v * share if is_leaf else v for v, is_leaf in zip(tree["split_conditions"], leaf, strict=True)]
    weights = [v * share for v in tree["base_weights"]]
    return {**tree, "id": number, "split_conditions": values, "base_weights": weights}


def average(boosters: Sequence[Any]) -> Any:
    """One booster that predicts the mean of `boosters` (same columns, all trained with ZERO_START)."""
    models = [json.loads(bytes(booster.save_raw("json"))) for booster in boosters]
    if any(abs(_start(model)) > 1e-6 for model in models):
        raise InputError("boosters to be averaged must start from zero (base_score)")
    share = 1.0 / len(models)
    merged = [tree for model in models for tree in _trees(model)["trees"]]
    out = models[0]
    target = _trees(out)
    target["trees"] = [_shrunk(tree, share, number) for number, tree in enumerate(merged)]
    target["tree_info"] = [0] * len(merged)
    target["iteration_indptr"] = list(range(len(merged) + 1))
    target["gbtree_model_param"]["num_trees"] = str(len(merged))
    return read_trees(json.dumps(out).encode())


COVER_BITS = 4
"""Significant bits of a cover that ships: rows through a node to 3 %, for a tenth more of the file."""


def without_statistics(booster: Any) -> Any:
    """The same trees without what only growing them needed: gains and inner weights become zeros.

    Predictions are bit-identical; the compressed file is near half as large. Importances by gain are gone with them.
    Covers stay, to COVER_BITS: without them no prediction can be traced to its columns (Lundberg et al. 2020).
    """
    model = json.loads(bytes(booster.save_raw("json")))
    for tree in _trees(model)["trees"]:
        for name in ("base_weights", "loss_changes"):
            tree[name] = [0.0] * len(tree[name])
        mantissa, exponent = np.frexp(np.asarray(tree["sum_hessian"], dtype=np.float64))
        tree["sum_hessian"] = np.ldexp(np.round(mantissa * 2.0**COVER_BITS) / 2.0**COVER_BITS, exponent).tolist()
    return read_trees(json.dumps(model).encode())
