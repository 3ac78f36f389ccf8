"""The residual of one family: log(measured ÷ calibrated baseline), learned by gradient-boosted trees.

Forward and inverse live together: `to_residual` and `to_time`. A smooth member on the same residual is averaged in, as
it interpolates what trees see as steps: a Gaussian process where a family has few rows, a network where it has many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import Fit, Learner
from .network import Network, fit_network
from .process import Process, fit_process
from .trees import Trees, fit_booster, fit_trees, rounds_for

Floats = NDArray[np.float64]

FEWEST_ROWS = 24
"""Rows that a statistic of a family or a regime wants at least."""
LEARN_FROM = 8
"""Below this a family keeps its calibrated baseline. From here on a residual is tried, the process above all, and kept
only where it does better on left-out groups."""
PROCESS_UP_TO = 8000
"""Families with more training rows have a network alone: a process keeps a part of their rows only."""
NETWORK_FROM = 2000
"""Families with fewer training rows have a process alone; between the two, either and both are tried."""


def to_residual(time_s: Any, base_s: Any) -> Floats:
    """log(time ÷ base), dimensionless."""
    return np.asarray(np.log(np.asarray(time_s, dtype=float) / np.asarray(base_s, dtype=float)))


def to_time(residual: Any, base_s: Any) -> Floats:
    """Inverse of `to_residual` [s]."""
    return np.asarray(np.asarray(base_s, dtype=float) * np.exp(np.asarray(residual, dtype=float)))


@dataclass
class Blend:
    """The mean of a process and a network: one errs where a surface is rough, the other where rows are few."""

    process: Process
    network: Network

    def predict(self, x: Floats) -> Floats:
        """Residual of rows (n, columns)."""
        return (self.process.predict(x) + self.network.predict(x)) / 2.0


PROCESS, NETWORK, BOTH = "process", "network", "process and network"
KINDS: dict[type, str] = {Process: PROCESS, Network: NETWORK, Blend: BOTH}


def smooth_for(rows: int) -> str:
    """The kind of smooth member for a family with so many training rows, before anything is known of its errors."""
    return PROCESS if rows < NETWORK_FROM else NETWORK if rows > PROCESS_UP_TO else BOTH


@dataclass
class Residual:
    """Boosted trees and a smooth member, a process, a network or both, on one family's feature matrix."""

    booster: Any
    process: Learner | None
    """The smooth member; None where there are trees only."""
    smooth_share: float = 0.5
    """Share of the smooth member in what is predicted, 0 to 1; the rest are the trees."""

    @property
    def smooth(self) -> str:
        """Kind of the smooth member, a value of KINDS; empty where there are trees only."""
        return KINDS.get(type(self.process), "")

    def candidates(self, x: Floats) -> tuple[Floats, dict[str, Floats]]:
        """(trees, by kind what the smooth member says and, of a blend, what its two say) on rows (n, columns)."""
        if not isinstance(self.process, Blend):
            trees, smooth = self.parts(x)
            return trees, {self.smooth: smooth}
        process, network = self.process.process.predict(x), self.process.network.predict(x)
        return self.of_trees(x), {BOTH: (process + network) / 2.0, PROCESS: process, NETWORK: network}

    def of_trees(self, x: Floats) -> Floats:
        """What the trees alone say of rows (n, columns)."""
        return Trees(self.booster).predict(x)

    def parts(self, x: Floats) -> tuple[Floats, Floats]:
        """(trees, process) predictions of rows (n, columns); the process repeats the trees where there is none."""
        trees = self.of_trees(x)
        return trees, self.process.predict(x) if self.process is not None else trees

    def predict(self, x: Floats) -> Floats:
        trees, smooth = self.parts(x)
        return trees + self.smooth_share * (smooth - trees)


QUICK: dict[str, Any] = {"learning_rate": 0.15, "max_bin": 64, "max_leaves": 32}


def fit_residual(x: Floats, y: Floats, *, seed: int = 0, smooth: str | None = None, quick: bool = False,
                 same: NDArray[Any] | None = None) -> Residual:
    """Fit the residual of one family: features (n, columns), y = log(measured ÷ calibrated baseline).

    smooth: kind of the smooth member (KINDS), "" for trees alone; what suits the number of rows if not given. quick:
    fewer, larger steps and trees alone, for a first look in a fraction of the time. same: labels (n,) of rows of one
    configuration, which a process tells from a smooth dependence on sizes.
    """
    if quick:
        return Residual(fit_booster(x, y, seed, rounds_for(len(y)) // 3, **QUICK), None)
    booster = fit_trees(x, y, seed)
    kind = smooth_for(len(y)) if smooth is None else smooth
    return Residual(booster, FITS[kind](x, y, same, seed))


FITS: dict[str, Fit] = {
    "": lambda x, y, same, seed: None,
    PROCESS: fit_process,
    NETWORK: lambda x, y, same, seed: fit_network(x, y, seed),
    BOTH: lambda x, y, same, seed: _both(x, y, same, seed),
}


def _both(x: Floats, y: Floats, same: NDArray[Any] | None, seed: int) -> Blend | None:
    """None where no column varies."""
    process = fit_process(x, y, same, seed)
    return None if process is None else Blend(process, fit_network(x, y, seed))
