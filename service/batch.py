"""Predictions for a whole table: the same rows with the prediction columns; a row without a time says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.errors import InputError
from ..analytic.families import FAMILIES
from ..analytic.platform import load_platform
from ..features.checks import row_faults
from .answer import answer, check_level

if TYPE_CHECKING:
    import pandas as pd

    from ..analytic.platform import Platform
    from ..training.hybrid.model import Model, Predicted

COLUMNS = (
    "implementation", "cache", "baseline_s", "predicted_s", "lower_s", "upper_s", "level", "in_domain", "note", "route",
    "model",
)
"""What a prediction adds to a row, beside platform, kernel, precision and params."""
_EMPTY = ("baseline_s", "predicted_s", "lower_s", "upper_s")
_BLANK = ("", "nan", "None", "<NA>", "NaT")


def predict_runs(
    frame: pd.DataFrame,
    *,
    platforms: Sequence[str] = (),
    level: float = 0.9,
    model: Model | str | None = None,
    analytic: bool = False,
    overrides: Mapping[str, str | float] | None = None,
    cache: str = "warm",
    skip_bad: bool = False,
    where: str = "table",
) -> pd.DataFrame:
    """Predict every row of a measured-runs table (time_s is not needed). The index and all columns are kept.

    Adds the columns `COLUMNS`: times in seconds, empty where unbounded. platforms: predict the rows for these instead
    of the platform column (the rows repeated for each). level, model, analytic, overrides: as `predict` takes them.
    cache: state taken where a row names none. Rows that cannot be predicted have empty cells and the reason in `note`.
    skip_bad: leave unusable rows out. where: what errors call the table. Raises InputError for a table that is not one.
    """
    import pandas as pd

    from ..training.tables.schema import validate_runs

    check_frame(frame)
    check_level(level)
    if platforms:
        ids = list(dict.fromkeys(load_platform(name).id for name in platforms))
        frame = pd.concat([frame.assign(platform=i) for i in ids], ignore_index=len(ids) > 1)
    given = frame.reset_index(drop=True)
    checked, _ = validate_runs(given.assign(_row=np.arange(len(given))), where, skip_bad, require_time=False)
    kept = np.asarray(checked["_row"], dtype=np.intp)
    checked = checked.drop(columns="_row").reset_index(drop=True)
    stated = checked["cache"].astype(str)
    unsaid = np.ones(len(checked), dtype=bool) if "cache" not in given else _blank(given["cache"])[kept]
    checked["cache"] = np.where(unsaid, cache, stated)
    out = frame.iloc[kept].copy()
    out["platform"] = checked["platform"].to_numpy()
    columns = _predicted(checked, level, model, analytic, dict(overrides or {}))
    for name in COLUMNS:
        out[name] = columns[name]
    return out


def check_frame(frame: Any) -> None:
    """InputError for what is no DataFrame."""
    kind = type(frame)
    if kind.__module__.partition(".")[0] != "pandas" or not hasattr(frame, "columns"):
        raise InputError(f"a pandas DataFrame of runs is needed, not {kind.__name__}")


def checked_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """A table of measured runs given from Python, validated. InputError with what is wrong with it."""
    from ..training.tables.schema import validate_runs

    check_frame(frame)
    return validate_runs(frame, "table")[0]


def _blank(series: pd.Series) -> NDArray[np.bool_]:
    return np.asarray(series.isna() | series.astype(str).str.strip().isin(_BLANK))


def _predicted(frame: pd.DataFrame, level: float, model: Model | str | None, analytic: bool,
               overrides: Mapping[str, str | float]) -> dict[str, Any]:
    from ..features.describe import describe

    n = len(frame)
    out: dict[str, Any] = {name: np.full(n, np.nan) for name in _EMPTY}
    out |= {name: np.full(n, "", dtype=object) for name in ("note", "route", "model")}
    named = frame["implementation"].astype(object)
    out["implementation"] = np.where(_blank(named), "", named.astype(str)).astype(object)
    out["cache"] = frame["cache"].to_numpy()
    out["level"] = np.full(n, level)
    out["in_domain"] = np.zeros(n, dtype=bool)
    faults = row_faults(frame)
    out["note"][:] = faults
    for platform_id in sorted(set(frame["platform"].astype(str))):
        platform = load_platform(platform_id).with_overrides(overrides)
        here = np.flatnonzero(np.asarray(frame["platform"].astype(str) == platform_id) & (faults == ""))
        if not here.size:
            continue
        part = frame.iloc[here].reset_index(drop=True)
        described = describe(part, {platform_id: platform})

        options: dict[str, Any] = {"level": level, "model": model, "analytic": analytic,
                                   "overridden": tuple(overrides), "left_open": True}
        given = answer(described, platform, **options)
        predicted = given.predicted
        _reach_to_cold(predicted, part, platform, options)
        _reach_to_host(predicted, part, platform)
        fine = np.isfinite(predicted.predicted_s)
        bounded = fine & np.isfinite(predicted.upper_s)
        out["baseline_s"][here] = described.baseline_s
        out["predicted_s"][here] = predicted.predicted_s
        out["lower_s"][here] = np.where(bounded, predicted.lower_s, np.nan)
        out["upper_s"][here] = np.where(bounded, predicted.upper_s, np.nan)
        out["route"][here] = described.route
        out["model"][here] = np.where(fine, given.model, "")
        out["implementation"][here] = np.where(fine, predicted.implementation, out["implementation"][here])
        _say_what_was_not_predicted(predicted, np.asarray(part["kernel"].isin(FAMILIES)), described.refused)
        out["in_domain"][here], out["note"][here] = predicted.in_domain, predicted.note
    return out


def _say_what_was_not_predicted(predicted: Predicted, known: NDArray[np.bool_], refused: Mapping[int, str]) -> None:
    """Rows of families that are not `known` (n,), rows that were `refused`, by position, and rows without a time."""
    notes, fine = predicted.notes, np.isfinite(predicted.predicted_s)
    notes.say("family_unknown", fine & ~known, "kernel of no known family: predicted from its counted FLOP and bytes",
              outside=True, first=True)
    turned_away = np.isin(np.arange(notes.size), list(refused))
    notes.replace("refused", turned_away, lambda i: [refused[row] for row in i.tolist()])
    notes.say("too_large", ~fine & notes.silent, "no finite time: the sizes are too large", outside=True)


def _reach_to_cold(warm: Predicted, rows: pd.DataFrame, platform: Platform, options: Mapping[str, Any]) -> None:
    """Widen the bands of rows whose cache state is stated to be unknown so that they hold a cold call's too, in place.

    They are predicted warm, as timing loops mostly are. Where no cold run was trained on there is nothing to reach for.
    """
    from ..features.describe import describe

    unknown = np.array(rows["cache"].astype(str) == "unknown")
    at = np.flatnonzero(unknown)
    if not at.size:
        return
    asked = rows.iloc[at].assign(cache="cold").reset_index(drop=True)
    cold = answer(describe(asked, {platform.id: platform}), platform, **options).predicted
    learned = cold.in_domain & np.isfinite(cold.upper_s)
    warm.upper_s[at] = np.where(learned, np.fmax(warm.upper_s[at], cold.upper_s), warm.upper_s[at])
    warm.lower_s[at] = np.where(learned, np.fmin(warm.lower_s[at], cold.lower_s), warm.lower_s[at])
    unknown[at] = learned
    warm.notes.say("cache_unknown", unknown, "cache state unknown: predicted warm, the band reaches to a cold call",
                   first=True)


def _reach_to_host(predicted: Predicted, rows: pd.DataFrame, platform: Platform) -> None:
    """Say of rows whose time is stated to hold more than kernels that the rest is not predicted, in place.

    What a clock on the host adds to a kernel is known to be something up to two events around an empty one: the band of
    such a row reaches so far up. Transfers have no bound, so that their rows claim no coverage."""
    scope = np.asarray(rows["scope"].astype(str)) if "scope" in rows else np.full(len(rows), "")
    wall, moved, say = scope == "wall", scope == "kernel+transfers", predicted.notes.say
    latency = platform.get("kernel_launch_latency_event_bracketed")
    if latency is not None:
        added = latency - (platform.get("empty_kernel_duration") or 0.0)
        predicted.upper_s[wall] += added
        say("wall_time", wall, f"wall time: predicted without the host, the band reaches {1e6 * added:.2g} us on",
            first=True)
    else:
        say("wall_time", wall, "wall time: predicted without the host, whose share was not measured on this GPU",
            outside=True, first=True)
    say("transfers", moved, "transfers are not predicted", outside=True, first=True)


def read_questions(path: str, *, needs_platform: bool, skip_bad: bool = False) -> pd.DataFrame:
    """A table of questions from a file: columns as in a run table, time_s not needed, nothing changed in it."""
    from pathlib import Path

    from ..training.tables.files import load_table
    from ..training.tables.schema import COLUMNS as RUN_COLUMNS

    frame = load_table(Path(path), skip_bad=skip_bad, as_text=RUN_COLUMNS).frame
    if needs_platform and "platform" not in frame.columns:
        raise InputError(f"{path}: required column platform missing; add it or say -p PLATFORM")
    return frame
