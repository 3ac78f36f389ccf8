"""Whether the runs that `suggest` asks for teach more than as many drawn by chance."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from ...training.adapting.suggest import suggestion_gain
from ..adapt_curve import settings_of
from . import sources
from .newgpu import source_model

COUNTS = (20, 50)
SEEDS = 20
POOL_ROWS = 1500


@dataclass(frozen=True)
class Suggestion:
    """A named setting of `adapt_curve` under a title: its pool is offered, its test rows judge."""

    name: str
    title: str
    setting: str

    @property
    def definition(self) -> str:
        """What is compared, in words."""
        return (f"{self.setting}: each of {SEEDS} seeds offers another random half of {POOL_ROWS:,} runs to both; the "
                "model adapted with either is asked for test groups unseen on every platform")


SUGGESTIONS: dict[str, Suggestion] = {
    case.name: case
    for case in (
        Suggestion("suggest-b200", "Suggested against random runs: B200 GEMM bf16", "b200 gemm bf16 from h100, h200"),
        Suggestion("suggest-mi300x", "Suggested against random runs: MI300X GEMM", "mi300x gemm fp8 from mi355x"),
    )
}


def score_suggestions(case: Suggestion, limits: dict[str, int | None], counts: tuple[int, ...] = COUNTS,
                      seeds: int = SEEDS) -> dict[str, Any]:
    """Mean errors [%] over the seeds after adapting with suggested and with random runs, by number of runs."""
    start = time.perf_counter()
    setting = settings_of(case.setting, most=min(limits["test"] or POOL_ROWS, POOL_ROWS))[0]
    assert setting.source_rows is not None
    model = source_model(sources.sample(setting.source_rows, min(limits["train"] or 6000, 6000)))
    pool = sources.sample(setting.pool, POOL_ROWS)
    platform = str(setting.test["platform"].iloc[0])
    found = [suggestion_gain(pool, setting.test, platform, count, model, seeds=seeds) for count in counts]
    kept = ("n", "seeds", "suggested", "random", "wins", "p_value")
    return {"suggested": [{key: item[key] for key in kept} for item in found], "n_test": len(setting.test),
            "seconds": time.perf_counter() - start}
