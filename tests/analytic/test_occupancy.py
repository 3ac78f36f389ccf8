"""Occupancy by the paper's rule and by the vendor's; MWP and CWP as limits; LDS conflicts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.occupancy import waves_per_simd, workgroups_per_cu
from kernelcast.analytic.published.lds import lds_time
from kernelcast.analytic.published.wavefront import effective_wavefronts, occupancy_printed

# CDNA2/3: 512 registers per lane and SIMD, granule 8, at most 8 wavefronts. VGPRs per lane -> wavefronts per SIMD.
VENDOR_TABLE = {64: 8, 65: 7, 72: 7, 80: 6, 96: 5, 128: 4, 129: 3, 168: 3, 169: 2, 256: 2, 257: 1, 512: 1}


@pytest.mark.parametrize(("vgpr", "expected"), VENDOR_TABLE.items())
def test_vendor_waves_per_simd(vgpr: int, expected: int) -> None:
    assert waves_per_simd(vgpr) == expected


def test_cdna1_has_its_own_file_granule_and_slots() -> None:
    assert waves_per_simd([24, 25, 84, 128], 256, 4, 10).tolist() == [10, 9, 3, 2]


@pytest.mark.parametrize("vgpr", [128, 256, 512])
def test_printed_rule_gives_half_of_the_hardware_where_registers_bind(vgpr: int) -> None:
    printed = occupancy_printed(vgpr * 64)  # registers of a whole wavefront
    assert printed * 2 == waves_per_simd(vgpr) * 4


def test_printed_rule_never_exceeds_32() -> None:
    assert occupancy_printed([1, 2048, 65536, 131072]).tolist() == [32, 32, 1, 0]


def test_workgroup_limits() -> None:
    assert workgroups_per_cu(4, 64, 0) == 8  # wave slots: 32/4
    assert workgroups_per_cu(4, 128, 0) == 4  # registers: 4 per SIMD
    assert workgroups_per_cu(4, 64, 32768) == 2  # LDS: 64 KiB / 32 KiB
    assert workgroups_per_cu(4, 64, 32769) == 1  # one byte more takes another 512 B piece
    assert workgroups_per_cu(4, 64, 65537) == 0
    assert workgroups_per_cu(1, 64, 0, max_workgroups=16) == 16
    # CDNA4 gives LDS in pieces of 1280 B: 32 KiB are 26 of them, so four fit 160 KiB and not five
    assert workgroups_per_cu(4, 64, 32768, lds_capacity_byte=163840, lds_granule_byte=1280) == 4
    assert workgroups_per_cu(4, 64, 32768, lds_capacity_byte=163840) == 5
    # CDNA1 has 40 wavefronts, and 16 barriers: of workgroups of two wavefronts 16 run, of single ones 40 would
    assert workgroups_per_cu(2, 24, 0, vgprs_per_simd=256, granule=4, max_waves_per_cu=40, max_workgroups=40) == 16
    assert workgroups_per_cu(1, 24, 0, vgprs_per_simd=256, granule=4, max_waves_per_cu=40, max_workgroups=40) == 40
    assert workgroups_per_cu(16, 256, 0) == 0  # 4 per SIMD wanted, 2 possible


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 16), st.integers(1, 512), st.integers(0, 65536))
def test_occupancy_never_rises_with_demand(waves: int, vgpr: int, lds: int) -> None:
    base = workgroups_per_cu(waves, vgpr, lds)
    assert workgroups_per_cu(waves, min(vgpr + 8, 512), lds) <= base
    assert workgroups_per_cu(waves, vgpr, lds + 512) <= base
    assert base * waves <= 32


def test_hong_kim_limits() -> None:
    assert effective_wavefronts(16) == 16  # not set
    assert effective_wavefronts(16, mwp=8, cwp=12) == 8
    assert effective_wavefronts(16, mwp=0, cwp=12) == 12


def test_lds_bank_conflicts() -> None:
    assert lds_time(1e6, 1e11, 2) == pytest.approx(2e-5)
