"""Attributions of a learned correction: words for all columns, values that add up, agreement with other methods."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from kernelcast.analytic.families import FAMILIES
from kernelcast.analytic.platform import load_platform
from kernelcast.registry.index import shipped_folder
from kernelcast.registry.store import read_content, read_model, write_model
from kernelcast.service.question import ask
from kernelcast.training.hybrid.attribution import Learned, attribute, correction_log, learned_of, shapley
from kernelcast.training.hybrid.family import part_of, take
from kernelcast.training.hybrid.words import ALIGNMENT, OTHER, word_of

if TYPE_CHECKING:
    from pathlib import Path

    from kernelcast.features.describe import Group
    from kernelcast.training.hybrid.model import Model


@pytest.fixture(scope="module")
def h200() -> Model:
    return read_model(shipped_folder("h200"))


def group(family: str, precision: str | None = None, cache: str = "warm", platform: str = "h200", **params: Any
          ) -> Group:
    return ask(family, params, precision, cache, "").described(load_platform(platform))[0].groups[0]


MATRIX = {"rows": 10**6, "cols": 10**6, "nnz": 10**7, "row_max": 5000, "row_std": 50.0, "row_min": 1, "row_q1": 2,
          "row_median": 4, "row_q3": 6, "mean_col_distance": 3e5, "structure": "powerlaw"}
EVEN = {"rows": 2**16, "cols": 2**16, "nnz": 10 * 2**16, "row_max": 10, "row_std": 0.0, "row_min": 10, "row_q1": 10,
        "row_median": 10, "row_q3": 10, "mean_col_distance": 2e4, "structure": "uniform"}
GRAPH = {"nodes": 10**6, "edges": 10**7, "levels": 8, "max_degree": 50_000, "std_degree": 100.0, "structure": "rmat"}
REGULAR = {"nodes": 2**16, "edges": 10 * 2**16, "levels": 64, "max_degree": 10, "std_degree": 0.0,
           "structure": "uniform"}
PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "gemm": ({"m": 4096, "n": 4097, "k": 4096, "precision": "bf16"},
             {"m": 4096, "n": 4096, "k": 4096, "precision": "bf16"}),
    "spmv_csr": (MATRIX, EVEN),
    "bfs": (GRAPH, REGULAR),
    "softmax": ({"rows": 4096, "cols": 4099, "cache": "cold"}, {"rows": 512, "cols": 1024}),
    "bmm": ({"batch": 8, "m": 100, "n": 300, "k": 77},
            {"batch": 64, "m": 128, "n": 128, "k": 128, "precision": "bf16"}),
}


def asked_of(model: Model, family: str) -> tuple[Learned, Any]:
    given, reference = PAIRS[family]
    row = learned_of(model, group(family, **given))
    assert row is not None
    return row, row.taken(group(family, **reference))


def test_every_column_of_every_family_and_of_every_shipped_model_has_a_word() -> None:
    columns: set[tuple[str, str]] = set()
    for family in FAMILIES.values():
        given = {p.name: 64 for p in family.params if p.required} | ({"flops": 1e6} if family.name == "segment" else {})
        rows = group(family.name, **given).rows
        columns |= {(name, family.name) for name in (*rows.names, *rows.categories)}
    for folder in sorted(shipped_folder("h200").parent.iterdir()):
        if not (folder / "model.json").is_file():
            continue
        content = read_content(folder)
        for kind in ("families", "partials"):
            for stored in content.get(kind, {}).values():
                fields = stored["data"]["fields"]
                encoder = fields["encoder"]["fields"]
                columns |= {(name, fields["family"]) for name in (*encoder["names"], *encoder["labels"])}
    assert len(columns) > 1500
    assert sorted(pair for pair in columns if word_of(*pair) == OTHER) == []


@pytest.mark.parametrize(("column", "family", "word"), [
    ("log2_n", "gemm", "size of n"), ("pow2_n", "gemm", ALIGNMENT), ("pad_n_128", "gemm", "padding to whole tiles"),
    ("tail_128x256", "gemm", "last wave"), ("implementation=cublas", "gemm", "implementation"),
    ("precision", "gemm", "precision"), ("cold", "softmax", "cache state"),
    ("log2_row_max", "spmv_csr", "row statistics"),
    ("structure=banded", "bfs", "structure of the input"), ("log2_points", "fft", "amount of work"),
    ("log2_points", "kmeans", "size of points"), ("share_launch", "bfs", "launch and latency"),
    ("causal", "attention", "causal"), ("log2_load", "hash_probe", "load"), ("new_column", "gemm", OTHER),
])
def test_a_word_is_what_a_user_can_change(column: str, family: str, word: str) -> None:
    assert word_of(column, family) == word


def game(weights: np.ndarray) -> Any:
    """A game with pairs: each player's own worth, and what two neighbours are worth together."""
    return lambda masks: masks @ weights + 3.0 * (masks[:, 0] & masks[:, 1])


def test_shapley_values_are_the_mean_over_all_orders() -> None:
    value = game(np.array([1.0, -2.0, 0.5, 0.0]))
    gains = np.zeros(4)
    for order in permutations(range(4)):
        mask = np.zeros(4, dtype=bool)
        for player in order:
            before = value(mask[None])[0]
            mask[player] = True
            gains[player] += value(mask[None])[0] - before
    assert shapley(value, 4, 16) == pytest.approx(gains / 24)
    assert shapley(value, 4, 16) == pytest.approx([1.0 + 1.5, -2.0 + 1.5, 0.5, 0.0])  # the pair's 3 halved


def test_drawn_orders_add_up_and_repeat_and_come_near_the_exact_values() -> None:
    rng = np.random.default_rng(0)
    worth = rng.normal(size=2**10)
    powers = 2 ** np.arange(10)
    calls = []

    def value(masks: np.ndarray) -> np.ndarray:
        calls.append(len(masks))
        return masks @ np.arange(10.0) + 0.3 * worth[masks @ powers]

    exact, drawn = shapley(value, 10, 1024), shapley(value, 10, 1023)
    assert calls == [1024, 46 * 2 * 11] and calls[1] <= 1023
    whole = value(np.ones((1, 10), dtype=bool))[0] - value(np.zeros((1, 10), dtype=bool))[0]
    assert exact.sum() == pytest.approx(whole) and drawn.sum() == pytest.approx(whole)
    assert np.array_equal(drawn, shapley(value, 10, 1023))
    assert drawn == pytest.approx(exact, abs=0.15)
    assert shapley(value, 0, 10).size == 0


class Linear:
    """A residual whose attributions are known: the weights times what the columns differ by."""

    process = None
    smooth_share = 0.0

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights

    def parts(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        out = np.nan_to_num(x) @ self.weights
        return out, out


def test_a_linear_residual_gives_each_word_what_its_columns_differ_by(h200: Model) -> None:
    row, reference = asked_of(h200, "softmax")
    encoder = row.model.encoder
    weights = np.random.default_rng(1).normal(size=len(encoder.columns))
    model = replace(row.model, residual=Linear(weights))  # type: ignore[arg-type]
    step = weights * (np.nan_to_num(encoder.matrix(row.part.rows)) - np.nan_to_num(encoder.matrix(reference.rows)))[0]
    wanted: dict[str, float] = {}
    for column, value in zip(encoder.columns, step, strict=True):
        wanted[word_of(column, "softmax")] = wanted.get(word_of(column, "softmax"), 0.0) + value
    found = attribute(model, row.part, reference)
    for cause in found.causes:
        assert cause.log == pytest.approx(wanted.pop(cause.word), abs=1e-9)
    assert all(abs(left) < 1e-12 for left in wanted.values())
    assert [abs(cause.log) for cause in found.causes] == sorted((abs(c.log) for c in found.causes), reverse=True)


@pytest.mark.parametrize("family", PAIRS)
def test_parts_add_up_to_the_correction_less_that_of_the_reference(h200: Model, family: str) -> None:
    row, reference = asked_of(h200, family)
    found = attribute(row.model, row.part, reference)
    assert found.total_log == pytest.approx(correction_log(row.model, row.part)[0], abs=1e-6)
    assert found.reference_log == pytest.approx(correction_log(row.model, reference)[0], abs=1e-6)
    assert sum(cause.log for cause in found.causes) == pytest.approx(found.total_log - found.reference_log, abs=1e-5)
    assert found == attribute(row.model, row.part, reference)
    words = [cause.word for cause in found.causes]
    assert len(set(words)) == len(words) and OTHER not in words


def test_a_size_that_does_not_divide_is_a_matter_of_alignment(h200: Model) -> None:
    found = attribute(*_three(asked_of(h200, "gemm")))
    assert found.causes[0].word == ALIGNMENT
    assert found.causes[0].log > 0.9 * (found.total_log - found.reference_log) > 1.5
    assert {"align_n", "pow2_n"} <= set(found.causes[0].columns) and "align_m" not in found.causes[0].columns


def _three(asked: tuple[Learned, Any]) -> tuple[Any, Any, Any]:
    return asked[0].model, asked[0].part, asked[1]


def test_a_search_among_hubs_is_a_matter_of_degrees(h200: Model) -> None:
    assert attribute(*_three(asked_of(h200, "bfs"))).causes[0].word == "degree statistics"


def test_nothing_is_attributed_between_equal_rows_and_references_are_averaged(h200: Model) -> None:
    row, _ = asked_of(h200, "softmax")
    same = attribute(row.model, row.part, row.part)
    assert same.causes == () and same.total_log == same.reference_log
    sizes = [(4096, 4096), (4096, 4224)]
    row = learned_of(h200, group("softmax", rows=4096, cols=4099))
    assert row is not None
    several = row.taken(ask_many("softmax", sizes))
    found = attribute(row.model, row.part, several, most=1024)
    assert found.reference_log == pytest.approx(correction_log(row.model, several).mean())
    assert sum(c.log for c in found.causes) == pytest.approx(found.total_log - found.reference_log)
    alone = [attribute(row.model, row.part, row.taken(group("softmax", rows=r, cols=c)), most=1024) for r, c in sizes]
    logs = [{c.word: c.log for c in each.causes} for each in alone]
    for cause in found.causes:
        assert cause.log == pytest.approx(sum(each.get(cause.word, 0.0) for each in logs) / 2.0, abs=1e-9)


def ask_many(family: str, sizes: list[tuple[int, int]]) -> Group:
    import json

    import pandas as pd
    from kernelcast.features.describe import describe

    frame = pd.DataFrame([
        {"platform": "h200", "kernel": family, "precision": "fp32", "implementation": "", "cache": "warm",
         "params": json.dumps({"rows": r, "cols": c})}
        for r, c in sizes
    ])
    return describe(frame).groups[0]


def test_two_steps_join_into_one(h200: Model) -> None:
    row, reference = asked_of(h200, "gemm")
    usual = row.taken(group("gemm", "bf16", m=256, n=1024, k=1024))
    first, second = attribute(row.model, reference, usual), attribute(row.model, row.part, reference)
    joined = second.after(first)
    assert (joined.total_log, joined.reference_log) == (second.total_log, first.reference_log)
    assert sum(c.log for c in joined.causes) == pytest.approx(joined.total_log - joined.reference_log, abs=1e-5)
    logs = {c.word: c.log for c in joined.causes}
    for word, log in logs.items():
        assert log == pytest.approx(sum(c.log for a in (first, second) for c in a.causes if c.word == word))


def test_trees_with_covers_are_explained_alike_by_their_own_method(small_model: Model, small_runs: Any, tmp_path: Path
                                                                   ) -> None:
    """Covers survive training and storing, so TreeSHAP runs; with training rows as references both agree."""
    import xgboost
    from kernelcast.features.describe import describe

    write_model(small_model, tmp_path / "model")
    stored = read_model(tmp_path / "model").families["gemm"]
    assert stored.residual is not None
    model = replace(stored, residual=replace(stored.residual, process=None))
    groups = [g for g in describe(small_runs).groups if g.family == "gemm"]
    rows = part_of(groups[0], model.reference)
    x = model.encoder.matrix(rows.rows)
    given = stored.residual.booster.predict(xgboost.DMatrix(x), pred_contribs=True)
    assert given[:, :-1].any() and given.sum(axis=1) == pytest.approx(correction_log(model, rows), abs=1e-4)
    references = take(rows, np.arange(len(x)) % 3 == 0)
    ours, theirs = [], []
    for i in range(0, len(x), 8):
        one = part_of(group("gemm", "fp16", platform="t4", **_sizes(small_runs, groups[0].index[i])), model.reference)
        found = {c.word: c.log for c in attribute(model, one, references, most=30_000).causes}
        by_word: dict[str, float] = {}
        for column, value in zip(model.encoder.columns, given[i], strict=False):
            by_word[word_of(column, "gemm")] = by_word.get(word_of(column, "gemm"), 0.0) + float(value)
        ours += [found.get(word, 0.0) for word in by_word]
        theirs += list(by_word.values())
    a, b = np.array(ours), np.array(theirs)
    large = np.maximum(np.abs(a), np.abs(b)) > 0.03
    assert large.sum() >= 8
    assert (np.sign(a[large]) == np.sign(b[large])).mean() >= 0.95
    assert np.corrcoef(a, b)[0, 1] > 0.95
    assert 0.8 < np.abs(a).sum() / np.abs(b).sum() < 1.25


def _sizes(runs: Any, row: int) -> dict[str, int]:
    import json

    return json.loads(runs["params"].iloc[row])
