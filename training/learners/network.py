"""A small neural network on the residual of a large family: smooth where trees are steps.

Rows of a corpus lie on a coarse grid of sizes, and every row carries the noise of its measurement. Trees answer from
the rows of one cell of that grid; a network draws one surface through all of them, and the average of the two errs
less than either. Plain numpy: a fit is some thousand small matrix products. scikit-learn's perceptron has neither the
loss nor the schedule: 20,000 B200 products, unseen training sites, 7.6 % mean error at best where this one has 6.0.

Layers of SiLU units (Elfwing et al. 2018), trained by Adam (Kingma & Ba 2015) with decoupled weight decay (Loshchilov &
Hutter 2019), a cosine schedule, and Huber's loss close to the absolute error, so that an outlier pulls like any row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

LAYERS = (192, 128, 64)
EPOCHS = 20
BATCH = 64
LEARNING_RATE = 3e-3
WARM_UP = 100
"""Steps over which the learning rate rises to its full height."""
DECAY = 0.05
"""Weight decay of a step, as a share of the learning rate."""
HUBER = 0.1
"""Edge between squared and absolute loss, in standard deviations of the target."""
FIRST, SECOND = 0.9, 0.99
"""Memory of Adam for gradients and for their squares."""
MARGIN = 0.25
"""Standard deviations beyond the training box at which a column stops: outside, its edge is all that is known."""
CHUNK = 8192


def _silu(z: Singles) -> tuple[Singles, Singles]:
    """(z · σ(z), its derivative)."""
    gate: Any = 1.0 / (1.0 + np.exp(-np.clip(z, -30.0, 30.0)))
    out = z * gate
    return out, gate + out * (1.0 - gate)


@dataclass
class Network:
    """A fitted network as plain arrays."""

    columns: NDArray[np.intp]
    shift: Floats
    scale: Floats
    low: Floats
    high: Floats
    """Box of the standardised columns, within which an input is held."""
    weights: list[Singles]
    biases: list[Singles]
    centre: float
    spread: float
    """Mean and standard deviation of the target."""

    def inputs(self, x: Floats) -> Singles:
        """Standardised columns of rows (n, all); what is missing counts as the mean."""
        z = (x[:, self.columns] - self.shift) / self.scale
        return np.asarray(np.clip(np.nan_to_num(z, nan=0.0), self.low, self.high), dtype=np.float32)

    def predict(self, x: Floats) -> Floats:
        """Residual of rows (n, all columns), shape (n,)."""
        chunks = [_forward(self.inputs(x[i : i + CHUNK]), self.weights, self.biases) for i in range(0, len(x), CHUNK)]
        flat = np.concatenate(chunks) if chunks else np.zeros(0)
        return np.asarray(self.centre + self.spread * flat, dtype=np.float64)


def _forward(z: Singles, weights: Sequence[Singles], biases: Sequence[Singles]) -> Singles:
    for w, b in zip(weights[:-1], biases[:-1], strict=True):
        z = _silu(z @ w + b)[0]
    return np.asarray((z @ weights[-1] + biases[-1])[:, 0])


def _gradients(z: Singles, y: Singles, weights: Sequence[Singles], biases: Sequence[Singles]) -> list[Singles]:
    """Gradients of the mean Huber loss of one batch: those of the weights, then those of the biases."""
    inner, slopes = [z], []
    for w, b in zip(weights[:-1], biases[:-1], strict=True):
        z, slope = _silu(z @ w + b)
        inner.append(z)
        slopes.append(slope)
    error = (z @ weights[-1] + biases[-1])[:, 0] - y
    back = (np.clip(error, -HUBER, HUBER) / np.float32(len(y)))[:, None]
    of_weights, of_biases = [], []
    for layer in reversed(range(len(weights))):
        of_weights.append(inner[layer].T @ back)
        of_biases.append(back.sum(axis=0))
        if layer:
            back = (back @ weights[layer].T) * slopes[layer - 1]
    return [*reversed(of_weights), *reversed(of_biases)]


def _rates(steps: int) -> Floats:
    """Learning rate of each step: a short rise, then half a cosine down to zero."""
    at = np.arange(1, steps + 1)
    return LEARNING_RATE * np.minimum(at / WARM_UP, 1.0) * 0.5 * (1.0 + np.cos(np.pi * at / steps))


def fit_network(x: Floats, y: Floats, seed: int = 0, *, layers: Sequence[int] = LAYERS, epochs: int = EPOCHS
                ) -> Network:
    """Fit (n, columns) features to (n,) targets; deterministic for a seed."""
    draw = np.random.default_rng(seed)
    known = np.isfinite(x)
    count = np.maximum(known.sum(axis=0), 1)
    shift = np.where(known, x, 0.0).sum(axis=0) / count
    scale = np.sqrt((np.where(known, x - shift, 0.0) ** 2).sum(axis=0) / count)
    columns = np.flatnonzero(scale > 1e-9)
    centre, spread = float(np.mean(y)), max(float(np.std(y)), 1e-6)
    net = Network(columns, shift[columns], scale[columns], np.full(len(columns), -np.inf),
                  np.full(len(columns), np.inf), [], [], centre, spread)
    z = net.inputs(x)
    net.low, net.high = z.min(axis=0) - MARGIN, z.max(axis=0) + MARGIN
    target = np.asarray((y - centre) / spread, dtype=np.float32)
    sizes = [len(columns), *layers, 1]
    # variance kept from layer to layer (He et al. 2015); the last starts near zero, at the calibrated baseline
    gains = [2.0] * len(layers) + [0.1]
    net.weights = [draw.normal(scale=np.sqrt(g / i), size=(i, o)).astype(np.float32)
                   for g, i, o in zip(gains, sizes, sizes[1:], strict=False)]
    net.biases = [np.zeros(o, dtype=np.float32) for o in sizes[1:]]
    _descend(net, z, target, draw, epochs)
    return net


def _descend(net: Network, z: Singles, y: Singles, draw: np.random.Generator, epochs: int) -> None:
    """Adam over shuffled batches, in place."""
    batch = min(BATCH, len(y))
    per_epoch = len(y) // batch
    rates = _rates(epochs * per_epoch)
    values = [*net.weights, *net.biases]
    first, second = [np.zeros_like(v) for v in values], [np.zeros_like(v) for v in values]
    step = 0
    for _ in range(epochs):
        order = draw.permutation(len(y))
        for start in range(0, per_epoch * batch, batch):
            rows = order[start : start + batch]
            rate = rates[step]
            step += 1
            # Adam's two memories start empty: both are scaled up by what they have not seen yet
            size = np.float32(rate / (1.0 - FIRST**step))
            root = np.float32(1.0 / np.sqrt(1.0 - SECOND**step))
            for v, m, s, g in zip(values, first, second, _gradients(z[rows], y[rows], net.weights, net.biases),
                                  strict=True):
                m *= FIRST
                m += (1.0 - FIRST) * g
                s *= SECOND
                s += (1.0 - SECOND) * g * g
                if v.ndim == 2:
                    v *= np.float32(1.0 - rate * DECAY)
                v -= size * m / (np.sqrt(s) * root + np.float32(1e-8))
