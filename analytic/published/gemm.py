"""The GEMM paths with the equations as printed in arXiv 2605.04178: for the as-published parameter sets.

How the paper's worked example (16384^3, B200, tile 128x128x32: 4.17 ms) is read; each choice from its text:

- Tensor rate: the dense peak over 176 SMs. "Peak values are retained ... for the stage-centric Blackwell validation
  kernels" (section V.A); the "sustained" 1,100-1,400 TFLOP/s cannot give 4.17 ms (2,109 TFLOP/s).
- Waves: `ceil(16384 CTAs / 176 SMs) = 94`; the printed kernel time is one CTA's (parameter `wave_term`).
- Step: `max(T_compute, T_io_eff)` of sections IV.C/IV.D, with T_sync inside T_io_eff and once more at the end of the
  kernel. Eq. (8) as printed would add T_sync to every K-step (20 to 25 ns on 88 ns; parameter `sync_count`).
- Eq. (2): L_mma in every K-step; D_accum is moved `tmem_passes_per_step` times a step. As printed that is 1. The MMA
  accumulates in TMEM in place, so the worked example needs 0: one read and one write per tile, shared over K_tiles.
- Store and alloc of all tiles but the last hide behind the next tile ("often overlapped in persistent kernels";
  parameter `tile_closing`).

The result is never below the physical bound; `GemmTime.guard` says where that acted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..gemm_common import (
    CandidateTerms,
    GemmTime,
    check_words,
    fastest_of,
    in_tmem,
    problem_rows,
    resolve_unit,
    stage_tiles,
    wavefront_tiles,
)
from ..gemm_tiles import Machine, Tiles, accumulator_byte, machine, output_byte
from ..gemm_traffic import bound_time, gemm_traffic
from ..occupancy import GemmOccupancy
from ..platform import Platform
from ..stage import compute_time
from ..traffic import bandwidth_mix_of, hit_rate_of
from ..validity import FloatArray
from ..waves import cta_count, full_waves, k_tile_count, wave_count
from ..work import element_byte
from .stage import (
    compute_time_2sm,
    pair_memory_time,
    pair_sync_time,
    step_time,
    step_time_pipelined,
    store_time,
    tma_store_time,
    tmem_management_time,
    tmem_time,
    tmem_traffic_per_step,
)
from .stage_io import io_time_effective, sync_time, tma_bandwidth, tma_time_operands, unpack_time
from .wavefront import (
    effective_wavefronts,
    memory_time_kernel,
    memory_time_latency,
    mfma_time,
    occupancy_printed,
    overlap_factor,
    step_time_printed,
)


def _grid(mach: Machine, tiles: Tiles, shape: list[FloatArray], wave_term: str) -> dict[str, FloatArray]:
    m, n, k, batch = shape
    ctas = cta_count(m, n, tiles.tile_m, tiles.tile_n, batch) * tiles.split
    ones = np.ones_like(ctas)
    # printed, the kernel time is that of one CTA: what the other CTAs take is then nowhere
    running = {"grid": ctas, "one_cta": mach.units * ones}[wave_term]
    waves, even = wave_count(running, mach.units), full_waves(running, mach.units)
    whole_k_tiles = k_tile_count(k, tiles.tile_k)
    k_tiles = np.ceil(whole_k_tiles / tiles.split) * ones
    return {
        "ctas": ctas,
        "waves": waves,
        "wave_efficiency": even / waves,
        "tile_m": tiles.tile_m * ones,
        "tile_n": tiles.tile_n * ones,
        "tile_k": tiles.tile_k * ones,
        "split": tiles.split * ones,
        "k_tiles": k_tiles,
        "padded_flop": 2.0 * ctas / tiles.split * tiles.tile_m * tiles.tile_n * whole_k_tiles * tiles.tile_k,
    }


def _seconds(platform: Platform, name: str) -> float:
    """A latency given in cycles [s]."""
    return platform.value(name) / platform.value("clock_boost")


def _tmem_time(platform: Platform, tiles: Tiles, k_tiles: FloatArray, precision: str) -> FloatArray:
    """T_TMEM of Eq. (2) of a K-step, the accumulator moved `tmem_passes_per_step` times."""
    d_accum = tiles.tile_m * tiles.tile_n * accumulator_byte(precision)
    passes = platform.value("tmem_passes_per_step")
    moved = tmem_traffic_per_step(
        d_accum * passes + d_accum * (1.0 - passes) / k_tiles,
        tiles.tile_m * tiles.tile_k * element_byte(precision),
        platform.switch("tmem_strategy"),
    )
    return tmem_time(
        moved,
        platform.value("tmem_read_bw_per_cu"),
        platform.value("tmem_write_bw_per_cu"),
        _seconds(platform, "tensor_instr_latency"),
    )


def _tma_rate(platform: Platform, mach: Machine) -> FloatArray:
    """B_TMA of one SM: as the file has it, less what `tma_l2_hit_rate` leaves to HBM."""
    found, rate = platform.get("tma_l2_hit_rate"), platform.value("tma_bw_per_cu")
    if found is None:
        return np.asarray(rate)
    return tma_bandwidth(found, rate, min(mach.hbm_byte_per_s / mach.units, rate))


def _copy_time(
    platform: Platform, tiles: Tiles, element: float, tma: FloatArray, paired: bool
) -> tuple[FloatArray, FloatArray]:
    """(T_tma of Eq. (4), T_decomp) of a K-step. In a CTA pair each B tile serves both SMs, and D_2CTA crosses shared
    memory; a B operand that is stored compressed is copied so and then unpacked."""
    a_tile, b_tile = tiles.tile_m * tiles.tile_k * element, tiles.tile_n * tiles.tile_k * element
    ratio, unpacking = platform.get("operand_compression_ratio") or 1.0, np.zeros_like(b_tile)
    if ratio > 1.0:
        b_tile = b_tile / ratio
        rate = platform.value("decompression_unpack_rate") / platform.value("compute_units")
        unpacking = unpack_time(b_tile, rate, platform.get("decompression_setup_latency") or 0.0)
    copies = tma_time_operands(
        a_tile, b_tile, tma, _seconds(platform, "tma_latency"),
        platform.get("tma_participants_a") or 1.0,
        (platform.get("tma_participants_b") or 1.0) * (2.0 if paired else 1.0),
        order=platform.switch("tma_order"),
    )
    if paired:
        copies = np.maximum(copies, pair_memory_time(a_tile, b_tile, platform.value("shared_mem_bw_per_cu")))
    return copies, unpacking


def _store_time(platform: Platform, mach: Machine, c_tile_byte: FloatArray, tma: FloatArray) -> FloatArray:
    """Write-back of an output tile, by TMA or by plain stores at the SM's share of the HBM bandwidth."""
    if platform.switch("store_by") == "plain":
        share = mach.hbm_byte_per_s / mach.units
        return store_time(c_tile_byte, share, _seconds(platform, "store_setup_latency"))
    return tma_store_time(c_tile_byte, tma, (platform.get("tma_store_latency") or 0.0) / platform.value("clock_boost"))


def _stage_terms(
    platform: Platform, mach: Machine, tiles: Tiles, shape: list[FloatArray], precision: str, tmem: bool
) -> CandidateTerms:
    """Terms, details and bound of the stage-centric kernel time, shape (candidates, rows).

    `tmem`: accumulators live in tensor memory (not for fp64, nor on parts without it: T_TMEM = 0 there). What the
    print leaves open or contradicts is read by the platform's switches (`platform_schema`).
    """
    m, n, k, batch = shape
    element = element_byte(precision)
    grid = _grid(mach, tiles, shape, platform.switch("wave_term"))
    k_tiles, waves = grid["k_tiles"], grid["waves"]
    paired = platform.switch("cta_pairs") == "on"
    t_tmem = _tmem_time(platform, tiles, k_tiles, precision) if tmem else np.zeros_like(k_tiles)
    t_mgmt = tmem_management_time(
        _seconds(platform, "tmem_alloc_latency"), _seconds(platform, "tmem_dealloc_latency"), k_tiles
    )
    step = (tiles.tile_m, tiles.tile_n, tiles.tile_k, mach.unit_flop_per_s)
    t_compute = (
        compute_time_2sm(*step, platform.value("two_sm_speedup"), t_tmem, t_mgmt)
        if paired else compute_time(*step, 1.0, t_tmem, t_mgmt)
    )
    tma = _tma_rate(platform, mach)
    t_tma, t_decomp = _copy_time(platform, tiles, element, tma, paired)
    t_sync = sync_time(platform.value("barriers_per_step"), _seconds(platform, "mbarrier_latency"))
    t_io = io_time_effective(t_tma, t_decomp, t_sync, platform.value("pipeline_overlap_alpha"))
    misc = (platform.get("step_misc_overhead") or 0.0) + (
        pair_sync_time(1.0, _seconds(platform, "commit_latency")) if paired else 0.0
    )
    if platform.switch("k_step") == "pipelined":
        epsilon = misc + (platform.get("pipeline_epsilon") or 0.0)
        t_step = step_time_pipelined(t_tma, t_decomp, t_compute, t_sync, epsilon)
    else:
        twice = platform.switch("sync_count") == "twice"
        t_step = step_time(t_compute, t_io, t_sync, misc, count_sync_twice=twice)
    out = output_byte(precision)
    closings = waves if platform.switch("tile_closing") == "each_wave" else 1.0
    busy = waves * k_tiles * t_compute
    compute = busy * grid["wave_efficiency"]
    ones = np.ones_like(k_tiles)
    traffic = gemm_traffic(mach, tiles, m, n, k, batch, element, out, "cold")
    terms = {
        "launch": platform.value("kernel_launch_latency") * ones,
        "compute": compute,
        "tail": busy - compute,
        "memory_exposed": waves * k_tiles * (t_step - t_compute),
        "writeback": _store_time(platform, mach, tiles.tile_m * tiles.tile_n * out, tma) * closings * ones,
        "sync": t_sync * closings * ones,
    }
    details = {
        **grid,
        "t_compute_s": t_compute * ones,
        "t_tmem_s": t_tmem * ones,
        "t_io_s": t_io * ones,
        "t_step_s": t_step * ones,
        "compute_s": busy,
        "memory_s": waves * k_tiles * t_io,
        "l2_traffic_byte": traffic.l2_byte,
        "llc_traffic_byte": traffic.llc_byte if mach.llc_byte_per_s > 0.0 else 0.0 * ones,
        "hbm_traffic_byte": traffic.hbm_byte,
    }
    return terms, details, bound_time(mach, traffic, 2.0 * m * n * k * batch * ones)


def _llc_hit_rate(platform: Platform, mach: Machine, working_set: FloatArray) -> FloatArray:
    if mach.llc_byte_per_s <= 0.0:
        return np.zeros_like(working_set)
    return hit_rate_of(platform, working_set, mach.cache_start_byte, mach.cache_end_byte)


def _wavefront_terms(
    platform: Platform,
    mach: Machine,
    tiles: Tiles,
    occupancy: GemmOccupancy,
    shape: list[FloatArray],
    precision: str,
    cache: str,
) -> CandidateTerms:
    """Terms, details and bound of Eqs. (9)-(13) as printed, one workgroup per wave slot, shape (candidates, rows).

    Per K-step of one workgroup on one CU: Eq. (11) at the peak times the utilisation, Eq. (10) for one round of loads,
    at least the bytes over the CU's share of `BW_eff`; Eq. (9), Eq. (12), then Eq. (13) with waves. Eq. (12) alone can
    fall below the longer of its two times: it is held to Eq. (1) unless `step_form` is "printed".
    """
    m, n, k, batch = shape
    element, out = element_byte(precision), output_byte(precision)
    grid = _grid(mach, tiles, shape, platform.switch("wave_term"))
    k_tiles, waves = grid["k_tiles"], grid["waves"]
    ones = np.ones_like(k_tiles)
    footprint = ((m + n) * k * element + m * n * out) * batch * ones
    h_llc = _llc_hit_rate(platform, mach, footprint)
    flop = 2.0 * tiles.tile_m * tiles.tile_n * tiles.tile_k
    t_compute = mfma_time(flop, 1.0, mach.unit_flop_per_s, platform.value("mfma_utilisation"))
    latency = memory_time_latency(
        1.0,
        platform.value("l1_hit_rate"),
        platform.value("l2_hit_rate"),
        h_llc,
        platform.value("latency_l1_time"),
        platform.value("latency_l2_time"),
        mach.llc_latency_s,
        mach.latency_s,
    )
    cache_rate = mach.llc_byte_per_s if mach.llc_byte_per_s > 0.0 else mach.l2_byte_per_s
    bandwidth = bandwidth_mix_of(platform)(h_llc, cache_rate, mach.hbm_byte_per_s)
    # loads that miss the L2 share the memory side evenly over the CUs
    missed = (1.0 - platform.value("l1_hit_rate")) * (1.0 - platform.value("l2_hit_rate"))
    step_byte = (tiles.tile_m + tiles.tile_n) * tiles.tile_k * element * missed
    t_memory = memory_time_kernel(latency, step_byte, bandwidth / mach.units)
    by_registers = occupancy_printed(occupancy.vgpr_per_lane * platform.value("warp_size"))
    resident = {"hardware": occupancy.workgroups * occupancy.waves_per_workgroup, "printed": by_registers}
    waves_active = effective_wavefronts(
        resident[platform.switch("occupancy_rule")],
        platform.get("mwp_limit") or 0.0,
        platform.get("cwp_limit") or 0.0,
    )
    eta = overlap_factor(np.maximum(waves_active, 1.0), t_compute, t_memory)
    t_step = step_time_printed(t_memory, t_compute, eta)
    busy = waves * k_tiles * np.minimum(t_compute, t_step)
    compute = busy * grid["wave_efficiency"]
    traffic = gemm_traffic(mach, tiles, m, n, k, batch, element, out, cache)
    fabric = (platform.get("coherence_latency") or 0.0) + (platform.get("cross_xcd_latency") or 0.0)
    terms = {
        "launch": platform.value("kernel_launch_latency") * ones,
        "compute": compute,
        "tail": busy - compute,
        "memory_exposed": waves * k_tiles * t_step - busy,
        "writeback": tiles.tile_m * tiles.tile_n * out / mach.port_byte_per_s * ones,
        "sync": fabric * ones,
    }
    details = {
        **grid,
        "eta_overlap": eta * ones,
        "llc_hit_rate": h_llc,
        "t_compute_s": t_compute * ones,
        "t_memory_s": t_memory * ones,
        "compute_s": waves * k_tiles * t_compute,
        "memory_s": waves * k_tiles * t_memory,
        "l2_traffic_byte": traffic.l2_byte,
        "llc_traffic_byte": traffic.llc_byte if mach.llc_byte_per_s > 0.0 else 0.0 * ones,
        "hbm_traffic_byte": traffic.hbm_byte,
    }
    bound = bound_time(mach, traffic, 2.0 * m * n * k * batch * ones)
    if platform.switch("step_form") == "guarded":  # Eq. (1) of every K-step: the longer of the two times, then the rest
        longer = waves * k_tiles * np.maximum(t_compute, t_memory)
        bound = np.maximum(bound, longer + terms["launch"] + terms["writeback"] + terms["sync"])
    return terms, details, bound


def printed_machine(platform: Platform, precision: str, unit: str) -> Machine:
    """Rates of `platform` with the dense peak as arithmetic rate: the paper keeps peak values "for the stage-centric
    Blackwell validation kernels"."""
    return machine(platform, precision, unit, platform.peak_flop_per_s(precision, unit))


def stage_gemm(
    platform: Platform,
    m: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    batch: ArrayLike,
    precision: str,
    tile: tuple[int, ...] | None = None,
    *,
    unit: str = "matrix",
    cache: str = "cold",
) -> GemmTime:
    """As `gemm.stage_gemm`, with Eqs. (2)-(8) of arXiv 2605.04178 as printed: arguments, terms and errors are the same.
    Operands come from HBM whatever `cache` says. No K loop is split unless `tile` asks for it: that has no cost there.
    """
    check_words(unit, cache)
    unit = resolve_unit(platform, precision, unit)
    shape = problem_rows(m, n, k, batch)
    mach = printed_machine(platform, precision, unit)
    tiles = stage_tiles(platform, precision, unit, tile)
    if tile is None:
        tiles = tiles.keep(tiles.split == 1.0)
    tmem = in_tmem(platform, precision, unit)
    return fastest_of(lambda part: _stage_terms(platform, mach, tiles, part, precision, tmem), shape)


def wavefront_gemm(
    platform: Platform,
    m: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    batch: ArrayLike,
    precision: str,
    tile: tuple[int, ...] | None = None,
    *,
    unit: str = "matrix",
    cache: str = "cold",
) -> GemmTime:
    """As `gemm.wavefront_gemm`, with Eqs. (9)-(13) of arXiv 2605.04178 as printed: arguments, terms and errors are the
    same. No K loop is split unless `tile` asks for it: that has no cost there."""
    check_words(unit, cache)
    unit = resolve_unit(platform, precision, unit)
    shape = problem_rows(m, n, k, batch)
    mach = printed_machine(platform, precision, unit)
    tiles, occupancy = wavefront_tiles(platform, precision, unit, tile)
    if tile is None:
        whole = tiles.split == 1.0
        tiles, occupancy = tiles.keep(whole), occupancy.keep(whole)
    return fastest_of(
        lambda part: _wavefront_terms(platform, mach, tiles, occupancy, part, precision, cache), shape
    )
