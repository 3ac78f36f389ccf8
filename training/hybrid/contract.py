"""What a stored family was trained for, held against what the code makes today: feature columns and physical terms.

Columns are matched by name, so their order in the code is free; one that is missing would be taken for an unknown
value and answered with a number. Terms have no name beside their multipliers: their order is the file format.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ...analytic.errors import KernelcastError
from ...analytic.families import FAMILIES
from ...analytic.platform import Platform, load_platform
from ...features.counted import Counts, make_counts, segment_columns, segment_terms
from ...features.describe import group_of
from .calibration import TERMS
from .domain import Domain
from .encode import Encoder
from .model import COMMON

if TYPE_CHECKING:
    from ..profiled.segment import SegmentModel

PLATFORMS = ("h200", "mi300x", "b200", "mi250x-gcd")
"""Whose baselines have every column between them: the tile model of one vendor has columns that the other's has not."""
UNSIGNED_TERMS = (
    "constant", "launch", "compute", "memory", "cache", "chain", "baseline", "cold_start", "rounds", "unit",
)
"""Order of the terms when models did not say it; those hold the first of these."""

UNSIGNED_COMMON = (
    "log2_base_over_naive", "log2_base_over_bound", "log2_intensity", "log2_set_over_cache", "log2_threads_per_unit",
    "log2_launches", "log2_chain", "log2_base", "share_launch", "share_compute", "share_memory", "share_latency",
    "element_byte", "cold",
)
"""Order of the common columns when models did not say it."""
_PROFILED = "profiled "


def digest(names: Iterable[str]) -> str:
    """Fingerprint of names in their order."""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


def encoders_of(model: Any) -> Iterator[tuple[str, Encoder, Domain]]:
    """(family, columns, box) of a learned family and of the families it was adapted from."""
    yield model.family, model.encoder, model.domain
    for source in getattr(model, "sources", ()):
        yield from encoders_of(source)


def columns_digest(model: Any) -> str:
    """Fingerprint of the columns a family reads, in the order in which its learners take them, and of its box."""
    return digest(name for family, encoder, domain in encoders_of(model)
                  for name in (family, *encoder.columns, "", *domain.names))


def column_fault(model: Any) -> str:
    """Which column that a learned family reads the code does not make today; empty where it makes them all."""
    for family, encoder, domain in encoders_of(model):
        if family not in FAMILIES:
            return f"kernel family {family} is not known to this version"
        missing = _never_made(family, [*encoder.names, *domain.names], encoder.labels, domain)
        if missing:
            return f"family {family} was trained with a column {missing!r} that this version does not make"
    return ""


def signature(segments: SegmentModel | None) -> dict[str, list[str]]:
    """What a whole model takes by place and not by name: its terms, the common columns that its difficulty reads, and
    the columns of each level of its profiled kernels."""
    return {"terms": list(TERMS), "common": list(COMMON),
            **{_PROFILED + level: profiled_columns(level) for level in (segments.levels if segments else ())}}


def profiled_columns(level: str) -> list[str]:
    """Names of the columns that the trees of a level of profiled kernels read, in order."""
    counts = make_counts(1, "fp32", **{f.name: 1.0 for f in fields(Counts) if f.name != "precision"})
    platform = load_platform(PLATFORMS[0])
    return segment_columns(counts, segment_terms(counts, platform, level), platform, level)[0]


def place_fault(stored: Mapping[str, Sequence[str]], segments: SegmentModel | None) -> str:
    """Which term or column stands elsewhere than when a model was trained; empty where none does.

    stored: what `signature` gave, or nothing of it where a model does not say; then only the number of the columns of
    profiled kernels is known. Terms may have been added since, last.
    """
    fault = _moved("term", stored.get("terms", UNSIGNED_TERMS), TERMS[: len(stored.get("terms", UNSIGNED_TERMS))])
    fault = fault or _moved("common column", stored.get("common", UNSIGNED_COMMON), COMMON)
    for level, learned in (segments.levels if segments else {}).items():
        now = profiled_columns(level)
        before = stored.get(_PROFILED + level, now)
        fault = fault or _moved(f"{level} column of profiled kernels", before, now)
        if not fault and int(learned.booster.num_features()) != len(now):
            fault = f"profiled kernels had {learned.booster.num_features()} {level} columns and have {len(now)} now"
    return fault


def _moved(what: str, before: Sequence[str], now: Sequence[str]) -> str:
    for place in range(max(len(before), len(now))):
        then, today = ((repr(names[place]) if place < len(names) else "missing") for names in (before, now))
        if then != today:
            return f"{what} number {place + 1} was {then} when it was trained and is {today} in this version"
    return ""


def _never_made(family: str, names: Sequence[str], labels: Iterable[str], domain: Domain) -> str:
    """The first of the columns and label columns that no baseline of the family has; empty where all are made."""
    wanted, texts = dict.fromkeys(names), dict.fromkeys(labels)
    judged = False
    for made, categories in _made(family, domain):
        judged = True
        wanted = {name: None for name in wanted if name not in made}
        texts = {name: None for name in texts if name not in categories}
        if not wanted and not texts:
            return ""
    # a family of which no row can be made (of precisions that none of the platforms has) is not judged
    return next(iter([*wanted, *texts])) if judged else ""


def _made(family: str, domain: Domain) -> Iterator[tuple[set[str], set[str]]]:
    """(columns, label columns) of one row of the family, platform by platform and precision by precision."""
    raw = {p.name: np.array([_example(p.kind, p.default, _corner(p.name, domain))], dtype=object)
           for p in FAMILIES[family].params if p.required or p.kind != "text"}
    implementation, index = np.array([""], dtype=object), np.zeros(1, dtype=np.intp)
    for name in PLATFORMS:
        platform: Platform = load_platform(name)
        for precision in domain.precisions:
            try:
                rows = group_of(platform, FAMILIES[family], family, precision, "cold", index, raw, implementation).rows
            except KernelcastError:  # a precision this platform has not
                continue
            yield set(rows.names), set(rows.categories)


def _corner(name: str, domain: Domain) -> float:
    """A size inside the box that the family was learned in: its lower edge; 1024 where it has none."""
    edges = dict(zip(domain.names, domain.low, strict=True))
    low = edges.get(f"log2_{name}", np.nan)
    return float(np.ceil(2.0 ** max(low, 0.0))) if np.isfinite(low) else 1024.0


def _example(kind: str, default: Any, size: float) -> Any:
    if kind in ("size", "real"):
        return size
    return default if default is not None else (0.0 if kind == "flag" else "")
