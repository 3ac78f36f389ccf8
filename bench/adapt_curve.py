"""Learning curves on new hardware: the error after 0, 5, 10, … runs of it, medians over draws.

The test rows lie in groups that neither the sources' rows nor the few runs come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.errors import InputError
from ..analytic.platform import Platform, load_platform
from ..features.describe import Described, describe
from ..training.adapting.adapt import SOURCE_ROWS, adapt_model
from ..training.adapting.transfer import across_platforms, fit_across
from ..training.hybrid.metrics import coverage, relative_half_width, summary
from ..training.hybrid.model import Model
from ..training.tables.splits import group_draw

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
COUNTS = (0, 5, 10, 20, 50, 100, 200)
SPLITS = 5


@dataclass(frozen=True)
class Setting:
    """A platform to adapt to: runs to draw from, rows to score, runs of other platforms (None: parameter file only)."""

    platform: str
    pool: pd.DataFrame
    test: pd.DataFrame
    source_rows: pd.DataFrame | None
    each_family: bool = False
    """The counts are runs of each family, spread over its sizes, instead of runs in total drawn by chance."""
    split: str = ""


def adapt_curve(settings: Setting | Sequence[Setting], counts: Sequence[int] = COUNTS, *, source: Model | None = None,
                draws: int = 3, suggested: bool = False, level: float = 0.9,
                platforms: Mapping[str, Platform] | None = None) -> list[dict[str, Any]]:
    """One record a count: runs, draws, n, and medians over the draws of mape, median_ape, p90_ape [%], coverage and
    median_half_width (infinite where a band is unbounded).

    settings: several splits of one platform are taken in turn, one a draw. suggested: take the runs `suggest` asks for
    instead of random ones (one draw a split).
    """
    splits = [settings] if isinstance(settings, Setting) else list(settings)
    known = dict(platforms or {})
    target = known.setdefault(splits[0].platform, load_platform(splits[0].platform))
    tests = [split.test.reset_index(drop=True) for split in splits]
    described = [describe(test, known) for test in tests]
    out = []
    for count in counts:
        times = len(splits) if count == 0 or suggested else max(draws, len(splits))
        at = [draw % len(splits) for draw in range(times)]
        found = [_scored(splits[i], target, tests[i], described[i], count, draw, source, suggested, level, known)
                 for draw, i in enumerate(at)]
        keys = [key for key in found[0] if key != "kinds"]
        record = {key: float(np.median([item[key] for item in found])) for key in keys}
        kinds = sorted({kind for item in found for kind in item["kinds"]})
        out.append({"platform": target.id, "runs": count, "draws": times, "n": sum(map(len, tests)), **record,
                    "kinds": kinds, "split": splits[0].split, "level": level})
    return out


def _scored(setting: Setting, target: Platform, test: pd.DataFrame, described: Described, count: int, draw: int,
            source: Model | None, suggested: bool, level: float, known: Mapping[str, Platform]
            ) -> dict[str, Any]:
    measured = np.asarray(test["time_s"], dtype=np.float64)
    if count == 0:
        return {**summary(_before(setting, test, described, source, known), measured), "coverage": np.nan,
                "median_half_width": np.inf, "kinds": ["no run"]}
    few = _drawn(setting, target, count, draw, suggested)
    model = adapt_model(few, target, source, source_rows=setting.source_rows, platforms=known, seed=draw)
    found = model.predict(described, level)
    half = relative_half_width(found.lower_s, found.upper_s, found.predicted_s)
    return {**summary(found.predicted_s, measured), "coverage": coverage(found.lower_s, found.upper_s, measured),
            "median_half_width": float(np.median(half)),
            "kinds": [item["kind"] for item in model.meta["left_out"].values()]}


def _before(setting: Setting, test: pd.DataFrame, described: Described, source: Model | None,
            known: Mapping[str, Platform]) -> Floats:
    """Times [s] before any run: the source's, else of a model of the source rows, else the baseline."""
    if source is not None:
        return source.predict(described).predicted_s
    out = described.baseline_s.copy()
    if setting.source_rows is None:
        return out
    rows = setting.source_rows
    table = across_platforms(rows, known, most=SOURCE_ROWS // max(rows["platform"].nunique(), 1))
    here = across_platforms(test, known, most=len(test))
    for family, item in here.items():
        if family in table:
            model = fit_across(table[family])
            for part in item.parts:
                out[part.index] = model.calibrated_s(part) * np.exp(model.log_correction(part)[0])
    return out


def _drawn(setting: Setting, target: Platform, count: int, draw: int, suggested: bool) -> pd.DataFrame:
    """The few runs of one draw."""
    import pandas as pd

    from ..training.adapting.suggest import KEYS, suggest

    pool = setting.pool.reset_index(drop=True)
    parts = [part for _, part in pool.groupby("kernel", sort=True)] if setting.each_family else [pool]
    if suggested:
        keys = [key for key in KEYS if key in pool]
        asked = [suggest(target, count, None, part, seed=draw)[keys] for part in parts]
        return pd.concat(asked).merge(pool.drop_duplicates(keys), on=keys, how="left")
    if not setting.each_family:
        return pool.sample(min(count, len(pool)), random_state=draw)
    base = describe(pool, {target.id: target}).baseline_s
    rng = np.random.default_rng(draw)
    return pool.loc[np.concatenate([part.index[spread_rows(base[part.index], count, rng)] for part in parts])]


def spread_rows(size: Floats, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """`count` rows spread evenly over the ranks of `size`, the ends among them, the inner ones moved by chance."""
    order = np.argsort(size, kind="stable")
    at = np.linspace(0, len(order) - 1, min(count, len(order)))
    step = (len(order) - 1) / max(len(at) - 1, 1)
    at[1:-1] += rng.uniform(-0.4, 0.4, max(len(at) - 2, 0)) * step
    return np.asarray(order[np.unique(np.clip(np.round(at), 0, len(order) - 1).astype(int))], dtype=np.intp)


def _nvidia(platform: str, sources: Sequence[str], data_dir: Any, most: int) -> list[Setting]:
    from ..training.tables.importers import load_corpus
    from ..training.tables.importers.aiconfigurator import in_test_split

    frame = load_corpus("aiconfigurator", data_dir, platforms=[platform, *sources], families=["gemm"])
    frame = frame[(frame["precision"] == "bf16") & ~frame["params"].str.contains('"scheme"')].reset_index(drop=True)
    test, here = np.asarray(in_test_split(frame)), np.asarray(frame["platform"] == platform)
    return [Setting(platform, frame[here & ~test], _some(frame[here & test], most), frame[~here & ~test],
                    split="test sites (n, k) by the shared sha1 rule, unseen on every platform")]


def _hashed(frame: pd.DataFrame, platform: str, sources: Sequence[str], most: int) -> list[Setting]:
    """SPLITS splits: with a few dozen groups, one split is the luck of the groups it holds out."""
    here, other = np.asarray(frame["platform"] == platform), np.asarray(frame["platform"].isin(list(sources)))
    words = f"a fifth of the groups by hash, {SPLITS} times, unseen on every platform"
    out = []
    for seed in range(SPLITS):
        test = group_draw(frame["group"], seed) < 0.2
        out.append(Setting(platform, frame[here & ~test], _some(frame[here & test], most), frame[other & ~test],
                           split=words))
    return out


def _mi300x(data_dir: Any, most: int) -> list[Setting]:
    from ..training.tables.importers import load_corpus

    frame = load_corpus("aiter", data_dir, platforms=["mi300x", "mi355x"])
    frame = frame[(frame["kernel"] == "gemm") & (frame["precision"] == "fp8")].reset_index(drop=True)
    return _hashed(frame, "mi300x", ["mi355x"], most)


def _mi250x(data_dir: Any, most: int) -> list[Setting]:
    from ..training.tables.importers import load_corpus

    frame = load_corpus("ginkgo", data_dir, platforms=["mi250x-gcd", "a100-sxm"])
    own = (frame["kernel"] == "spmv_csr") & (frame["implementation"] == "ginkgo_csr")
    return _hashed(frame[own].reset_index(drop=True), "mi250x-gcd", ["a100-sxm"], most)


def _some(frame: pd.DataFrame, most: int) -> pd.DataFrame:
    return frame.sample(min(most, len(frame)), random_state=0).reset_index(drop=True)


SETTINGS: dict[str, Callable[[Any, int], list[Setting]]] = {
    "b200 gemm bf16 from h100, h200": lambda data, most: _nvidia("b200", ["h100-sxm", "h200"], data, most),
    "h200 gemm bf16 from h100, a100": lambda data, most: _nvidia("h200", ["h100-sxm", "a100-sxm"], data, most),
    "mi300x gemm fp8 from mi355x": _mi300x,
    "mi250x spmv_csr (Ginkgo) from a100": _mi250x,
}
SETTING_COUNTS = {
    "b200 gemm bf16 from h100, h200": COUNTS, "h200 gemm bf16 from h100, a100": COUNTS,
    "mi300x gemm fp8 from mi355x": (0, 5, 10, 20, 50), "mi250x spmv_csr (Ginkgo) from a100": (0, 5, 10, 20, 50, 200),
}


def settings_of(name: str, data_dir: Any = None, most: int = 5000) -> list[Setting]:
    """The splits of a named setting from its corpus, at most `most` test rows each. InputError where it is absent."""
    if name not in SETTINGS:
        raise InputError(f"unknown setting {name!r}; known: {', '.join(SETTINGS)}")
    return SETTINGS[name](data_dir, most)


def own_runs_curve(counts: Sequence[int] = (5, 8), *, data_dir: Any = None, draws: int = 3, suggested: bool = False
                   ) -> list[dict[str, Any]]:
    """MI300A from its parameter file and `counts` runs of each family; scored on each family's other rows."""
    from ..training.tables.importers import load_corpus

    frame = load_corpus("mi300a", data_dir, platforms=["mi300a"], kernels_only=True).reset_index(drop=True)
    target = load_platform("mi300a")
    whole = Setting("mi300a", frame, frame, None, True, "all rows of a family but the few")
    out = []
    for count in counts:
        records = []
        for draw in range(1 if suggested else draws):
            few = _drawn(whole, target, count, draw, suggested)
            keys = few[["kernel", "params"]].drop_duplicates()
            taken = frame[["kernel", "params"]].merge(keys.assign(taken=True), how="left")["taken"].notna()
            rest = frame[~np.asarray(taken)].reset_index(drop=True)
            model = adapt_model(few, target, seed=draw)
            found, measured = model.predict(describe(rest)), np.asarray(rest["time_s"], dtype=np.float64)
            half = relative_half_width(found.lower_s, found.upper_s, found.predicted_s)
            records.append({**summary(found.predicted_s, measured),
                            "coverage": coverage(found.lower_s, found.upper_s, measured),
                            "median_half_width": float(np.median(half))})
        record = {key: float(np.median([item[key] for item in records])) for key in records[0]}
        out.append({"platform": "mi300a", "runs": count, "draws": len(records), **record, "split": whole.split})
    return out
