"""Which runs to measure next on new hardware: those that leave the least doubt about all the others.

Greedy and without any measured time: under a process over the sizes, the next run is the one that lowers the mean
variance over the whole pool the most (Cohn; Seo et al. 2000). Picking the most doubtful row instead sends one run after
another to the corners of the pool. Tried on training rows and left out: features derived from the baseline, and
weights by a source's own doubt; either made the suggestions no better than chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...analytic.errors import InputError
from ...analytic.families import FAMILIES
from ...analytic.platform import Platform, load_platform, platform_ids
from ...features.describe import Described, Group, describe
from ..hybrid.encode import Encoder
from ..hybrid.family import by_family
from ..hybrid.model import Model
from ..learners.process import PRIOR, few_covariance, scaled_rows, square_distance
from .adapted import LABEL, OCTAVES

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

POOL = 500
"""Candidates of one family that are looked at: the kernel matrix grows with their square."""
KEYS = ("kernel", "precision", "params", "implementation", "cache")


@dataclass
class _Pool:
    """Candidates of one family: positions into the table, posterior covariance as far as runs were chosen."""

    index: NDArray[np.intp]
    covariance: Floats
    share: float

    def gain(self) -> Floats:
        """By how much each candidate, measured, lowers the mean variance over the pool."""
        spread = self.covariance.diagonal() + PRIOR.noise**2
        return self.share * np.asarray((self.covariance**2).mean(axis=0) / spread)

    def measured(self, row: int) -> None:
        column = self.covariance[:, row]
        self.covariance = self.covariance - np.outer(column, column) / (column[row] + PRIOR.noise**2)


def suggest(platform: Platform | str, n: int, source: Model | None = None, candidates: pd.DataFrame | None = None, *,
            measured: pd.DataFrame | None = None, platforms: Mapping[str, Platform] | None = None, seed: int = 0
            ) -> pd.DataFrame:
    """The n candidates to measure on `platform`, most telling first, as a run table without times.

    candidates: rows with kernel, precision, params (times are not looked at; default: `candidate_pool`). measured: runs
    of the platform that are there already. Adds expected_s, the time as the source has it (else the analytic one).
    InputError where no candidate can run.
    """
    import pandas as pd

    target = load_platform(platform) if isinstance(platform, str) else platform
    if n < 1:
        raise InputError(f"n is {n}; at least one run must be asked for")
    pool = candidate_pool(target.id) if candidates is None else candidates
    columns = [c for c in KEYS if c in pool]
    table = pool[columns].drop_duplicates().assign(platform=target.id).reset_index(drop=True)
    before = 0 if measured is None else len(measured)
    if measured is not None and before:
        table = pd.concat([measured[columns].assign(platform=target.id), table], ignore_index=True)
    described = describe(table, {**(platforms or {}), target.id: target})
    if not described.groups:
        reason = next(iter(described.refused.values()), "there is none")
        raise InputError(f"no candidate can run on {target.id}: {reason}")
    chosen = _greedy(_pools(described, before, seed), n, before)
    expected = described.baseline_s if source is None else source.predict(described).predicted_s
    out = table.iloc[chosen].assign(expected_s=expected[chosen])
    return out[["platform", *columns, "expected_s"]].reset_index(drop=True)


def _pools(described: Described, before: int, seed: int) -> list[_Pool]:
    rng = np.random.default_rng(seed)
    return [_pool(family, groups, before, rng) for family, groups in sorted(by_family(described.groups).items())]


def _pool(family: str, groups: list[Group], before: int, rng: np.random.Generator) -> _Pool:
    encoder = Encoder.fit([group.rows for group in groups])
    index = np.concatenate([group.index for group in groups])
    x = np.concatenate([encoder.matrix(group.rows) for group in groups])
    if (index >= before).sum() > POOL:
        new = rng.choice(np.flatnonzero(index >= before), POOL, replace=False)
        keep = np.concatenate([np.flatnonzero(index < before), new])
        index, x = index[keep], x[keep]
    sizes = {f"log2_{p.name}" for p in FAMILIES[family].params if p.kind in ("size", "real")}
    scales = np.array([
        OCTAVES if name in sizes else LABEL if name.startswith("precision=") else 0.0 for name in encoder.columns
    ])
    columns = np.flatnonzero((scales > 0.0) & np.isfinite(x).any(axis=0))
    z = scaled_rows(x, columns, scales[columns])
    square = square_distance(z, z, np.ones(len(columns)))
    pool = _Pool(index, few_covariance(PRIOR.log(len(columns)), np.zeros_like(square), square)[0], 1.0)
    for row in np.flatnonzero(index < before):
        pool.measured(int(row))
    return pool


def _greedy(pools: list[_Pool], n: int, before: int) -> list[int]:
    """Positions of the chosen candidates; every family's mean variance counts alike."""
    gains = [np.where(pool.index >= before, pool.gain(), -1.0) for pool in pools]
    chosen: list[int] = []
    while len(chosen) < n:
        best = int(np.argmax([gain.max(initial=-1.0) for gain in gains]))
        row = int(np.argmax(gains[best]))
        if gains[best][row] < 0.0:
            break  # every candidate is taken
        chosen.append(int(pools[best].index[row]))
        pools[best].measured(row)
        taken = gains[best] < 0.0
        taken[row] = True
        gains[best] = np.where(taken, -1.0, pools[best].gain())
    return chosen


def candidate_pool(platform: str, most: int = POOL, seed: int = 0) -> pd.DataFrame:
    """Configurations of the shipped run tables, at most `most` of a family; the software's names are left out, because
    another vendor's libraries are not there. InputError where no table ships."""
    from importlib import resources
    from pathlib import Path

    import pandas as pd

    folder = Path(str(resources.files("kernelcast.configs").joinpath("runs")))
    ids = set(platform_ids())
    paths = [path for path in sorted(folder.glob("*.parquet")) if path.stem in ids]
    if not paths:
        raise InputError("no measured runs ship with this installation; give a table of candidates")
    parts = [pd.read_parquet(path, columns=["kernel", "precision", "params", "cache"]) for path in paths]
    whole = pd.concat(parts, ignore_index=True).drop_duplicates().sample(frac=1.0, random_state=seed)
    return whole.groupby("kernel", sort=True).head(most).reset_index(drop=True)


def suggestion_gain(pool: pd.DataFrame, test: pd.DataFrame, platform: Platform | str, n: int,
                    source: Model | None = None, *, seeds: int = 20, share: float = 0.5) -> dict[str, Any]:
    """Suggested against random runs at equal count: mean error [%] on `test` after adapting with either, over seeds.

    Each seed offers another random half (`share`) of the pool to both; suggestions are drawn from it without looking at
    any time, the random runs by chance. The p-value is of Wilcoxon's paired test that suggestions are better.
    """
    from scipy.stats import wilcoxon

    from ..hybrid.metrics import relative_error
    from .adapt import adapt_model

    target = load_platform(platform) if isinstance(platform, str) else platform
    described = describe(test, {target.id: target})
    measured = np.asarray(test["time_s"], dtype=np.float64)
    scores: dict[str, list[float]] = {"suggested": [], "random": []}
    for seed in range(seeds):
        offer = pool.sample(frac=share, random_state=seed).drop_duplicates(subset=[c for c in KEYS if c in pool])
        offer = offer.reset_index(drop=True)
        asked = suggest(target, n, source, offer, seed=seed)
        keys = [c for c in KEYS if c in offer]
        picks = {"suggested": asked[keys].merge(offer, on=keys, how="left"),
                 "random": offer.sample(n, random_state=1000 + seed)}
        for name, few in picks.items():
            found = adapt_model(few, target, source, seed=seed).predict(described).predicted_s
            error = relative_error(found, measured)
            scores[name].append(100.0 * float(np.nanmean(error)))
    ours, chance = np.array(scores["suggested"]), np.array(scores["random"])
    p = 1.0
    if seeds > 1 and not np.all(ours == chance):
        p = float(wilcoxon(ours, chance, alternative="less").pvalue)
    return {"platform": target.id, "n": n, "seeds": seeds, "suggested": float(ours.mean()),
            "random": float(chance.mean()), "wins": int((ours < chance).sum()), "p_value": p,
            "scores": scores}
