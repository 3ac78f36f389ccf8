"""Profiled kernels of no known family: every family left out in turn, times from counters, bands from other families.

The error of a family comes from a model that never saw it. Its band comes from families in other blocks, each predicted
by a model that saw neither that family's block nor its own: a band never looks at what it is to cover.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...analytic.platform import Platform, load_platform
from ...features.counted import LEVELS, Counts, level_of
from ...features.describe import describe
from ...training.hybrid.calibration import term_matrix
from ...training.hybrid.nearest import mean_of_nearest
from ...training.learners.residual import to_residual, to_time
from ...training.profiled.pool import MOST_GROUPS, Pool, analytic_parts, build_pool, counted_table
from ...training.profiled.segment import family_folds, fit_level, judged, segment_bands
from . import sources
from .score import Parts, record

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
BLOCKS = 8
FEW_ROWS = 10_000
"""Fewer training rows than this asked for: a quick look at few groups a family."""
QUICK_GROUPS = 6


@dataclass(frozen=True)
class SegmentCase:
    """A level of knowledge, judged on the rows that its errors are taken from."""

    name: str
    title: str
    level: str
    definition: str


SEGMENT_CASES: dict[str, SegmentCase] = {
    case.name: case
    for case in (
        SegmentCase(
            "segment-h200", "H200, profiled kernels of no known family: counters only", "profile",
            "every counted call of our corpus (configs/runs/h200-counted.parquet) as a profiler saw it, each family "
            "left out in turn; the other families train, by counted calls and by first-principles work scaled to them. "
            "Asked besides: 90 % bands that cover at least 85 %. About 60 variants of the limits and the residual were "
            "looked at on half of the families (by hash), and the others are shown apart; that bands are neither split "
            "by the number of launches nor scaled by a learned difficulty was decided on all",
        ),
        SegmentCase(
            "segment-h200-work", "H200, kernels of no known family: FLOP and bytes only", "work",
            f"up to {MOST_GROUPS} groups of each family and all counted calls, with nothing known but FLOP, "
            "device-memory bytes, launches, precision and cache state; each family left out in turn",
        ),
    )
}


def looked_at(family: str) -> bool:
    """Whether settings were chosen on the errors of this family: half of them, by hash."""
    return hashlib.sha1(family.encode()).digest()[0] % 2 == 0


def pool_of(limits: Mapping[str, int | None], platform: str = "h200") -> Pool:
    """The calls of our corpus as a profiler would have seen them."""
    few = limits["train"] is not None and limits["train"] < FEW_ROWS
    frame = sources.own(platform)
    pool = build_pool(frame, describe(frame), counted_table(platform), most=QUICK_GROUPS if few else MOST_GROUPS)
    assert pool is not None
    return pool


def left_out(pool: Pool, platform: Platform, level: str) -> tuple[Floats, Floats]:
    """(time, time from the limits alone) [s] of every row from a model that saw no row of its family."""
    time_s, base = np.full((2, len(pool.time_s)), np.nan)
    for family in pool.families:
        held = pool.family == family
        model = fit_level(level, pool.take(~held), platform)
        time_s[held], base[held] = model.predict(pool.counts.take(held), platform)
    return time_s, base


def half_widths(pool: Pool, platform: Platform, level: str, rows: NDArray[np.bool_], share: float) -> Floats:
    """Half-width in log time of every row's band: scores of the other blocks' families, without the row's own block."""
    block_of = family_folds(pool.families, BLOCKS, seed=1)
    block = np.array([block_of[str(family)] for family in pool.family])
    error = np.full((BLOCKS, len(block)), np.nan)
    """error[b] of rows outside block b: from a model that saw neither b nor the row's own block."""
    for one, other in combinations(range(BLOCKS), 2):
        model = fit_level(level, pool.take((block != one) & (block != other)), platform)
        for shown, hidden in ((one, other), (other, one)):
            held = block == shown
            error[hidden, held] = to_residual(pool.time_s[held], model.predict(pool.counts.take(held), platform)[0])
    out = np.full(len(block), np.nan)
    label = np.full(len(block), level, dtype=object)
    for number in range(BLOCKS):
        known, asked = rows & (block != number), block == number
        bands = segment_bands(error[number, known], label[known], pool.family[known])
        out[asked] = bands.half_width(np.ones(int(asked.sum())), label[asked], share)[0]
    return out


def calibrated_s(pool: Pool, platform: Platform) -> tuple[Floats, Floats]:
    """(naive roofline, analytic terms with multipliers of the other families) [s]: non-negative least squares on
    relative errors, every family alike."""
    from scipy.optimize import nnls

    naive, terms = np.full(len(pool.time_s), np.nan), np.zeros((len(pool.time_s), 0))
    for rows, base in analytic_parts(pool.counts, platform):
        naive[rows] = base.naive_s
        columns = term_matrix(base)
        if not terms.shape[1]:
            terms = np.zeros((len(pool.time_s), columns.shape[1]))
        terms[rows] = columns
    out = np.full(len(pool.time_s), np.nan)
    root = np.sqrt(pool.weight())
    for family in pool.families:
        held = pool.family == family
        scaled = terms[~held] / pool.time_s[~held, None] * root[~held, None]
        out[held] = terms[held] @ nnls(scaled, root[~held])[0]
    return naive, np.maximum(out, 1e-9)


def _place(counts: Counts, level: str) -> Floats:
    """log₂ of what was counted, launch by launch, and the cache state (eight octaves apart)."""
    columns = [counts.flop, counts.byte, *([] if level == LEVELS[0] else [counts.l2_byte, counts.threads])]
    each = [np.log2(np.maximum(np.nan_to_num(c), 1.0)) for c in columns]
    return np.column_stack([*each, np.log2(counts.launches), 8.0 * counts.cold])


def nearest_s(pool: Pool, naive_s: Floats, level: str) -> Floats:
    """Naive roofline ÷ mean utilisation of the two nearest calls of other families [s]."""
    place, out = _place(pool.counts, level), np.full(len(naive_s), np.nan)
    for family in pool.families:
        held = pool.family == family
        near = mean_of_nearest(place[~held], naive_s[~held] / pool.time_s[~held])
        out[held] = naive_s[held] / near(place[held])
    return out


def _subsets(level: str) -> dict[str, Callable[[pd.DataFrame], NDArray[np.bool_]]]:
    out: dict[str, Callable[[pd.DataFrame], NDArray[np.bool_]]] = {
        "families no setting was chosen on": lambda rows: ~np.asarray(rows["kernel"].map(looked_at), dtype=bool),
        "one launch a call": lambda rows: np.asarray(rows["launches"] == 1.0),
        "several launches counted together": lambda rows: np.asarray(rows["launches"] > 1.0),
    }
    return out if level != LEVELS[0] else out | {"counted calls": lambda rows: np.asarray(rows["counted"], dtype=bool)}


def score_segments(case: SegmentCase, limits: Mapping[str, int | None], share: float) -> dict[str, Any]:
    """The record of a case: errors with whole families left out, bands from other families."""
    import pandas as pd

    start = time.perf_counter()
    platform = load_platform("h200")
    pool = pool_of(limits)
    pool = pool.take(level_of(pool.counts, platform) >= LEVELS.index(case.level))
    rows = judged(case.level, pool)
    time_s, _ = left_out(pool, platform, case.level)
    half = half_widths(pool, platform, case.level, rows, share)
    naive, calibrated = calibrated_s(pool, platform)
    whole = pd.DataFrame({
        "kernel": pool.family, "group": pool.group, "time_s": pool.time_s, "launches": pool.counts.launches,
        "counted": pool.counted, "naive_roofline": naive, "calibrated_analytic": calibrated,
        "nearest_utilisation": nearest_s(pool, naive, case.level), "hybrid": time_s, "lower_s": to_time(-half, time_s),
        "upper_s": to_time(half, time_s), "in_domain": False, "fell_back": False,
    })
    scored = whole[rows].reset_index(drop=True)
    found = record(scored, Parts(whole, scored, subsets=_subsets(case.level)), share)
    return found | {"folds": len(pool.families), "seconds": time.perf_counter() - start}
