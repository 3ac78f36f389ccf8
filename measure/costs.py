"""What measuring costs: the rough size of a configuration, to spread and order sizes, and seconds of a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.families import family as known_family
from ..analytic.work import arguments
from .families import measured

# Seconds of the first check of a kind (building its kernels included) and of a configuration, from the two runs of this
# suite on fresh machines with an H200: 30,433 configurations of 155 kinds took 363.4 s, 600 of 139 kinds 24.4 s.
KIND_S, CONFIG_S = 0.127, 0.0113
COST_BYTE = 4.0  # a value, whatever the precision


def efforts(family: str, options: Sequence[Mapping[str, Any]]) -> NDArray[np.float64]:
    """Sizes of configurations of one family, shape (n,): the larger of bytes and a tenth of the operations.

    options: n sets of drawn parameters with the same names. Raises InputError for a family that is not measured."""
    cost = measured(family).cost
    if cost is not None:
        flop, byte = np.array([cost(p) for p in options], dtype=np.float64).T
    else:
        record = known_family(family)
        columns = {name: [p[name] for p in options] for name in options[0]}
        work = record.work(arguments(record, columns), COST_BYTE)
        flop, byte = work.flop, work.compulsory_byte
    return np.asarray(np.maximum(byte, flop / 10.0), dtype=np.float64)


def effort(family: str, params: Mapping[str, Any]) -> float:
    """Size of one configuration."""
    return float(efforts(family, [params])[0])


def planned_s(kinds: int, configurations: int) -> float:
    """About how long a suite takes [s] on an H200 with nothing built yet: its kinds' checks and its configurations."""
    return KIND_S * kinds + CONFIG_S * configurations
