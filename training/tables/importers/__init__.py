"""Other people's measured tables, turned into the run table."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....analytic.errors import InputError, nearest_names
from . import aiconfigurator, aiter, autotune, ginkgo, mi300a
from .common import corpus_facts

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CORPORA", "corpus_facts", "load_corpus"]

CORPORA: dict[str, Callable[..., Any]] = {
    module.NAME: module.load for module in (aiconfigurator, aiter, autotune, ginkgo, mi300a)
}
"""Corpus name → loader; each loader's own keywords choose what its caveats leave open."""


def load_corpus(
    name: str,
    data_dir: str | Path | None = None,
    max_rows: int | None = None,
    platforms: Collection[str] | None = None,
    **choices: Any,
) -> pd.DataFrame:
    """The checked run table of a public corpus. Raises InputError saying how to get data which is not there.

    `data_dir` is the folder of the converted tables (default: the variable KERNELCAST_DATA); `platforms` keeps only
    those ids, some of which are for training only (v100-sxm2, mi308x, …); `choices` go to the corpus's loader.
    """
    if name not in CORPORA:
        raise InputError(f"unknown corpus {name!r}{nearest_names(name, CORPORA)}")
    frame: pd.DataFrame = CORPORA[name](data_dir, max_rows, platforms, **choices)
    return frame
