"""Development command: train the champions that ship with the package.

`python -m kernelcast.bench.ship [PLATFORM …|_transfer]`

What a champion is trained on is data: configs/training/champions.yaml lists for each platform its shipped tables and
public corpora (which need the variable KERNELCAST_DATA or the package aiconfigurator-core); a platform that it does not
name is trained on configs/runs/<platform>.parquet alone. `_transfer` is the model across platforms, trained on all
corpora and shipped tables; published test sites stay out of it. Without a name every platform's champion is trained.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import configs
from ..analytic.errors import InputError, KernelcastError
from ..analytic.platform import load_platform, platform_ids
from ..registry.index import SHIPPED, default_name, shipped_folder
from ..registry.origin import stamp
from ..registry.store import write_model
from ..service.train import fit_scored
from ..training.hybrid.meta import TRANSFER
from ..training.tables.shipped import read_tables, shipped_tables

if TYPE_CHECKING:
    import pandas as pd

    from ..training.hybrid.model import Model
    from ..training.hybrid.protocol import LearnedFamily

MOST_ROWS = 3000  # of a family and platform in the model across platforms
ROUNDS = 100
CORPORA_ACROSS = ("aiconfigurator", "aiter", "ginkgo", "mi300a")
DRAWN = 120_000  # rows of the largest of them


def recipe() -> dict[str, dict[str, Any]]:
    """Platform → {tables: [file], corpora: [{name, …}]}: champions.yaml over the shipped tables."""
    import yaml

    plans: dict[str, dict[str, Any]] = {p: {"tables": [path.name]} for p, path in shipped_tables().items()}
    path = configs.folder("training", "champions.yaml")
    if path.is_file():
        plans |= yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    return plans


def _rows(platform: str, plan: dict[str, Any]) -> tuple[pd.DataFrame, str]:
    import pandas as pd

    from ..training.tables.importers import load_corpus

    parts = [read_tables([configs.folder("runs", name)])[0] for name in plan.get("tables", [])]
    sources = list(plan.get("tables", []))
    for corpus in plan.get("corpora", []):
        choices = {key: value for key, value in corpus.items() if key != "name"}
        parts.append(load_corpus(corpus["name"], platforms=[platform], **choices))
        sources.append(corpus["name"])
    if not parts:
        raise InputError(f"configs/training/champions.yaml: {platform} has neither tables nor corpora")
    frame = pd.concat(parts, ignore_index=True)
    return frame[frame["platform"] == platform].reset_index(drop=True), " + ".join(sources)


def slim(model: Model) -> Model:
    """The model with trees that hold of their statistics covers alone: near half the size, the same answers."""
    from dataclasses import replace

    from ..training.hybrid.family import FamilyModel
    from ..training.learners.trees import without_statistics

    def bare(family: LearnedFamily) -> LearnedFamily:
        if not isinstance(family, FamilyModel) or family.residual is None:
            return family
        return replace(family, residual=replace(family.residual, booster=without_statistics(family.residual.booster)))

    segments = model.segments
    if segments is not None:
        bare_levels = {name: replace(level, booster=without_statistics(level.booster))
                       for name, level in segments.levels.items()}
        segments = replace(segments, levels=bare_levels)
    families, partials = ({name: bare(models[name]) for name in models} for models in (model.families, model.partials))
    return replace(model, families=families, partials=partials, segments=segments)


def _put(model: Model, name: str) -> Path:
    """Write the model in place of the one that ships under `name`; the old one stays until the new one is whole."""
    folder = shipped_folder(name)
    fresh, old = folder.with_name(f"{name}.new"), folder.with_name(f"{name}.old")
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    write_model(model, fresh)
    if folder.exists():
        folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
    return folder


def _size_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e6


def ship(platform: str, plan: dict[str, Any], seed: int = 0) -> Path:
    """Train one platform's champion and put it in place of the shipped one. Returns its folder."""
    frame, runs = _rows(load_platform(platform).id, plan)
    model, comparison = fit_scored(frame, default_name(platform), runs=runs, seed=seed)
    folder = _put(slim(model), platform)
    size = _size_mb(folder)
    held = model.meta.get("heldout", {})
    print(f"{default_name(platform)}@{SHIPPED}: {model.meta['rows']} rows, {len(model.families)} families, "
          f"{size:.1f} MB, held-out {held.get('mape', float('nan')):.2f} %, "
          f"coverage {held.get('coverage', float('nan')):.3f}")
    if comparison is not None:
        for line in comparison.records:
            print(f"  {line['kernel']:16} n={line['n']:5d} analytic {line['analytic']['mape'] or 0:7.2f} % "
                  f"hybrid {line['hybrid']['mape'] or 0:6.2f} %")
    return folder


def across_table() -> tuple[pd.DataFrame, list[str]]:
    """(runs of all platforms with a parameter file, names of their tables); a corpus that is absent is passed over."""
    import numpy as np
    import pandas as pd

    from ..training.tables.importers import load_corpus
    from ..training.tables.importers.aiconfigurator import in_test_split

    parts, names = [], []
    for name in CORPORA_ACROSS:
        try:
            choices: dict[str, Any] = {"kernels_only": True} if name == "mi300a" else {}
            frame = load_corpus(name, max_rows=DRAWN if name == "aiconfigurator" else None, **choices)
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
    model.meta |= stamp(" + ".join(names))
    folder = _put(model, TRANSFER)
    print(f"{TRANSFER}: {model.meta['rows']} rows of {', '.join(model.meta['platforms'])}, {_size_mb(folder):.2f} MB")
    for family, scores in sorted(model.meta["left_out"].items()):
        errors = "".join(f"  {name} {item['mape']:.1f} %" for name, item in scores.items())
        print(f"  {family:14} {model.meta['kinds'][family]:11}{errors}")
    return folder


def main(arguments: list[str] | None = None) -> int:
    """Entry of `python -m kernelcast.bench.ship`."""
    parser = argparse.ArgumentParser(prog="python -m kernelcast.bench.ship", description=__doc__)
    parser.add_argument("platforms", nargs="*", help="platform ids, or _transfer for the model across them; "
                        "all platforms that have runs where none is given")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    try:
        plans = recipe()
        for platform in options.platforms or sorted(plans):
            if platform == TRANSFER:
                ship_transfer(options.seed)
                continue
            if platform not in plans:
                raise InputError(f"no runs for {platform}; there are runs for {', '.join([*sorted(plans), TRANSFER])}")
            ship(platform, plans[platform], options.seed)
    except KernelcastError as fault:
        print(f"ship: {fault}", file=sys.stderr)
        return fault.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
