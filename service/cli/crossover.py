"""`kernelcast crossover`: the size at which one platform or variant overtakes another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...analytic.errors import InputError
from . import ask, workload
from .parse import RESERVED, overrides, pairs, settings, value_of
from .show import add_row, amount, console, print_json, table, text

if TYPE_CHECKING:
    from ..crossover import Crossover

VARIANT_KEYS = ("kernel", *RESERVED)


def crossover(
    family: ask.Family = None,
    params: Annotated[
        list[str] | None,
        typer.Argument(metavar="key=value …", help="Parameters (of an application segment.field), some as LOW..HIGH."),
    ] = None,
    platform: ask.Platforms = None,
    variant: Annotated[
        list[str] | None,
        typer.Option("--variant", metavar="key=value", help="What the second one changes: precision=fp8, kernel=…"),
    ] = None,
    level: ask.Level = 0.9,
    cache: ask.Cache = "warm",
    model: ask.ModelName = None,
    analytic: ask.Analytic = False,
    changes: ask.Overrides = None,
    as_json: ask.AsJson = False,
) -> None:
    """Where one overtakes another. Example: kernelcast crossover vector_copy n=1e3..1e9 -p h200 -p mi300x"""
    if not family or "=" in family:
        raise InputError("the kernel family comes first: kernelcast crossover FAMILY PARAMETER=LOW..HIGH … -p A -p B")
    if not platform:
        raise InputError("say which two: -p A -p B, or -p A --variant key=value")
    if workload.is_workload(family):
        if variant:
            raise InputError("--variant is of a kernel; an application is compared on two platforms: -p A -p B")
        found = _of_application(family, params or [], list(dict.fromkeys(platform)), changes, level=level, cache=cache,
                                model=model, analytic=analytic)
        _say(found, as_json)
        return
    from ...analytic.families import family as find_family
    from ...analytic.whatif import Range, parse_range
    from ..crossover import candidates_of, crossover_of

    words = pairs(params or [])
    whole = {param.name: param.kind == "size" for param in find_family(family).params}
    ranges: list[Range] = []
    fixed: dict[str, str] = {}
    for name, word in words.items():
        swept = parse_range(name, word, whole.get(name, True)) if ".." in word else None
        if swept is None:
            fixed[name] = word
        else:
            ranges.append(swept)
    changed = pairs(variant or [], "--variant")
    made = candidates_of(family, _values(fixed), list(dict.fromkeys(platform)), _values(changed), cache,
                         ", ".join(f"{key}={value}" for key, value in changed.items()))
    found = crossover_of(made, ranges, level=level, model=model, analytic=analytic, overrides=overrides(changes or []))
    _say(found, as_json)


def _say(found: Crossover, as_json: bool) -> None:
    if as_json:
        print_json(found.to_dict())
    else:
        _show(found)


def _of_application(name: str, words: list[str], platforms: list[str], changes: list[str] | None, **options: Any
                    ) -> Crossover:
    """Fields of the segments are swept (`segment.field=LOW..HIGH`) or set (`segment.field=VALUE`, also by --set)."""
    from ...analytic.whatif import parse_range
    from ...analytic.workload import load_workload
    from ..application import split_settings
    from ..crossover_application import application_crossover, field_of

    loaded = load_workload(name)
    given = settings(words)
    swept = {key: str(value) for key, value in given.items() if ".." in str(value)}
    ranges = []
    for key, value in swept.items():
        unit, whole = field_of(loaded, key)
        made = parse_range(key, value, whole, unit)
        ranges += [] if made is None else [made]
    parameters, fields = split_settings(settings(changes or []))
    fields |= {key: value for key, value in given.items() if key not in swept}
    return application_crossover(loaded.with_settings(fields) if fields else loaded, platforms, ranges,
                                 overrides=parameters, **options)


def _values(words: dict[str, str]) -> dict[str, Any]:
    """Sizes as numbers; what is named stays a name."""
    return {key: value if key in VARIANT_KEYS else value_of(value) for key, value in words.items()}


def _words(values: dict[str, float]) -> str:
    """`n=1024`, `a.bytes=12.61 GB`."""
    return " ".join(f"{name}={_value(name, value)}" for name, value in values.items())


def _value(name: str, value: float) -> str:
    from ..crossover_application import UNITS

    unit = UNITS.get(name.rpartition(".")[2], "") if "." in name else ""
    if unit:
        return amount(value, unit)
    return f"{value:.0f}" if value == int(value) else f"{value:.4g}"


def _show(found: Crossover) -> None:
    where = console()
    first, second = found.candidates
    where.print(text(f"{found.kernel}: {first} against {second}", "bold"))
    if not found.crossings:
        where.print(text(f"{found.stretches[0].faster} is the faster one all along"))
    for values in found.crossings:
        where.print(text(f"the faster one changes at {_words(values)}"))
    made = table(["from", "to", "faster", "by", "bands apart"], ["by"])
    words = {True: "yes", False: "no: the order is not certain", None: "no band"}
    for item in found.stretches:
        by = f"{item.advantage_start:.3g} … {item.advantage_end:.3g} times"
        add_row(made, [_words(item.start), _words(item.end), item.faster, by, words[item.certain]])
    where.print(made)
    if found.note:
        where.print(text(f"note: {found.note}"))
