"""Feature columns of a family beyond its sizes. A file of this folder with COLUMNS is found without being listed.

COLUMNS = {family: function}: the function takes the family's arguments, its baseline, bytes an element and the
platform, and gives named columns of shape (n,), often how known kernels cut their work into blocks, rounds and passes.
The rules are those of widely used kernels (PyTorch, cuDNN, cuFFT, FlashAttention 2, plain CUDA); another library cuts
differently, but at sizes that the same numbers describe. Stored models hang on names and order of the columns.
UNSTEADY = {family: beginnings of column names}: platforms left out in turn were predicted better without these.
"""

from __future__ import annotations

from ...analytic.errors import InputError
from ...analytic.found import found_in
from ..grid import ColumnsOf

COLUMNS: dict[str, ColumnsOf] = {}
UNSTEADY: dict[str, tuple[str, ...]] = {}


def find() -> None:
    """Read every module on this package's path into the tables; again after the path was extended."""
    for module in found_in(__name__, __path__):
        for name, columns in module.COLUMNS.items():
            if COLUMNS.setdefault(name, columns) is not columns:
                raise InputError(f"{name!r} has feature columns twice: {module.__file__} is the second")
        UNSTEADY.update(getattr(module, "UNSTEADY", {}))


find()
