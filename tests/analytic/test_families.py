"""Every family is one whole record: what each lacks is said by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernelcast.analytic import families as package
from kernelcast.analytic.baseline import baseline
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.families import FAMILIES
from kernelcast.analytic.platform import load_platform
from kernelcast.analytic.rules import contradictions
from kernelcast.analytic.work import Family, Param, stated
from kernelcast.features.families import COLUMNS, UNSTEADY


def lacks_of(param: Param) -> list[str]:
    """What the record of a parameter lacks or says wrongly."""
    out = []
    if len(param.meaning) < 5:
        out.append("meaning")
    if (param.kind in ("size", "real", "list")) != bool(param.unit):
        out.append("unit")
    if param.kind == "text" and not param.words and param.name != "name":
        out.append("words")
    if param.required and param.default is not None:
        out.append("default of a required one")
    return [f"{param.name}: {what}" for what in out]


def lacks(family: Family) -> list[str]:
    """What a record lacks or names that is not there."""
    out = [line for param in family.params for line in lacks_of(param)]
    optional = {param.name for param in family.params if not param.required}
    named = {*family.statistics, *(name for extent in family.asked_without for name in extent)}
    out += [f"{name}: no optional parameter" for name in sorted(named - optional)]
    if not family.meaning or not family.example:
        out.append("meaning or example")
    given: dict[str, Any] = {k: v for k, v in family.example.items() if k != "precision"}
    said, unreadable = stated(family, given, 1)
    out += [fault.text for fault in unreadable] + [text for text in contradictions(family, said) if text]
    out += [f"{name}: example of no parameter" for name in sorted(set(given) - set(family.names))]
    return out


def test_every_record_is_whole() -> None:
    assert len(FAMILIES) >= 56
    assert {name: found for name, family in FAMILIES.items() if (found := lacks(family))} == {}


def test_a_record_that_lacks_something_is_told_by_name() -> None:
    bare = Family("x", (Param("n"), Param("way", "text")), FAMILIES["scan"].work, "memory", statistics=("n",))
    assert lacks(bare) == ["n: meaning", "n: unit", "way: meaning", "way: words", "n: no optional parameter",
                           "meaning or example"]


@pytest.mark.parametrize("name", FAMILIES)
def test_its_example_has_a_time(name: str) -> None:
    family = FAMILIES[name]
    given = {"precision": family.precision} | family.example
    found = baseline(name, {k: np.array([v], dtype=object if isinstance(v, str) else None)
                            for k, v in given.items() if k != "precision"}, str(given["precision"]),
                     load_platform("h200"))
    assert 1e-6 < found.time_s[0] < 1.0


def test_feature_columns_belong_to_families() -> None:
    assert set(COLUMNS) | set(UNSTEADY) <= set(FAMILIES) and len(COLUMNS) >= 32


def test_a_family_described_twice_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "second.py").write_text("from dataclasses import replace\nfrom .stream import FAMILIES as FIRST\n"
                                        "FAMILIES = (replace(FIRST[0]),)\n")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    with pytest.raises(InputError, match="'vector_copy' is described twice"):
        package.find()
