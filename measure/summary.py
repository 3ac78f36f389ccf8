"""What a run of a suite came to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Summary:
    rows: int = 0
    measured: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    complete: bool = True
    out: Path | None = None
