"""The hybrid model of one platform: family models, the difficulty of a row, and conformal bands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...analytic.errors import nearest_names
from ...features.counted import least_s
from ...features.describe import Described, Group
from ...features.implementation import canonical_labels, spelling
from ...features.rows import Rows
from ..learners.residual import to_residual, to_time
from ..learners.trees import Trees
from ..profiled.segment import SegmentModel
from .bands import Bands
from .encode import MISSING
from .family import FamilyModel, Part, learned_as, part_of
from .partial import Asked, Judge, by_what_is_said

Floats = NDArray[np.float64]

SMALLEST_SIGMA = 0.004
"""Difficulty floor in log time: half the median repeat noise (IQR 0.8 %) of a GPU kernel."""
UNKNOWN_IMPLEMENTATION = 1.6
SAME_LIBRARY = 1.6
UNKNOWN_PRECISION = 2.0
TWIN_PRECISION = 1.3
"""Widening of the half-width where a label was never seen; chosen, not fitted, and named in the note."""
NEW_ARCHITECTURE = 1.8
"""Widening for a GPU of an architecture that no GPU of the training rows has: what the A100 wants when predicted from
two Hopper GPUs, whose bands only know of each other."""
TRUST_OCTAVES = 4.0
"""Octaves outside the training box over which what was learned fades to `FamilyModel.beyond_s`.

Of 49 families, trained on their smaller 50 / 65 / 80 % and asked for the rest: mean error 44 / 38 / 24 %; fading to the
plain analytic time 44 / 40 / 29, to the calibrated one 117 / 52 / 27."""
COMMON = (
    "log2_base_over_naive", "log2_base_over_bound", "log2_intensity", "log2_set_over_cache", "log2_threads_per_unit",
    "log2_launches", "log2_chain", "log2_base", "share_launch", "share_compute", "share_memory", "share_latency",
    "element_byte", "cold",
)  # fmt: skip


@dataclass
class Predicted:
    """Predictions of n rows; arrays of shape (n,), NaN time where refused. An unbounded side is infinite (or 0)."""

    predicted_s: Floats
    lower_s: Floats
    upper_s: Floats
    calibrated_s: Floats
    sigma: Floats
    in_domain: NDArray[np.bool_]
    note: NDArray[Any]
    implementation: NDArray[Any]


def difficulty_rows(rows: Rows, typical: Floats, disagreement: Floats, correction: Floats) -> Floats:
    """What the difficulty is learned from: common columns, the regime's typical error, how far the members disagree."""
    at = {name: i for i, name in enumerate(rows.names)}
    common = rows.values[:, [at[name] for name in COMMON]]
    return np.column_stack([common, typical, disagreement, np.abs(correction)])


def typical_of(typical: Mapping[str, float], family: str, regime: NDArray[Any]) -> Floats:
    """Typical log |residual| of each row: its regime's, else its family's, else that of all rows."""
    labels, codes = np.unique(regime.astype(str), return_inverse=True)
    whole = typical.get(family, typical[""])
    return np.array([typical.get(f"{family}|{label}", whole) for label in labels])[codes]


def sigma_of(judge: Judge, label: str, part: Part, disagreement: Floats, correction: Floats) -> Floats:
    """Difficulty of each row of a family by its judge: the expected size of |log(measured ÷ predicted)|."""
    typical = typical_of(judge.typical, label, part.regime)
    if judge.difficulty is None:
        return np.maximum(np.exp(typical), SMALLEST_SIGMA)
    x = difficulty_rows(part.rows, typical, disagreement, correction)
    return np.maximum(np.exp(Trees(judge.difficulty).predict(x)), SMALLEST_SIGMA)


@dataclass
class Model:
    """A trained hybrid for one platform. `meta` says where it comes from: rows, digest, split, metrics, version."""

    platform: str
    name: str
    families: Mapping[str, FamilyModel]
    difficulty: Any
    """XGBoost booster: log of the typical absolute residual of a row; None where too few rows were there."""
    typical: dict[str, float]
    """Median log |out-of-fold residual| by `family|regime`, by family, and '' for all."""
    bands: Bands
    analytic_scores: Floats
    """|log(measured ÷ analytic)| of training rows, sorted downwards: the band of families never seen."""
    meta: dict[str, Any] = field(default_factory=dict)
    strangers: Bands | None = None
    """Scores of rows predicted without their implementation's label: the band of one that was never seen."""
    segments: SegmentModel | None = None
    """Profiled kernels of no known family; None where too few families were measured to learn them from."""
    partials: Mapping[str, FamilyModel] = field(default_factory=dict)
    """Families for questions that leave statistics out, by `partial.name_of`."""
    partial_judge: Judge | None = None

    @property
    def judge(self) -> Judge:
        """What bounds the errors of the whole families."""
        return Judge(self.difficulty, self.typical, self.bands)

    def sigma(self, family: str, part: Part, disagreement: Floats, correction: Floats) -> Floats:
        """Difficulty of each row: the expected size of |log(measured ÷ predicted)|."""
        return sigma_of(self.judge, family, part, disagreement, correction)

    def predict(self, described: Described, level: float = 0.9, *, left_open: bool = False) -> Predicted:
        """Times and bands of described rows (all of this model's platform).

        left_open: rows without an implementation were run by one that nobody named, so that their band covers the
        others, too; else they ask for the reference one.
        """
        n = described.baseline_s.size
        time, lower, upper, calibrated, sigma = np.full((5, n), np.nan)
        out = Predicted(time, lower, upper, calibrated, sigma, np.zeros(n, dtype=bool),
                        np.full(n, "", dtype=object), np.full(n, "", dtype=object))  # fmt: skip
        for group in described.groups:
            if group.family in self.families:
                model = self.families[group.family]
                for asked in by_what_is_said(group, model, self.judge, self.partials, self.partial_judge):
                    self._predict_group(asked, level, out, left_open)
            elif group.counts is not None and self.segments is not None:
                self._predict_counted(group, self.segments, level, out)
            else:
                self._predict_unseen(group, level, out)
        return out

    def _predict_group(self, asked: Asked, level: float, out: Predicted, left_open: bool) -> None:
        group, model = asked.group, asked.model
        taken = learned_as(group.precision, model.domain.precisions)
        part = part_of(group, model.reference, model.domain.implementations, taken)
        index = group.index
        correction, disagreement = model.log_correction(part)
        distance, column = model.domain.outside(part.rows)
        base = model.calibrated_s(part)
        # what was learned inside the box misleads outside
        trust = np.maximum(1.0 - distance / TRUST_OCTAVES, 0.0)
        far = model.beyond_s(part)
        centre = to_time(trust * to_residual(to_time(correction, base), far), far)
        sigma = sigma_of(asked.judge, asked.label, part, disagreement, correction)
        half, pooled = asked.judge.bands.half_width(sigma, np.full(index.size, asked.label), level, part.regime)
        named = _named(group, part, model, left_open)
        if named.strange.any():
            half = np.where(named.strange, self._stranger_half(group.family, half, level), half)
        seen = group.precision in model.domain.precisions
        silent, unsaid = _unsaid(asked)
        remarks = [
            Remark(distance > 0, lambda i: f"outside the training range ({str(column[i]).removeprefix('log2_')}), "
                   f"faded towards the analytic time, band widened x{1.0 + distance[i]:.3g}", 1.0 + distance),
            *named.remarks,
            *self._of_platform(group, taken, seen),
            Remark(pooled, lambda i: f"band from the pooled scores: {group.family} has too few calibration rows"),
            Remark(~np.isfinite(half), lambda i: f"unbounded: too few calibration rows for a {100 * level:g} % band"),
            *unsaid,
            Remark(np.full(index.size, bool(model.note)), lambda i: model.note),
        ]  # fmt: skip
        note = np.full(index.size, "", dtype=object)
        for remark in remarks:
            half = half * np.where(remark.rows, remark.factor, 1.0)
            _add(note, remark.rows, remark.words)
        out.predicted_s[index], out.calibrated_s[index], out.sigma[index] = centre, base, sigma
        out.lower_s[index], out.upper_s[index] = to_time(-half, centre), to_time(half, centre)
        sure = seen and not self.meta.get("unseen_platform", False)
        out.in_domain[index] = (distance <= 0) & ~named.unknown & ~silent & sure
        out.note[index], out.implementation[index] = note, part.rows.categories["implementation"].astype(str)

    def _of_platform(self, group: Group, taken: str, seen: bool) -> list[Remark]:
        """What is to be said where precision or architecture are not those of the training rows."""
        learned_from = self.meta.get("architectures", {}).get(group.family, [])
        foreign = bool(learned_from) and group.platform.arch not in learned_from
        twin, strange = taken != group.precision, TWIN_PRECISION if taken != group.precision else UNKNOWN_PRECISION
        return [
            Remark(np.full(group.index.size, not seen), lambda i: f"precision {group.precision} not in training for "
                   f"{group.family}{f', taken for {taken}' if twin else ''}, band widened x{strange:g}", strange),
            Remark(np.full(group.index.size, foreign), lambda i: f"no run of a {group.platform.arch} GPU in training, "
                   f"band widened x{NEW_ARCHITECTURE:g}", NEW_ARCHITECTURE),
        ]  # fmt: skip

    def _stranger_half(self, family: str, half: Floats, level: float) -> Floats:
        """Half-width where the implementation is not known: from rows predicted without their label."""
        wide = half * UNKNOWN_IMPLEMENTATION
        if self.strangers is None or not self.strangers.pooled.size:
            return wide
        return np.maximum(wide, self.strangers.half_width(np.ones(len(half)), np.full(len(half), family), level)[0])

    def _predict_counted(self, group: Group, model: SegmentModel, level: float, out: Predicted) -> None:
        """A profiled kernel of no known family: learned from the counts of other families, never in domain."""
        assert group.counts is not None
        index = group.index
        time_s, base, half, used = model.predict(group.counts, group.platform, level)
        out.predicted_s[index], out.calibrated_s[index], out.sigma[index] = time_s, base, np.nan
        least = np.minimum(least_s(group.counts, group.platform), time_s)
        out.lower_s[index] = np.maximum(to_time(-half, time_s), least)
        out.upper_s[index] = to_time(half, time_s)
        note = np.array([model.note(str(name)) for name in used], dtype=object)
        _add(note, ~np.isfinite(half), lambda i: f"unbounded: too few families for a {100 * level:g} % band")
        out.note[index] = note
        out.implementation[index] = group.rows.categories["implementation"]

    def _predict_unseen(self, group: Group, level: float, out: Predicted) -> None:
        """A family without training rows: the analytic time, with the band of analytic errors in other families."""
        index, base = group.index, group.baseline.time_s
        half = Bands(self.analytic_scores).half_width(np.ones(index.size), np.full(index.size, group.family), level)[0]
        out.predicted_s[index] = out.calibrated_s[index] = base
        out.sigma[index] = np.nan
        out.lower_s[index], out.upper_s[index] = to_time(-half, base), to_time(half, base)
        out.note[index] = (f"{group.family} has no measured run on {self.platform}: analytic only, "
                           "band from the analytic error of other families")  # fmt: skip
        out.implementation[index] = group.rows.categories["implementation"]


@dataclass(frozen=True)
class Remark:
    """Something to say of the flagged rows (n,), words(i), and by how much it widens their half-width."""

    rows: NDArray[np.bool_]
    words: Callable[[int], str]
    factor: float | Floats = 1.0


@dataclass(frozen=True)
class Named:
    """Whose kernels the rows are: `unknown` to the model, `strange` where the band is that of anybody's."""

    unknown: NDArray[np.bool_]
    strange: NDArray[np.bool_]
    remarks: tuple[Remark, ...]


def _named(group: Group, part: Part, model: FamilyModel, left_open: bool) -> Named:
    """What the implementation of each row is to the model."""
    learned = model.domain.implementations
    names = part.rows.categories["implementation"].astype(str)
    given = canonical_labels(group.rows.categories["implementation"]).astype(str)
    # a table that names no implementation at all says nothing about which ones it holds
    unnamed = set(learned) <= set(MISSING)
    unknown = ~(np.isin(names, learned) | unnamed)
    renamed = ~unknown & ~np.isin(given, MISSING) & (spelling(given) != spelling(names))
    unsaid = np.isin(given, MISSING) & model.ambiguous & left_open
    meant = {name: _meant(name, learned) for name in np.unique(names[unknown]).tolist()}
    return Named(unknown, unknown | unsaid, (
        Remark(renamed, lambda i: f"implementation {str(given[i])!r} taken for {names[i]}, band widened "
               f"x{SAME_LIBRARY:g}", SAME_LIBRARY),
        Remark(unsaid, lambda i: f"implementation not given, taken for {names[i]}, band from how far apart they are"),
        Remark(unknown, lambda i: f"implementation {str(names[i])!r} not in training{meant[str(names[i])]}, band from "
               "how far those that are differ"),
    ))  # fmt: skip


def _unsaid(asked: Asked) -> tuple[NDArray[np.bool_], list[Remark]]:
    """(rows whose band does not know what they leave out, what is to be said of that and of what is done without)."""
    left_out = asked.model.unsaid(asked.group) if asked.label == asked.group.family else []
    none = np.zeros(asked.group.index.size, dtype=bool)
    silent = np.any([none, *(rows for rows, _ in left_out)], axis=0)
    return silent, [
        *(Remark(rows, lambda i, words=words: words) for rows, words in left_out),  # type: ignore[misc]
        Remark(asked.missing != "", lambda i: f"by a model and a band that do without {asked.missing[i]}"),
        Remark(silent, lambda i: "the band is of runs that say so, and too narrow for one that does not"),
    ]


def _add(note: NDArray[Any], where: NDArray[np.bool_], text: Any) -> None:
    """Append text(i) to the notes of the flagged rows (few: only rows with something to say)."""
    for i in np.flatnonzero(where):
        note[i] = f"{note[i]}; {text(i)}" if note[i] else text(i)


def _meant(name: str, known: Sequence[str]) -> str:
    """` (did you mean …?)` for an implementation that is spelt nearly like a known one, else nothing."""
    hint = nearest_names(name, known)
    return hint if "did you mean" in hint else ""
