"""kernelcast: how long a GPU kernel will take, with an uncertainty band that keeps its promise."""

from __future__ import annotations

__version__ = "0.1.0"
