"""Eq. (15), (16), scales, launches, concurrency, fusion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.generic import (
    class_scale,
    concurrency_time,
    effective_bandwidth,
    extra_launch_time,
    fused_time,
    fused_work,
    host_sync_time,
    memcpy_time,
    transfer_time,
)


def test_memcpy_defaults() -> None:
    assert memcpy_time(45e9) == pytest.approx(1.0 + 2e-6)
    assert host_sync_time(4) == pytest.approx(12e-6)


def test_transfers_per_episode_and_execution() -> None:
    once = 2 * (1e9 / 45e9 + 2e-6) + 3 * 3e-6
    assert transfer_time(1e9, 2, 3, 5) == pytest.approx(5 * once)
    assert transfer_time(1e9, 2, 3, 5, unified_memory=True) == pytest.approx(5 * 9e-6)  # no copy, syncs remain
    assert transfer_time(1e9, 0) == 0.0


def test_bandwidth_blend_by_hand() -> None:
    assert effective_bandwidth(0.0, 7e12, 8e12, 1e8) == 8e12
    assert effective_bandwidth(1e8, 7e12, 8e12, 1e8) == pytest.approx(7e12 + 1e12 * np.exp(-1))
    assert effective_bandwidth(1e8, 7e12, 8e12, [0.0, -1.0]).tolist() == [7e12, 7e12]  # switched off
    with pytest.raises(InputError, match="below"):
        effective_bandwidth(1.0, 8e12, 7e12, 1e8)


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 1e12), st.floats(0, 1e12), st.floats(1e11, 1e13), st.floats(1.0, 2.0), st.floats(1.0, 1e10))
def test_bandwidth_blend_is_bounded_and_non_increasing(
    w: float, more: float, sustained: float, gain: float, w0: float
) -> None:
    small = effective_bandwidth(w, sustained, sustained * gain, w0)
    large = effective_bandwidth(w + more, sustained, sustained * gain, w0)
    assert sustained <= large <= small <= sustained * gain * (1 + 1e-12)


def test_launches_beyond_the_first() -> None:
    assert extra_launch_time(3, 2e-6) == pytest.approx(4e-6)


def test_class_scales() -> None:
    assert class_scale("stencil", {"stencil": 1.4}) == 1.4
    assert class_scale("memory", {}) == 1.0
    with pytest.raises(InputError, match="did you mean stencil"):
        class_scale("stensil", {})


def test_concurrency_adds_nothing_alone() -> None:
    assert concurrency_time([1, 2, 4], 50e-6) == pytest.approx([0.0, 50e-6, 150e-6])


def test_fusion_removes_intermediates() -> None:
    flop, byte = fused_work([1e9, 2e9], [300.0, 200.0], 200.0)
    assert (flop, byte) == (3e9, 300.0)
    assert fused_time(1e-3, 1e-6) == pytest.approx(1.001e-3)
    with pytest.raises(InputError, match="exceeds the traffic"):
        fused_work([1.0], [100.0], 200.0)
