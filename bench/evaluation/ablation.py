"""What each part of the hybrid buys: the same trees with and without the analytic baseline and its features."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...features.describe import describe
from ...training.hybrid.encode import Encoder
from ...training.hybrid.family import Part, by_family, fit_family, part_of, reference_implementations
from ...training.hybrid.metrics import summary
from ...training.learners.residual import FEWEST_ROWS, to_residual, to_time
from ...training.learners.trees import Trees, fit_booster
from .score import Parts

Floats = NDArray[np.float64]
_OWN_SIZES = ("align_", "pow2_", "pad_")
_AMOUNTS = ("log2_flop", "log2_byte", "element_byte", "cold")
VARIANTS = {
    "hybrid_trees": "trees on log(T / calibrated analytic), all features",
    "without_features": "trees on log(T / calibrated analytic), no analytic feature",
    "log_time_all": "trees on log T directly, all features",
    "log_time_raw": "the residual alone: trees on log T, no analytic feature",
    "calibrated": "the calibrated analytic alone",
    "analytic": "the analytic alone, as shipped",
}


def analytic_columns(names: Sequence[str], sizes: Sequence[str]) -> NDArray[np.bool_]:
    """True for the feature columns that come from the baseline or from the platform, not from the problem itself."""
    own = {f"log2_{size}" for size in sizes} | set(sizes) | set(_AMOUNTS)
    return np.array([not (name in own or name.startswith(_OWN_SIZES) or "=" in name) for name in names])


def _predict(variant: str, train: tuple[Floats, Floats, Floats], test: tuple[Floats, Floats], hidden: NDArray[np.bool_]
             ) -> Floats:
    """Times [s] of the test rows by one variant: train = (x, base, time), test = (x, base)."""
    x, base, time_s = train
    asked, asked_base = test
    if not variant.startswith(("hybrid", "without")):
        base, asked_base = np.ones_like(base), np.ones_like(asked_base)
    if variant in ("without_features", "log_time_raw"):
        x, asked = x[:, ~hidden], asked[:, ~hidden]
    trees = Trees(fit_booster(x, to_residual(time_s, base)))
    return to_time(trees.predict(asked), asked_base)


def ablation(parts: Parts) -> dict[str, Any]:
    """{variant: errors} on the test rows; every variant sees the same rows, folds and tree settings."""
    from ...analytic.families import FAMILIES

    start = time.perf_counter()
    seen, asked = describe(parts.train), describe(parts.test)
    time_s = np.asarray(parts.train["time_s"], dtype=float)
    found = {name: np.full(len(parts.test), np.nan) for name in VARIANTS}
    wanted = by_family(asked.groups)
    for family, groups in by_family(seen.groups).items():
        if family not in wanted:
            continue
        reference = reference_implementations(groups)
        own = [part_of(group, reference) for group in groups]
        held = [part_of(group, reference) for group in wanted[family]]
        model = fit_family(family, own, [time_s[p.index] for p in own], reference, learn=False)
        index = np.concatenate([p.index for p in held])
        base = np.concatenate([model.calibrated_s(p) for p in held])
        found["calibrated"][index], found["analytic"][index] = base, asked.baseline_s[index]
        train = (_stack(model.encoder, own), np.concatenate([model.calibrated_s(p) for p in own]),
                 np.concatenate([time_s[p.index] for p in own]))
        sizes = [p.name for p in FAMILIES[family].params]
        hidden = analytic_columns(model.encoder.columns, sizes)
        for variant in ("hybrid_trees", "without_features", "log_time_all", "log_time_raw"):
            if len(train[2]) < FEWEST_ROWS:
                found[variant][index] = base
                continue
            found[variant][index] = _predict(variant, train, (_stack(model.encoder, held), base), hidden)
    measured = np.asarray(parts.test["time_s"], dtype=float)
    ok = np.isfinite(found["calibrated"])
    return {
        "n_train": len(parts.train), "n_test": int(ok.sum()),
        "variants": {name: summary(values[ok], measured[ok]) for name, values in found.items()},
        "seconds": time.perf_counter() - start,
    }


def _stack(encoder: Encoder, parts: Sequence[Part]) -> Floats:
    return np.concatenate([encoder.matrix(part.rows) for part in parts])
