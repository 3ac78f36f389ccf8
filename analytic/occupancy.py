"""Resident wavefronts of a CDNA compute unit, by the vendor's allocation rules (`published.wavefront`: the paper's)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .platform import Platform
from .validity import FloatArray, Validity, at_least_one, non_negative, positive

SIMDS_PER_CU = 4.0
VGPR_GRANULE = 8.0  # registers per lane, CDNA2 and later
LDS_GRANULE_BYTE = 512.0  # 1280 on CDNA4
BARRIERS_PER_CU = 16.0  # a workgroup of one wavefront needs none

OCCUPANCY_VALIDITY = (
    Validity("vgpr_per_lane", 1, 512, "register"),
    Validity("lds_byte", 0, 163840, "B"),
    Validity("waves_per_workgroup", 1, 16, "wavefront"),
)


def waves_per_simd(
    vgpr_per_lane: ArrayLike,
    vgprs_per_simd: ArrayLike = 512.0,
    granule: ArrayLike = VGPR_GRANULE,
    max_waves: ArrayLike = 8.0,
) -> FloatArray:
    """Wavefronts per SIMD that registers allow: `min(max, floor(512 / ceil_granule(VGPR)))`. Vendor's allocation rule.

    Architectural and accumulation registers together, per lane. CDNA1 (separate files): 256, granule 4, 10 waves.
    """
    step = positive("granule", granule)
    allocated = np.ceil(positive("vgpr_per_lane", vgpr_per_lane) / step) * step
    by_registers = np.floor(positive("vgprs_per_simd", vgprs_per_simd) / allocated)
    return np.minimum(positive("max_waves", max_waves), by_registers)


def workgroups_per_cu(
    waves_per_workgroup: ArrayLike,
    vgpr_per_lane: ArrayLike,
    lds_byte: ArrayLike,
    *,
    lds_capacity_byte: ArrayLike = 65536.0,
    vgprs_per_simd: ArrayLike = 512.0,
    granule: ArrayLike = VGPR_GRANULE,
    max_waves_per_cu: ArrayLike = 32.0,
    simds: float = SIMDS_PER_CU,
    max_workgroups: ArrayLike = 32.0,
    lds_granule_byte: ArrayLike = LDS_GRANULE_BYTE,
) -> FloatArray:
    """Workgroups resident on a CU: the least that wave slots, registers, LDS, barriers and workgroup slots allow; 0 =
    cannot run.

    A workgroup's wavefronts are dealt to the SIMDs in turn, so 4 wavefronts take one slot of each. LDS is allocated in
    pieces of `lds_granule_byte`; `lds_byte` 0 does not limit. Workgroups of two or more wavefronts hold a barrier.
    """
    waves = at_least_one("waves_per_workgroup", waves_per_workgroup)
    slots = positive("max_waves_per_cu", max_waves_per_cu) / simds
    per_simd = waves_per_simd(vgpr_per_lane, vgprs_per_simd, granule, slots)
    by_waves = np.floor(per_simd * simds / waves)
    piece = positive("lds_granule_byte", lds_granule_byte)
    pieces = np.ceil(non_negative("lds_byte", lds_byte) / piece) * piece
    capacity = positive("lds_capacity_byte", lds_capacity_byte)
    by_lds = np.where(pieces > 0.0, np.floor(capacity / np.maximum(pieces, 1.0)), np.inf)
    by_barriers = np.where(waves > 1.0, BARRIERS_PER_CU, np.inf)
    slots_left = np.minimum(positive("max_workgroups", max_workgroups), by_barriers)
    return np.minimum(np.minimum(by_waves, by_lds), slots_left)


@dataclass(frozen=True)
class GemmOccupancy:
    """What a CU keeps resident of each candidate tile, shape (candidates, 1)."""

    workgroups: FloatArray
    waves_per_workgroup: FloatArray
    vgpr_per_lane: FloatArray
    simds: float

    def keep(self, fits: np.ndarray) -> GemmOccupancy:
        """Only the candidates where `fits` is True."""
        rows = np.ravel(fits)
        return GemmOccupancy(
            self.workgroups[rows], self.waves_per_workgroup[rows], self.vgpr_per_lane[rows], self.simds
        )


ADDRESS_VGPRS = 32.0  # addresses, loop state and fragments beside accumulators and the staged operands (assumed)


def gemm_occupancy(
    platform: Platform,
    tile_m: FloatArray,
    tile_n: FloatArray,
    tile_k: FloatArray,
    operand_byte: float,
    accumulator_byte: float,
) -> GemmOccupancy:
    """Occupancy of matrix-product tiles: accumulators and one staged K-step in VGPRs, one K-step in LDS.

    Tiles up to 32x32 run on one wavefront, larger ones on four (one per SIMD).
    """
    lanes = platform.value("warp_size")
    simds = platform.get("simds_per_cu") or SIMDS_PER_CU
    waves = np.where(tile_m * tile_n <= 1024.0, 1.0, simds)
    step_byte = (tile_m + tile_n) * tile_k * operand_byte
    vgpr = (tile_m * tile_n * accumulator_byte + step_byte) / 4.0 / (waves * lanes) + ADDRESS_VGPRS
    groups = workgroups_per_cu(
        waves,
        vgpr,
        step_byte,
        lds_capacity_byte=platform.value("shared_mem_per_cu"),
        vgprs_per_simd=platform.value("vgprs_per_simd"),
        granule=platform.get("vgpr_granule") or VGPR_GRANULE,
        max_waves_per_cu=platform.value("max_warps_per_cu"),
        simds=simds,
        max_workgroups=platform.get("max_ctas_per_cu") or 32.0,
        lds_granule_byte=platform.get("lds_granule") or LDS_GRANULE_BYTE,
    )
    return GemmOccupancy(groups, waves * np.ones_like(groups), vgpr, simds)
