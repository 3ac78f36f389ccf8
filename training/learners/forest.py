"""Two boosters made one: the average of trees grown for the mean and of trees grown for the median.

XGBoost sums its trees, so the average of two boosters is one booster that holds the trees of both with halved leaves.
It is stored, loaded and explained like any other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...analytic.errors import InputError

ZERO_START: dict[str, Any] = {"base_score": 0.0, "boost_from_average": 0}
"""Settings of boosters to be averaged: both start from zero, so that only trees are left to add up."""


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
    from xgboost import Booster

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
    joined = Booster()
    joined.load_model(bytearray(json.dumps(out).encode()))
    return joined


def without_statistics(booster: Any) -> Any:
    """The same trees without what only growing them needed: gains, covers and inner weights become zeros.

    Predictions are bit-identical; the compressed file is half as large. Importances by gain are gone with them.
    """
    from xgboost import Booster

    model = json.loads(bytes(booster.save_raw("json")))
    for tree in _trees(model)["trees"]:
        for name in ("base_weights", "loss_changes", "sum_hessian"):
            tree[name] = [0.0] * len(tree[name])
    bare = Booster()
    bare.load_model(bytearray(json.dumps(model).encode()))
    return bare
