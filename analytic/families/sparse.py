"""Sparse matrix families: products by format, triangular solve, PageRank, unstructured-mesh gather–scatter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..work import INDEX_BYTE, SECTOR_BYTE, Arguments, Family, FloatArray, Param, Work, make_work

ROW_STATISTICS = tuple(
    Param(name, "real", required=False)
    for name in ("row_mean", "row_std", "row_max", "row_min", "row_q1", "row_median", "row_q3", "mean_col_distance")
)
MATRIX = (Param("rows"), Param("cols"), Param("nnz"), *ROW_STATISTICS, Param("structure", "text", required=False))


UNKNOWN_LONGEST = 8.0


def _fill_row_statistics(a: dict[str, NDArray[Any]]) -> None:
    """The mean follows from nnz and rows; an unknown longest row is taken as the mean plus three deviations."""
    hole = np.isnan(a["cols"])
    a["cols"][hole] = a["rows"][hole]
    mean = a["nnz"] / a["rows"]
    a["row_mean"] = np.where(np.isnan(a["row_mean"]), mean, a["row_mean"])
    a["row_std"] = np.where(np.isnan(a["row_std"]), 0.0, a["row_std"])
    # the wait for the longest row is only counted where that row is known: a mean says nothing of it
    a["known_longest"] = np.where(np.isnan(a["row_max"]), UNKNOWN_LONGEST, a["row_max"])
    longest = a["row_mean"] + 3.0 * a["row_std"]
    a["row_max"] = np.where(np.isnan(a["row_max"]), longest, a["row_max"])


def vector_traffic(a: Arguments, byte: float) -> tuple[FloatArray, FloatArray]:
    """(compulsory, re-read) bytes of x in y = A·x.

    Each entry needs one element of x. Entries next to each other in a column share a sector; the further apart they
    lie on average (`mean_col_distance` against the sector) the more sectors a product brings from the cache.
    """
    compulsory = np.minimum(a["nnz"], a["cols"]) * byte
    distance = a["mean_col_distance"]
    spread = np.clip(np.where(np.isnan(distance), a["cols"] / 4.0, distance) * byte / SECTOR_BYTE, 1.0 / 8.0, 1.0)
    return compulsory, np.maximum(a["nnz"] * SECTOR_BYTE * spread / 2.0 - compulsory, 0.0)


def _product(stored: Callable[[Arguments, float], FloatArray], per_row_thread: bool = True) -> Callable[..., Work]:
    """y = A·x where `stored` gives the bytes of the matrix in its format."""

    def work(a: Arguments, byte: float) -> Work:
        x, again = vector_traffic(a, byte)
        matrix = stored(a, byte)
        rows = a["rows"]
        return make_work(
            2.0 * a["nnz"], matrix + x, rows * byte, threads=rows if per_row_thread else a["nnz"],
            working_set_byte=matrix + x + rows * byte, reread_byte=again,
            chain=np.minimum(a["known_longest"], 64.0 + a["known_longest"] / 32.0),
        )  # fmt: skip

    return work


def _csr(a: Arguments, byte: float) -> FloatArray:
    return np.asarray(a["nnz"] * (byte + INDEX_BYTE) + (a["rows"] + 1.0) * INDEX_BYTE)


def _coo(a: Arguments, byte: float) -> FloatArray:
    return np.asarray(a["nnz"] * (byte + 2.0 * INDEX_BYTE))


def _ell(a: Arguments, byte: float) -> FloatArray:
    # every row is padded to the longest
    return np.asarray(np.maximum(a["rows"] * a["row_max"], a["nnz"]) * (byte + INDEX_BYTE))


def _sellp(a: Arguments, byte: float) -> FloatArray:
    # slices of 64 rows are padded to the longest row of the slice: between the mean and about two deviations above
    width = np.minimum(a["row_max"], a["row_mean"] + 2.0 * a["row_std"])
    return np.asarray(np.maximum(a["rows"] * width, a["nnz"]) * (byte + INDEX_BYTE) + a["rows"] / 64.0 * INDEX_BYTE)


def _hybrid(a: Arguments, byte: float) -> FloatArray:
    return np.asarray(a["nnz"] * (byte + 1.5 * INDEX_BYTE) + a["rows"] * INDEX_BYTE)


def _spmm(a: Arguments, byte: float) -> Work:
    dense = a["cols_dense"]
    rows, nnz = a["rows"], a["nnz"]
    x = np.minimum(nnz, a["cols"]) * dense * byte
    return make_work(
        2.0 * nnz * dense, _csr(a, byte) + x, rows * dense * byte, threads=rows * dense,
        reread_byte=np.maximum(nnz * dense * byte - x, 0.0),
        chain=a["known_longest"] / 8.0 * np.ceil(dense / 32.0) + 2.0,
    )  # fmt: skip


def _sptrsv(a: Arguments, byte: float) -> Work:
    levels = np.where(np.isnan(a["levels"]), np.sqrt(a["rows"]), a["levels"])
    x, again = vector_traffic(a, byte)
    # rows of one level are independent; the levels follow each other
    return make_work(
        2.0 * a["nnz"], _csr(a, byte) + x, a["rows"] * byte, threads=np.maximum(a["rows"] / levels, 1.0),
        launches=np.where(np.isnan(a["launches"]), levels, a["launches"]), reread_byte=again, chain=2.0 * levels,
    )  # fmt: skip


def _pagerank(a: Arguments, byte: float) -> Work:
    nodes, edges, steps = a["nodes"], a["edges"], a["iterations"]
    one = edges * (INDEX_BYTE + SECTOR_BYTE / 2.0) + nodes * (INDEX_BYTE + 3.0 * byte)
    compulsory = edges * INDEX_BYTE + nodes * (INDEX_BYTE + 2.0 * byte)
    return make_work(
        (2.0 * edges + 3.0 * nodes) * steps, compulsory, nodes * byte, threads=nodes, launches=2.0 * steps,
        working_set_byte=compulsory, reread_byte=np.maximum(one * steps - compulsory - nodes * byte, 0.0),
        chain=2.0 * steps,
    )  # fmt: skip


def _mesh(a: Arguments, byte: float) -> Work:
    zones, points, corners = a["zones"], a["points"], a["corners"]
    # zone values scattered to points through corner lists, then gathered back
    index = 2.0 * corners * INDEX_BYTE
    return make_work(
        4.0 * corners, index + (zones + points) * 2.0 * byte, (zones + points) * byte, threads=zones,
        reread_byte=2.0 * corners * SECTOR_BYTE / 2.0, launches=2.0, chain=8.0,
    )  # fmt: skip


def _corners(a: dict[str, NDArray[Any]]) -> None:
    """A mesh of quadrilaterals: nx·ny zones, as many points, four corners a zone, where nothing else is said."""
    zones = np.where(np.isnan(a["zones"]), a["nx"] * a["ny"], a["zones"])
    for name, value in (("zones", zones), ("points", zones), ("corners", 4.0 * zones)):
        a[name] = np.where(np.isnan(a[name]), value, a[name])


DEGREES = (
    *(Param(name, "real", required=False) for name in ("avg_degree", "max_degree", "std_degree")),
    Param("structure", "text", required=False),
)


def fill_degrees(a: dict[str, NDArray[Any]]) -> None:
    """The average degree follows from edges and nodes."""
    a["avg_degree"] = np.where(np.isnan(a["avg_degree"]), a["edges"] / a["nodes"], a["avg_degree"])


LIBRARY = {"nvidia": "cusparse", "amd": "rocsparse"}


def _spmv(name: str, stored: Callable[[Arguments, float], FloatArray], meaning: str, by_row: bool = True) -> Family:
    return Family(name, MATRIX, _product(stored, by_row), "irregular", meaning=meaning, precision="fp64",
                  derive=_fill_row_statistics, reference=LIBRARY)  # fmt: skip


FAMILIES: tuple[Family, ...] = (
    _spmv("spmv_csr", _csr, "y = A·x, compressed rows"),
    _spmv("spmv_coo", _coo, "y = A·x, coordinate list", by_row=False),
    _spmv("spmv_ell", _ell, "y = A·x, rows padded to the longest"),
    _spmv("spmv_sellp", _sellp, "y = A·x, slices padded to their longest row"),
    _spmv("spmv_hybrid", _hybrid, "y = A·x, padded part plus coordinate list"),
    Family("spmm_csr", (Param("cols_dense"), *MATRIX), _spmm, "irregular",
           meaning="Y = A·X with cols_dense columns", precision="fp32", derive=_fill_row_statistics,
           reference=LIBRARY),
    Family("sptrsv", (*MATRIX, Param("levels", required=False), Param("launches", required=False)), _sptrsv,
           "irregular", meaning="triangular solve by levels", precision="fp64", derive=_fill_row_statistics),
    Family("pagerank", (Param("nodes"), Param("edges"), Param("iterations", required=False, default=1.0), *DEGREES),
           _pagerank, "irregular", meaning="power iteration on a graph", derive=fill_degrees),
    Family("mesh_gather_scatter",
           (Param("zones"), Param("points"), Param("corners"), Param("nx", required=False), Param("ny", required=False),
            Param("order", "text", required=False)),
           _mesh, "irregular", meaning="unstructured-mesh corner sums, as in hydrodynamics codes", precision="fp64",
           derive=_corners),
)  # fmt: skip
