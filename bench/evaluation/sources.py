"""The tables the splits are cut from. One that is not there raises InputError, which the report gives as the reason."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...analytic.errors import InputError
from ...configs import folder
from ...training.tables.importers import load_corpus
from ...training.tables.importers.aiconfigurator import in_test_split
from ...training.tables.importers.common import sample_rows
from ...training.tables.schema import read_runs
from ...training.tables.splits import group_draw

if TYPE_CHECKING:
    import pandas as pd


@lru_cache(maxsize=4)
def nvidia(platform: str, family: str) -> pd.DataFrame:
    """One family of one platform of the aiconfigurator tables."""
    return load_corpus("aiconfigurator", platforms=[platform], families=[family])


@lru_cache(maxsize=4)
def converted(corpus: str, platform: str, family: str = "") -> pd.DataFrame:
    """One platform (and family) of a converted table; the MI300A table without host copies and timed transfers."""
    choices: dict[str, Any] = {"kernels_only": True} if corpus == "mi300a" else {}
    frame = load_corpus(corpus, platforms=[platform], **choices)
    frame = frame[frame["kernel"] == family] if family else frame
    if frame.empty:
        raise InputError(f"corpus {corpus} has no {family or 'row'} of {platform}")
    return frame.reset_index(drop=True)


@lru_cache(maxsize=4)
def own(name: str) -> pd.DataFrame:
    """A table measured by this project and shipped with it: a platform's corpus, or `<platform>-more`."""
    path = folder("runs", f"{name}.parquet")
    if not path.is_file():
        raise InputError(f"no measured runs of {name} are shipped (configs/runs/{name}.parquet)")
    return read_runs(path).frame


def site_test(frame: pd.DataFrame) -> NDArray[np.bool_]:
    """Test rows by the rule everyone uses for these tables: sha1 of the site divisible by five."""
    return np.asarray(in_test_split(frame), dtype=bool)


def hash_test(frame: pd.DataFrame, fraction: float = 0.2, seed: int = 0) -> NDArray[np.bool_]:
    """Test rows: `fraction` of the groups by hash."""
    return group_draw(frame["group"], seed) < fraction


def asked_with_less(frame: pd.DataFrame, extent: int) -> pd.DataFrame:
    """The rows as a table would hold them that leaves out what extent number `extent` of their family does."""
    from ...analytic.families import FAMILIES

    def shorter(kernel: str, params: str) -> str:
        hidden = FAMILIES[kernel].asked_without[extent]
        return json.dumps({name: value for name, value in json.loads(params).items() if name not in hidden})

    return frame.assign(params=[shorter(*row) for row in zip(frame["kernel"], frame["params"], strict=True)])


def sample(frame: pd.DataFrame, rows: int | None, seed: int = 0) -> pd.DataFrame:
    """At most `rows` rows by a fixed draw, renumbered from 0."""
    return sample_rows(frame, rows, seed).reset_index(drop=True)


def spread_choice(frame: pd.DataFrame, count: int) -> NDArray[np.bool_]:
    """`count` rows of each kernel family spread over its sizes: evenly spaced in the order of size.

    Size is the naive roofline of a row, so nothing that was measured chooses the rows. The smallest and the largest
    are always among them.
    """
    from ...features.describe import describe

    size = describe(frame).naive_s
    keep = np.zeros(len(frame), dtype=bool)
    for places in frame.groupby("kernel", sort=True).indices.values():
        rows = np.asarray(places, dtype=np.intp)
        known = rows[np.isfinite(size[rows])]
        order = known[np.argsort(size[known], kind="stable")]
        keep[order[np.unique(np.round(np.linspace(0, len(order) - 1, min(count, len(order)))).astype(int))]] = True
    return keep
