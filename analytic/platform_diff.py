"""What two parameter sets disagree about."""

from __future__ import annotations

from dataclasses import dataclass

from .platform import Platform
from .platform_schema import PARAMETERS

ABSENT = "not given"


@dataclass(frozen=True)
class Difference:
    """One parameter that differs: values in SI (None: not given or not known), second over first, kinds, sources."""

    name: str
    unit: str
    first: float | str | None
    second: float | str | None
    ratio: float | None
    first_kind: str
    second_kind: str
    first_source: str
    second_source: str


def differences(first: Platform, second: Platform, tolerance: float = 0.0) -> list[Difference]:
    """Parameters whose values differ by more than `tolerance` (a share), in the order of the schema."""
    found = []
    for name, spec in PARAMETERS.items():
        a, b = first.parameters.get(name), second.parameters.get(name)
        before, after = (p.value if p is not None else None for p in (a, b))
        if before == after:
            continue
        ratio = None
        if isinstance(before, float) and isinstance(after, float) and before:
            ratio = after / before
            if abs(ratio - 1.0) <= tolerance:
                continue
        found.append(Difference(name, spec.unit, before, after, ratio, a.kind if a else ABSENT, b.kind if b else ABSENT,
                                a.source if a else "", b.source if b else ""))
    return found
