"""What-ifs: tiles ranked, ratios, and where one candidate overtakes another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.baseline import baseline
from kernelcast.analytic.equation_sets import matrix_time
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.platform import load_platform
from kernelcast.analytic.whatif import Range, crossings, find_crossings, parse_range, ratios, tile_ranking


@pytest.mark.parametrize("name", ["h200", "b200", "mi300x", "mi250x-gcd", "t4", "b200-as-published",
                                  "mi300a-as-published"])
def test_the_first_tile_is_the_adaptive_choice(name: str) -> None:
    platform = load_platform(name)
    found = tile_ranking(platform, 3000, 2000, 1000, 1, "fp16", cache="cold")
    best = matrix_time(platform)(platform, 3000, 2000, 1000, 1, "fp16", cache="cold")
    assert found[0].time_s == pytest.approx(best.time_s[0], rel=1e-12)
    times = [item.time_s for item in found if item.time_s is not None]
    assert times == sorted(times)
    assert all(item.reason for item in found if item.time_s is None)
    assert sum(found[0].terms.values()) == pytest.approx(found[0].time_s)


def test_tiles_that_do_not_fit_come_last_with_the_reason() -> None:
    small = load_platform("h200").with_overrides({"shared_mem_per_cu": "40 KiB"})
    found = tile_ranking(small, 1024, 1024, 1024)
    refused = [item for item in found if item.time_s is None]
    assert refused and found[: -len(refused)]
    assert all("does not fit" in item.reason for item in refused)
    with pytest.raises(InputError, match="does not fit"):
        tile_ranking(small, 1024, 1024, 1024, tile=(256, 128, 64))
    with pytest.raises(InputError, match="no fp4 matrix rate"):
        tile_ranking(small, 1024, 1024, 1024, precision="fp4")


def test_ratios_are_relative_to_the_first() -> None:
    assert ratios([2.0, 1.0, 6.0]).tolist() == [1.0, 0.5, 3.0]


def test_ranges() -> None:
    assert parse_range("n", "64") is None
    swept = parse_range("n", "64..1e6")
    assert swept == Range("n", 64.0, 1e6)
    assert swept.at(0.0) == 64 and swept.at(1.0) == 1e6
    for text in ("a..b", "64..64", "10..1", "0..5", "1..inf"):
        with pytest.raises(InputError, match="range"):
            parse_range("n", text)


@settings(max_examples=50, deadline=None)
@given(st.floats(0.01, 0.99), st.booleans())
def test_a_single_crossing_is_found(place: float, rising: bool) -> None:
    sign = 1.0 if rising else -1.0
    found, before = find_crossings(lambda x: sign * (x - place))
    assert found == pytest.approx([place], abs=1e-9)
    assert before.tolist() == [-sign]


def test_ties_are_no_crossings() -> None:
    assert find_crossings(lambda x: np.zeros_like(x))[0].size == 0
    flat = find_crossings(lambda x: np.where((x > 0.3) & (x < 0.6), 0.0, 1.0))[0]
    assert flat.size == 0
    through = find_crossings(lambda x: np.where(x < 0.3, -1.0, np.where(x < 0.6, 0.0, 1.0)))[0]
    assert through.size == 1


def test_the_crossing_is_the_first_size_at_which_the_order_has_changed() -> None:
    a, b = load_platform("h200"), load_platform("mi300x")
    swept = Range("n", 1e3, 1e9)

    def difference(n: np.ndarray) -> np.ndarray:
        return np.log(baseline("vector_copy", {"n": n}, "fp32", a).time_s
                      / baseline("vector_copy", {"n": n}, "fp32", b).time_s)

    found = crossings([swept], lambda position: difference(swept.at(position)))
    assert [(item.before, item.after) for item in found] == [(0, 1), (1, 0)]
    for item in found:
        n = item.values["n"]
        assert n == int(n)
        before, after = difference(np.array([n - 1, n]))
        assert (before < 0) == (item.before == 0)
        assert (after < 0) == (item.after == 0)
