"""The tile study at a platform's own parameters."""

from __future__ import annotations

import numpy as np
import pytest
from kernelcast.analytic.platform import load_platform
from kernelcast.analytic.published.platform_terms import tile_study


def test_tile_study_by_hand() -> None:
    """512^3 FP64 in tiles of 16 on MI300A: 1024 CTAs, 3 x 2 MiB, all in the last-level cache."""
    platform = load_platform("mi300a")
    units, rate = 228, platform.value("llc_bw")
    byte, flop = 2 * 16 * 512 * 8, 2 * 16 * 16 * 512  # of one CTA: two panels; its products and sums
    step = max(byte / (rate / units), flop / (platform.peak_flop_per_s("fp64", "vector") / units))
    once = sum(platform.value(name) for name in ("kernel_launch_latency", "coherence_latency", "cross_xcd_latency"))
    expected = once + 1024 * platform.value("cta_overhead") + 1024 * step / units + 16 * 16 * 8 / (rate / units)
    assert tile_study(platform, 512, 512, 512, 16) == pytest.approx(expected, rel=1e-12)


def test_tile_study_moves_with_its_parameters() -> None:
    platform = load_platform("mi300a")

    def study(size: float = 4096, **changes: float) -> float:
        return float(tile_study(platform.with_overrides(changes), size, size, size, 16))

    base = study()
    assert study(cta_overhead=1e-8) == pytest.approx(base + 256**2 * (1e-8 - platform.value("cta_overhead")))
    assert study(effective_warps_per_cu=0.5) > 1.9 * base
    assert study(sustained_hbm_bw=5e12) < base < study(sustained_hbm_bw=2e12)
    ladder = tile_study(platform, np.arange(16, 8000, 61), 2048, 2048, 16)
    assert (np.diff(ladder) >= 0.0).all()
