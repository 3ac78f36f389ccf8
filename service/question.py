"""A question put by a person: family, parameters, precision, cache, implementation: checked, and then described."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analytic.baseline import CACHE_STATES, arithmetic_precision
from ..analytic.errors import InputError, RefusedError, nearest_names
from ..analytic.families import FAMILIES
from ..analytic.platform import Platform
from ..analytic.rules import contradictions, faults, spelt
from ..analytic.work import Family, Param, element_byte, stated, usage
from ..features.counted import SEGMENT
from ..training.hybrid.notes import Note
from .recorded import recording

if TYPE_CHECKING:
    from ..features.describe import Described

COUNTED = ("flops", "bytes")
"""What a kernel of no known family is predicted from."""


@dataclass(frozen=True)
class Question:
    """One checked configuration. `known` is False for a kernel of no known family, predicted from its counts."""

    kernel: str
    family: Family
    params: dict[str, Any]
    precision: str
    cache: str
    implementation: str
    known: bool
    notes: tuple[Note, ...]

    def described(self, platform: Platform) -> tuple[Described, tuple[str, ...]]:
        """Baseline and features on a platform, and the names of the platform parameters that were read for it."""
        from ..features.describe import Described, group_of

        watched, recorder = recording(platform)
        raw = {name: np.atleast_1d(_cell(value)) for name, value in self.params.items()}
        label = np.array([self.implementation], dtype=object)
        with np.errstate(over="ignore", invalid="ignore"):
            group = group_of(platform, self.family, self.kernel, self.precision, self.cache, np.arange(1), raw, label,
                             watched=watched)
        base, work = group.baseline, group.baseline.work
        watched.peak_flop_per_s(arithmetic_precision(self.precision), work.unit)
        used = tuple(recorder.read)
        if not np.isfinite([work.flop[0], work.compulsory_byte[0], work.working_set_byte[0]]).all():
            raise InputError(f"{self.kernel}: the sizes are too large: work or bytes exceed what a number can hold")
        if not np.isfinite(base.time_s).all():
            raise InputError(f"{self.kernel}: the sizes are too large for a time that a number can hold")
        described = Described(base.time_s, base.naive_s, base.bound.seconds, np.array([base.route], dtype=object),
                              base.guard, (group,), {})
        return described, used


def _cell(value: Any) -> Any:
    """A list as one entry of an object array; anything else as it is."""
    if not isinstance(value, list):
        return value
    cell = np.empty(1, dtype=object)
    cell[0] = value
    return cell


def _family(name: str, params: Mapping[str, Any]) -> tuple[Family, bool]:
    """(family, whether it is known). An unknown name with counted bytes is a segment; without, InputError."""
    if name in FAMILIES:
        return FAMILIES[name], True
    if "bytes" in params:
        return FAMILIES[SEGMENT], False
    raise InputError(f"unknown kernel family {name!r}{nearest_names(name, FAMILIES)}; a kernel of another kind can be "
                     "predicted from its counted work: flops=… bytes=…")


def _number(param: Param, value: Any, kernel: str) -> Any:
    """A size or real as int or float. InputError where it is no single finite number."""
    if param.kind == "flag" and isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        want = "true or false" if param.kind == "flag" else "a number"
        raise InputError(f"{kernel}: parameter {param.name!r} must be {want}, not {value!r}")
    number = float(value)
    if not math.isfinite(number):
        raise InputError(f"{kernel}: parameter {param.name!r} is {number}; it must be a finite number")
    return int(number) if number == int(number) and abs(number) < 2**53 else number


def _checked(family: Family, params: Mapping[str, Any], kernel: str) -> dict[str, Any]:
    known = {param.name: param for param in family.params}
    out: dict[str, Any] = {}
    for name, value in params.items():
        if name not in known:
            raise InputError(f"{kernel}: unknown parameter {name!r}{nearest_names(name, known)}; {usage(family)}")
        param = known[name]
        if param.kind == "text":
            out[name] = str(spelt(param, np.array([str(value)], dtype=object))[0])
        elif param.kind == "list":
            out[name] = list(value) if isinstance(value, list | tuple | np.ndarray) else [value]
        else:
            out[name] = _number(param, value, kernel)
    return out


def _refuse_faults(family: Family, params: Mapping[str, Any], kernel: str) -> None:
    """InputError for values that are none of their parameters, or that cannot hold together."""
    columns, _ = stated(family, {name: np.atleast_1d(_cell(value)) for name, value in params.items()}, 1)
    for fault in faults(family, columns, whole=True, complete=False):
        raise InputError(f"{kernel}: {fault.of(columns[fault.name])}")
    said = contradictions(family, columns)[0]
    if said:
        raise InputError(f"{kernel}: {said}")


def ask(family: str, params: Mapping[str, Any], precision: str | None, cache: str, implementation: str | None
        ) -> Question:
    """Check a configuration. InputError for what is wrong with it; RefusedError for a kernel without counts."""
    for what, word in (("kernel family", family), ("precision", precision), ("implementation", implementation)):
        if not isinstance(word, str) and (word is not None or what == "kernel family"):
            raise InputError(f"the {what} is a name, not {word!r:.60}")
    found, known = _family(family, params)
    if cache not in CACHE_STATES:
        raise InputError(f"cache is {cache!r}; it must be one of {', '.join(CACHE_STATES)}")
    checked = _checked(found, params, family)
    _refuse_faults(found, checked, family)
    if found.name == SEGMENT and "bytes" not in checked:
        raise RefusedError(f"{family}: a segment is predicted from what was counted, and no bytes are given; "
                           "add bytes=… (device memory, read + written) and flops=…")
    notes = []
    if not known:
        notes.append(Note("family_unknown", f"kernel family {family!r} is not known: predicted from its counted FLOP "
                          "and bytes", outside=True))
    if found.name == SEGMENT and "flops" not in checked:
        notes.append(Note("flops_not_given", "no flops given: taken as 0"))
    chosen = precision or found.precision
    element_byte(chosen)  # an unknown name is refused here, before any platform is asked
    if precision is None:
        notes.append(Note("precision_assumed", f"precision not given: {chosen} assumed"))
    return Question(family, found, checked, chosen, cache, implementation or "", known, tuple(notes))
