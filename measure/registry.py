"""Every (family, implementation) that can be measured."""

from __future__ import annotations

from . import cases_apps, cases_dense, cases_graph, cases_grid, cases_sparse, cases_vector
from .case import Builder

BUILDERS: dict[tuple[str, str], Builder] = {
    **cases_dense.BUILDERS,
    **cases_vector.BUILDERS,
    **cases_sparse.BUILDERS,
    **cases_graph.BUILDERS,
    **cases_grid.BUILDERS,
    **cases_apps.BUILDERS,
}
