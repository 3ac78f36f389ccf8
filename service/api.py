"""The Python face: tables in, models and tables out. `kernelcast.train`, `compare`, `predict_runs`, `platforms`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..analytic.platform import platform_ids

if TYPE_CHECKING:
    import pandas as pd

    from ..training.hybrid.compare import Comparison
    from ..training.hybrid.model import Model


def _is_frame(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas" and hasattr(value, "columns")


def _checked(frame: pd.DataFrame, require_time: bool = True) -> pd.DataFrame:
    from ..analytic.errors import InputError
    from ..training.tables.schema import validate_runs

    if not _is_frame(frame):
        raise InputError(f"a pandas DataFrame of measured runs is needed, not {type(frame).__name__}")
    return validate_runs(frame, "table", require_time=require_time)[0]


def platforms() -> list[str]:
    """Ids of the supported platforms."""
    return platform_ids()


def predict_runs(
    frame: pd.DataFrame,
    *,
    platforms: Sequence[str] = (),
    level: float = 0.9,
    model: Model | str | None = None,
    analytic: bool = False,
    overrides: Mapping[str, str | float] | None = None,
) -> pd.DataFrame:
    """Predict every row of a measured-runs table (time_s is not needed): the same rows with the prediction columns.

    Rows that cannot be predicted have empty cells and the reason in `note`. Raises InputError for a bad table.
    """
    from ..analytic.errors import InputError
    from .batch import predict_runs as batch

    if not _is_frame(frame):
        raise InputError(f"a pandas DataFrame is needed, not {type(frame).__name__}")
    return batch(frame, platforms=platforms, level=level, model=model, analytic=analytic, overrides=overrides)


def train(frame: pd.DataFrame, *, name: str | None = None, register: bool = True, seed: int = 0
          ) -> Model | dict[str, Model]:  # fmt: skip
    """Train the hybrid on measured runs: a Model for one platform, a dict by platform for several.

    register: store and track the models, and make each the champion of its platform where there is none, or where a
    paired test on the same held-out rows says it is better; False only fits and scores. Raises InputError for a bad
    table or store.
    """
    from .train import train_platforms

    trained = train_platforms(_checked(frame), name=name, register=register, runs="table", seed=seed)
    models = {item.model.platform: item.model for item in trained}
    names = sorted(models)
    return models[names[0]] if len(names) == 1 else models


def compare(frame: pd.DataFrame, *, model: Model | str | None = None, level: float = 0.9, seed: int = 0) -> Comparison:
    """Naive roofline, analytic, nearest utilisation and hybrid on held-out rows: `.records` and `.rows`.

    Without a model: train on four fifths of the groups and score on the rest. With one: score it on the rows of groups
    that it was not trained on. Raises InputError for a bad table or where no such row is left.
    """
    from .service import compare_table

    return compare_table(_checked(frame), model=model, level=level, seed=seed)
