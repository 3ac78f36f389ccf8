"""The Gaussian process: its likelihood's gradient, a surface it must find, and what one configuration shares."""

from __future__ import annotations

import numpy as np
from kernelcast.features.rows import Rows
from kernelcast.training.learners.process import _equal, _Likelihood, configurations, fit_process


def test_the_gradient_of_the_likelihood_is_that_of_its_differences() -> None:
    rng = np.random.default_rng(0)
    z, y, label = rng.normal(size=(40, 3)), rng.normal(size=40), np.repeat(np.arange(20), 2)
    cost = _Likelihood(z, y, _equal(label))
    theta = np.array([-0.3, -1.0, -2.0, -0.5, -2.0, -2.5])
    _, gradient = cost(theta)
    step = 1e-3
    numeric = [(cost(theta + step * e)[0] - cost(theta - step * e)[0]) / (2 * step) for e in np.eye(6)]
    np.testing.assert_allclose(gradient, numeric, rtol=5e-3, atol=5e-3)


def test_a_smooth_surface_is_found_and_columns_that_tell_nothing_are_dropped() -> None:
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.uniform(-3, 3, (500, 2)), rng.normal(size=(500, 4)), np.ones(500)])
    y = np.sin(x[:, 0]) + 0.3 * x[:, 1] + rng.normal(scale=0.02, size=500)
    process = fit_process(x[:400], y[:400])
    assert process is not None
    assert np.mean(np.abs(process.predict(x[400:]) - y[400:])) < 0.05
    assert 6 not in process.columns  # constant
    assert np.all(process.length[:, :1] < process.length[:, 2:])  # (draws, columns): the sine turns fastest


def test_what_rows_of_one_configuration_share_is_not_taken_for_a_smooth_dependence() -> None:
    rng = np.random.default_rng(2)
    label = np.repeat(np.arange(120), 3)
    size = np.repeat(rng.uniform(-3, 3, 120), 3)
    quirk = np.repeat(rng.normal(scale=0.3, size=120), 3)
    x = np.column_stack([size, rng.normal(size=360)])
    y = np.sin(size) + quirk + rng.normal(scale=0.01, size=360)
    knowing, blind = fit_process(x, y, label), fit_process(x, y)
    assert knowing is not None and blind is not None
    asked = np.column_stack([np.linspace(-3, 3, 200), np.zeros(200)])
    truth = np.sin(asked[:, 0])
    error = [float(np.mean(np.abs(p.predict(asked) - truth))) for p in (knowing, blind)]
    assert error[0] < 0.12
    assert error[0] < 0.7 * error[1]


def test_nothing_that_varies_gives_no_process() -> None:
    assert fit_process(np.ones((30, 3)), np.zeros(30)) is None


def test_rows_of_equal_sizes_are_one_configuration_whatever_their_cache_state() -> None:
    names = ("log2_m", "cold", "log2_base")
    warm = Rows(names, np.array([[3.0, 0.0, -9.0], [4.0, 0.0, -8.0]]), {})
    cold = Rows(names, np.array([[3.0, 1.0, -7.0], [5.0, 1.0, -6.0]]), {})
    found = configurations(["m"], [warm, cold])
    assert found[0] == found[2]
    assert len(set(found.tolist())) == 3
