"""What `predict` and `explain` have in common: the words of a question turned into predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...analytic.errors import InputError
from .columns import without_changes
from .parse import overrides, parameters

if TYPE_CHECKING:
    from ..answer import Answered, Prediction

Family = Annotated[str | None, typer.Argument(metavar="FAMILY", help="Kernel family: gemm, spmv_csr, bfs, …")]
Params = Annotated[
    list[str] | None, typer.Argument(metavar="key=value …", help="Its parameters; also precision= and implementation=.")
]
Platforms = Annotated[
    list[str] | None, typer.Option("--platform", "-p", metavar="PLATFORM", help="Id or parameter file; repeat.")
]
Level = Annotated[float, typer.Option("--level", help="Level of the band, between 0 and 1.")]
Cache = Annotated[str, typer.Option("--cache", metavar="warm|cold", help="Last-level cache before the call.")]
ModelName = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="NAME, NAME@VERSION or a model folder; else the champion.")
]
Analytic = Annotated[bool, typer.Option("--analytic", help="The analytic baseline only, without the learned residual.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="parameter=value", help="Change a platform parameter; repeat.")
]
Fusions = Annotated[
    list[str] | None, typer.Option("--fuse", metavar="SEGMENT,SEGMENT=BYTES",
                                   help="Of an application: as one kernel, BYTES staying on chip; repeat."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


def answers(
    family: str | None,
    words: Sequence[str] | None,
    platforms: Sequence[str] | None,
    *,
    level: float,
    cache: str,
    model: str | None,
    analytic: bool,
    changes: Sequence[str] | None,
) -> list[Answered]:
    """One answer for each platform, in the order given. InputError for a question that is not whole."""
    if not family:
        raise InputError("say what to predict: kernelcast predict FAMILY key=value … -p PLATFORM")
    if "=" in family:
        raise InputError(f"the kernel family comes first: kernelcast predict FAMILY {family[:60]} … -p PLATFORM")
    if family.endswith((".yaml", ".yml")):
        raise InputError(f"{family}: only predict and explain take an application; name a kernel family here")
    if not platforms:
        raise InputError("say for which platform: -p PLATFORM (see `kernelcast platforms`)")
    sizes, reserved = parameters(words or [])
    cache = _one_of("cache", reserved, cache, "warm")
    _refuse_near_application(family, sizes)
    from ..answer import answered

    keywords: dict[str, Any] = {
        "precision": reserved.get("precision"), "implementation": reserved.get("implementation"),
        "level": level, "cache": cache, "model": model, "analytic": analytic, "overrides": overrides(changes or []),
    }
    clash = sorted(set(sizes) & {*keywords, "platform", "family"})
    if clash:
        raise InputError(f"'{clash[0]}' is no parameter of a kernel; it is an option: --{clash[0]}")
    return [answered(family, platform=name, **keywords, **sizes) for name in dict.fromkeys(platforms)]


def with_and_without(family: str | None, words: Sequence[str] | None, platforms: Sequence[str] | None,
                     changes: Sequence[str] | None, **options: Any
                     ) -> tuple[list[Answered], list[Prediction] | None]:
    """The answers, and predictions without `changes`: None where nothing was changed or only a change made it whole."""
    found = answers(family, words, platforms, changes=changes, **options)
    if not changes:
        return found, None
    return found, without_changes(
        lambda: [item.prediction for item in answers(family, words, platforms, changes=None, **options)]
    )


def _refuse_near_application(name: str, sizes: dict[str, Any]) -> None:
    """InputError for what is no kernel family but nearly the name of a shipped application."""
    from ...analytic.errors import nearest_names
    from ...analytic.families import FAMILIES
    from ...analytic.workload_file import shipped_workloads

    if name in FAMILIES or "bytes" in sizes:  # a kernel of no known family is predicted from its counts
        return
    shipped = shipped_workloads()
    written = name.replace("_", "-", 1)
    if begun := [one for one in shipped if one.startswith(f"{written}-")]:
        raise InputError(f"{name}: no kernel family; the applications of that name are {', '.join(begun)}")
    hint = nearest_names(written, shipped)
    if "did you mean" in hint and "did you mean" not in nearest_names(name, FAMILIES):
        raise InputError(f"{name}: neither a kernel family nor an application{hint}; see `kernelcast workloads`")


def refuse_fusions(fusions: Sequence[str] | None) -> None:
    """InputError where segments of a single kernel are to be fused."""
    if fusions:
        raise InputError("--fuse joins segments of an application; a kernel has none (see `kernelcast workloads`)")


def _one_of(name: str, reserved: dict[str, str], option: str, default: str) -> str:
    """The value of a word that may be a parameter or an option, but not both with different values."""
    word = reserved.get(name, option)
    if name in reserved and option not in (default, word):
        raise InputError(f"{name} is given twice: {name}={word} and --{name} {option}")
    return word
