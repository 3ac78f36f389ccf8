"""What a model asks of a family, however that was learned: from its own runs, or adapted from other platforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ...features.describe import Group
    from .domain import Domain
    from .encode import Encoder
    from .family import Part

Floats = NDArray[np.float64]


class LearnedFamily(Protocol):
    """Learned state of one family on one platform; `FamilyModel` and `AdaptedFamily` keep it.

    A prediction is calibrated_s · exp(correction) inside the domain and fades to beyond_s outside of it.
    """

    family: str
    encoder: Encoder
    """Columns it was learned from, in order."""
    domain: Domain
    reference: dict[str, str]
    """Implementation that is meant where none is given, by precision, over all precisions under ''."""
    rows: int
    """Training rows."""
    note: str
    """What is to be said of every prediction; empty where nothing is."""

    @property
    def ambiguous(self) -> bool:
        """Whether a row without an implementation may be any of several."""
        ...

    def unsaid(self, group: Group) -> list[tuple[NDArray[np.bool_], str]]:
        """(rows (n,), what to say of them) for every statistic that it was learned with and rows leave out."""
        ...

    def calibrated_s(self, part: Part) -> Floats:
        """Calibrated analytic time [s] of n rows, shape (n,)."""
        ...

    def beyond_s(self, part: Part) -> Floats:
        """What is left to believe far outside the training range [s], shape (n,)."""
        ...

    def log_correction(self, part: Part) -> tuple[Floats, Floats]:
        """(log of predicted ÷ calibrated, disagreement of the members), each of shape (n,)."""
        ...
