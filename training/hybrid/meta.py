"""Where a model comes from: what `Model.meta` holds, one key a line, with who writes it."""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

TRANSFER = "_transfer"
"""What a model across platforms has for its platform; also its name, and the folder it ships in."""


class LeftOutRows(TypedDict):
    """Runs of an adapted model, each predicted by a fit that left it out."""

    at: NDArray[np.intp]
    """Positions in the table of the few runs (n,)."""
    error: NDArray[np.float64]
    """log(measured ÷ predicted) of each (n,)."""


class Record(TypedDict):
    """What later models are measured against on rows that neither has seen (`registry.heldout`)."""

    groups: NDArray[np.uint64]
    """Keys of the split groups that were trained on."""
    rows: NDArray[np.uint64]
    """Keys of the held-out rows (n,)."""
    error: NDArray[np.float64]
    """Relative error of each held-out row (n,), without sign."""


class Meta(TypedDict, total=False):
    """Plain values but for the arrays of `record` and `left_out_rows`; what a model does not have is left out."""

    # fitting (hybrid.fit, adapting.adapt, adapting.transfer)
    rows: int
    """Training rows."""
    refused: int
    """Rows that could not be described."""
    refused_why: str
    """Why the first of them could not."""
    seed: int
    folds: int
    """Folds of the cross-fit; 0 where rows were left out in another way."""
    quick: bool
    """Fewer trees and no process, for a quick look."""
    settings: dict[str, dict[str, Any]]
    """Module of training → constant → the value that it had."""
    out_of_fold: dict[str, dict[str, float]]
    """Errors [%] of each family on rows of other folds."""
    left_out: dict[str, dict[str, Any]]
    """Errors [%] of each family with runs (adapted), or a platform (across platforms), left out."""

    # models across platforms (adapting.transfer)
    platforms: list[str]
    """Platforms trained on."""
    unseen_platform: bool
    """Whether it is for platforms that it has no run of: nothing it predicts is in its domain."""
    architectures: dict[str, list[str]]
    """Architectures that each family was learned from."""
    kinds: dict[str, str]
    """What carries over for each family: its correction, the baseline…"""

    # adapted models (adapting.adapt)
    adapted_from: list[str]
    """Names of the models it started from."""
    left_out_rows: LeftOutRows

    # training as a service (service.train, service.adapt)
    trained: str
    """When: ISO 8601, UTC."""
    runs: str
    """Where the runs came from."""
    runs_digest: str
    parameters_digest: str
    """Of the platform's parameters when it was trained; see `Platform` files."""
    kernelcast: str
    """Version that trained it."""
    heldout: dict[str, Any]
    """Scores on held-out rows: n, split, mape, median_ape, … [%]."""
    comparison: list[dict[str, Any]]
    """Those of every method, by family."""
    record: Record

    # opened or stored (registry.index)
    version: str
