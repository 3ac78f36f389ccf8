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
from .answer import Answer, answer, check_level

if TYPE_CHECKING:
    import pandas as pd

    from ..analytic.platform import Platform
    from ..training.hybrid.model import Model

COLUMNS = (
    "implementation", "cache", "baseline_s", "predicted_s", "lower_s", "upper_s", "level", "in_domain", "note", "route",
    "model",
)  # fmt: skip
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

    platforms: predict the rows for these instead of the platform column (the rows repeated for each). cache: state
    taken where a row names none. Rows that cannot be predicted have empty cells and the reason in `note`. Raises
    InputError for a table that is not one (see `validate_runs`; skip_bad drops such rows).
    """
    import pandas as pd

    from ..training.tables.schema import validate_runs

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


def _prefix(notes: NDArray[Any], where: NDArray[np.bool_], text: str) -> None:
    notes[where] = [f"{text}; {note}" if note else text for note in notes[where]]


def _blank(series: pd.Series) -> NDArray[np.bool_]:
    return np.asarray(series.isna() | series.astype(str).str.strip().isin(_BLANK))


def _predicted(frame: pd.DataFrame, level: float, model: Model | str | None, analytic: bool,
               overrides: Mapping[str, str | float]) -> dict[str, Any]:  # fmt: skip
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
                                   "overridden": tuple(overrides), "left_open": True}  # fmt: skip
        given = answer(described, platform, **options)
        predicted = given.predicted
        _reach_to_cold(given, part, platform, options)
        _reach_to_host(given, part, platform)
        fine = np.isfinite(predicted.predicted_s)
        bounded = fine & np.isfinite(predicted.upper_s)
        out["baseline_s"][here] = described.baseline_s
        out["predicted_s"][here] = predicted.predicted_s
        out["lower_s"][here] = np.where(bounded, predicted.lower_s, np.nan)
        out["upper_s"][here] = np.where(bounded, predicted.upper_s, np.nan)
        out["route"][here] = described.route
        out["model"][here] = np.where(fine, given.model, "")
        out["implementation"][here] = np.where(fine, predicted.implementation, out["implementation"][here])
        known = np.asarray(part["kernel"].isin(FAMILIES))
        out["in_domain"][here] = predicted.in_domain & fine & known
        notes = given.note
        _prefix(notes, fine & ~known, "kernel of no known family: predicted from its counted FLOP and bytes")
        for row, reason in described.refused.items():
            notes[row] = reason
        notes[~fine & (notes == "")] = "no finite time: the sizes are too large"
        out["note"][here] = notes
    return out


def _reach_to_cold(given: Answer, rows: pd.DataFrame, platform: Platform, options: Mapping[str, Any]) -> None:
    """Widen the bands of rows whose cache state is stated to be unknown so that they hold a cold call's too, in place.

    They are predicted warm, as timing loops mostly are. Where no cold run was trained on there is nothing to reach for.
    """
    from ..features.describe import describe

    at = np.flatnonzero(np.asarray(rows["cache"].astype(str) == "unknown"))
    if not at.size:
        return
    asked = rows.iloc[at].assign(cache="cold").reset_index(drop=True)
    cold, warm = answer(describe(asked, {platform.id: platform}), platform, **options).predicted, given.predicted
    learned = cold.in_domain & np.isfinite(cold.upper_s)
    warm.upper_s[at] = np.where(learned, np.fmax(warm.upper_s[at], cold.upper_s), warm.upper_s[at])
    warm.lower_s[at] = np.where(learned, np.fmin(warm.lower_s[at], cold.lower_s), warm.lower_s[at])
    notes = given.note[at]
    _prefix(notes, learned, "cache state unknown: predicted warm, the band reaches to a cold call")
    given.note[at] = notes


def _reach_to_host(given: Answer, rows: pd.DataFrame, platform: Platform) -> None:
    """Say of rows whose time is stated to hold more than kernels that the rest is not predicted, in place.

    What a clock on the host adds to a kernel is known to be something up to two events around an empty one: the band of
    such a row reaches so far up. Transfers have no bound, so that their rows claim no coverage."""
    scope = np.asarray(rows["scope"].astype(str)) if "scope" in rows else np.full(len(rows), "")
    wall, moved = scope == "wall", scope == "kernel+transfers"
    latency = platform.get("kernel_launch_latency_event_bracketed")
    added = None if latency is None else latency - (platform.get("empty_kernel_duration") or 0.0)
    if added is not None:
        given.predicted.upper_s[wall] += added
        _prefix(given.note, wall, f"wall time: predicted without the host, the band reaches {1e6 * added:.2g} us on")
    else:
        _prefix(given.note, wall, "wall time: predicted without the host, whose share was not measured on this GPU")
    _prefix(given.note, moved, "transfers are not predicted")
    given.predicted.in_domain[moved | (wall if added is None else False)] = False


def read_questions(path: str, *, needs_platform: bool, skip_bad: bool = False) -> pd.DataFrame:
    """A table of questions from a file: columns as in a run table, time_s not needed, nothing changed in it."""
    from pathlib import Path

    from ..training.tables.files import load_table
    from ..training.tables.schema import COLUMNS as RUN_COLUMNS

    frame = load_table(Path(path), skip_bad=skip_bad, as_text=RUN_COLUMNS).frame
    if needs_platform and "platform" not in frame.columns:
        raise InputError(f"{path}: required column platform missing; add it or say -p PLATFORM")
    return frame
