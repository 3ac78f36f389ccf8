"""Everything learned about one family on one platform: calibration, residual, domain, reference implementation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...analytic.families import FAMILIES
from ...features.describe import Group
from ...features.implementation import canonical_labels
from ...features.rows import Rows
from ..learners.process import configurations
from ..learners.residual import LEARN_FROM, Residual, fit_residual, to_residual, to_time
from .calibration import Calibration, fit_calibration, term_matrix
from .domain import Domain, fit_domain
from .encode import MISSING, Encoder

Floats = NDArray[np.float64]


@dataclass
class Part:
    """Rows of one group, ready to learn from or to predict: all arrays of shape (n, …)."""

    index: NDArray[np.intp]
    rows: Rows
    terms: Floats
    analytic_s: Floats
    regime: NDArray[Any]
    """Label `implementation|precision` of each row: what a calibration regime is."""


def take(part: Part, keep: NDArray[np.bool_]) -> Part:
    """The rows of a part where `keep` (n,) is true."""
    rows = Rows(part.rows.names, part.rows.values[keep], {k: v[keep] for k, v in part.rows.categories.items()})
    return Part(part.index[keep], rows, part.terms[keep], part.analytic_s[keep], part.regime[keep])


PRECISION_TWINS = {"fp16": "bf16", "bf16": "fp16"}
"""Precisions of one width and one matrix rate: a model that knows only the other of the two may take it instead."""


def learned_as(precision: str, known: Collection[str]) -> str:
    """The precision a model that knows `known` takes `precision` for: itself, or its twin where only that is known."""
    twin = PRECISION_TWINS.get(precision, "")
    return twin if precision not in known and twin in known else precision


class _OfFamily(Protocol):
    @property
    def family(self) -> str: ...


G = TypeVar("G", bound=_OfFamily)


def by_family(items: Iterable[G]) -> dict[str, list[G]]:
    """Groups, or whatever else has a family, by its name, in the order they come in."""
    out: dict[str, list[G]] = {}
    for item in items:
        out.setdefault(item.family, []).append(item)
    return out


def part_of(group: Group, reference: dict[str, str], known: Collection[str] | None = None,
            precision: str | None = None) -> Part:
    """A described group with missing implementations filled by the reference one of its precision.

    known: labels of a trained model, among which another name of the same library is looked for. precision: the one the
    rows are taken for, where it is not their own.
    """
    given = canonical_labels(group.rows.categories["implementation"], known)
    precision = precision or group.precision
    standard = reference.get(precision) or reference.get("", "")
    filled = np.where(np.isin(given, MISSING), standard, given)
    labels = {"implementation": filled, "precision": np.full(filled.shape, precision)}
    rows = replace(group.rows, categories={**group.rows.categories, **labels})
    regime = np.char.add(np.char.add(filled.astype(str), "|"), precision)
    return Part(group.index, rows, term_matrix(group.baseline), group.baseline.time_s, regime)


def reference_implementations(groups: Sequence[Group]) -> dict[str, str]:
    """Reference implementation by precision, over all precisions under ''.

    The vendor's library where the family names one and it was measured, else the most frequent label.
    """
    standard = FAMILIES[groups[0].family].reference.get(groups[0].platform.vendor, "") if groups else ""
    out: dict[str, str] = {}
    by_precision: dict[str, list[NDArray[Any]]] = {"": []}
    for group in groups:
        labels = canonical_labels(group.rows.categories["implementation"])
        by_precision.setdefault(group.precision, []).append(labels)
        by_precision[""].append(labels)
    for precision, parts in by_precision.items():
        seen, counts = np.unique(np.concatenate(parts), return_counts=True)
        named = [(int(c), str(s)) for s, c in zip(seen, counts, strict=True) if s not in MISSING]
        if named:
            given = {name for _, name in named}
            out[precision] = standard if standard in given else max(named)[1]
    return out


@dataclass
class KnownFamily:
    """What is known of a learned family beside what it says: where its runs were, and how they are read."""

    family: str
    encoder: Encoder
    domain: Domain
    reference: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    note: str = ""

    @property
    def ambiguous(self) -> bool:
        """Whether a row without an implementation may be any of several: no vendor's library is the usual one."""
        several = len(set(self.domain.implementations) - set(MISSING)) > 1
        return several and not FAMILIES[self.family].reference


@dataclass
class FamilyModel(KnownFamily):
    """Learned state of one family. `residual` is None where the calibrated baseline did at least as well."""

    calibration: Calibration = field(kw_only=True)
    residual: Residual | None = field(kw_only=True)

    def unsaid(self, group: Group) -> list[tuple[NDArray[np.bool_], str]]:
        """(rows, what to say of them) for every statistic that the family was learned with and rows leave out.

        A label it never saw tells as much as none.
        """
        if self.residual is None:
            return []
        bounds = dict(zip(self.domain.names, self.domain.low, strict=True))
        out = [(rows, f"{name} not given") for name, rows in group.unsaid.items()
               if np.isfinite(bounds.get(f"log2_{name}", -np.inf))]
        for name in FAMILIES[self.family].statistics:
            known = self.encoder.labels.get(name)
            if known and name in group.rows.categories:
                given = group.rows.categories[name].astype(str)
                for label in sorted({*given.tolist()} - {*known}):
                    told = "not given" if label in MISSING else f"{label[:40]!r} not in training"
                    out.append((given == label, f"{name} {told}"))
        return [(rows, words) for rows, words in out if rows.any()]

    def calibrated_s(self, part: Part) -> Floats:
        """Calibrated analytic time [s] of each row."""
        return self.calibration.predict_s(part.terms, part.regime)

    def beyond_s(self, part: Part) -> Floats:
        """What is left to believe far outside the training range [s]: the analytic time, calibrated as far as known.

        Between the two in log time, by the cube of `Calibration.known_share`: multipliers fitted to launches tell
        nothing of bandwidth, but they do tell what the next smaller launch costs.
        """
        share = self.calibration.known_share(part.terms, part.regime) ** 3
        return to_time(share * to_residual(self.calibrated_s(part), part.analytic_s), part.analytic_s)

    def log_correction(self, part: Part) -> tuple[Floats, Floats]:
        """(residual, disagreement of its members) of each row; zeros where the family keeps its baseline."""
        if self.residual is None:
            zero = np.zeros(len(part.analytic_s))
            return zero, zero
        trees, smooth = self.residual.parts(self.encoder.matrix(part.rows))
        return trees + self.residual.smooth_share * (smooth - trees), np.abs(smooth - trees)


def sizes_of(family: str, *, flags: bool = False) -> list[str]:
    """The parameters of a family that are numbers, in its order; with flags those that are true or false, too."""
    return [p.name for p in FAMILIES[family].params if p.kind in ("size", "real") or (flags and p.kind == "flag")]


def fit_family(name: str, parts: Sequence[Part], times: Sequence[Floats], reference: dict[str, str], *, seed: int = 0,
               learn: bool = True, smooth: str | None = None, quick: bool = False, encoder: Encoder | None = None
               ) -> FamilyModel:
    """Fit one family to its parts and their measured times [s]. learn=False stops at the calibration.

    smooth, quick: as `fit_residual` takes them."""
    rows = [part.rows for part in parts]
    time_s = np.concatenate(list(times))
    terms = np.concatenate([part.terms for part in parts])
    regime = np.concatenate([part.regime for part in parts])
    calibration = fit_calibration(terms, regime, time_s)
    encoder = encoder or Encoder.fit(rows)
    residual = None
    if learn and len(time_s) >= LEARN_FROM:
        x = np.concatenate([encoder.matrix(r) for r in rows])
        same = configurations(sizes_of(name, flags=True), rows)
        y = to_residual(time_s, calibration.predict_s(terms, regime))
        residual = fit_residual(x, y, seed=seed, smooth=smooth, quick=quick, same=same)
    return FamilyModel(name, encoder, fit_domain(name, rows), reference, len(time_s), calibration=calibration,
                       residual=residual)
