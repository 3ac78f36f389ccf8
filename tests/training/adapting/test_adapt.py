"""Adapting to new hardware: made-up times on two parameter files, where what should come out is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from kernelcast.analytic.errors import InputError
from kernelcast.bench.adapt_curve import Setting, adapt_curve, own_runs_curve, spread_rows
from kernelcast.features.describe import describe
from kernelcast.training.adapting import corrections
from kernelcast.training.adapting.adapt import adapt_model
from kernelcast.training.adapting.adapted import AdaptedFamily
from kernelcast.training.adapting.corrections import JOINT_FROM, Correction, as_far_as_it_holds, pulled_multipliers
from kernelcast.training.hybrid.metrics import relative_error
from kernelcast.training.learners import process as process_module
from kernelcast.training.learners.process import OUTLYING, PRIOR, FewProcess, believed, fit_few_process
from kernelcast.training.tables.schema import validate_runs

if TYPE_CHECKING:
    from kernelcast.training.hybrid.model import Model

OLD, NEW = "h100-sxm", "b200"


def made_up(platform: str, rows: int, seed: int, factor: float = 1.0, noise: float = 0.02) -> pd.DataFrame:
    """GEMM times: the baseline, times a smooth function of k that both platforms share, times a platform's factor."""
    rng = np.random.default_rng(seed)
    sizes = np.exp2(rng.uniform(6, 13, (rows, 3))).astype(int)
    lines = [{"platform": platform, "kernel": "gemm", "precision": "bf16", "implementation": "cublas", "time_s": 1.0,
              "params": {"m": int(m), "n": int(n), "k": int(k)}, "cache": "warm"} for m, n, k in sizes]
    frame, _ = validate_runs(pd.DataFrame(lines), "made up")
    shared = 0.25 * np.sin(np.log2(sizes[:, 2]))
    error = shared + np.log(factor) + noise * rng.standard_normal(rows)
    return frame.assign(time_s=describe(frame).baseline_s * np.exp(error))


def mape(model: Model, test: pd.DataFrame) -> float:
    return 100.0 * float(relative_error(model.predict(describe(test)).predicted_s, test["time_s"]).mean())


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corrections, "ROUNDS", 30)  # the made-up error is smooth: few trees say as much as many


@pytest.fixture(scope="module")
def old() -> pd.DataFrame:
    return made_up(OLD, 200, 1)


@pytest.fixture(scope="module")
def test() -> pd.DataFrame:
    return made_up(NEW, 200, 2, factor=1.5)


def test_runs_bring_the_error_down(old: pd.DataFrame, test: pd.DataFrame) -> None:
    few = made_up(NEW, 20, 3, factor=1.5)
    before = adapt_curve(Setting(NEW, few, test, old), (0,))[0]["mape"]
    adapted = adapt_model(few, NEW, source_rows=old)
    assert mape(adapted, test) < 0.4 * before
    assert adapted.meta["left_out"]["gemm"]["rows"] == 20
    assert "20 runs" in adapted.families["gemm"].note and "left out" in adapted.families["gemm"].note


def test_a_source_is_kept_where_the_runs_are_noise(old: pd.DataFrame) -> None:
    """Runs that scatter around the source without a pattern teach nothing, and nothing is shipped but the source."""
    exact = made_up(NEW, 100, 2)
    few = made_up(NEW, 6, 5, noise=0.3)
    few["time_s"] *= np.exp(-np.mean(np.log(few["time_s"] / describe(few).baseline_s)))
    adapted = adapt_model(few, NEW, source_rows=old)
    before = adapt_curve(Setting(NEW, few, exact, old), (0,))[0]["mape"]
    family = adapted.families["gemm"]
    assert isinstance(family, AdaptedFamily)
    assert family.kind == "as it is" and "kept as it is" in family.note
    assert mape(adapted, exact) < 1.1 * before + 0.5


def test_chosen_correction_never_loses_with_runs_left_out(old: pd.DataFrame) -> None:
    for rows in (5, 12):
        scores = adapt_model(made_up(NEW, rows, rows, 1.3), NEW, source_rows=old).meta["left_out"]["gemm"]
        assert scores[scores["kind"]] <= scores["as it is"]


def test_a_correction_that_loses_is_shipped_as_far_as_it_does_not() -> None:
    plain, name = np.array([0.1, -0.1, 0.1, 0.1]), "term multipliers"
    for whole, least, most in (([0.0, 0.0, 0.0, 0.2], 1.0, 1.0), ([0.0, 0.0, 0.0, 0.9], 0.0, 0.9),
                               ([0.1, -0.1, 0.1, 3.0], 0.0, 0.0)):
        found = Correction(name, np.array(whole), {}, np.ones(1), FewProcess(*[np.zeros(0)] * 6))
        chosen = as_far_as_it_holds(found, plain)
        assert least <= chosen.share <= most
        assert np.abs(np.expm1(-chosen.error)).mean() <= np.abs(np.expm1(-plain)).mean()
        assert (chosen.kind == "as it is") == (chosen.share == 0.0)


def test_no_family_without_a_source_loses_with_runs_left_out() -> None:
    """One family is as the parameter file has it, one is not, one has a run that no correction foresees."""
    few = pd.concat([made_up(NEW, 5, 1, factor=3.0), stream(5, 2, 1.0), stream(5, 3, 1.0, cliff=4.0)],
                    ignore_index=True)
    scores = adapt_model(few, NEW).meta["left_out"]
    assert set(scores) == {"gemm", "vector_add", "transpose"}
    for family, found in scores.items():
        assert found[found["kind"]] <= found["as it is"] + 1e-9, family
    assert scores["gemm"]["kind"] != "as it is"


def test_a_share_lies_between_the_analytic_time_and_the_correction() -> None:
    adapted = adapt_model(made_up(NEW, 8, 7, factor=2.0), NEW)
    family = adapted.families["gemm"]
    assert isinstance(family, AdaptedFamily)
    described = describe(made_up(NEW, 50, 8))
    found = {}
    for share in (0.0, 0.5, 1.0):
        family.share = share
        found[share] = adapted.predict(described).predicted_s
    np.testing.assert_allclose(found[0.0], described.baseline_s)
    np.testing.assert_allclose(found[0.5], np.sqrt(found[0.0] * found[1.0]))


def stream(rows: int, seed: int, factor: float, cliff: float = 1.0) -> pd.DataFrame:
    """Copies at the analytic time, the largest of them `cliff` times as long (as transposes)."""
    sizes = np.exp2(np.linspace(12, 28, rows) + np.random.default_rng(seed).uniform(0, 0.5, rows)).astype(int)
    kernel = "vector_add" if cliff == 1.0 else "transpose"
    lines = [{"platform": NEW, "kernel": kernel, "precision": "fp32", "implementation": "own", "time_s": 1.0,
              "params": {"n": int(n)} if cliff == 1.0 else {"m": int(n) // 64, "n": 64}, "cache": "warm"}
             for n in sizes]
    frame, _ = validate_runs(pd.DataFrame(lines), "made up")
    times = describe(frame).baseline_s * factor
    times[-1] *= cliff
    return frame.assign(time_s=times)


def test_few_runs_have_an_unbounded_band_and_say_so(old: pd.DataFrame, test: pd.DataFrame) -> None:
    found = adapt_model(made_up(NEW, 6, 5, 1.5), NEW, source_rows=old).predict(describe(test))
    assert np.isinf(found.upper_s).all() and (found.lower_s == 0.0).all()
    assert "unbounded" in found.note[0]


def test_bands_of_enough_runs_cover(old: pd.DataFrame, test: pd.DataFrame) -> None:
    found = adapt_model(made_up(NEW, 40, 6, 1.5), NEW, source_rows=old).predict(describe(test))
    inside = (found.lower_s <= test["time_s"]) & (test["time_s"] <= found.upper_s)
    assert inside.mean() >= 0.8 and np.isfinite(found.upper_s).all()


def test_parameter_file_alone() -> None:
    few, test = made_up(NEW, 8, 7, factor=2.0), made_up(NEW, 100, 8, factor=2.0)
    adapted = adapt_model(few, NEW)
    plain = 100.0 * float(relative_error(describe(test).baseline_s, test["time_s"]).mean())
    assert mape(adapted, test) < 0.6 * plain
    assert "parameter file alone" in adapted.families["gemm"].note


def test_same_seed_same_model(old: pd.DataFrame, test: pd.DataFrame) -> None:
    few = made_up(NEW, 12, 9, 1.4)
    described = describe(test)
    first, second = (adapt_model(few, NEW, source_rows=old, seed=3).predict(described) for _ in range(2))
    np.testing.assert_array_equal(first.predicted_s, second.predicted_s)


def test_a_source_model_carries_the_families_without_runs(small_model: Model) -> None:
    few = made_up(NEW, 10, 4)
    adapted = adapt_model(few, NEW, small_model)
    assert "no run of vector_add" in adapted.families["vector_add"].note
    assert adapted.meta["adapted_from"] == [small_model.name]


def test_stored_and_read_again(old: pd.DataFrame, test: pd.DataFrame, tmp_path: object) -> None:
    from pathlib import Path

    from kernelcast.registry.store import read_model, write_model

    adapted = adapt_model(made_up(NEW, JOINT_FROM, 9, 1.4), NEW, source_rows=old)
    folder = Path(str(tmp_path)) / "model"
    write_model(adapted, folder)
    described = describe(test)
    stored = read_model(folder)
    assert stored.meta["settings"]["adapting.adapted"] and stored.meta["settings"]["learners.process"]
    again = stored.predict(described)
    np.testing.assert_allclose(again.predicted_s, adapted.predict(described).predicted_s)


def test_no_row_of_the_platform_is_refused(old: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="no run of b200; it holds h100-sxm"):
        adapt_model(old, NEW)


def test_multipliers_stay_at_the_prior_where_rows_say_nothing() -> None:
    terms = np.column_stack([np.linspace(1, 2, 9), np.zeros(9)])
    found = pulled_multipliers(terms, 3.0 * terms[:, 0], np.array([1.0, 1.0]), 0.01)
    assert found[0] == pytest.approx(3.0, rel=0.01) and found[1] == pytest.approx(1.0)


def process_of(x: np.ndarray, y: np.ndarray, shares: np.ndarray | None = None) -> tuple[FewProcess, np.ndarray]:
    shares = np.zeros((len(y), 0)) if shares is None else shares
    return fit_few_process(x[:, None], shares, y, np.array([1.0]))


def test_process_returns_to_the_shift_far_away() -> None:
    x = np.linspace(0.0, 10.0, 15)
    process, _ = process_of(x, np.sin(x))
    none = np.zeros((15, 0))
    assert np.abs(process.predict(x[:, None], none) - np.sin(x)).max() < 0.2
    assert abs(process.predict(np.array([[1e4]]), none[:1])[0]) < 0.2


def test_left_out_errors_are_those_of_a_process_without_the_run() -> None:
    rng = np.random.default_rng(0)
    x, shares = rng.uniform(0.0, 5.0, 12), rng.dirichlet(np.ones(3), 12)
    y = 0.3 * np.sin(x) + shares @ np.array([0.5, 0.0, -0.2])
    process, error = process_of(x, y, shares)
    for i in range(12):
        kept = np.arange(12) != i
        without = process.refit(x[kept, None], shares[kept], y[kept])
        assert error[i] == pytest.approx(y[i] - without.predict(x[[i], None], shares[[i]])[0], abs=1e-6)


def test_left_out_groups_are_left_out_whole() -> None:
    x = np.linspace(0.0, 5.0, 9)
    none, y, group = np.zeros((9, 0)), np.cos(x), np.repeat([0, 1, 2], 3)
    process, error = fit_few_process(x[:, None], none, y, np.array([1.0]), group=group)
    without = process.refit(x[3:, None], none[3:], y[3:])
    np.testing.assert_allclose(error[:3], y[:3] - without.predict(x[:3, None], none[:3]), atol=1e-6)


def test_the_basis_finds_the_term_that_is_off() -> None:
    """One of two terms takes 1.3 times as long: its share carries the error, also where no run was."""
    share = np.linspace(0.0, 0.6, 20)
    shares = np.column_stack([share, 1.0 - share])
    process, _ = process_of(np.zeros(20), np.log1p(0.3 * share), shares)
    ends = process.linear(np.array([[0.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(ends, [0.0, np.log(1.3)], atol=0.08)


def test_the_gradient_of_the_likelihood_is_that_of_differences() -> None:
    rng = np.random.default_rng(1)
    z, shares, y = rng.normal(size=(8, 2)), rng.dirichlet(np.ones(3), 8), 0.2 * rng.normal(size=8)
    square = ((z[:, None] - z[None]) ** 2).sum(axis=2)
    cost = process_module._few_likelihood(shares @ shares.T, square, y, PRIOR.log(2), PRIOR.width)
    at = PRIOR.log(2) + 0.1
    step = 1e-5 * np.eye(5)
    differences = [(cost(at + h)[0] - cost(at - h)[0]) / 2e-5 for h in step]
    np.testing.assert_allclose(cost(at)[1], differences, rtol=1e-4, atol=1e-6)


def test_a_run_that_no_other_bears_out_is_believed_in_part() -> None:
    y, error = np.array([0.1, -0.1, 0.05, 2.0]), np.array([0.1, -0.1, 0.1, 2.0])
    found = believed(y, error)
    np.testing.assert_allclose(found[:3], y[:3])
    assert found[3] == pytest.approx(OUTLYING * 1.4826 * 0.1)


def test_spread_rows_hold_both_ends() -> None:
    size = np.random.default_rng(0).uniform(0, 1, 30)
    chosen = spread_rows(size, 5, np.random.default_rng(1))
    assert len(chosen) == 5 and {size.argmin(), size.argmax()} <= set(chosen)


def test_mi300a_from_its_own_runs(data_folder: str) -> None:
    """Eight runs of each family and the parameter file: far below the uncalibrated baseline, bands that cover."""
    record = own_runs_curve((8,), data_dir=data_folder, draws=1)[0]
    assert record["mape"] < 7.0 and record["coverage"] > 0.8


@pytest.fixture
def data_folder() -> str:
    import os
    from pathlib import Path

    folder = Path(os.environ.get("KERNELCAST_DATA", "no development data"))
    if not (folder / "mi300a_kernels.parquet").is_file():
        pytest.skip("the MI300A table is not there; set KERNELCAST_DATA to its folder")
    return str(folder)
