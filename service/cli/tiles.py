"""`kernelcast tiles`: candidate tiles of a matrix product, ranked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...analytic.errors import InputError
from . import ask
from .columns import print_changed
from .show import band, console, percent, print_fitting, print_json, seconds, text

if TYPE_CHECKING:
    from ..tiles import RankedTiles

def tiles(
    family: ask.Family = None,
    params: ask.Params = None,
    platform: ask.Platforms = None,
    level: ask.Level = 0.9,
    cache: ask.Cache = "warm",
    model: ask.ModelName = None,
    analytic: ask.Analytic = False,
    changes: ask.Overrides = None,
    tile: Annotated[
        list[str] | None,
        typer.Option("--tile", metavar="MxNxK[xSPLIT]", help="Look at this tile only, such as 128x128x64; repeat."),
    ] = None,
    top: Annotated[int, typer.Option("--top", help="How many to show; 0 for all.")] = 12,
    as_json: ask.AsJson = False,
) -> None:
    """Rank the candidate tiles of a matrix product. Example: kernelcast tiles gemm m=4096 n=4096 k=4096 -p h200"""
    from ..tiles import FAMILIES, ranked_tiles
    from .parse import tile_of

    if family not in FAMILIES:
        raise InputError(f"tiles are of a matrix product: kernelcast tiles gemm m=… n=… k=… -p PLATFORM, not {family}")
    if top < 0:
        raise InputError(f"--top is {top}; it must be 0 (all) or more")
    found = ask.answers(family, params, platform, level=level, cache=cache, model=model, analytic=analytic,
                        changes=changes)
    asked = [tile_of(word) for word in tile or []]
    made = [ranked_tiles(item, asked) for item in found]
    if as_json:
        documents: list[dict[str, Any]] = [item.to_dict() for item in made]
        print_json(documents[0] if len(documents) == 1 else documents)
        return
    for item in made:
        _show(item, top or len(item.tiles))


def _show(item: RankedTiles, top: int) -> None:
    where = console()
    sizes = " ".join(f"{name}={value}" for name, value in item.params.items())
    where.print(text(f"{item.kernel} {item.precision}  {sizes}  on {item.platform}", "bold"))
    header = f"{100 * item.level:g} % band"
    numbers = ["predicted", header, "analytic", "waves", "wave efficiency", "slower by"]
    fitting = [row for row in item.tiles if row.baseline_s is not None]
    rows = [["x".join(str(size) for size in row.tile[:3]), row.tile[3], seconds(row.predicted_s),
             band(row.lower_s, row.upper_s), seconds(row.baseline_s), f"{row.waves:g}",
             percent(100.0 * row.wave_efficiency), percent(row.slower_percent)]
            for row in fitting[:top]]
    print_fitting(where, ["tile", "split K", *numbers], rows, numbers,
                  ["wave efficiency", "waves", "analytic", header])
    left = len(fitting) - min(top, len(fitting))
    if left:
        where.print(text(f"{left} slower ones not shown (--top 0 shows all)"))
    for reason, count in item.refused.items():
        where.print(text(f"{count} left out: {reason}"))
    print_changed(where, "", item.changed)
    where.print(text(f"note: {item.note}"))
