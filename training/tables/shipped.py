"""The run tables that ship with the package: configs/runs/<platform>.parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...analytic.errors import InputError, nearest_names
from ...analytic.platform import load_platform, platform_ids
from ...configs import folder

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_PLATFORM = "h200"


def shipped_tables() -> dict[str, Path]:
    """Platform id → path of the table of its measured runs (further ones, hold-outs and repeats go by other names)."""
    known = set(platform_ids())
    return {path.stem: path for path in sorted(folder("runs").glob("*.parquet")) if path.stem in known}


def read_tables(paths: Sequence[str | Path], *, skip_bad: bool = False, require_time: bool = True
                ) -> tuple[pd.DataFrame, int]:
    """Several checked tables as one, and the number of rows dropped. InputError names file, row and column."""
    import pandas as pd

    from .schema import read_runs

    tables = [read_runs(path, skip_bad=skip_bad, require_time=require_time) for path in paths]
    frame = tables[0].frame if len(tables) == 1 else pd.concat([t.frame for t in tables], ignore_index=True)
    return frame, sum(t.dropped for t in tables)


def choose_tables(runs: Sequence[str | Path], platforms: Sequence[str]) -> list[str | Path]:
    """The given tables, or where none is given the shipped ones of the platforms (default: h200)."""
    if runs:
        return list(runs)
    shipped = shipped_tables()
    wanted = [load_platform(name).id for name in platforms] or [DEFAULT_PLATFORM]
    missing = [name for name in wanted if name not in shipped]
    if missing:
        known = nearest_names(missing[0], shipped) if shipped else ""
        raise InputError(f"no measured runs ship for {', '.join(missing)}{known}; give a table with --runs FILE")
    return [shipped[name] for name in wanted]


def only_platforms(frame: pd.DataFrame, platforms: Sequence[str]) -> pd.DataFrame:
    """The rows of the named platforms (all where none is named). InputError where one has no row."""
    if not platforms:
        return frame
    wanted = [load_platform(name).id for name in platforms]
    present = set(frame["platform"].astype(str))
    missing = [name for name in wanted if name not in present]
    if missing:
        raise InputError(f"the table has no rows of {', '.join(missing)}; it holds {', '.join(sorted(present))}")
    return frame[frame["platform"].isin(wanted)].reset_index(drop=True)
