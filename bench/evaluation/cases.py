"""The splits of the report. Each says in words what was held out, and builds its two sides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...analytic.errors import InputError
from ...training.hybrid.model import Model
from ...training.tables.splits import folds
from . import sources
from .score import Parts

if TYPE_CHECKING:
    import pandas as pd

Limits = dict[str, int | None]
"""{"train": rows, "test": rows}; None means all."""
GEMM_CLASS = ("implementation", "precision")
FOLDS = 5
SIZE_STEP = 8.0
"""How far the large sizes of the extrapolation split lie above the small ones, in naive roofline time."""


@dataclass(frozen=True)
class Case:
    """A split: its title, what is held out, and how to build it with at most so many rows."""

    name: str
    title: str
    definition: str
    build: Callable[[Limits], list[Parts]]
    """The split, or the folds whose test rows are pooled."""


def _cut(frame: pd.DataFrame, test: NDArray[np.bool_], limits: Limits, **more: Any) -> list[Parts]:
    if not test.any() or test.all():
        raise InputError("the split leaves one side empty")
    return [Parts(sources.sample(frame[~test], limits["train"]), sources.sample(frame[test], limits["test"]), **more)]


def _folded(frame: pd.DataFrame, limits: Limits, **more: Any) -> list[Parts]:
    """FOLDS folds by group: where a corpus has few groups, one fifth of them would be the luck of the draw."""
    fold = folds(frame["group"], FOLDS, seed=0)
    return [part for number in np.unique(fold) for part in _cut(frame, fold == number, limits, **more)]


def _sites(platform: str, family: str, classes: tuple[str, ...] = GEMM_CLASS) -> Callable[[Limits], list[Parts]]:
    def build(limits: Limits) -> list[Parts]:
        frame = sources.nvidia(platform, family)
        return _cut(frame, sources.site_test(frame), limits, class_of=classes)

    return build


def _own_parts(frame: pd.DataFrame, more: pd.DataFrame, limits: Limits, **extra: Any) -> list[Parts]:
    """The corpus cut by group. Further rows of its hard families train where their group does, and never test: what is
    asked of a model stays as the corpus drew it."""
    import pandas as pd

    test = sources.hash_test(frame)
    train = pd.concat([frame[~test], more[~sources.hash_test(more)]], ignore_index=True)
    return [Parts(sources.sample(train, limits["train"]), sources.sample(frame[test], limits["test"]), **extra)]


def _own(limits: Limits) -> list[Parts]:
    subsets = {"cold cache": _equals("cache", "cold"), "warm cache": _equals("cache", "warm")}
    return _own_parts(sources.own("h200"), sources.own("h200-more"), limits, subsets=subsets)


def _own_family(family: str) -> Callable[[Limits], list[Parts]]:
    def build(limits: Limits) -> list[Parts]:
        tables = (sources.own(name) for name in ("h200", "h200-more"))
        frame, more = (table[table["kernel"] == family].reset_index(drop=True) for table in tables)
        return _own_parts(frame, more, limits, class_of=("implementation", "cache"))

    return build


SAID = {"all": None, "no label": 0, "sizes alone": -1}
"""What the questions of `_unsaid` say, and the extent of `Family.asked_without` they leave out."""


def _uneven() -> list[str]:
    """Families whose time hangs on statistics that questions leave out."""
    from ...analytic.families import FAMILIES

    return [name for name, family in FAMILIES.items() if family.asked_without]


def _unsaid(limits: Limits) -> list[Parts]:
    """Every test row three times: as it is, without what other people's tables lack, with the sizes alone."""
    import pandas as pd

    tables = (sources.own(name) for name in ("h200", "h200-more"))
    frame, more = (table[table["kernel"].isin(_uneven())].reset_index(drop=True) for table in tables)
    (parts,) = _own_parts(frame, more, limits)
    asked = [parts.test if extent is None else sources.asked_with_less(parts.test, extent) for extent in SAID.values()]
    test = pd.concat([rows.assign(said=said) for said, rows in zip(SAID, asked, strict=True)], ignore_index=True)
    subsets = {f"said: {said}": _equals("said", said) for said in SAID}
    return [Parts(parts.train, test, subsets, ("kernel", "said"))]


def _kinds(limits: Limits) -> list[Parts]:
    """Sparse and graph kernels on the kinds of inputs of the corpus for training, on all other kinds for the test."""
    import pandas as pd

    frame = pd.concat([sources.own(name) for name in ("h200", "h200-more")], ignore_index=True)
    other = sources.own("h200-kinds")
    train = frame[frame["kernel"].isin(_uneven())]
    return [Parts(sources.sample(train, limits["train"]), sources.sample(other, limits["test"]))]


def _equals(column: str, value: str) -> Callable[[pd.DataFrame], NDArray[np.bool_]]:
    return lambda rows: np.asarray(rows[column] == value, dtype=bool)


def _small_m(rows: pd.DataFrame) -> NDArray[np.bool_]:
    from ...features.params import params_frame

    return np.asarray(params_frame(rows["params"])["m"] <= 512, dtype=bool)


def _longer_than(seconds: float) -> Callable[[pd.DataFrame], NDArray[np.bool_]]:
    return lambda rows: np.asarray(rows["time_s"] > seconds, dtype=bool)


def _mi300x(limits: Limits) -> list[Parts]:
    frame = sources.converted("aiter", "mi300x", "gemm")
    return _folded(frame, limits, class_of=("implementation", "precision"),
                   subsets={"m <= 512": _small_m, "below 10 us": lambda rows: ~_longer_than(10e-6)(rows)})


def _spmv(limits: Limits) -> list[Parts]:
    frame = sources.converted("ginkgo", "mi250x-gcd", "spmv_csr")
    return _folded(frame, limits, class_of=("implementation",),
                   subsets={"above 30 us": _longer_than(30e-6)})


def _adapted(platform: str) -> Callable[[pd.DataFrame], Model]:
    """A handful of runs and the parameter file, no other GPU: the way of `adapt` without a source."""

    def fit(few: pd.DataFrame) -> Model:
        from ...training.adapting.adapt import adapt_model

        return adapt_model(few, platform)

    return fit


def _mi300a(count: int) -> Callable[[Limits], list[Parts]]:
    def build(limits: Limits) -> list[Parts]:
        frame = sources.converted("mi300a", "mi300a")
        return _cut(frame, ~sources.spread_choice(frame, count), limits, fit=_adapted("mi300a"))

    return build


def _extrapolation(limits: Limits) -> list[Parts]:
    """Small products for training; products more than SIZE_STEP times as long by the naive roofline for the test."""
    from ...features.describe import describe

    frame = sources.nvidia("h200", "gemm")
    frame = sources.sample(frame, None if limits["train"] is None else 2 * limits["train"])
    size = describe(frame).naive_s
    edge = float(np.nanquantile(size, 0.5))
    unseen = sources.site_test(frame)
    train, large = frame[(size < edge) & ~unseen], frame[unseen & ((size > SIZE_STEP * edge) | (size < edge))]
    return [Parts(sources.sample(train, limits["train"]), sources.sample(large, limits["test"]), class_of=GEMM_CLASS)]


def _harness(limits: Limits) -> list[Parts]:
    """Our own matrix products for training, the same products timed by somebody else's harness for the test."""
    import pandas as pd

    own = pd.concat([sources.own("h200"), sources.own("h200-more")], ignore_index=True)
    other = sources.nvidia("h200", "gemm")
    own, other = own[own["kernel"] == "gemm"], other[other["precision"] == "bf16"]
    return [Parts(sources.sample(own, limits["train"]), sources.sample(other, limits["test"]), class_of=GEMM_CLASS)]


_SITE = "test: sites (n, k) whose sha1 is divisible by 5, no such site in training"
_HEADS = "test: sites (heads, kv heads, head size) whose sha1 is divisible by 5, no such site in training"
CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case("own-h200", "H200, our own corpus: unseen groups, all families",
             "test: 20 % of the groups (problem instances, both cache states together) of configs/runs/h200.parquet by "
             "hash; training: its other groups and those of h200-more.parquet, no group on both sides", _own),
        Case("own-h200-bfs", "H200, breadth-first search: unseen graphs",
             "20 % of the graphs held out by hash; level count and degrees of a graph are known", _own_family("bfs")),
        Case("unsaid-h200", "H200, sparse, graph and gather kernels: unseen groups, asked with fewer statistics",
             "the split of own-h200, these families alone; every test row is asked three times: as it is, without the "
             "label that says how its input was made and what goes with it, and with the sizes alone. Bands of rows "
             "without the label are made of whole kinds of inputs left out in turn: of kinds they know, as here, they "
             "cover more", _unsaid),
        Case("kinds-h200", "H200, sparse products and graph searches: kinds of matrices and graphs never seen",
             "training: seven kinds of matrices and five of graphs (uniform, banded, block, grid, ...); test: 7 and "
             "3 others (R-MAT, arrow, two row lengths, dense rows, permuted, hypersparse, geometric, hubs, ...), "
             "measured in another lease and asked once", _kinds),
        Case("gemm-b200", "B200 GEMM: unseen sites, all precisions and software stacks", _SITE, _sites("b200", "gemm")),
        Case("gemm-h200", "H200 GEMM: unseen sites", _SITE, _sites("h200", "gemm")),
        Case("gemm-h100", "H100 GEMM: unseen sites", _SITE, _sites("h100-sxm", "gemm")),
        Case("gemm-a100", "A100 GEMM: unseen sites", _SITE, _sites("a100-sxm", "gemm")),
        Case("attention-h200", "H200 attention: unseen sites", _HEADS, _sites("h200", "attention")),
        Case("attention-b200", "B200 attention: unseen sites", _HEADS, _sites("b200", "attention")),
        Case("gemm-mi300x", "MI300X GEMM: unseen (N, K)", f"{FOLDS} folds over the (N, K) by hash, test rows pooled",
             _mi300x),
        Case("spmv-mi250x", "MI250X SpMV CSR: unseen SuiteSparse collections",
             f"{FOLDS} folds over the collections by hash, test rows pooled; a collection lies on one side", _spmv),
        Case("mi300a-5", "MI300A, each family from 5 of its own runs",
             "5 rows a family, spread evenly over its sizes, train; all others test", _mi300a(5)),
        Case("mi300a-8", "MI300A, each family from 8 of its own runs",
             "8 rows a family, spread evenly over its sizes, train; all others test", _mi300a(8)),
        Case("harness-h200", "H200 GEMM bf16: another harness, card, driver and software stack",
             "training: our own runs of cuBLAS; test: public runs of three stacks, none of them in training", _harness),
        Case("extrapolation-h200", "H200 GEMM: trained on small products, asked for large ones",
             f"training: naive roofline below its median, no test site; test: unseen sites, below that median or more "
             f"than {SIZE_STEP:g} times above it", _extrapolation),
    )
}
