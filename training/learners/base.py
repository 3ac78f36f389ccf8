"""What every learner of a residual is: fitted to a feature matrix, asked for one number a row, stored as plain data.

A learner is a dataclass of arrays, numbers, other learners and boosters, which is all that `registry.codec` writes: it
has no method for that. `trees`, `process`, `network` and `residual.Blend` keep this; `residual.FITS` lists how each is
fitted.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Learner(Protocol):
    """Something fitted to the residual of one family."""

    def predict(self, x: Floats) -> Floats:
        """Residual (n,), log(measured ÷ calibrated baseline), of feature rows x (n, columns); NaN where unknown."""
        ...


class Fit(Protocol):
    """How a learner comes about; deterministic for a seed."""

    def __call__(self, x: Floats, y: Floats, same: NDArray[Any] | None, seed: int) -> Learner | None:
        """Fit features x (n, columns) to residuals y (n,); None where x tells nothing (no column varies).

        same: labels (n,) of rows of one configuration, or None where every row is one of its own.
        """
        ...
