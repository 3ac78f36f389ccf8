"""Data: platforms, suites, run tables, champion models, training defaults."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def folder(*names: str) -> Path:
    """The path of a folder or file of the data that ships with the package: `folder("runs", "h200.parquet")`."""
    return Path(str(resources.files(__name__).joinpath(*names)))
