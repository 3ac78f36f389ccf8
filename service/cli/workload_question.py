"""An application as the command line asks about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...analytic.workload import Workload


@dataclass(frozen=True)
class Question:
    """An application as asked about: with fields set and segments fused, and the platform parameters to change."""

    workload: Workload
    overrides: dict[str, str | float]
    original: Workload
