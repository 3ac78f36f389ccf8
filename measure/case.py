"""What a builder hands to the harness, and the table in which builders are registered."""

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
