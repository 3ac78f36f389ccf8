"""Resident wavefronts of a CDNA compute unit, by the paper's rule and the vendor's allocation rules; LDS conflicts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .errors import InputError
from .platform import Platform
from .validity import FloatArray, Validity, at_least_one, non_negative, positive

PRINTED_REGISTERS = 65536.0
PRINTED_MAX_WAVES = 32.0
SIMDS_PER_CU = 4.0
VGPR_GRANULE = 8.0  # registers per lane, CDNA2 and later
LDS_GRANULE_BYTE = 512.0  # 1280 on CDNA4
BARRIERS_PER_CU = 16.0  # a workgroup of one wavefront needs none
LDS_BANKS = 32.0
LDS_BANK_BYTE = 4.0

OCCUPANCY_VALIDITY = (
    Validity("vgpr_per_lane", 1, 512, "register"),
    Validity("lds_byte", 0, 163840, "B"),
    Validity("waves_per_workgroup", 1, 16, "wavefront"),
)


def occupancy_printed(vgpr_per_wavefront: ArrayLike) -> FloatArray:
    """Wavefronts per CU as printed: `min(32, floor(65536 / VGPR_per_wf))`. arXiv 2605.04178, below Eq. (9).

    The units that make it right: `VGPR_per_wf` is the 32-bit registers of a whole wavefront (64 lanes x registers per
    lane). 65536 is only the architectural half of a CDNA2/3 unit: 4 SIMDs x 512 registers x 64 lanes are 131072, so
    where registers bind this gives half of what the hardware keeps resident (`waves_per_simd`).
    """
    wanted = positive("vgpr_per_wavefront", vgpr_per_wavefront)
    return np.minimum(PRINTED_MAX_WAVES, np.floor(PRINTED_REGISTERS / wanted))


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


def resident_wavefronts(
    waves_per_workgroup: ArrayLike, vgpr_per_lane: ArrayLike, lds_byte: ArrayLike, **limits: ArrayLike
) -> FloatArray:
    """Wavefronts resident per CU, N_wf_active of Eq. (9). Raises InputError when a workgroup does not fit at all."""
    groups = workgroups_per_cu(waves_per_workgroup, vgpr_per_lane, lds_byte, **limits)  # type: ignore[arg-type]
    if (groups < 1.0).any():
        raise InputError(
            "workgroup does not fit one compute unit (registers per lane x wavefronts, or LDS): use a smaller tile"
        )
    return groups * at_least_one("waves_per_workgroup", waves_per_workgroup)


def effective_wavefronts(n_active: ArrayLike, mwp: ArrayLike = 0.0, cwp: ArrayLike = 0.0) -> FloatArray:
    """`N_wf_eff = min(N_wf_active, MWP, CWP)`; a limit of 0 is not set. arXiv 2605.04178 section IV.B; Hong & Kim
    2009."""
    active = non_negative("n_active", n_active)
    for name, limit in (("mwp", mwp), ("cwp", cwp)):
        value = non_negative(name, limit)
        active = np.minimum(active, np.where(value > 0.0, value, np.inf))
    return active


def memory_warp_parallelism(
    latency_s: ArrayLike, departure_delay_s: ArrayLike, bandwidth_waves: ArrayLike, n_active: ArrayLike
) -> FloatArray:
    """MWP: wavefronts that wait on memory at once: `min(latency/departure delay, bandwidth limit, N)`. Hong & Kim
    2009."""
    by_latency = positive("latency_s", latency_s) / positive("departure_delay_s", departure_delay_s)
    by_bandwidth = positive("bandwidth_waves", bandwidth_waves)
    return np.minimum(np.minimum(by_latency, by_bandwidth), at_least_one("n_active", n_active))


def compute_warp_parallelism(memory_s: ArrayLike, compute_s: ArrayLike, n_active: ArrayLike) -> FloatArray:
    """CWP: wavefronts whose compute fits in one memory wait, itself included: `min((mem + comp)/comp, N)`. Hong & Kim
    2009."""
    compute = positive("compute_s", compute_s)
    return np.minimum(
        (non_negative("memory_s", memory_s) + compute) / compute, at_least_one("n_active", n_active)
    )


def lds_conflict_degree(
    stride_byte: ArrayLike, banks: ArrayLike = LDS_BANKS, bank_byte: ArrayLike = LDS_BANK_BYTE
) -> FloatArray:
    """Accesses one bank serves in turn when lanes step by `stride_byte`: `gcd(stride in banks, banks)`; stride 0 is a
    broadcast (1). The optional LDS term of arXiv 2605.04178 section IV.B."""
    words = np.rint(non_negative("stride_byte", stride_byte) / positive("bank_byte", bank_byte)).astype(np.int64)
    count = np.rint(positive("banks", banks)).astype(np.int64)
    return np.where(words == 0, 1, np.gcd(words, count)).astype(np.float64)


def lds_time(byte: ArrayLike, lds_byte_per_s: ArrayLike, conflict_degree: ArrayLike = 1.0) -> FloatArray:
    """LDS time [s]: conflict-free time times the conflict degree."""
    return (
        non_negative("byte", byte)
        / positive("lds_byte_per_s", lds_byte_per_s)
        * at_least_one("conflict_degree", conflict_degree)
    )


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
