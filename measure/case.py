"""What a builder hands to the harness, and the record in which a family names its builders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .gpu import Gpu

Params = Mapping[str, Any]


@dataclass
class Case:
    """A prepared configuration: `call` runs it once; `check` runs it and returns its relative error."""

    call: Callable[[], Any]
    check: Callable[[], float]
    tolerance: float = 1e-5
    params: dict[str, Any] | None = None  # replaces the drawn parameters (sparse and graph descriptors)
    reset: Callable[[], Any] | None = None  # restores inputs that the call overwrites, outside the timed part
    keep: list[Any] = field(default_factory=list)


Builder = Callable[[Gpu, Params, str], Case]
Cost = Callable[[Params], tuple[float, float]]
"""Drawn parameters → rough (FLOP, bytes) at 4 bytes a value."""
GroupRule = Callable[[Params, int], str]
"""Drawn parameters and seed → what tells one split group from another."""


@dataclass(frozen=True)
class Measured:
    """How a kernel family is measured: the record beside the family's own in analytic/families.

    A cost of None is the family's work at 4 bytes a value; a group of None is the family and its sizes."""

    name: str
    builders: Mapping[str, Builder]
    """By implementation."""
    cost: Cost | None = None
    group: GroupRule | None = None
    group_name: str = ""
    """What the groups are called where families share drawn inputs; the family's name otherwise."""
    tensor: bool = False
    """Matrix units may run it: their counters are asked for, too."""
    launches_vary: bool = False
    """The inputs drawn, not the sizes, say how many kernels a call launches."""


TOLERANCE = {
    "fp64": 1e-12,
    "fp32": 2e-5,
    "tf32": 3e-3,
    "fp16": 4e-3,
    "bf16": 2e-2,
    "fp8": 2e-2,
    "int8": 0.0,
    "int32": 0.0,
}


def blocks(n: int, size: int = 256) -> int:
    """Blocks of `size` threads that cover n."""
    return max(1, -(-int(n) // size))


def in_turn(steps: Sequence[Callable[[], Any]]) -> Callable[[], None]:
    """One call that runs several."""

    def call() -> None:
        for step in steps:
            step()

    return call
