"""`explain` and `crossover` from Python, of a kernel or of an application, as the commands take either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..analytic.errors import InputError
from ..analytic.families import family as find_family
from ..analytic.platform import Platform
from ..analytic.workload import Workload, load_workload
from .answer import answered
from .crossover import Crossover, candidates_of, crossover_of, range_of
from .crossover_application import application_crossover, field_of
from .explain import explanation
from .explain_application import explain_application
from .names import is_application


def explain(family: str | Workload, *, platform: str | Platform, **question: Any) -> dict[str, Any]:
    """Why a kernel, or an application, takes the time it is predicted to take on a platform: a JSON-safe dictionary.

    family, question: as `predict` takes them; of an application (a shipped name, a file or a Workload) as
    `predict_workload` does. The dictionary is the prediction's with `steps` (words, seconds, equation), `binding` and
    `to_move` (what binds, what would have to change), `bound_words`, `shares` of the terms, `hybrid_factor` and
    `residual_factor` (predicted over analytic and over calibrated time) and `sensitivity` (relative change of the
    analytic time with a platform parameter a tenth higher). Times in seconds. Raises InputError for bad input,
    RefusedError where no honest prediction is possible.
    """
    if isinstance(family, str) and not is_application(family):
        return explanation(answered(family, platform=platform, **question))
    return explain_application(family, platform=platform, **question)


def crossover(
    family: str | Workload,
    *,
    platforms: Sequence[str],
    sweep: Mapping[str, tuple[float, float]],
    variant: Mapping[str, Any] | None = None,
    level: float = 0.9,
    cache: str = "warm",
    model: str | None = None,
    analytic: bool = False,
    overrides: Mapping[str, str | float] | None = None,
    **given: Any,
) -> Crossover:
    """The sizes at which one of two platforms, or of two variants of a kernel on one, overtakes the other.

    family: a kernel family, or an application (a shipped name, a file or a Workload). sweep: parameter, of an
    application `segment.field`, → (low, high) in SI units; several are swept together, in equal steps of their
    logarithms. platforms: two, or one with a variant. variant: what the second one changes, {"precision": "fp8"} or
    {"kernel": …}. given: the other parameters, precision, implementation. The rest as `predict` takes it. Raises
    InputError for other than two candidates, nothing to sweep, or bad input.
    """
    if isinstance(family, str) and not is_application(family):
        whole = {param.name: param.kind == "size" for param in find_family(family).params}
        ranges = [range_of(name, *ends, whole=whole.get(name, True)) for name, ends in sweep.items()]
        found = candidates_of(family, given, list(dict.fromkeys(platforms)), variant or {}, cache)
        return crossover_of(found, ranges, level=level, model=model, analytic=analytic, overrides=overrides)
    if given or variant:
        raise InputError("an application takes its sizes from its file and is compared on two platforms: no parameter "
                         f"{next(iter([*given, *(variant or {})]))!r} and no variant")
    loaded = load_workload(family) if isinstance(family, str) else family
    ranges = [range_of(name, *ends, whole=field_of(loaded, name)[1]) for name, ends in sweep.items()]
    return application_crossover(loaded, list(dict.fromkeys(platforms)), ranges, level=level, cache=cache, model=model,
                                 analytic=analytic, overrides=overrides)
