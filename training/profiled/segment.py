"""Profiled kernels of no known family: a time from counters, learned from other families and judged by leaving whole
families out.

Two parts. *Limits*: the seconds each limit of the machine alone would take, joined by a p-norm on top of a floor a
launch, with multipliers fitted to every family alike. *Residual*: small boosted trees on counters, log(measured ÷
limits). One pair for each level of what was counted (`features.segment.LEVELS`); in the full profile the residual only
rises with work, so that more work is never predicted to be faster.

FLOP and bytes do not tell a chain of dependent accesses, atomics or scattered access from a stream: the band is as wide
as families that were left out say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...analytic.platform import Platform, load_platform
from ...features.counted import LEVELS, RISING, Counts, least_s, level_of, segment_columns, segment_terms
from ...features.describe import Described
from ..hybrid.bands import Bands, fit_bands
from ..hybrid.metrics import summary
from ..learners.residual import to_residual, to_time
from ..learners.trees import Trees, grow
from ..tables.splits import group_draw
from .pool import MOST_GROUPS, Pool, analytic_s, build_pool, counted_table

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

FEWEST_FAMILIES = 12
"""Of fewer families the one left out would weigh more than a 90 % band can leave out (see `bands.FEWEST_GROUPS`)."""
FOLDS = 5
QUICK_FOLDS = 3
SMALLEST_S = 1e-15
START = (1.5, 0.9e-6, 1e-6)
"""Before any row is seen: exponent of the p-norm, floor of a launch [s], what empty caches add to a call [s]."""
SCALE, PULL = 0.3, 0.015
"""Residuals beyond SCALE count linearly; PULL keeps multipliers near one half where rows do not tell them."""
CENTRE = {"work": 0.35, "traffic": 0.35, "profile": 0.5}
"""Quantile of log time that is predicted. Too long by some factor is a larger relative error than too short by it, so
where little is known the centre lies below the median."""
TREES: dict[str, Any] = {
    "max_depth": 4, "learning_rate": 0.05, "min_child_weight": 5.0, "subsample": 0.7, "colsample_bynode": 0.5,
    "max_bin": 32, "tree_method": "hist", "nthread": 1, "base_score": 0.0,
}
ROUNDS = 100


@dataclass
class Level:
    """What was learned at one level of knowledge: exponent and multipliers of the limits (as logarithms), the trees."""

    name: str
    terms: list[str]
    multipliers: Floats
    """log of: exponent, floor [s], cold call [s], then one multiplier for each of `terms`."""
    booster: Any
    scores: dict[str, float] = field(default_factory=dict)
    """Families, rows and errors [%] with whole families left out."""

    def limits_s(self, counts: Counts, terms: Mapping[str, Floats]) -> Floats:
        """Time of the call from the limits alone [s]."""
        columns = np.column_stack([terms[name] for name in self.terms])
        return counts.launches * _joined(self.multipliers, columns, counts.cold / counts.launches)

    def predict(self, counts: Counts, platform: Platform) -> tuple[Floats, Floats]:
        """(time [s], time from the limits alone [s]) of rows that have what this level needs."""
        terms = segment_terms(counts, platform, self.name)
        base = self.limits_s(counts, terms)
        _, x = segment_columns(counts, terms, platform, self.name)
        found = to_time(Trees(self.booster).predict(x), base)
        return np.maximum(found, least_s(counts, platform)), base


def _joined(multipliers: Floats, terms: Floats, cold: Floats) -> Floats:
    """Floor + cold + p-norm of the scaled terms (n, k) [s]: their sum for p = 1, the longest of them for large p."""
    power, floor, fetch = np.exp(multipliers[:3])
    scaled = np.maximum(terms, SMALLEST_S) * np.exp(multipliers[3:])
    longest = scaled.max(axis=1)
    return np.asarray(floor + fetch * cold + longest * ((scaled / longest[:, None]) ** power).sum(axis=1)
                      ** (1.0 / power))


def _fit_limits(terms: Floats, cold: Floats, time_s: Floats, weight: Floats) -> Floats:
    from scipy.optimize import least_squares

    start = np.concatenate([np.log(START), np.full(terms.shape[1], np.log(0.7))])
    root, pull = np.sqrt(weight), PULL * np.sqrt(len(time_s))

    def error(x: Floats) -> Floats:
        off = np.log(time_s / _joined(x, terms, cold)) / SCALE
        return np.concatenate([root * SCALE * np.sqrt(2.0 * (np.sqrt(1.0 + off * off) - 1.0)), pull * (x - start)])

    return np.asarray(least_squares(error, start).x)


def fit_level(name: str, pool: Pool, platform: Platform, seed: int = 0, rounds: int = ROUNDS) -> Level:
    """Fit the limits and the residual of one level to calls that have what it needs; families count alike."""
    counts, weight = pool.counts, pool.weight()
    terms = segment_terms(counts, platform, name)
    columns = np.column_stack(list(terms.values()))
    found = _fit_limits(columns, counts.cold / counts.launches, pool.time_s / counts.launches, weight)
    level = Level(name, list(terms), found, None)
    names, x = segment_columns(counts, terms, platform, name)
    settings = {**TREES, "seed": seed, "objective": "reg:quantileerror", "quantile_alpha": CENTRE[name]}
    if name == "profile":
        settings |= {"objective": "reg:absoluteerror",
                     "monotone_constraints": tuple(int(column in RISING) for column in names)}
        settings.pop("quantile_alpha")
    residual = to_residual(pool.time_s, level.limits_s(counts, terms))
    level.booster = grow(x, residual, settings, rounds, weight)
    return level


def family_folds(families: Sequence[str], count: int, seed: int = 0) -> dict[str, int]:
    """Fold of each family: equal shares in the order of a hash."""
    draw = group_draw(families, seed)
    return {str(families[i]): place % count for place, i in enumerate(np.argsort(draw))}


@dataclass
class SegmentModel:
    """The model of profiled kernels on one platform: levels by name, bands by level, the families learned from."""

    platform: str
    levels: dict[str, Level]
    bands: Bands
    families: list[str]
    counted: int
    """Calls among the training rows that a profiler saw."""

    def predict(self, counts: Counts, platform: Platform, level: float = 0.9
                ) -> tuple[Floats, Floats, Floats, NDArray[Any]]:
        """(time [s], time from the limits alone [s], half-width in log time, level used) of n calls."""
        reached = level_of(counts, platform)
        here = [i for i, name in enumerate(LEVELS) if name in self.levels]
        # the highest level that is here and asks for no more than the row knows; `work` always is
        used = np.array(here)[np.searchsorted(here, reached, side="right") - 1]
        time_s, base, half = np.full((3, len(counts)), np.nan)
        for number in np.unique(used):
            rows, name = used == number, LEVELS[number]
            part = counts.take(rows)
            time_s[rows], base[rows] = self.levels[name].predict(part, platform)
            half[rows] = self.bands.half_width(np.ones(len(part)), np.full(len(part), name), level)[0]
        return time_s, base, half, np.array(LEVELS, dtype=object)[used]

    def note(self, name: str) -> str:
        """What a reader of a prediction at this level must know."""
        level = self.levels[name]
        text = (f"profiled kernel of no known family: residual learned from {len(self.families)} families' "
                f"{'counted and ' if self.counted else ''}first-principles work, judged with whole families left out "
                f"(median {level.scores['median_ape']:.0f} %, mean {level.scores['mape']:.0f} %); chains of dependent "
                "accesses, atomics and scattered access are not told by it")
        if name != "profile" and "profile" in self.levels:
            text += f"; {MISSING_COUNTS[name]} would narrow the band"
        return text


MISSING_COUNTS = {"work": "l2_bytes, grid, block and int_ops", "traffic": "grid, block and int_ops"}


def judged(name: str, pool: Pool) -> NDArray[np.bool_]:
    """Rows that the errors and bands of a level are taken from: counted calls where more than the work is asked for."""
    return np.ones(len(pool.time_s), dtype=bool) if name == "work" else pool.counted


def segment_bands(error: Floats, name: NDArray[Any], family: NDArray[Any]) -> Bands:
    """Scores |log(measured ÷ predicted)| of rows whose family was left out, by level.

    Every family counts the same and one more is taken to be as bad as can be: what is promised is coverage of a family
    not seen before (see `bands.fit_bands`). A learned difficulty of the row made them no narrower.
    """
    groups = np.char.add(np.char.add(family.astype(str), "|"), name.astype(str))
    return fit_bands(error, np.ones(len(error)), name, None, groups)


def fit_segment_pool(pool: Pool, platform: Platform, *, seed: int = 0, count: int = FOLDS,
                     rounds: int = ROUNDS) -> SegmentModel | None:
    """Fit every level that enough families have; errors and bands from folds of whole families left out."""
    reached = level_of(pool.counts, platform)
    levels: dict[str, Level] = {}
    scored: list[tuple[Floats, NDArray[Any], NDArray[Any]]] = []
    for name in LEVELS:
        part = pool.take(reached >= LEVELS.index(name))
        rows = judged(name, part)
        if len({*part.family[rows].tolist()}) < FEWEST_FAMILIES:
            continue
        fold_of = family_folds(part.families, count, seed)
        fold = np.array([fold_of[str(family)] for family in part.family])
        predicted = np.full(len(fold), np.nan)
        for number in np.unique(fold):
            held = fold == number
            model = fit_level(name, part.take(~held), platform, seed, rounds)
            predicted[held] = model.predict(part.counts.take(held), platform)[0]
        off = to_residual(part.time_s, predicted)[rows]
        plain = to_residual(part.time_s, analytic_s(part.counts, platform))[rows]
        if np.abs(off).mean() >= np.abs(plain).mean():
            continue  # what other families teach is worse than the analytic time itself
        levels[name] = fit_level(name, part, platform, seed, rounds)
        levels[name].scores = summary(predicted[rows], part.time_s[rows]) | {"rows": float(rows.sum())}
        scored.append((off, np.full(len(off), name, dtype=object), part.family[rows]))
    if LEVELS[0] not in levels:
        return None
    bands = segment_bands(*(np.concatenate(column) for column in zip(*scored, strict=True)))
    return SegmentModel(platform.id, levels, bands, pool.families, int(pool.counted.sum()))


def fit_segments(frame: pd.DataFrame, described: Described, *, seed: int = 0, quick: bool = False
                 ) -> SegmentModel | None:
    """The model of profiled kernels from a run table of one platform; None where it has too few families, or where
    what they teach of one left out is worse than its analytic time.

    quick: fewer groups, folds and trees.
    """
    platform = load_platform(str(frame["platform"].iloc[0]))
    kernels = set(frame["kernel"].astype(str))
    if len(kernels) < FEWEST_FAMILIES:
        return None
    pool = build_pool(frame, described, counted_table(platform.id), seed, MOST_GROUPS // 4 if quick else MOST_GROUPS)
    if pool is None or len(pool.families) < FEWEST_FAMILIES:
        return None
    return fit_segment_pool(pool, platform, seed=seed, count=QUICK_FOLDS if quick else FOLDS,
                            rounds=ROUNDS // 3 if quick else ROUNDS)
