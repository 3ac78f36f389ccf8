"""Models that are open already: the ones used last, each kept until a file of its folder changes."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from .store import read_model

if TYPE_CHECKING:
    from ..training.hybrid.model import Model

MOST = 8
"""Opened models that are kept: one of a few families takes some megabytes, one with all of them some fifty."""

State = tuple[tuple[str, int, int, int], ...]


def state_of(folder: Path) -> State:
    """Name, size, time of change [ns] and number of every file of a folder, sorted; empty where it cannot be listed.

    Files are told apart without being read: a stored model has some thirty of them and seventy megabytes.
    """
    try:
        with os.scandir(folder) as found:
            stats = [(entry.name, entry.stat()) for entry in found]
    except OSError:
        return ()
    return tuple(sorted((name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in stats))


class _Kept:
    """A model with the state its folder had just before it was read; `lock` is held while it is opened."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.state: State = ()
        self.model: Model | None = None


class Opened:
    """The `most` models asked for last, by folder. Safe to be asked by several threads."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def read(self, folder: Path) -> Model:
        """The model of a folder: kept, or read where none is kept or its files changed. Errors as of `read_model`.

        The model is shared between callers: change nothing in it.
        """
        kept = self._place(os.path.realpath(folder))
        with kept.lock:
            state = state_of(folder)
            if kept.model is None or not state or kept.state != state:
                kept.model = None  # nothing of before answers where what is there now cannot be read
                kept.model, kept.state = read_model(folder), state
            return kept.model

    def _place(self, key: str) -> _Kept:
        """Where the model of a folder is kept; the one that was asked for longest ago makes room."""
        with self._lock:
            kept = self._kept.setdefault(key, _Kept())
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return kept

    def forget(self) -> None:
        """Keep none of them any longer."""
        with self._lock:
            self._kept.clear()


OPENED = Opened()
