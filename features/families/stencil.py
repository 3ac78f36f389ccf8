"""Stencils with a thread a cell: padding at the edges of the blocks, the last wave of them."""

from __future__ import annotations

from ..grid import grid_blocks

COLUMNS = {
    "stencil_5pt": grid_blocks("width", "height", 32.0, 8.0), "stencil2d": grid_blocks("cols", "rows", 64.0, 16.0),
    "stencil_7pt": grid_blocks("nx", "ny", 32.0, 8.0, "nz"), "hotspot": grid_blocks("cols", "rows", 16.0, 16.0),
    "srad": grid_blocks("cols", "rows", 16.0, 16.0),
}
