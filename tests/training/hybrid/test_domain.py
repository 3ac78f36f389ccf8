"""Outside of what was learned: unknown implementations get a band as wide as the known ones differ, and far sizes
fade to what the rows really tell."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from kernelcast.features.describe import describe
from kernelcast.training.hybrid.calibration import TERMS, fit_calibration
from kernelcast.training.hybrid.fit import fit_model
from kernelcast.training.hybrid.remarks import SAME_LIBRARY

SLOW = 2.5


def two_kinds(labels: tuple[str, str] = ("quick", "slow")) -> pd.DataFrame:
    """Runs of two implementations, one of them SLOW times as slow as the other."""
    rng = np.random.default_rng(1)
    n = np.exp(rng.uniform(np.log(1e5), np.log(3e8), 240)).astype(int)
    kind = np.arange(240) % 2
    frame = pd.DataFrame({"platform": "h200", "kernel": "vector_add", "precision": "fp32", "cache": "cold",
                          "params": [json.dumps({"n": int(v)}) for v in n], "implementation": np.array(labels)[kind],
                          "group": [str(v) for v in n]})
    factor = np.where(kind == 1, SLOW, 1.0) * np.exp(rng.normal(0, 0.02, len(n)))
    return frame.assign(time_s=1.1 * describe(frame).baseline_s * factor)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return two_kinds()


def half_widths(frame: pd.DataFrame, predicted: object) -> np.ndarray:
    return np.log(predicted.upper_s / predicted.predicted_s)  # type: ignore[attr-defined]


def test_the_band_of_an_unknown_implementation_covers_the_known_ones(frame: pd.DataFrame) -> None:
    model = fit_model(frame, quick=True)
    known, unknown = (model.predict(describe(part)) for part in (frame, frame.assign(implementation="somebody_elses")))
    assert np.median(half_widths(frame, known)) < 0.2
    assert np.all(half_widths(frame, unknown) > half_widths(frame, known))
    inside = (frame["time_s"] >= unknown.lower_s) & (frame["time_s"] <= unknown.upper_s)
    assert inside.mean() >= 0.9
    assert not unknown.in_domain.any()
    assert "'somebody_elses' not in training, band from how far those that are differ" in unknown.note[0]


def test_another_name_of_the_same_library_is_widened_and_named() -> None:
    rows = two_kinds(("torch", "slow"))
    model = fit_model(rows, quick=True)
    torch = rows[rows["implementation"] == "torch"]
    own, other = (model.predict(describe(torch.assign(implementation=name))) for name in ("torch", "aten"))
    np.testing.assert_allclose(other.predicted_s, own.predicted_s)
    np.testing.assert_allclose(half_widths(torch, other), SAME_LIBRARY * half_widths(torch, own))
    assert f"implementation 'aten' taken for torch, band widened x{SAME_LIBRARY:g}" in other.note[0]
    assert "taken for" not in own.note[0]


def test_multipliers_count_as_known_only_where_rows_show_their_term() -> None:
    rng = np.random.default_rng(0)
    rows, names = 60, list(TERMS)
    terms = np.zeros((rows, len(TERMS)))
    terms[:, names.index("constant")] = 1e-6
    terms[:, names.index("launch")] = 2e-6
    terms[:, names.index("memory")] = 1e-8 * rng.uniform(0.5, 1.0, rows)  # in the shade of the launch
    terms[:, names.index("baseline")] = 2e-6
    calibration = fit_calibration(terms, np.full(rows, "a|fp32"), np.full(rows, 5e-6))
    far = terms[:1].copy()
    far[0, names.index("memory")] = far[0, names.index("baseline")] = 1e-2
    launch_share, memory_share = (float(calibration.known_share(t, np.array(["a|fp32"]))[0]) for t in (terms[:1], far))
    assert launch_share > 0.5
    assert memory_share < 0.6 * launch_share


def test_an_implementation_left_open_is_named_and_its_band_covers_the_others(frame: pd.DataFrame) -> None:
    model = fit_model(frame, quick=True)
    rows = describe(frame.drop(columns="implementation"))
    named, left_open = model.predict(describe(frame)), model.predict(rows, left_open=True)
    asked = model.predict(rows)  # a question takes the reference one
    np.testing.assert_array_equal(asked.predicted_s, left_open.predicted_s)
    assert np.all(asked.upper_s < left_open.upper_s) and asked.note[0] == named.note[0]
    assert set(left_open.implementation) == {"slow"} or set(left_open.implementation) == {"quick"}
    assert np.all(half_widths(frame, left_open) > half_widths(frame, named))
    assert "implementation not given, taken for" in left_open.note[0] and "not given" not in named.note[0]


def test_a_family_with_a_usual_library_is_not_ambiguous() -> None:
    rows = two_kinds()
    sizes = [json.dumps({"m": int(2 ** (6 + i / 40)), "n": 512, "k": 512}) for i in range(len(rows))]
    rows = rows.assign(kernel="gemm", params=sizes, group=sizes)
    rows["implementation"] = np.where(rows["implementation"] == "quick", "cublas", "tile16")
    rows["time_s"] = describe(rows).baseline_s * np.where(rows["implementation"] == "tile16", SLOW, 1.0)
    model = fit_model(rows, quick=True)
    own = rows[rows["implementation"] == "cublas"]
    named = model.predict(describe(own))
    left_open = model.predict(describe(own.drop(columns="implementation")), left_open=True)
    np.testing.assert_allclose(left_open.upper_s, named.upper_s)
    assert set(left_open.implementation) == {"cublas"} and left_open.in_domain.all()
