"""The network of large families: its gradients, what it learns, what it does outside its box, and its way to a file."""

import itertools

import numpy as np
import pytest
from kernelcast.registry.codec import Sink, Source, load_booster, pack, unpack
from kernelcast.training.hybrid.fit import _Choice, _choose
from kernelcast.training.learners import network
from kernelcast.training.learners.network import Network, fit_network
from kernelcast.training.learners.residual import (
    BOTH,
    NETWORK,
    NETWORK_FROM,
    PROCESS,
    PROCESS_UP_TO,
    Blend,
    fit_residual,
    smooth_for,
)


def _surface(rows: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(features with a constant and a partly missing column, noisy target, target)."""
    draw = np.random.default_rng(seed)
    x = draw.uniform(-3.0, 3.0, (rows, 4))
    truth = 0.3 * np.sin(x[:, 0]) + 0.1 * x[:, 1] * (x[:, 2] > 0.0)
    missing = np.where(draw.random(rows) < 0.3, np.nan, x[:, 3])
    columns = np.column_stack([x[:, :3], missing, np.full(rows, 7.0)])
    return columns, truth + noise * draw.standard_t(3, rows), truth


def test_gradients_are_those_of_the_huber_loss() -> None:
    rng = np.random.default_rng(1)
    sizes = (3, 5, 4, 1)
    weights = [rng.normal(size=(i, o)) for i, o in itertools.pairwise(sizes)]
    biases = [rng.normal(size=o) for o in sizes[1:]]
    z, y = rng.normal(size=(20, 3)), rng.normal(size=20)

    def loss() -> float:
        error = np.abs(network._forward(z, weights, biases) - y)
        edge = network.HUBER
        return float(np.mean(np.where(error < edge, 0.5 * error**2, edge * (error - 0.5 * edge))))

    found = network._gradients(z, y, weights, biases)
    step = 1e-6
    for values, gradient in zip([*weights, *biases], found, strict=True):
        at = np.unravel_index(int(np.argmax(np.abs(gradient))), gradient.shape)
        values[at] += step
        above = loss()
        values[at] -= 2.0 * step
        below = loss()
        values[at] += step
        assert gradient[at] == pytest.approx((above - below) / (2.0 * step), rel=1e-3)


def test_learns_a_surface_through_noise_and_outliers() -> None:
    x, y, _ = _surface(4000, noise=0.05)
    unseen, _, truth = _surface(1000, noise=0.0, seed=1)
    error = np.mean(np.abs(fit_network(x, y).predict(unseen) - truth))
    assert error < 0.025  # half of the noise's scale: what averaging over neighbours buys
    assert error < 0.1 * np.mean(np.abs(truth - truth.mean()))  # of what there was to explain


def test_same_seed_same_network_and_another_seed_another() -> None:
    x, y, _ = _surface(600, noise=0.05)
    first, again, other = (fit_network(x, y, seed, epochs=2).predict(x) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_far_outside_it_answers_as_at_the_edge() -> None:
    x, y, _ = _surface(600, noise=0.05)
    net = fit_network(x, y, epochs=2)
    far, farther = x[:1].copy(), x[:1].copy()
    far[0, 0], farther[0, 0] = 1e3, 1e6
    assert net.predict(far) == net.predict(farther)
    assert np.all(np.isfinite(net.predict(np.full((1, x.shape[1]), np.nan))))


def test_large_families_carry_a_network_that_survives_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NETWORK_FROM", "PROCESS_UP_TO"):
        monkeypatch.setattr(f"kernelcast.training.learners.residual.{name}", 800)
    x, y, _ = _surface(801, noise=0.05)
    residual = fit_residual(x, y)
    assert isinstance(residual.process, Network)
    sink = Sink()
    data = pack(residual, sink)
    again = unpack(data, Source(sink.arrays.__getitem__, lambda i: load_booster(sink.boosters[i])))
    assert np.array_equal(again.predict(x), residual.predict(x))
    assert np.mean(np.abs(residual.predict(x) - y)) < np.mean(np.abs(y - y.mean()))


def test_between_few_and_many_rows_process_and_network_are_tried_with_either_and_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert smooth_for(NETWORK_FROM - 1) == PROCESS
    assert smooth_for(NETWORK_FROM) == smooth_for(PROCESS_UP_TO) == BOTH
    assert smooth_for(PROCESS_UP_TO + 1) == NETWORK
    monkeypatch.setattr("kernelcast.training.learners.residual.NETWORK_FROM", 200)
    x, y, _ = _surface(300, noise=0.05)
    residual = fit_residual(x, y)
    assert isinstance(residual.process, Blend)
    assert residual.smooth == BOTH
    trees, members = residual.candidates(x)
    assert set(members) == {BOTH, PROCESS, NETWORK}
    np.testing.assert_allclose(members[BOTH], (members[PROCESS] + members[NETWORK]) / 2.0)
    np.testing.assert_allclose(members[PROCESS], residual.process.process.predict(x))
    np.testing.assert_allclose(residual.predict(x), (trees + members[BOTH]) / 2.0)
    sink = Sink()
    data = pack(residual, sink)
    again = unpack(data, Source(sink.arrays.__getitem__, lambda i: load_booster(sink.boosters[i])))
    assert np.array_equal(again.predict(x), residual.predict(x))
    assert fit_residual(x, y, smooth="").process is None
    assert fit_residual(np.ones((30, 3)), np.zeros(30), smooth=BOTH).process is None  # nothing varies


def test_the_member_that_errs_least_out_of_fold_is_chosen() -> None:
    draw = np.random.default_rng(0)
    target = draw.normal(size=400)
    near, far = target + draw.normal(scale=0.05, size=400), target + draw.normal(scale=0.5, size=400)
    assert _choose(target, far, {PROCESS: far, NETWORK: near}) == _Choice(NETWORK, 1.0, True)
    assert _choose(target, near, {PROCESS: far}) == _Choice("", 0.0, True)
    assert _choose(1e-3 * target, target, {}) == _Choice("", 0.0, False)  # worse than the calibrated baseline
