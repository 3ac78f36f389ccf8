"""Tiles ranked with the platform's model: one correction and one relative band for all, as runs do not say tiles."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from ..analytic.errors import InputError
from ..analytic.platform import Platform
from ..analytic.whatif import tile_ranking
from .answer import Answered, answered

FAMILIES = ("gemm", "bmm")
"""Kernel families that are one matrix product, or a batch of them."""


@dataclass(frozen=True)
class RankedTile:
    """A candidate (tile_m, tile_n, tile_k, split) with its times [s]; None where it does not fit or has no band."""

    tile: tuple[int, int, int, int]
    baseline_s: float | None
    predicted_s: float | None
    lower_s: float | None
    upper_s: float | None
    waves: float
    wave_efficiency: float
    slower_percent: float | None
    """How much slower than the fastest candidate of the platform."""


@dataclass(frozen=True)
class RankedTiles:
    """Candidates of one matrix product on one platform, fastest first."""

    platform: str
    kernel: str
    precision: str
    params: dict[str, Any]
    level: float
    model: str
    tiles: list[RankedTile]
    refused: dict[str, int]
    """Why candidates do not fit → how many."""
    note: str
    changed: list[dict[str, Any]]
    """Platform parameters set by hand, as of `Prediction`."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def tiles(family: str, *, platform: str | Platform, tiles: Sequence[tuple[int, ...]] = (), **question: Any
          ) -> RankedTiles:
    """Candidate tiles of a matrix product (`gemm`, `bmm`) on a platform, fastest first, with times in seconds.

    tiles: only these, (tile_m, tile_n, tile_k[, split]). question: m, n, k [, batch], precision and the rest as
    `predict` takes them. Raises InputError for another family, bad input, or a tile that does not fit.
    """
    if family not in FAMILIES:
        raise InputError(f"tiles are of a matrix product ({', '.join(FAMILIES)}), not of {family!r}")
    return ranked_tiles(answered(family, platform=platform, **question), tiles)


def ranked_tiles(asked: Answered, tiles: Sequence[tuple[int, ...]] = ()) -> RankedTiles:
    """Rank the tiles of a matrix product that was asked about.

    tiles: only these, (tile_m, tile_n, tile_k[, split]); InputError for one that does not fit. The prediction's
    correction and band are factors on its analytic time (that of the best tile); every tile gets the same factors.
    """
    prediction, platform = asked.prediction, asked.platform
    m, n, k = (float(prediction.params[name]) for name in ("m", "n", "k"))
    batch = float(prediction.params.get("batch", 1.0))
    ranked = partial(tile_ranking, platform, m, n, k, batch, prediction.precision, cache=prediction.cache)
    found = [one for tile in tiles for one in ranked(tile=tile)] if tiles else ranked()
    found.sort(key=lambda item: (item.time_s is None, item.time_s or 0.0))
    base = prediction.baseline_s
    factors = [None if time is None else time / base
               for time in (prediction.predicted_s, prediction.lower_s, prediction.upper_s)]
    best = base if tiles else found[0].time_s
    rows = []
    for item in found:
        predicted, lower, upper = (None if item.time_s is None or f is None else item.time_s * f for f in factors)
        slower = None if item.time_s is None or best is None else 100.0 * (item.time_s / best - 1.0)
        rows.append(RankedTile(item.tile, item.time_s, predicted, lower, upper, item.waves, item.wave_efficiency,
                               slower))
    refused = Counter(re.sub(r"^tile \S+ does not fit", "does not fit", item.reason) for item in found if item.reason)
    note = "the order is the analytic model's; which tile a library takes is not known to it"
    if prediction.upper_s is not None:
        note += f"; every tile carries the relative band of {prediction.model} for this product, not one of its own"
    return RankedTiles(prediction.platform, prediction.kernel, prediction.precision, dict(prediction.params),
                       prediction.level, prediction.model, rows, dict(refused), note,
                       prediction.changed)
