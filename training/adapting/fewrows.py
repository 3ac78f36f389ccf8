"""What a handful of runs can carry: term multipliers pulled to a prior, and a small Gaussian process on the residual.

Both are linear in few numbers, so that each row can be left out and predicted again at no cost worth mentioning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PULL, UNSEEN = 0.1, 0.3
"""Strength of the pull of a family's multipliers to the expected ones where there is no source (times √rows), and the
share of the time that a term which the rows hardly show counts for in it: unseen terms stay as they are."""
PULL_SOURCE, UNSEEN_SOURCE = 1.0, 0.03
"""The same towards the multipliers of a source model, which were fitted to thousands of rows."""
AMPLITUDE, LENGTH, NOISE, BIAS = 0.2, 3.0, 0.05, 0.15
"""Prior of the process in log time: size of the smooth error, its length in scaled units (times √columns ÷ 2), noise of
a run, size of the common shift. Moved by the rows only as far as a log-normal prior of width PRIOR_WIDTH allows."""
PRIOR_WIDTH = 0.7
SEARCH_ROWS = 120
OCTAVES = 2.5
"""Sizes are scaled by so many octaves, shares by SHARE, labels by LABEL: one length then serves all columns."""
SHARE, LABEL = 0.35, 1.5
_PHYSICAL = ("log2_base", "log2_ctas_128", "log2_intensity", "log2_set_over_cache", "log2_blocks")


def relative_terms(contributions: Floats, time_s: Floats) -> Floats:
    """Share of each term in the measured time, (n, terms)."""
    return np.asarray(contributions / time_s[:, None])


def pulled_multipliers(contributions: Floats, time_s: Floats, prior: Floats, pull: float, unseen: float = 1e-3
                       ) -> Floats:  # fmt: skip
    """Non-negative u of T ≈ Σ uⱼ·contributionⱼ by relative least squares, pulled to `prior` (terms,).

    contributions: (n, terms) [s]; a term that the rows do not show stays at its prior. The pull is as strong as the
    term's mean share of the time, and at least as for a share of `unseen`.
    """
    from scipy.optimize import nnls

    shares = relative_terms(contributions, time_s)
    weight = pull * np.sqrt(len(time_s)) * np.maximum(shares.mean(axis=0), unseen)
    solution, _ = nnls(np.vstack([shares, np.diag(weight)]), np.concatenate([np.ones(len(time_s)), weight * prior]))
    return np.asarray(solution)


def process_scales(names: list[str], sizes: list[str]) -> Floats:
    """Unit of each column of a family's feature matrix in the process; 0 where the process does not look at it."""
    wanted = {f"log2_{name}" for name in sizes} | set(_PHYSICAL)
    return np.array([
        OCTAVES if name in wanted else SHARE if name.startswith("share_") else LABEL if "=" in name else 0.0
        for name in names
    ])  # fmt: skip


def _matern(a: Floats, b: Floats) -> Floats:
    """Matérn-3/2 correlation between the rows of a (n, d) and b (m, d)."""
    square = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2.0 * a @ b.T
    root = np.sqrt(3.0 * np.maximum(square, 0.0))
    return np.asarray((1.0 + root) * np.exp(-root))


@dataclass
class FewProcess:
    """A Gaussian process with one length, one amplitude, one noise and a common shift, as plain arrays.

    amplitude, length, noise, bias: log time, scaled units. `train` (n, d) scaled rows, `alpha` (n,) weights.
    """

    columns: NDArray[np.intp]
    scale: Floats
    train: Floats
    alpha: Floats
    amplitude: float
    length: float
    noise: float
    bias: float = BIAS

    def scaled(self, x: Floats) -> Floats:
        """Rows of the whole feature matrix (n, all columns) as the process sees them."""
        return np.asarray(np.nan_to_num(x[:, self.columns], nan=0.0) / self.scale)

    def covariance(self, a: Floats, b: Floats) -> Floats:
        """Prior covariance between scaled rows, without noise."""
        return self.amplitude**2 * _matern(a / self.length, b / self.length) + self.bias**2

    def predict(self, x: Floats) -> Floats:
        """Expected residual of rows (n, all columns); far from every run it is the common shift."""
        z = self.scaled(x)
        step = 20_000
        parts = [self.covariance(z[i : i + step], self.train) @ self.alpha for i in range(0, len(z), step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def refit(self, x: Floats, y: Floats) -> FewProcess:
        """The same process on other rows, hyper-parameters kept."""
        z = self.scaled(x)
        kernel = self.covariance(z, z) + self.noise**2 * np.eye(len(y))
        return replace(self, train=z, alpha=np.asarray(np.linalg.solve(kernel, y)))


def fit_few_process(x: Floats, y: Floats, scales: Floats, *, search: bool = True) -> FewProcess:
    """Fit to (n, columns) features and (n,) log residuals; search=False keeps the prior's hyper-parameters.

    scales: unit of each column, 0 to leave it out (`process_scales`).
    """
    from scipy.linalg import LinAlgError, cholesky, solve_triangular
    from scipy.optimize import minimize

    columns = np.flatnonzero((scales > 0.0) & np.isfinite(x).any(axis=0))
    start = np.log([AMPLITUDE, LENGTH * np.sqrt(max(len(columns), 1)) / 2.0, NOISE])

    def made(theta: Floats) -> FewProcess:
        amplitude, length, noise = (float(v) for v in np.exp(theta))
        empty = np.zeros((0, len(columns)))
        return FewProcess(columns, scales[columns], empty, np.zeros(0), amplitude, length, noise)

    some = np.random.default_rng(0).permutation(len(y))[:SEARCH_ROWS]
    z, target = made(start).scaled(x[some]), y[some]

    def cost(theta: Floats) -> float:
        process = made(theta)
        try:
            lower = cholesky(process.covariance(z, z) + process.noise**2 * np.eye(len(target)), lower=True)
        except LinAlgError:
            return 1e9
        white = solve_triangular(lower, target, lower=True)
        prior = 0.5 * float((((theta - start) / PRIOR_WIDTH) ** 2).sum())
        return 0.5 * float(white @ white) + float(np.log(np.diag(lower)).sum()) + prior

    theta = start
    if search:
        options = {"maxiter": 100, "xatol": 0.02, "fatol": 0.02}
        theta = np.asarray(minimize(cost, start, method="Nelder-Mead", options=options).x, dtype=np.float64)
    return made(theta).refit(x, y)
