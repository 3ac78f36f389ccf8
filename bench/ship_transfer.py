"""Development command: the model across platforms that ships. `python -m kernelcast.bench.ship_transfer`.

Needs the public corpora (the variable KERNELCAST_DATA, the package aiconfigurator-core); published test sites stay out.
"""

from __future__ import annotations

import argparse
import datetime
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..analytic.errors import InputError, KernelcastError
from ..analytic.platform import platform_ids
from ..registry.index import TRANSFER, shipped_folder
from ..registry.store import write_model
from ..service.train import _version
from ..training.tables.shipped import read_tables, shipped_tables

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 3000
ROUNDS = 100
_CORPORA = ("aiconfigurator", "aiter", "ginkgo", "mi300a")
_DRAWN = 120_000


def across_table() -> tuple[pd.DataFrame, list[str]]:
    """(runs of all platforms with a parameter file, names of their tables); a corpus that is absent is passed over."""
    import numpy as np
    import pandas as pd

    from ..training.tables.importers import load_corpus
    from ..training.tables.importers.aiconfigurator import in_test_split

    parts, names = [], []
    for name in _CORPORA:
        try:
            choices: dict[str, Any] = {"kernels_only": True} if name == "mi300a" else {}
            frame = load_corpus(name, max_rows=_DRAWN if name == "aiconfigurator" else None, **choices)
        except InputError as fault:
            print(f"ship: left out: {fault}", file=sys.stderr)
            continue
        if name == "aiconfigurator":
            frame = frame[~np.asarray(in_test_split(frame))]
        parts.append(frame)
        names.append(name)
    for platform, path in shipped_tables().items():
        parts.append(read_tables([path])[0])
        names.append(f"runs of {platform}")
    if not parts:
        raise InputError("neither a corpus nor a shipped table is there to learn from")
    whole = pd.concat(parts, ignore_index=True)
    return whole[whole["platform"].isin(platform_ids())].reset_index(drop=True), names


def ship_transfer(seed: int = 0) -> Path:
    """Train the model across platforms and put it in place of the shipped one. Returns its folder."""
    from ..training.adapting.transfer import fit_transfer

    frame, names = across_table()
    model = fit_transfer(frame, seed=seed, most=MOST_ROWS, rounds=ROUNDS)
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    model.meta |= {"trained": now.isoformat(), "runs": " + ".join(names), "kernelcast": _version()}
    folder = shipped_folder(TRANSFER)
    fresh = folder.with_name(f"{TRANSFER}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    write_model(model, fresh)
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"{TRANSFER}: {model.meta['rows']} rows of {', '.join(model.meta['platforms'])}, {size:.2f} MB")
    for family, scores in sorted(model.meta["left_out"].items()):
        errors = "".join(f"  {name} {item['mape']:.1f} %" for name, item in scores.items())
        print(f"  {family:14} {model.meta['kinds'][family]:11}{errors}")
    return folder


def main(arguments: list[str] | None = None) -> int:
    """Entry of `python -m kernelcast.bench.ship_transfer`."""
    parser = argparse.ArgumentParser(prog="python -m kernelcast.bench.ship_transfer", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    try:
        ship_transfer(options.seed)
    except KernelcastError as fault:
        print(f"ship: {fault}", file=sys.stderr)
        return fault.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
