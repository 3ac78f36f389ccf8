"""What measuring a suite would come to, said without a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .costs import planned_s
from .run import quick_set
from .suite import Config, load_suite
from .trace import CACHES


@dataclass(frozen=True)
class FamilyPlan:
    """One family of a suite: its implementations, configurations and rows (a cache state each)."""

    family: str
    implementations: tuple[str, ...]
    precisions: tuple[str, ...]
    configurations: int
    rows: int
    smallest_byte: float
    largest_byte: float
    """Effort of the smallest and the largest configuration: bytes, or a tenth of the operations where that is more."""


@dataclass(frozen=True)
class SuitePlan:
    """A suite that has not been measured: families by name, and the whole."""

    suite: str
    families: tuple[FamilyPlan, ...]
    kinds: int
    configurations: int
    rows: int
    """At most: what does not fit, or fails its check, gives none."""
    seconds: float
    """About, on an H200 with no kernel built yet."""


def plan_suite(suite: str | Path, quick: bool = False) -> SuitePlan:
    """What `suite` would measure; `quick` as in `run_suite`. Needs no GPU.

    Raises InputError: no such suite, or an entry that cannot be drawn."""
    configs = load_suite(suite)
    if quick:
        configs = quick_set(configs)
    held: dict[str, list[Config]] = {}
    for config in configs:
        held.setdefault(config.family, []).append(config)
    kinds = len({config.kind for config in configs})
    return SuitePlan(str(suite), tuple(_plan(name, held[name]) for name in sorted(held)), kinds, len(configs),
                     len(configs) * len(CACHES), planned_s(kinds, len(configs)))


def _plan(family: str, configs: Sequence[Config]) -> FamilyPlan:
    sizes = [config.effort for config in configs]
    implementations, precisions = ({getattr(c, name) for c in configs} for name in ("implementation", "precision"))
    return FamilyPlan(family, tuple(sorted(implementations)), tuple(sorted(precisions)), len(configs),
                      len(configs) * len(CACHES), min(sizes), max(sizes))


def lines(plan: SuitePlan) -> list[str]:
    """A plan in words, a line a family and one for the whole."""
    out = [f"{item.family:20s} {item.configurations:6d} configurations  {', '.join(item.implementations)}; "
           f"{', '.join(item.precisions)}" for item in plan.families]
    return [*out, f"{plan.configurations} configurations of {plan.kinds} kinds, at most {plan.rows} rows, "
                  f"about {plan.seconds:.0f} s on an H200"]
