"""Gaussian processes with Matérn-3/2 covariance on the residual of one family: one for many rows, one for few.

`Process` has a length scale a column, by maximum likelihood. Its covariance is the mean of several, each tuned on other
rows: one draw of a few hundred rows may take the wrong one of two columns that say nearly the same, the mean of four
does not. `FewProcess` has five hyper-parameters, which a prior holds where a handful of rows say little, and an
explicit basis beside the smooth part.

Runs of one configuration (warm and cold, or in several precisions) share what the features do not say of it. That part
is a component of its own (`shared`): without it the likelihood would explain it by length scales that are too short.
Rasmussen and Williams 2006, chapters 2, 4 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...features.rows import Rows

Floats = NDArray[np.float64]

MOST_ROWS = 3000
"""The cost is the cube of the rows: at most so many are kept."""
DRAWS = {0: (250, 4), 1000: (400, 3)}
"""Training rows from which: (rows a draw, draws). Length scales need their order of magnitude; many rows show more."""
STEPS = 25
START_LENGTH, USUAL_LENGTH, WIDTH = 3.0, 6.0, 3.0
"""Length scales start at 3 deviations of a column; a faint log-normal prior says 6, for columns that tell nothing."""
IRRELEVANT = 5e-5
"""Inverse square length below which a column is left out: across four deviations it moves a correlation by 0.1 %."""
JITTER = 1e-8
STEP = 4_000
SEARCH_ROWS = 120
"""Of a process on few rows: its five hyper-parameters need no more."""
OUTLYING = 3.0


def matern(square: Floats) -> tuple[Floats, Floats]:
    """(Matérn-3/2 correlation, its derivative by d²) at squared scaled distances d²."""
    root = np.sqrt(3.0 * np.maximum(square, 0.0))
    falling = np.exp(-root)
    return (1.0 + root) * falling, -1.5 * falling


def square_distance(a: NDArray[Any], b: NDArray[Any], length: Floats) -> Floats:
    """Squared distances (n, m) between rows of a (n, d) and b (m, d) in units of `length` (d,)."""
    a, b = a / length, b / length
    return np.asarray((a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)[None, :] - 2.0 * (a @ b.T))


@dataclass
class Process:
    """A fitted Gaussian process as plain arrays: predictions are Σ variance · k(X, train) · alpha over its scales."""

    shift: Floats
    scale: Floats
    train: NDArray[np.float32]
    alpha: Floats
    length: Floats
    """(scales, d); (d,) in models stored when there was one."""
    variance: Floats | float
    columns: NDArray[np.intp]

    def predict(self, x: Floats) -> Floats:
        """Expected residual of rows (n, all columns)."""
        z = (np.nan_to_num(x[:, self.columns], nan=0.0) - self.shift) / self.scale
        # far outside the training box a size tells nothing more than its edge
        z = np.clip(z, self.train.min(axis=0) - 0.5, self.train.max(axis=0) + 0.5)
        out = np.zeros(len(z))
        for length, variance in zip(np.atleast_2d(self.length), np.atleast_1d(self.variance), strict=True):
            for i in range(0, len(z), STEP):
                near = matern(square_distance(z[i : i + STEP], self.train, length))[0]
                out[i : i + STEP] += variance * (near @ self.alpha)
        return out


@dataclass(frozen=True)
class Scales:
    """Hyper-parameters: variances of the smooth part, of what one configuration shares, of a run; `length` (d,)."""

    variance: float
    length: Floats
    shared: float
    noise: float

    def covariance(self, z: Floats, same: Floats) -> Floats:
        """Prior covariance of measured rows z (n, d); same (n, n) is 1 between rows of one configuration."""
        kernel = self.variance * matern(square_distance(z, z, self.length))[0] + self.shared * same
        kernel[np.diag_indices(len(z))] += self.noise + JITTER
        return kernel


class _Likelihood:
    """Negative log likelihood of tuning rows and its gradient, by log(variance, 1 ÷ length² …, shared, noise)."""

    def __init__(self, z: Floats, y: Floats, same: Floats) -> None:
        self.y, self.same, self.n = y, same, len(y)
        difference = z.T[:, :, None] - z.T[:, None, :]
        self.square = (difference * difference).reshape(z.shape[1], -1).astype(np.float32)

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        from scipy.linalg import cho_solve
        from scipy.linalg.lapack import dpotri

        n, weight = self.n, np.exp(theta[1:-2])
        variance, shared, noise = np.exp(theta[[0, -2, -1]])
        correlation, slope = matern((weight.astype(np.float32) @ self.square).reshape(n, n).astype(np.float64))
        kernel = variance * correlation + shared * self.same
        kernel[np.diag_indices(n)] += noise + JITTER
        try:
            lower = np.linalg.cholesky(kernel)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(theta)
        alpha = cho_solve((lower, True), self.y)
        inverse = np.tril(dpotri(lower, lower=1)[0])
        inverse = inverse + np.tril(inverse, -1).T
        by_kernel = 0.5 * (inverse - np.outer(alpha, alpha))
        gradient = np.empty_like(theta)
        gradient[0] = variance * np.sum(by_kernel * correlation)
        gradient[1:-2] = weight * (self.square @ (variance * by_kernel * slope).ravel().astype(np.float32))
        gradient[-2], gradient[-1] = shared * np.sum(by_kernel * self.same), noise * np.trace(by_kernel)
        off = (theta[1:-2] + 2.0 * np.log(USUAL_LENGTH)) / WIDTH
        gradient[1:-2] += off / WIDTH
        cost = 0.5 * float(self.y @ alpha) + float(np.log(np.diag(lower)).sum()) + 0.5 * float(off @ off)
        return cost, gradient


def _tuned(z: Floats, y: Floats, same: Floats) -> Scales:
    from scipy.optimize import minimize

    width, size = z.shape[1], max(float(y.var()), 1e-4)
    lengths = np.full(width, -2.0 * np.log(START_LENGTH))
    start = np.concatenate([[np.log(size)], lengths, np.log([size / 20.0, max(size / 50.0, 1e-5)])])
    bounds = [(-9.0, 4.0), *[(-12.0, 3.0)] * width, (-14.0, 1.0), (-11.0, 0.0)]
    found = minimize(_Likelihood(z, y, same), start, method="L-BFGS-B", jac=True, bounds=bounds,
                     options={"maxiter": STEPS}).x
    variance, shared, noise = (float(v) for v in np.exp(found[[0, -2, -1]]))
    return Scales(variance, np.exp(-0.5 * found[1:-2]), shared, noise)


def fit_process(x: Floats, y: Floats, same: NDArray[Any] | None = None, seed: int = 0) -> Process | None:
    """Fit to (n, columns) features and (n,) residuals; None where no column varies.

    same: labels (n,) of the configurations; None takes every row for one of its own.
    """
    from scipy.linalg import solve

    filled = np.nan_to_num(x, nan=0.0)
    columns = np.flatnonzero(filled.std(axis=0) > 1e-9)
    if not columns.size:
        return None
    filled = filled[:, columns]
    shift, scale = filled.mean(axis=0), filled.std(axis=0)
    rows = np.random.default_rng(seed).permutation(len(y))[:MOST_ROWS]
    label = np.arange(len(y)) if same is None else np.unique(same, return_inverse=True)[1]
    # stored as 32-bit numbers: what is predicted from must be what was fitted to
    z, target, label = ((filled - shift) / scale)[rows].astype(np.float32).astype(np.float64), y[rows], label[rows]
    same_rows = _equal(label)
    tuned = [_tuned(z[few], target[few], same_rows[np.ix_(few, few)]) for few in _draws(len(target), seed)]
    length = np.stack([scales.length for scales in tuned])
    kept = (length**-2.0).max(axis=0) > IRRELEVANT
    if not kept.any():
        kept = length.min(axis=0) == length.min()
    z = z[:, kept]
    used = [Scales(scales.variance, scales.length[kept], scales.shared, scales.noise) for scales in tuned]
    kernel = np.zeros((len(z), len(z)))
    for scales in used:
        kernel += scales.covariance(z, same_rows) / len(used)
    alpha = solve(kernel, target, assume_a="pos", overwrite_a=True)
    variance = np.array([scales.variance for scales in used]) / len(used)
    return Process(shift[kept], scale[kept], z.astype(np.float32), alpha, length[:, kept], variance, columns[kept])


def _draws(count: int, seed: int) -> list[NDArray[np.intp]]:
    """Rows to tune on, a draw each; one draw of all where they are few."""
    size, draws = DRAWS[max(start for start in DRAWS if start <= count)]
    if count <= size:
        return [np.arange(count)]
    return [np.random.default_rng([seed, draw]).permutation(count)[:size] for draw in range(draws)]


def configurations(names: Sequence[str], parts: Sequence[Rows]) -> NDArray[np.intp]:
    """Label of each row's configuration: rows that agree in the sizes `names` are the same problem.

    Precision, implementation and cache state do not count: what the features leave out of a problem is common to them.
    """
    wanted = {f"log2_{name}" for name in names} | set(names)
    chosen = [rows.values[:, [i for i, name in enumerate(rows.names) if name in wanted]] for rows in parts]
    sizes = np.nan_to_num(np.concatenate(chosen), nan=-1.0)
    return np.asarray(np.unique(sizes, axis=0, return_inverse=True)[1].reshape(-1), dtype=np.intp)


def _equal(label: NDArray[Any]) -> Floats:
    return np.asarray(label[:, None] == label[None, :], dtype=np.float64)


@dataclass(frozen=True)
class Prior:
    """Hyper-parameters of a process on few rows before any was seen, in log time, and how far the rows may move them.

    bias: common shift. terms: relative error of one term's multiplier. amplitude, length: smooth error, and its length
    in scaled units (times √columns ÷ 2). noise: of a run. width: of the log-normal prior about these.
    """

    bias: float = 0.15
    terms: float = 0.2
    amplitude: float = 0.2
    length: float = 3.0
    noise: float = 0.05
    width: float = 0.7

    def log(self, columns: int) -> Floats:
        """The five as logarithms, the length for so many columns."""
        length = self.length * np.sqrt(max(columns, 1)) / 2.0
        return np.log([self.bias, self.terms, self.amplitude, length, self.noise])


PRIOR = Prior()


@dataclass
class FewProcess:
    """A Gaussian process for few rows: k = bias² + terms²·share·share′ + amplitude²·Matérn(distance ÷ length).

    The explicit basis (Rasmussen and Williams, section 2.7) is a common shift and the shares (terms,) of physical terms
    in the time, whose weights are relative errors of the terms' multipliers. `hyper` (5,): logarithms of bias, terms,
    amplitude, length and noise. `train` (n, d) scaled rows, `shares` (n, terms), `alpha` (n,) weights.
    """

    columns: NDArray[np.intp]
    scale: Floats
    train: Floats
    shares: Floats
    alpha: Floats
    hyper: Floats

    def linear(self, shares: Floats) -> Floats:
        """What the explicit basis says of rows (n, terms): the common shift and the terms' multipliers."""
        bias, terms = np.exp(2.0 * self.hyper[:2])
        return np.asarray(bias * self.alpha.sum() + terms * (shares @ (self.shares.T @ self.alpha)))

    def refit(self, x: Floats, shares: Floats, y: Floats) -> FewProcess:
        """The same process on other rows, hyper-parameters kept."""
        z = scaled_rows(x, self.columns, self.scale)
        square = square_distance(z, z, np.ones(len(self.columns)))
        kernel = _with_noise(self.hyper, few_covariance(self.hyper, shares @ shares.T, square)[0])
        return replace(self, train=z, shares=shares, alpha=np.asarray(np.linalg.solve(kernel, y)))

    def predict(self, x: Floats, shares: Floats) -> Floats:
        """Expected residual of rows (n, all columns) and (n, terms); far from every run what basis and shift say."""
        z = scaled_rows(x, self.columns, self.scale)
        out = np.zeros(len(z))
        for i in range(0, len(z), STEP):
            at = slice(i, i + STEP)
            square = square_distance(z[at], self.train, np.ones(self.train.shape[1]))
            out[at] = few_covariance(self.hyper, shares[at] @ self.shares.T, square)[0] @ self.alpha
        return out


def scaled_rows(x: Floats, columns: NDArray[np.intp], scale: Floats) -> Floats:
    """The columns that a process on few rows looks at, in their units; what is not known counts as 0."""
    return np.asarray(np.nan_to_num(x[:, columns], nan=0.0) / scale)


def few_covariance(hyper: Floats, basis: Floats, square: Floats) -> tuple[Floats, list[Floats]]:
    """(prior covariance without noise, its derivatives by the first four of `hyper`) from inner products of the shares
    and squared distances, both (n, m)."""
    bias, terms, amplitude, weight = np.exp(np.array([2.0, 2.0, 2.0, -2.0]) * hyper[:4])
    near, slope = matern(np.maximum(square, 0.0) * weight)
    shift, linear, smooth = np.full(basis.shape, bias), terms * basis, amplitude * near
    longer = -2.0 * amplitude * slope * square * weight
    return shift + linear + smooth, [2.0 * shift, 2.0 * linear, 2.0 * smooth, longer]


def fit_few_process(x: Floats, shares: Floats, y: Floats, scales: Floats, *, prior: Prior = PRIOR, search: bool = True,
                    group: NDArray[Any] | None = None) -> tuple[FewProcess, Floats]:
    """(process, left-out errors (n,)) of (n, columns) features, (n, terms) shares and (n,) log residuals.

    scales: unit of each column, 0 to leave it out. search=False keeps the prior's hyper-parameters. The errors are
    those of each row, or with `group` (n,) labels of each group of rows, predicted by the process without it (Rasmussen
    and Williams, eq. 5.12), the hyper-parameters kept.
    """
    from scipy.optimize import minimize

    columns = np.flatnonzero((scales > 0.0) & np.isfinite(x).any(axis=0))
    z = scaled_rows(x, columns, scales[columns])
    basis, square = shares @ shares.T, square_distance(z, z, np.ones(len(columns)))
    hyper = prior.log(len(columns))
    if search:
        some = np.random.default_rng(0).permutation(len(y))[:SEARCH_ROWS]
        few = np.ix_(some, some)
        cost = _few_likelihood(basis[few], square[few], y[some], hyper, prior.width)
        hyper = np.asarray(minimize(cost, hyper, method="L-BFGS-B", jac=True, options={"maxiter": STEPS}).x)
    inverse: Floats = np.asarray(np.linalg.inv(_with_noise(hyper, few_covariance(hyper, basis, square)[0])))
    alpha: Floats = np.asarray(inverse @ y)
    process = FewProcess(columns, scales[columns], z, shares, alpha, hyper)
    return process, left_out_errors(inverse, alpha, np.arange(len(y)) if group is None else group)


def _with_noise(hyper: Floats, kernel: Floats) -> Floats:
    kernel[np.diag_indices(len(kernel))] += np.exp(2.0 * hyper[4]) + JITTER
    return kernel


def _few_likelihood(basis: Floats, square: Floats, y: Floats, centre: Floats, width: float) -> Any:
    """Negative log posterior of the hyper-parameters and its gradient."""

    def cost(hyper: Floats) -> tuple[float, Floats]:
        kernel, slopes = few_covariance(hyper, basis, square)
        try:
            lower = np.linalg.cholesky(_with_noise(hyper, kernel))
        except np.linalg.LinAlgError:
            return 1e10, np.zeros(5)
        inverse = np.linalg.inv(lower)
        inverse = inverse.T @ inverse
        alpha = inverse @ y
        by_kernel = 0.5 * (inverse - np.outer(alpha, alpha))
        off = (hyper - centre) / width
        noise = 2.0 * np.exp(2.0 * hyper[4]) * np.trace(by_kernel)
        gradient = np.array([*(float((by_kernel * slope).sum()) for slope in slopes), noise]) + off / width
        value = 0.5 * float(y @ alpha) + float(np.log(np.diag(lower)).sum()) + 0.5 * float(off @ off)
        return value, gradient

    return cost


def believed(y: Floats, error: Floats) -> Floats:
    """Targets (n,) of which none lies further than OUTLYING robust deviations from what the other runs say of it.

    A run that is off by eight times among two dozen at a few percent would else be spread over half of the sizes
    (Huber's pseudo-values, the scale from the median of the left-out errors).
    """
    reach = OUTLYING * max(1.4826 * float(np.median(np.abs(error))), np.exp(PRIOR.log(1)[4]))
    return np.asarray(y - error + np.clip(error, -reach, reach))


def left_out_errors(inverse: Floats, alpha: Floats, group: NDArray[Any]) -> Floats:
    """Errors (n,) of rows predicted without their group, from the inverse covariance and its product with the targets:
    Rasmussen and Williams eq. 5.12, for a group by the inverse of its block."""
    out = np.empty(len(alpha))
    for label in np.unique(group):
        at = np.flatnonzero(group == label)
        out[at] = np.linalg.solve(inverse[np.ix_(at, at)], alpha[at])
    return out
