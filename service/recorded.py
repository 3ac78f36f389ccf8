"""Which platform parameters a baseline looked up: recorded, not declared, so that the list cannot go stale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..analytic.overrides import OVERRIDE
from ..analytic.platform import Parameter, Platform


class Recorder(dict[str, Parameter]):
    """A platform's parameters that remember which of them were read."""

    def __init__(self, parameters: Iterable[tuple[str, Parameter]]) -> None:
        super().__init__(parameters)
        self.read: dict[str, None] = {}

    def __getitem__(self, name: str) -> Parameter:
        self.read[name] = None
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        if name in self:
            self.read[name] = None
        return super().get(name, default)


def recording(platform: Platform) -> tuple[Platform, Recorder]:
    """A copy of `platform` that records what is read from it."""
    recorder = Recorder(platform.parameters.items())
    return replace(platform, parameters=recorder), recorder


def used_parameters(platform: Platform, names: Iterable[str]) -> list[dict[str, Any]]:
    """The named parameters with value, unit, kind, source, date and note; those without a value are left out."""
    rows = (platform.parameters[name] for name in names)
    return [
        {"name": p.name, "value": p.value, "unit": p.unit, "kind": p.kind, "source": p.source, "date": p.date,
         "note": p.note}
        for p in rows if p.value is not None
    ]


def changed_parameters(platform: Platform, used: Iterable[str]) -> list[dict[str, Any]]:
    """Parameters of an overridden platform that are not its own: value, unit, why, what they were, and whether a time
    rests on them (`used` names those it looked up)."""
    looked_up = set(used)
    return [
        {"name": p.name, "value": p.value, "unit": p.unit, "source": p.source, "note": p.note,
         "used": p.name in looked_up}
        for p in platform.parameters.values() if p.kind == OVERRIDE
    ]
