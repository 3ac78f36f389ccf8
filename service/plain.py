"""Plain questions to set a question beside: sizes that divide well, and a usual input of the middle of what was
trained on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..analytic.errors import KernelcastError
from .question import Question, ask

if TYPE_CHECKING:
    from ..training.hybrid.protocol import LearnedFamily

GIVEN = frozenset({
    "batch", "heads", "kv_heads", "levels", "launches", "iterations", "segments", "kernel_h", "kernel_w", "ksize",
    "mask", "points", "clusters", "bytes",
})
"""Sizes that are the problem's and cannot be padded with zeros."""
OF_IRREGULAR = frozenset({"cols_dense"})
"""Of sparse and scattered inputs only these can be padded: the others are counts of what is there."""
OF_FAMILY = {"conv2d": frozenset({"cin", "cout", "out_channels"})}
"""Families of which only some sizes can be padded: more pixels are another picture."""
UNIT = 64
"""Plain sizes are multiples of this; smaller sizes of an eighth of themselves."""
FOLLOWS = {"nnz": "rows", "cols": "rows", "edges": "nodes", "kv_heads": "heads"}
"""Sizes that keep their ratio to another when that one moves."""
_MEANS = {"row_mean", "row_max", "row_min", "row_q1", "row_median", "row_q3"}
_DEGREES = {"avg_degree", "max_degree"}
_SPREADS = {"row_std", "std_degree"}


def sizes_to_pad(question: Question) -> list[str]:
    """Parameters as given that are sizes and may be padded."""
    sizes = [p.name for p in question.family.params if p.kind == "size" and p.name in question.params]
    only = OF_IRREGULAR if question.family.kind == "irregular" else OF_FAMILY.get(question.family.name)
    return [name for name in sizes if (name not in GIVEN if only is None else name in only)]


def changed(question: Question, params: Mapping[str, Any]) -> Question:
    """The question with other values of some parameters."""
    return replace(question, params={**question.params, **params})


def plain_question(question: Question) -> Question | None:
    """The question at the nearest sizes that divide well, for a transform powers of two; None where they do already."""
    nearest = _nearest_power if question.family.name == "fft" else _nearest_multiple
    moved = {name: nearest(float(question.params[name])) for name in sizes_to_pad(question)}
    moved = {name: value for name, value in moved.items() if value != question.params[name]}
    return changed(question, moved) if moved else None


def _nearest_multiple(size: float) -> int:
    unit = max(min(2 ** math.floor(math.log2(size / 8.0)), UNIT), 1) if size >= 8.0 else 1
    return int(max(round(size / unit), 1) * unit)


def _nearest_power(size: float) -> int:
    return int(2 ** round(math.log2(size)))


def usual_question(question: Question, model: LearnedFamily) -> Question | None:
    """An even input of the middle of the trained range, by the reference implementation, warm, in the family's usual
    precision where the model knows that; None where no such question can be asked.

    Statistics of the input are given where the question gives them, so that the same model answers.
    """
    family, domain = question.family, model.domain
    middle = {name: (low + high) / 2.0 for name, low, high in zip(domain.names, domain.low, domain.high, strict=True)
              if math.isfinite(low) and math.isfinite(high)}
    given = {name: value for name, value in question.params.items() if not isinstance(value, list)}
    params: dict[str, Any] = dict(given)
    for param in family.params:
        level = middle.get(f"log2_{param.name}")
        if param.kind == "size" and param.name in given and level is not None:
            params[param.name] = int(2 ** round(level))
    sparse = "nnz" in params
    for name, leader in FOLLOWS.items():
        if name in given and leader in given and (sparse or name != "cols"):
            params[name] = max(round(given[name] / given[leader] * params[leader]), 1)
    params |= _even(params) | _words(given, model)
    usual = family.precision if family.precision in domain.precisions else question.precision
    for precision in dict.fromkeys((usual, question.precision)):
        try:
            kept = {name: value for name, value in params.items() if value is not None}
            return ask(family.name, kept, precision, "warm", None)
        except KernelcastError:
            continue  # what was given cannot hold at these sizes, or the precision is none of this platform
    return None


def _even(params: Mapping[str, Any]) -> dict[str, float]:
    """Statistics of rows or of degrees that are all alike, entries anywhere: those among `params`."""
    mean = params["nnz"] / params["rows"] if "nnz" in params and "rows" in params else math.nan
    degree = params["edges"] / params["nodes"] if "edges" in params and "nodes" in params else math.nan
    even = dict.fromkeys(_MEANS, mean) | dict.fromkeys(_DEGREES, degree) | dict.fromkeys(_SPREADS, 0.0)
    even["mean_col_distance"] = params.get("cols", params.get("rows", math.nan)) / 3.0
    return {name: value for name, value in even.items() if name in params and math.isfinite(value)}


def _words(given: Mapping[str, Any], model: LearnedFamily) -> dict[str, str | None]:
    """Labels of a usual input where the question has labels: None leaves one out."""
    usual = {"structure": "uniform", "order": "sorted"}
    return {name: word if (word := usual.get(name)) in model.encoder.labels.get(name, []) else None
            for name, value in given.items() if isinstance(value, str)}
