"""The hybrid model of one platform: family models, the difficulty of a row, and conformal bands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...features.counted import least_s
from ...features.describe import Described, Group
from ...features.rows import Rows
from ..learners.residual import to_residual, to_time
from ..learners.trees import Trees
from ..profiled.segment import SegmentModel
from . import remarks
from .bands import Bands
from .family import Part, learned_as, part_of
from .html import html_table
from .meta import Meta
from .notes import Notes, Remark
from .partial import Asked, Judge, by_what_is_said
from .protocol import LearnedFamily

Floats = NDArray[np.float64]

SMALLEST_SIGMA = 0.004
"""Difficulty floor in log time: half the median repeat noise (IQR 0.8 %) of a GPU kernel."""
UNKNOWN_IMPLEMENTATION = 1.6
"""Widening of the half-width where a label was never seen and no row was predicted without its own; not fitted."""
TRUST_OCTAVES = 4.0
"""Octaves outside the training box over which what was learned fades to `FamilyModel.beyond_s`.

Of 49 families, trained on their smaller 50 / 65 / 80 % and asked for the rest: mean error 44 / 38 / 24 %; fading to the
plain analytic time 44 / 40 / 29, to the calibrated one 117 / 52 / 27."""
COMMON = (
    "log2_base_over_naive", "log2_base_over_bound", "log2_intensity", "log2_set_over_cache", "log2_threads_per_unit",
    "log2_launches", "log2_chain", "log2_base", "share_launch", "share_compute", "share_memory", "share_latency",
    "element_byte", "cold",
)


@dataclass
class Predicted:
    """Predictions of n rows; arrays of shape (n,), NaN time where refused. An unbounded side is infinite (or 0)."""

    predicted_s: Floats
    lower_s: Floats
    upper_s: Floats
    calibrated_s: Floats
    sigma: Floats
    """Expected size of |log(measured ÷ predicted)|; NaN where nothing was learned of the family."""
    implementation: NDArray[Any]
    notes: Notes

    @property
    def in_domain(self) -> NDArray[np.bool_]:
        """Rows with a time of which nothing is said that puts them outside of what was trained for."""
        return np.isfinite(self.predicted_s) & ~self.notes.outside

    @property
    def note(self) -> NDArray[Any]:
        """What is said of each row, joined for display."""
        return self.notes.joined()

    def put(self, index: NDArray[np.intp], centre_s: Floats, half: Floats, calibrated_s: Floats, sigma: Floats,
            implementation: NDArray[Any]) -> None:
        """Times [s] of the rows `index` with a band `half` wide in log time to either side."""
        self.predicted_s[index], self.calibrated_s[index], self.sigma[index] = centre_s, calibrated_s, sigma
        self.lower_s[index], self.upper_s[index] = to_time(-half, centre_s), to_time(half, centre_s)
        self.implementation[index] = implementation


def nothing_predicted(size: int) -> Predicted:
    """Room for the predictions of `size` rows."""
    time, lower, upper, calibrated, sigma = np.full((5, size), np.nan)
    return Predicted(time, lower, upper, calibrated, sigma, np.full(size, "", dtype=object), Notes(size))


def faded_s(learned_s: Floats, beyond_s: Floats, distance: Floats) -> Floats:
    """Time [s] between what was learned and what is left to believe `distance` octaves outside the training range.

    What was learned inside the box misleads outside.
    """
    trust = np.maximum(1.0 - distance / TRUST_OCTAVES, 0.0)
    return to_time(trust * to_residual(learned_s, beyond_s), beyond_s)


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


@dataclass(repr=False)
class Model:
    """A trained hybrid for one platform. `meta` says where it comes from: rows, digests, scores, version."""

    platform: str
    name: str
    families: Mapping[str, LearnedFamily]
    difficulty: Any
    """XGBoost booster: log of the typical absolute residual of a row; None where too few rows were there."""
    typical: dict[str, float]
    """Median log |out-of-fold residual| by `family|regime`, by family, and '' for all."""
    bands: Bands
    analytic_scores: Floats
    """|log(measured ÷ analytic)| of training rows, sorted downwards: the band of families never seen."""
    meta: Meta = field(default_factory=lambda: Meta())
    strangers: Bands | None = None
    """Scores of rows predicted without their implementation's label: the band of one that was never seen."""
    segments: SegmentModel | None = None
    """Profiled kernels of no known family; None where too few families were measured to learn them from."""
    partials: Mapping[str, LearnedFamily] = field(default_factory=dict)
    """Families for questions that leave statistics out, by `partial.name_of`."""
    partial_judge: Judge | None = None

    def __repr__(self) -> str:
        """`<Model kernelcast-h200@shipped of h200: 49 families, 31000 runs, held-out error 5.9 %>`."""
        version, error = self.meta.get("version"), self.meta.get("heldout", {}).get("mape")
        facts = [f"{len(self.families)} families", *([f"{self.meta['rows']} runs"] if "rows" in self.meta else []),
                 *([] if error is None else [f"held-out error {error:.2g} %"])]
        name = f"{self.name}@{version}" if version else self.name
        return f"<Model {name} of {self.platform}: {', '.join(facts)}>"

    def _repr_html_(self) -> str:
        """The families as a table, for a notebook: training rows and error on rows of other folds, where known."""
        scores = self.meta.get("out_of_fold", {})
        cells = {name: (f"{found['rows']:g}", f"{found['mape']:.3g} %") for name, found in scores.items()}
        rows = [(name, *cells.get(name, ("", ""))) for name in sorted(self.families)]
        return html_table(repr(self)[1:-1], ("family", "runs", "error out of fold"), rows)

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
        out = nothing_predicted(described.baseline_s.size)
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
        """Rows of a family that was learned: time, what is to be said of it, and the band that follows from both."""
        group, model, index = asked.group, asked.model, asked.group.index
        taken = learned_as(group.precision, model.domain.precisions)
        part = part_of(group, model.reference, model.domain.implementations, taken)
        distance, column = model.domain.outside(part.rows)
        base = model.calibrated_s(part)
        correction, disagreement = model.log_correction(part)
        centre = faded_s(to_time(correction, base), model.beyond_s(part), distance)
        sigma = sigma_of(asked.judge, asked.label, part, disagreement, correction)
        half, pooled = asked.judge.bands.half_width(sigma, np.full(index.size, asked.label), level, part.regime)
        named = remarks.of_implementation(group, part, model, left_open)
        if named.strange.any():
            half = np.where(named.strange, self._stranger_half(group.family, half, level), half)
        said = [
            remarks.of_sizes(distance, column),
            *named.remarks,
            *remarks.of_platform(group, taken, group.precision in model.domain.precisions,
                                 self.meta.get("architectures", {}).get(group.family, [])),
            *remarks.of_band(group.family, half, pooled, level),
            *remarks.of_what_is_left_out(asked),
            remarks.of_model(model, index.size, self.meta.get("unseen_platform", False)),
        ]
        for remark in said:
            half = half * remark.widening
        out.put(index, centre, half, base, sigma, part.rows.categories["implementation"].astype(str))
        out.notes.add(index, said)

    def _stranger_half(self, family: str, half: Floats, level: float) -> Floats:
        """Half-width where the implementation is not known: from rows predicted without their label."""
        wide = half * UNKNOWN_IMPLEMENTATION
        if self.strangers is None or not self.strangers.pooled.size:
            return wide
        return np.maximum(wide, self.strangers.half_width(np.ones(len(half)), np.full(len(half), family), level)[0])

    def _predict_counted(self, group: Group, model: SegmentModel, level: float, out: Predicted) -> None:
        """A profiled kernel of no known family: learned from the counts of other families, never in domain."""
        assert group.counts is not None
        index, every = group.index, np.ones(group.index.size, dtype=bool)
        time_s, base, half, used = model.predict(group.counts, group.platform, level)
        out.put(index, time_s, half, base, np.full(index.size, np.nan), group.rows.categories["implementation"])
        least = np.minimum(least_s(group.counts, group.platform), time_s)
        out.lower_s[index] = np.maximum(out.lower_s[index], least)
        words = np.array([model.note(str(name)) for name in used], dtype=object)
        out.notes.add(index, [Remark("counted_only", every, lambda i: words[i], outside=True),
                              remarks.unbounded(half, level, "families")])

    def _predict_unseen(self, group: Group, level: float, out: Predicted) -> None:
        """A family without training rows: the analytic time, with the band of analytic errors in other families."""
        index, base, every = group.index, group.baseline.time_s, np.ones(group.index.size, dtype=bool)
        half = Bands(self.analytic_scores).half_width(np.ones(index.size), np.full(index.size, group.family), level)[0]
        out.put(index, base, half, base, np.full(index.size, np.nan), group.rows.categories["implementation"])
        words = (f"{group.family} has no measured run on {self.platform}: analytic only, "
                 "band from the analytic error of other families")
        out.notes.add(index, [Remark("family_not_measured", every, words, outside=True)])
