"""What a model is stamped with when it is trained: when, by which version, on which runs and platform parameters."""

from __future__ import annotations

import datetime
import hashlib
from typing import TYPE_CHECKING

from ..analytic.platform import Platform

if TYPE_CHECKING:
    import pandas as pd

    from ..training.hybrid.meta import Meta


def parameters_digest(platform: Platform) -> str:
    """Fingerprint of a platform's parameter values: a model belongs to the baseline that they give."""
    values = sorted((p.name, p.value) for p in platform.parameters.values())
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]


def stamp(runs: str) -> Meta:
    """When (UTC), by which version of kernelcast, and where the runs came from."""
    from .. import __version__

    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    return {"trained": now.isoformat(), "runs": runs, "kernelcast": __version__}


def origin(frame: pd.DataFrame, platform: Platform, runs: str) -> Meta:
    """`stamp`, and fingerprints of the runs and of the platform's parameters, of a model of one platform."""
    from ..training.tables.schema import runs_digest

    return {**stamp(runs), "runs_digest": runs_digest(frame), "parameters_digest": parameters_digest(platform)}
