"""Questions that leave statistics out are answered by a model, and a band, that never saw them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelcast.analytic.families import FAMILIES
from kernelcast.bench.evaluation import sources
from kernelcast.bench.ship import slim
from kernelcast.features.describe import describe
from kernelcast.registry.store import read_model, write_model
from kernelcast.training.hybrid.fit import fit_model, refit_model
from kernelcast.training.hybrid.model import Model
from kernelcast.training.hybrid.partial import kinds, name_of


@pytest.fixture(scope="module")
def gathers() -> pd.DataFrame:
    """Measured gathers of one precision: sorted indices are read several times faster than random ones."""
    frame = sources.own("h200")
    chosen = (frame["kernel"] == "gather") & (frame["precision"] == "fp32") & (frame["implementation"] == "torch")
    return frame[chosen].reset_index(drop=True)


@pytest.fixture(scope="module", autouse=True)
def trees_alone() -> Iterator[None]:
    """What is tested here does not hang on the smooth members, which take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernelcast.training.hybrid.fit.smooth_for", lambda rows: "")
        yield


@pytest.fixture(scope="module")
def model(gathers: pd.DataFrame, trees_alone: None) -> Model:
    return fit_model(gathers[~sources.hash_test(gathers)].reset_index(drop=True))


def test_each_extent_leaves_out_more_and_begins_with_what_matters() -> None:
    for name, family in FAMILIES.items():
        extents = family.asked_without
        assert bool(family.statistics) == bool(extents), name
        assert all(set(a) < set(b) for a, b in itertools.pairwise(extents)), name
        assert set(family.statistics) <= {p for extent in extents[-1:] for p in extent}, name


def test_a_band_without_the_statistic_covers_and_the_whole_model_stays_as_it_was(
    gathers: pd.DataFrame, model: Model
) -> None:
    test = gathers[sources.hash_test(gathers)].reset_index(drop=True)
    measured = test["time_s"].to_numpy()
    whole, less = model.predict(describe(test)), model.predict(describe(sources.asked_with_less(test, 0)))
    covered = [np.mean((measured >= p.lower_s) & (measured <= p.upper_s)) for p in (whole, less)]
    # 90 % of some hundred rows, two to a group: three standard errors of half as many
    error = 3.0 * np.sqrt(0.09 / (len(test) / 2))
    assert min(covered) > 0.9 - error
    assert np.median(less.upper_s / less.predicted_s) > np.median(whole.upper_s / whole.predicted_s)
    assert set(whole.note[whole.in_domain]) == {""}
    assert all(note == "by a model and a band that do without order" for note in less.note[less.in_domain])
    alone = model.families["gather"]
    part = describe(test).groups[0]
    np.testing.assert_array_equal(whole.in_domain[part.index], alone.domain.outside(part.rows)[0] <= 0)


def test_rows_of_one_table_each_get_the_model_of_what_they_say(gathers: pd.DataFrame, model: Model) -> None:
    rows = gathers.head(12)
    mixed = rows.copy()
    mixed.loc[::2, "params"] = sources.asked_with_less(rows.iloc[::2], 0)["params"]
    together, whole, less = (
        model.predict(describe(frame)).predicted_s for frame in (mixed, rows, sources.asked_with_less(rows, 0))
    )
    np.testing.assert_allclose(together[::2], less[::2], rtol=1e-12)
    np.testing.assert_allclose(together[1::2], whole[1::2], rtol=1e-12)
    strange = describe(rows)
    for group in strange.groups:
        group.rows.categories["order"] = np.full(group.index.size, "zigzag")
    # a label nobody trained on says as much as none
    answer = model.predict(strange)
    np.testing.assert_allclose(answer.predicted_s, less, rtol=1e-12)
    assert all(note.endswith("do without order 'zigzag' (of no training run)") for note in answer.note)


def test_it_survives_its_file_and_a_refit_keeps_its_band(gathers: pd.DataFrame, model: Model, tmp_path: Any) -> None:
    name = name_of("gather", 0)
    assert set(model.partials) == {name}
    write_model(slim(model), tmp_path / "model")
    again = read_model(tmp_path / "model")
    asked = describe(sources.asked_with_less(gathers.head(40), 0))
    np.testing.assert_allclose(again.predict(asked).upper_s, model.predict(asked).upper_s, rtol=1e-6)
    assert again.families.loaded == ("gather",)  # type: ignore[attr-defined]
    refitted = refit_model(gathers, model)
    assert refitted.partials[name].rows == len(gathers)
    assert refitted.partial_judge is model.partial_judge


def test_a_quick_model_and_a_small_family_have_none_and_say_what_is_missing(gathers: pd.DataFrame) -> None:
    few = gathers.head(150)
    for quick in (fit_model(gathers, quick=True), fit_model(few)):
        assert not quick.partials
        answer = quick.predict(describe(sources.asked_with_less(few.head(4), 0)))
        assert not answer.in_domain.any()
        assert all("order not given" in note and "too narrow" in note for note in answer.note)


def test_who_does_not_say_how_an_input_was_made_gets_a_band_for_kinds_that_were_never_seen() -> None:
    frame = sources.own("h200")
    chosen = (frame["kernel"] == "bfs") & (frame["implementation"] == "top_down") & (frame["cache"] == "warm")
    searches = frame[chosen].reset_index(drop=True)
    made = np.array([json.loads(p)["structure"] for p in searches["params"]])
    (group,) = describe(searches).groups
    fold = kinds([group], np.zeros(len(searches), dtype=np.intp))
    assert fold is not None and len(np.unique(fold)) == len(set(made))
    assert all(len(set(made[fold == number])) == 1 for number in np.unique(fold))
    few = describe(searches[np.isin(made, ["grid", "road"])]).groups
    assert kinds(few, fold) is None  # too few kinds to leave one out
    seen, strange = made != "grid", made == "grid"
    model = fit_model(searches[seen].reset_index(drop=True))
    test = searches[strange].reset_index(drop=True)
    answer, measured = model.predict(describe(test)), test["time_s"].to_numpy()
    # a grid is none of the kinds the band was made of: it holds for most all the same
    assert np.mean((measured >= answer.lower_s) & (measured <= answer.upper_s)) > 0.7
    assert all("structure 'grid' (of no training run)" in note for note in answer.note)
