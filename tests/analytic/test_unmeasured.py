"""Terms for few runs of a platform that has no source: seconds, non-negative, and the analytic time among them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from kernelcast.analytic.platform import load_platform
from kernelcast.analytic.unmeasured import NAMES, beyond, reach_share
from kernelcast.features.describe import describe
from kernelcast.training.adapting.adapted import expected, few_terms, plain
from kernelcast.training.hybrid.family import Part, part_of
from kernelcast.training.tables.schema import validate_runs


def part(kernel: str, *params: dict[str, int], platform: str = "mi300a") -> Part:
    lines = [{"platform": platform, "kernel": kernel, "precision": "fp32", "time_s": 1.0, "params": p} for p in params]
    frame, _ = validate_runs(pd.DataFrame(lines), "made up")
    return part_of(describe(frame).groups[0], {})


def units(platform: str = "mi300a") -> float:
    return load_platform(platform).value("compute_units")


def column(found: Part, name: str, platform: str = "mi300a") -> np.ndarray:
    return few_terms(found.terms, found.rows, units(platform))[:, NAMES.index(name)]


def test_the_analytic_time_is_among_the_terms() -> None:
    found = part("vector_add", {"n": 1 << 12}, {"n": 1 << 28})
    terms = few_terms(found.terms, found.rows, units())
    assert (terms >= 0.0).all() and terms.shape[1] == plain().size == expected().size
    np.testing.assert_allclose(terms @ plain(), found.analytic_s)


def test_what_misses_a_reach() -> None:
    np.testing.assert_allclose(beyond(np.array([1.0, 2.0, 4.0, 8.0]), 2.0), [0.0, 0.0, 0.5, 0.75])


def test_a_chain_waits_longer_in_a_larger_set() -> None:
    np.testing.assert_allclose(reach_share(np.exp2([10.0, 15.0, 22.5, 30.0, 40.0])), [0.4, 0.4, 0.7, 1.0, 1.0])
    found = part("bicg", {"m": 64, "n": 64}, {"m": 32768, "n": 32768})
    near = column(found, "reaching_baseline") / found.analytic_s
    assert near[0] < 0.6 and near[1] == pytest.approx(1.0)


@pytest.mark.parametrize("platform", ["mi300a", "h200"])
def test_one_thread_takes_twice_as_long_for_twice_its_rows_and_in_two_rounds(platform: str) -> None:
    full = int(units(platform)) * 256  # threads that all units hold at a time
    sizes = (2048, 4096, full, full + 256)
    found = part("nbody", *({"bodies": bodies} for bodies in sizes), platform=platform)
    alone, rounds = column(found, "thread_flop", platform), column(found, "round_flop", platform)
    assert alone[1] / alone[0] == pytest.approx(2.0, rel=0.05)
    np.testing.assert_allclose(rounds / alone, [1.0, 1.0, 1.0, 2.0])


def test_one_thread_alone_does_not_depend_on_how_many_units_there_are() -> None:
    few, many = (column(part("nbody", {"bodies": 4096}, platform=p), "thread_flop", p) for p in ("h200", "mi300a"))
    assert units("h200") != units("mi300a")
    np.testing.assert_allclose(few, many)


def test_caches_and_pages_tell_only_on_what_exceeds_them() -> None:
    found = part("transpose", {"m": 1024, "n": 1024}, {"m": 32768, "n": 32768})
    pages = column(found, "pages")
    assert pages[0] == 0.0 and pages[1] > found.analytic_s[1]
