"""Progress on standard error, only where a person watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .show import clean


@contextmanager
def progress(what: str) -> Iterator[Callable[[str, int, int], None] | None]:
    """A callback (name, index, count) that moves a bar; None where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def move(name: str, index: int, count: int) -> None:
            bar.update(task, description=f"{what}: {clean(name)}".replace("[", "("), completed=index, total=count)

        yield move
