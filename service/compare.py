"""How good a model is on runs it has not seen, beside the naive roofline, the baselines and nearest utilisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..analytic.errors import InputError
from ..analytic.platform import load_platform
from ..registry import index
from ..registry.heldout import group_keys
from ..training.tables.shipped import read_tables, shipped_tables
from .answer import check_level, resolve_model
from .batch import checked_runs

if TYPE_CHECKING:
    import pandas as pd

    from ..training.hybrid.compare import Comparison
    from ..training.hybrid.fit import Progress
    from ..training.hybrid.model import Model


def compare(frame: pd.DataFrame, *, model: Model | str | None = None, level: float = 0.9, seed: int = 0) -> Comparison:
    """Naive roofline, analytic, nearest utilisation and hybrid on held-out runs (time_s in seconds).

    `.records` of the result: errors [%], coverage and width of each method by family; `.rows`: the held-out rows with
    every prediction [s]. Without a model: the champion where most groups are new to it, else one trained on four fifths
    of the groups. With one: it on the rows of groups that it was not trained on. Raises InputError for a bad table or
    where no such row is left.
    """
    return compare_table(checked_runs(frame), model=model, level=level, seed=seed)


def compare_table(
    frame: pd.DataFrame,
    *,
    model: Model | str | None = None,
    level: float = 0.9,
    seed: int = 0,
    quick: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Score the naive roofline, the analytic baselines, nearest utilisation and the hybrid on held-out rows.

    Without a model: the champion on a table most of whose groups it was not trained on; on any other table a model
    trained on four fifths of the groups, scored on the rest. With one: that model on the rows whose groups it was not
    trained on; where the table is the one it was trained on, its own held-out scores are given. A record says which.
    """
    check_level(level)
    if model is None:
        from ..training.hybrid.compare import compare_split

        return _merged([
            _champion_scored(part, level)
            or compare_split(part, level=level, seed=seed, quick=quick, progress=progress)
            for part in _by_platform(frame)
        ])
    return _merged([_scored(part, model, level) for part in _by_platform(frame)])


def _by_platform(frame: pd.DataFrame) -> list[pd.DataFrame]:
    labels = frame["platform"].astype(str)
    return [frame[labels == name].reset_index(drop=True) for name in sorted(set(labels))]


FEWEST_UNSEEN = 30
"""With fewer unseen rows a table is not scored with the champion unasked."""


def _champion_scored(frame: pd.DataFrame, level: float) -> Comparison | None:
    """The champion's scores on the rows of groups it was not trained on; None where those are not most of the table."""
    from ..training.hybrid.compare import compare_model

    platform = load_platform(str(frame["platform"].iloc[0]))
    champion = index.open_champion(platform.id)
    record = champion.meta.get("record") if champion is not None else None
    if champion is None or record is None:
        return None
    unseen = ~np.isin(group_keys(frame), record["groups"])
    if unseen.sum() < max(FEWEST_UNSEEN, len(frame) / 2):
        return None
    left_out = int((~unseen).sum())
    split = f"groups that {index.label(champion)} was not trained on" + (
        f"; {left_out} rows of groups it was trained on left out" if left_out else "")
    known = shipped_tables().get(platform.id)
    train = read_tables([known])[0] if known is not None else None
    return compare_model(frame[unseen].reset_index(drop=True), champion, train, level=level, split=split)


def _scored(frame: pd.DataFrame, given: Model | str, level: float) -> Comparison:
    from ..training.hybrid.compare import Comparison, compare_model
    from ..training.tables.schema import runs_digest

    platform = load_platform(str(frame["platform"].iloc[0]))
    model = resolve_model(platform, given)
    assert model is not None
    record = model.meta.get("record")
    if record is not None:
        unseen = ~np.isin(group_keys(frame), record["groups"])
        if not unseen.any():
            scores = model.meta.get("comparison")
            if scores and model.meta.get("runs_digest") == runs_digest(frame):
                rows = [row | {"model": index.label(model)} for row in scores]
                return Comparison(rows, frame.iloc[:0], {platform.id: model})
            raise InputError(f"every row belongs to a group that {index.label(model)} was trained on; leave the model "
                             "out to train on four fifths of the table and score on the rest")
        frame = frame[unseen].reset_index(drop=True)
    return compare_model(frame, model, level=level)


def _merged(parts: list[Comparison]) -> Comparison:
    import pandas as pd

    from ..training.hybrid.compare import Comparison

    rows = pd.concat([part.rows for part in parts], ignore_index=True)
    models = {name: model for part in parts for name, model in part.models.items()}
    return Comparison([record for part in parts for record in part.records], rows, models)
