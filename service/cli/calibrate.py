"""`kernelcast calibrate`: a parameter file from microbenchmarks, with a picture of each sweep and its fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...analytic.errors import InputError
from .ask import AsJson
from .platforms import show_differences
from .show import console, print_json, text, warn


def calibrate(
    platform: Annotated[str | None, typer.Option("--platform", "-p", metavar="NAME", help="What was measured.")] = None,
    runs: Annotated[str | None, typer.Option("--runs", metavar="FILE", help="Microbenchmarks or a run table.")] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="P.yaml", help="Parameter file to write.")] = None,
    pictures: Annotated[bool, typer.Option(help="Draw each sweep with its fit beside the file (SVG).")] = True,
    as_json: AsJson = False,
) -> None:
    """Write a parameter file: measured values in, the rest as shipped with its own kind and source."""
    if platform is None or runs is None or out is None:
        raise InputError("say what, from what and where to: --platform P --runs MICRO.json --out P.yaml")
    from ...analytic.platform import load_platform, write_platform
    from ...measure.calibrate import calibrate as fit
    from ...measure.calibrate import read_report

    target = Path(out)
    if target.suffix not in (".yaml", ".yml"):
        raise InputError(f"{out}: a parameter file ends in .yaml")
    before = load_platform(platform)
    made = fit(before, runs)
    try:
        write_platform(made.platform, target, made.comment)
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}") from None
    drawn: list[Path] = []
    if pictures and Path(runs).suffix == ".json":
        from ...measure.calibrate_plot import draw

        try:
            drawn = draw(read_report(Path(runs), before)["results"], made.fits, target.with_suffix(""))
        except InputError as error:
            warn(str(error))
    for name, reason in made.left.items():
        warn(f"{name}: {reason}")
    if as_json:
        print_json({"out": str(target), "measured": {n: f.value for n, f in made.measured.items()}, "left": made.left,
                    "pictures": [str(p) for p in drawn],
                    "flags": [f"{f.key}: {f.message}" for f in made.platform.flags]})
        return
    show_differences(before, made.platform, before.path, str(target))
    for flag in made.platform.flags:
        warn(f"{flag.key}: {flag.message}")
    console().print(text(f"{len(made.measured)} parameters measured, {len(drawn)} pictures: {target}"))
