"""Every (family, implementation) that can be measured."""

from __future__ import annotations

from . import cases_dense, cases_grid, cases_sparse, cases_vector
from .case import Builder

BUILDERS: dict[tuple[str, str], Builder] = {
    **cases_dense.BUILDERS,
    **cases_vector.BUILDERS,
    **cases_sparse.BUILDERS,
    **cases_grid.BUILDERS,
}
