"""Sparse matrix families: products by format, triangular solve, unstructured-mesh gather–scatter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..work import INDEX_BYTE, SECTOR_BYTE, Arguments, Contradiction, Family, FloatArray, Param, Work, make_work

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
        )

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
    )


def _sptrsv(a: Arguments, byte: float) -> Work:
    levels = np.where(np.isnan(a["levels"]), np.sqrt(a["rows"]), a["levels"])
    x, again = vector_traffic(a, byte)
    # rows of one level are independent; the levels follow each other
    return make_work(
        2.0 * a["nnz"], _csr(a, byte) + x, a["rows"] * byte, threads=np.maximum(a["rows"] / levels, 1.0),
        launches=np.where(np.isnan(a["launches"]), levels, a["launches"]), reread_byte=again, chain=2.0 * levels,
    )


def _mesh(a: Arguments, byte: float) -> Work:
    zones, points, corners = a["zones"], a["points"], a["corners"]
    # zone values scattered to points through corner lists, then gathered back
    index = 2.0 * corners * INDEX_BYTE
    return make_work(
        4.0 * corners, index + (zones + points) * 2.0 * byte, (zones + points) * byte, threads=zones,
        reread_byte=2.0 * corners * SECTOR_BYTE / 2.0, launches=2.0, chain=8.0,
    )


def _corners(a: dict[str, NDArray[Any]]) -> None:
    """A mesh of quadrilaterals: nx·ny zones, as many points, four corners a zone, where nothing else is said."""
    zones = np.where(np.isnan(a["zones"]), a["nx"] * a["ny"], a["zones"])
    for name, value in (("zones", zones), ("points", zones), ("corners", 4.0 * zones)):
        a[name] = np.where(np.isnan(a[name]), value, a[name])


MATRIX_KINDS = (
    "uniform", "powerlaw", "banded", "near_diagonal", "block", "poisson2d", "poisson3d", "rmat", "clustered", "arrow",
    "two_lengths", "dense_rows", "permuted", "hypersparse", "levels",
)


def _row_length(name: str, meaning: str, follows: str = "") -> Param:
    return Param(name, "real", required=False, meaning=f"{meaning} of entries in a row", unit="entries",
                 follows=follows)


MATRIX = (
    Param("rows", meaning="rows of the matrix", unit="rows"),
    Param("cols", meaning="columns of the matrix", unit="columns", follows="rows"),
    Param("nnz", meaning="stored entries of the matrix", unit="entries"),
    _row_length("row_mean", "mean number", "nnz / rows"), _row_length("row_std", "standard deviation of the number"),
    _row_length("row_max", "largest number"), _row_length("row_min", "smallest number"),
    _row_length("row_q1", "first quartile of the number"), _row_length("row_median", "median number"),
    _row_length("row_q3", "third quartile of the number"),
    Param("mean_col_distance", "real", required=False, meaning="mean distance of an entry from the diagonal",
          unit="columns"),
    Param("structure", "text", required=False, meaning="what kind of matrix it is", words=MATRIX_KINDS, open=True),
)

ROUNDING = 1.0 + 1e-6
"""Tables hold means with some six digits."""


def _cols(c: Arguments) -> NDArray[Any]:
    return np.where(np.isnan(c["cols"]), c["rows"], c["cols"])


IMPOSSIBLE = (
    Contradiction("'nnz' is more than rows x cols", lambda c: c["nnz"] > c["rows"] * _cols(c)),
    Contradiction("'row_max' is more than cols", lambda c: c["row_max"] > _cols(c)),
    Contradiction("'row_max' is less than nnz / rows", lambda c: c["row_max"] * c["rows"] * ROUNDING < c["nnz"]),
    Contradiction("'row_mean' is more than row_max", lambda c: c["row_mean"] > c["row_max"] * ROUNDING),
    Contradiction("'row_min' is more than row_mean", lambda c: c["row_min"] > c["row_mean"] * ROUNDING),
)
_MADE = ("structure", "mean_col_distance", "row_min", "row_q1", "row_median", "row_q3")
_SPREAD = (*_MADE, "row_std", "row_max")
LIBRARY = {"nvidia": "cusparse", "amd": "rocsparse"}
EXAMPLE: dict[str, Any] = {"rows": 1_000_000, "cols": 1_000_000, "nnz": 16_000_000, "row_std": 4.0, "row_max": 36,
                           "structure": "uniform"}


def _product_of(name: str, params: tuple[Param, ...], work: Callable[..., Work], meaning: str, **more: Any) -> Family:
    return Family(name, params, work, "irregular", meaning=meaning, derive=_fill_row_statistics, reference=LIBRARY,
                  contradictions=IMPOSSIBLE, statistics=("row_std", "row_max", "structure"),
                  asked_without=(_MADE, _SPREAD), **more)


def _spmv(name: str, stored: Callable[[Arguments, float], FloatArray], meaning: str, by_row: bool = True,
          **changed: Any) -> Family:
    return _product_of(name, MATRIX, _product(stored, by_row), meaning, precision="fp64", example=EXAMPLE | changed)


FAMILIES: tuple[Family, ...] = (
    _spmv("spmv_csr", _csr, "y = A·x, compressed rows"),
    _spmv("spmv_coo", _coo, "y = A·x, coordinate list", by_row=False),
    _spmv("spmv_ell", _ell, "y = A·x, rows padded to the longest"),
    _spmv("spmv_sellp", _sellp, "y = A·x, slices padded to their longest row"),
    _spmv("spmv_hybrid", _hybrid, "y = A·x, padded part plus coordinate list"),
    _product_of("spmm_csr", (Param("cols_dense", meaning="columns of X and Y", unit="columns"), *MATRIX), _spmm,
                "Y = A·X with cols_dense columns", precision="fp32",
                example=EXAMPLE | {"rows": 100_000, "cols": 100_000, "nnz": 1_600_000, "cols_dense": 32}),
    Family("sptrsv", (*MATRIX, Param("levels", required=False, meaning="sets of rows that wait for each other",
                                     unit="levels", follows="√rows"),
                      Param("launches", required=False, meaning="kernels started", unit="launches",
                            follows="levels")),
           _sptrsv, "irregular", meaning="triangular solve by levels", precision="fp64", derive=_fill_row_statistics,
           contradictions=IMPOSSIBLE,
           statistics=("row_std", "row_max", "structure", "levels", "row_median", "row_q3", "mean_col_distance"),
           asked_without=(_MADE, (*_SPREAD, "levels")),
           example={"rows": 100_000, "cols": 100_000, "nnz": 380_000, "levels": 20, "row_std": 0.87, "row_max": 4,
                    "row_min": 0, "row_q1": 4, "row_median": 4, "row_q3": 4, "mean_col_distance": 25_000.0,
                    "structure": "levels"}),
    Family("mesh_gather_scatter",
           (Param("zones", meaning="zones of the mesh", unit="zones", follows="nx·ny"),
            Param("points", meaning="corner points of the mesh", unit="points", follows="zones"),
            Param("corners", meaning="corners of all zones", unit="corners", follows="4·zones"),
            Param("nx", required=False, meaning="zones across", unit="zones"),
            Param("ny", required=False, meaning="zones down", unit="zones"),
            Param("order", "text", required=False, meaning="numbering of the points", words=("natural", "random"))),
           _mesh, "irregular", meaning="unstructured-mesh corner sums, as in hydrodynamics codes", precision="fp64",
           derive=_corners, statistics=("order",), asked_without=(("order",),),
           example={"nx": 1000, "ny": 1000, "order": "natural"}),
)
