"""One model across platforms, for a platform without a champion: dimensionless features, bands from left-out GPUs.

A platform is known to it by its parameter file alone: the baseline, and ratios made of it. It sees no absolute seconds
and no platform's name, so what it learns (how far a product with this tail, this alignment, this intensity strays from
the baseline) can carry over; that it does is measured by leaving each platform out in turn, and the band of an unseen
platform is the one that the worst of them would have needed.

    python -m kernelcast.bench.ship _transfer         puts the one that ships into configs/champions/_transfer
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...analytic.errors import InputError
from ...analytic.families import FAMILIES
from ...analytic.platform import Platform, load_platform
from ...features.describe import Group, describe
from ...features.families import UNSTEADY
from ..hybrid.bands import Bands, midpoints
from ..hybrid.calibration import TERMS, Calibration, fit_calibration
from ..hybrid.domain import fit_domain
from ..hybrid.encode import Encoder
from ..hybrid.family import FamilyModel, Part, part_of, reference_implementations
from ..hybrid.meta import TRANSFER, Meta
from ..hybrid.model import SMALLEST_SIGMA, Model, difficulty_rows, typical_of
from ..hybrid.settings import ROOMS, settings
from ..learners.network import fit_network
from ..learners.residual import FEWEST_ROWS, Residual, to_residual
from ..learners.trees import Trees, fit_booster

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

MOST_ROWS = 5000
"""Rows of one family and platform that are learned from: no platform may outvote the others."""
MOST_SCORES = 300
ABSOLUTE = frozenset({
    "log2_base", "log2_flop", "log2_byte", "log2_reread", "log2_working_set", "log2_mn", "log2_waves",
    "log2_threads_per_unit",
})
"""Columns that are an amount or a time: the same value is small work on one platform and large on another."""
TREES: dict[str, Any] = {
    "objective": "reg:squarederror", "grow_policy": "depthwise", "max_depth": 7, "max_leaves": 0, "max_bin": 128,
    "min_child_weight": 2.0, "subsample": 0.8, "colsample_bynode": 0.5,
}
ROUNDS = 250
NETWORK_FROM = 1000
"""Rows from which on a network may join the trees."""


@dataclass(frozen=True)
class Across:
    """Rows of one family on several platforms, ready to learn from."""

    family: str
    parts: tuple[Part, ...]
    times: tuple[Floats, ...]
    platforms: tuple[str, ...]
    """Platform of each part."""
    reference: Mapping[str, str] = field(default_factory=dict)

    def without(self, platform: str) -> Across:
        keep = [i for i, name in enumerate(self.platforms) if name != platform]
        return self._of(keep)

    def only(self, platform: str) -> Across:
        return self._of([i for i, name in enumerate(self.platforms) if name == platform])

    def _of(self, keep: Sequence[int]) -> Across:
        return replace(self, parts=tuple(self.parts[i] for i in keep), times=tuple(self.times[i] for i in keep),
                       platforms=tuple(self.platforms[i] for i in keep))

    @property
    def rows(self) -> int:
        return sum(len(t) for t in self.times)

    def stacked(self) -> tuple[Floats, NDArray[Any], Floats]:
        """(terms, regime, time [s]) of all rows."""
        return (np.concatenate([p.terms for p in self.parts]), np.concatenate([p.regime for p in self.parts]),
                np.concatenate(self.times))


def across_platforms(frame: pd.DataFrame, platforms: Mapping[str, Platform] | None = None, *, most: int = MOST_ROWS,
                     seed: int = 0) -> dict[str, Across]:
    """Described rows of a table of several platforms by family, at most `most` of each family and platform."""
    frame = frame.reset_index(drop=True)
    keys = [frame["platform"].astype(str), frame["kernel"].astype(str)]
    order = np.random.default_rng(seed).permutation(len(frame))
    rank = frame.iloc[order].groupby([k.iloc[order] for k in keys], sort=False).cumcount()
    thin = frame[(rank.sort_index() < most).to_numpy()].reset_index(drop=True)
    time_s = np.asarray(thin["time_s"], dtype=np.float64)
    name_of = np.asarray(thin["platform"].astype(str))
    described = describe(thin, dict(platforms) if platforms else None)
    by_family: dict[str, list[Group]] = {}
    for group in described.groups:
        by_family.setdefault(group.family, []).append(group)
    out = {}
    for family, groups in by_family.items():
        reference = reference_implementations(groups)
        parts = tuple(part_of(group, reference) for group in groups)
        out[family] = Across(family, parts, tuple(time_s[p.index] for p in parts),
                             tuple(str(name_of[p.index[0]]) for p in parts), reference)
    return out


KINDS = ("trees", "multipliers", "baseline")
"""What of a family is carried over: trees on pooled multipliers, the multipliers alone, nothing but the baseline."""


def fit_across(rows: Across, seed: int = 0, rounds: int = ROUNDS, *, kind: str = "trees", epochs: int = 0
               ) -> FamilyModel:
    """One family on several platforms: pooled multipliers, trees on dimensionless columns; less by `kind` of KINDS.

    epochs: of a network beside the trees, where there are rows enough for one.
    """
    whole = Encoder.fit([part.rows for part in rows.parts])
    unsteady = UNSTEADY.get(rows.family, ())
    kept = [name for name in whole.names if name not in ABSOLUTE and not name.startswith(unsteady)]
    encoder = Encoder(kept, whole.labels)
    terms, regime, time_s = rows.stacked()
    calibration = _plain() if kind == "baseline" else _calibrate(rows.family, terms, regime, time_s)
    residual = None
    if kind == "trees" and len(time_s) >= FEWEST_ROWS:
        x = np.concatenate([encoder.matrix(part.rows) for part in rows.parts])
        y = to_residual(time_s, calibration.predict_s(terms, regime))
        residual = Residual(fit_booster(x, y, seed, rounds, **TREES), None, 0.0)
        if epochs and len(y) >= NETWORK_FROM:
            residual = replace(residual, process=fit_network(x, y, seed, epochs=epochs), smooth_share=0.5)
    domain = fit_domain(rows.family, [p.rows for p in rows.parts])
    model = FamilyModel(rows.family, encoder, domain, dict(rows.reference), len(time_s), calibration=calibration,
                        residual=residual)
    seen = ", ".join(sorted(set(rows.platforms)))
    model.note = f"no run of this platform in training: {_CARRIED[kind]} {seen}"
    return model


_CARRIED = {
    "trees": "one model across", "multipliers": "analytic terms calibrated across",
    "baseline": "the analytic baseline, which nothing learned improved across",
}


def _plain() -> Calibration:
    return Calibration((np.arange(len(TERMS)) == TERMS.index("baseline")).astype(np.float64))


def _calibrate(family: str, terms: Floats, regime: NDArray[Any], time_s: Floats) -> Calibration:
    """Pooled multipliers, the launch counted once.

    On one platform launch and constant are nearly one term, and how a fit divides them is chance: fifteen times the
    launch of one vendor would become fifteen times that of another. What a floor has beyond the launch is the constant.
    Rounds carry over only where the family says so (`Family.keeps_rounds`): SpMV on MI250X from A100 was 97 instead of
    32 % off in one of six held-out draws of collections with those of rows.
    """
    launch = TERMS.index("launch")
    once = terms[:, launch]
    rest = terms.copy()
    rest[:, launch] = 0.0
    keeps = FAMILIES[family].keeps_rounds
    if not keeps:
        rest[:, TERMS.index("rounds")] = 0.0
    found = fit_calibration(rest, regime, np.maximum(time_s - once, 0.2 * time_s))
    for multipliers in (found.whole, *found.regimes.values()):
        multipliers[launch] = 1.0
        multipliers[TERMS.index("rounds")] *= keeps
    return found


def error_of(model: FamilyModel, rows: Across) -> tuple[Floats, Floats]:
    """(log(measured ÷ predicted), correction) of each row."""
    corrections = [model.log_correction(part)[0] for part in rows.parts]
    base = [model.calibrated_s(part) for part in rows.parts]
    correction = np.concatenate(corrections)
    return to_residual(np.concatenate(rows.times), np.concatenate(base)) - correction, correction


@dataclass(frozen=True)
class LeftOut:
    """One family on one platform, predicted by a model of the other platforms."""

    family: str
    platform: str
    kind: str
    rows: Across
    error: Floats
    correction: Floats


def leave_one_out(table: Mapping[str, Across], seed: int = 0, rounds: int = ROUNDS) -> list[LeftOut]:
    """Each platform predicted by a model of the others, family by family, as the best of KINDS over the platforms.

    Families of one platform are passed over: nothing can be left out.
    """
    out: list[LeftOut] = []
    for family, rows in sorted(table.items()):
        names = sorted(set(rows.platforms))
        if len(names) < 2:
            continue
        tried = {kind: [_without(rows, family, name, kind, seed, rounds) for name in names] for kind in KINDS}
        best = min(tried, key=lambda kind: _loss(tried[kind]))
        out += tried[best]
    return out


def _without(rows: Across, family: str, name: str, kind: str, seed: int, rounds: int) -> LeftOut:
    held = rows.only(name)
    model = fit_across(rows.without(name), seed, rounds, kind=kind)
    return LeftOut(family, name, kind, held, *error_of(model, held))


def _loss(left: Sequence[LeftOut]) -> float:
    """Mean over platforms of the mean relative error: each platform counts alike."""
    return float(np.mean([np.mean(np.abs(np.expm1(-item.error))) for item in left]))


def _typical(left: Sequence[LeftOut]) -> dict[str, float]:
    size = {family: np.concatenate([np.log(np.abs(item.error) + SMALLEST_SIGMA / 2.0)
                                    for item in left if item.family == family])
            for family in {item.family for item in left}}
    typical = {family: float(np.median(values)) for family, values in size.items()}
    # a family that could not be left out is taken for as hard as the hardest that could
    return typical | {"": max(typical.values(), default=float(np.log(0.5)))}


def _difficulty_matrix(item: LeftOut, typical: dict[str, float]) -> Floats:
    ends = np.cumsum([len(t) for t in item.rows.times])
    return np.concatenate([
        difficulty_rows(part.rows, typical_of(typical, item.family, part.regime), np.zeros(len(t)),
                        item.correction[end - len(t):end])
        for part, t, end in zip(item.rows.parts, item.rows.times, ends, strict=True)
    ])


def _calibrated_bands(left: Sequence[LeftOut], typical: dict[str, float], seed: int) -> tuple[Any, Bands]:
    """(difficulty, bands): of every family the scores of the platform that was predicted worst."""
    matrices = [_difficulty_matrix(item, typical) for item in left]
    sizes = [np.log(np.abs(item.error) + SMALLEST_SIGMA / 2.0) for item in left]
    names = [item.platform for item in left]

    def fit(skip: str) -> Any:
        kept = [i for i, name in enumerate(names) if name != skip]
        x, y = np.concatenate([matrices[i] for i in kept]), np.concatenate([sizes[i] for i in kept])
        return fit_booster(x, y, seed, rounds=80, objective="reg:squarederror", grow_policy="depthwise", max_depth=3,
                           max_leaves=0, learning_rate=0.05, min_child_weight=50, subsample=0.7)

    scores: dict[str, dict[str, Floats]] = {}
    for name in sorted(set(names)):
        model = fit(name) if len(set(names)) > 1 else None
        for item, x in zip(left, matrices, strict=True):
            if item.platform == name:
                expected = Trees(model).predict(x) if model is not None else np.full(len(x), typical[""])
                sigma = np.maximum(np.exp(expected), SMALLEST_SIGMA)
                scores.setdefault(item.family, {})[name] = np.abs(item.error) / sigma
    worst = {family: _thin(max(by.values(), key=lambda s: float(np.quantile(s, 0.9)))) for family, by in scores.items()}
    pooled = np.sort(np.concatenate(list(worst.values())))[::-1] if worst else np.zeros(0)
    return fit(""), Bands(_thin(pooled), worst)


def _thin(scores: Floats) -> Floats:
    """At most MOST_SCORES scores with the same quantiles, sorted downwards."""
    if len(scores) <= MOST_SCORES:
        return np.sort(scores)[::-1]
    return np.quantile(scores, midpoints(MOST_SCORES))[::-1].copy()


def fit_transfer(frame: pd.DataFrame, *, platforms: Mapping[str, Platform] | None = None, name: str = TRANSFER,
                 seed: int = 0, most: int = MOST_ROWS, rounds: int = ROUNDS) -> Model:
    """The model across platforms of a run table of several of them. InputError where there are fewer than two.

    `meta["left_out"]` holds the error of each family on each platform when that platform was left out.
    """
    known = sorted(set(frame["platform"].astype(str)))
    if len(known) < 2:
        held = ", ".join(known) or "none"
        raise InputError(f"a model across platforms needs runs of at least two; the table holds {held}")
    table = across_platforms(frame, platforms, most=most, seed=seed)
    left = leave_one_out(table, seed, rounds)
    if not left:
        raise InputError("no kernel family was measured on two platforms: nothing can be left out")
    typical = _typical(left)
    difficulty, bands = _calibrated_bands(left, typical, seed)
    kinds = {item.family: item.kind for item in left}
    families = {family: fit_across(rows, seed, rounds, kind=kinds.get(family, "baseline"))
                for family, rows in sorted(table.items())}
    for family in set(families) - set(kinds):
        families[family].note = (
            f"no run of this platform in training, and {family} only on {table[family].platforms[0]}: the analytic "
            "baseline, because nothing shows what would carry over"
        )
    analytic = np.concatenate([
        np.abs(to_residual(t, p.analytic_s))
        for rows in table.values() for p, t in zip(rows.parts, rows.times, strict=True)
    ])
    meta: Meta = {
        "rows": sum(rows.rows for rows in table.values()), "refused": 0, "seed": seed, "folds": 0, "platforms": known,
        "unseen_platform": True,
        "architectures": {family: _architectures(rows, platforms or {}) for family, rows in table.items()},
        "kinds": kinds,
        "settings": settings((*ROOMS, "adapting.transfer")),
        "left_out": {family: {item.platform: _score(item.error) for item in left if item.family == family}
                     for family in {item.family for item in left}},
    }
    return Model(TRANSFER, name, families, difficulty, typical, bands, _thin(analytic), meta)


def _architectures(rows: Across, platforms: Mapping[str, Platform]) -> list[str]:
    """Architectures that a family was learned from."""
    return sorted({(platforms.get(name) or load_platform(name)).arch for name in rows.platforms})


def _score(error: Floats) -> dict[str, float]:
    relative = np.abs(np.expm1(-error))
    mean, median = 100.0 * float(relative.mean()), 100.0 * float(np.median(relative))
    return {"rows": len(error), "mape": mean, "median_ape": median}


def unseen_platform(frame: pd.DataFrame, platform: str, *, test: pd.DataFrame | None = None, level: float = 0.9,
                    seed: int = 0, most: int = MOST_ROWS) -> dict[str, Any]:
    """Train and calibrate without `platform`, predict it: errors, coverage and width on a GPU that was never seen.

    test: the rows to score (default: those of `platform` in `frame`); give rows whose groups are not in `frame` to have
    the shapes unseen, too.
    """
    from ..hybrid.metrics import coverage, relative_half_width, summary

    here = np.asarray(frame["platform"].astype(str) == platform)
    rows = (frame[here] if test is None else test).reset_index(drop=True)
    model = fit_transfer(frame[~here].reset_index(drop=True), seed=seed, most=most)
    described = describe(rows)
    found = model.predict(described, level)
    ok = np.isfinite(found.predicted_s)
    measured = np.asarray(rows["time_s"], dtype=np.float64)[ok]
    half = relative_half_width(found.lower_s[ok], found.upper_s[ok], found.predicted_s[ok])
    covered = coverage(found.lower_s[ok], found.upper_s[ok], measured)
    return {
        "platform": platform, "sources": model.meta["platforms"], "n": int(ok.sum()),
        **summary(found.predicted_s[ok], measured), "coverage": covered, "level": level,
        "median_half_width": float(np.median(half)), "analytic": summary(described.baseline_s[ok], measured),
        "naive_roofline": summary(described.naive_s[ok], measured),
    }
