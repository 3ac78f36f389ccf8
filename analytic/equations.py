"""The numbered equations of arXiv 2605.04178 as a table: where each is, what it may be asked, which way it must move.

Whoever has the paper in hand finds an equation here by its number. The ranges are those beside each formula, narrowed
to its own arguments; `rises` and `falls` name the arguments in which the result never falls or never rises.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from . import cachemodel, generic, occupancy, roofline, stage, wavefront, waves
from .platform import Platform
from .published import cache as printed_cache
from .published import lds, stage_io
from .published import stage as printed_stage
from .published import wavefront as printed_wavefront
from .validity import BoolArray, FloatArray, Validity, outside


@dataclass(frozen=True)
class Equation:
    """One equation: its number as printed ("7") or its place ("under 8"), and its function."""

    number: str
    title: str
    function: Callable[..., FloatArray]
    ranges: tuple[Validity, ...] = ()
    rises: tuple[str, ...] = ()
    falls: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """`analytic.stage.tmem_time`."""
        return f"{self.function.__module__.partition('.')[2]}.{self.function.__name__}"

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the function's arguments, in order."""
        return tuple(inspect.signature(self.function).parameters)

    def outside(self, **values: ArrayLike) -> dict[str, BoolArray]:
        """Per named argument, where a value leaves the range. InputError for an argument without one."""
        return outside(self.ranges, values)


def _row(
    number: str, title: str, function: Callable[..., FloatArray], known: Iterable[Validity], rises: str = "",
    falls: str = "",
) -> Equation:
    own = set(inspect.signature(function).parameters)
    ranges = tuple(item for item in known if item.name in own)
    return Equation(number, title, function, ranges, tuple(rises.split()), tuple(falls.split()))


_STEP = (*stage.COMPUTE_VALIDITY, *printed_stage.STEP_VALIDITY)
_WAVEFRONT = printed_wavefront.WAVEFRONT_VALIDITY
_TILES = "tile_m tile_n tile_k"

EQUATIONS: tuple[Equation, ...] = (
    _row("1", "longer of compute and memory, plus overhead", roofline.execution_time, roofline.ROOFLINE_VALIDITY,
         "t_compute_s t_memory_s t_overhead_s"),
    _row("2", "tensor memory in a K-step", printed_stage.tmem_time, printed_stage.TMEM_VALIDITY, "d_accum_byte l_mma_s",
         "read_byte_per_s write_byte_per_s"),
    _row("3", "matrix unit in a K-step", stage.compute_time, _STEP, f"{_TILES} t_tmem_s t_tmem_mgmt_s",
         "sm_flop_per_s s_mode"),
    _row("4", "TMA copy of a tile, shared by multicast", stage_io.tma_time, stage_io.IO_VALIDITY, "tile_byte l_tma_s",
         "tma_byte_per_s participants"),
    _row("5", "load of compressed data, by the link", stage_io.decompression_load_time, stage_io.IO_VALIDITY,
         "uncompressed_byte", "compression_ratio link_byte_per_s efficiency"),
    _row("6", "matrix unit of a CTA pair", printed_stage.compute_time_2sm, _STEP, f"{_TILES} t_tmem_s t_tmem_mgmt_s",
         "sm_flop_per_s s_2sm"),
    _row("7", "input time a K-step cannot hide", stage_io.io_time_effective, stage_io.IO_VALIDITY,
         "t_tma_s t_decomp_s t_sync_s", "alpha"),
    _row("8", "K-step of the stage-centric model", printed_stage.step_time, _STEP,
         "t_compute_s t_io_eff_s t_sync_s o_misc_s"),
    _row("9", "overlap by the other wavefronts", printed_wavefront.overlap_factor, _WAVEFRONT,
         "n_wavefronts t_compute_s", "t_memory_s"),
    _row("10", "memory time through the cache chain", printed_wavefront.memory_time_latency, _WAVEFRONT,
         "n_loads l_l1_s l_l2_s l_llc_s l_hbm_s"),
    _row("11", "MFMA instructions of the device", printed_wavefront.mfma_time, _WAVEFRONT, "n_mfma",
         "n_cu mfma_per_s utilisation"),
    _row("12", "K-step of the wavefront-centric model", printed_wavefront.step_time_printed, _WAVEFRONT,
         "t_memory_s t_compute_s", "overlap"),
    _row("13", "kernel time of the wavefront-centric model", printed_wavefront.kernel_time_wavefront,
         _WAVEFRONT,
         "t_launch_s k_tiles t_step_s t_writeback_s t_coherence_s t_cross_xcd_s waves"),
    _row("14", "tile study", printed_wavefront.tile_kernel_time, _WAVEFRONT,
         "n_cta t_step_cta_s tau_cta_s t_launch_s t_writeback_s t_coherence_s t_cross_xcd_s", "n_cu w_eff"),
    _row("15", "copy between host and device", generic.memcpy_time, generic.GENERIC_VALIDITY, "byte tau_s",
         "byte_per_s"),
    _row("16", "bandwidth of a working set", generic.effective_bandwidth, generic.GENERIC_VALIDITY, "",
         "working_set_byte"),
)

UNNUMBERED: tuple[Equation, ...] = (
    _row("section II.A", "naive roofline", roofline.naive_roofline, roofline.ROOFLINE_VALIDITY, "flop byte",
         "peak_flop_per_s peak_byte_per_s"),
    _row("under 1", "sum, maximum, or between", roofline.combine_overlap, roofline.ROOFLINE_VALIDITY,
         "first_s second_s", "overlap"),
    _row("under 3", "tensor memory management, amortised", printed_stage.tmem_management_time, _STEP,
         "l_alloc_s l_dealloc_s", "k_tiles"),
    _row("above 5", "load of compressed data, by link or engine", stage_io.decompression_engine_time,
         stage_io.IO_VALIDITY, "compressed_byte", "link_byte_per_s engine_input_byte_per_s"),
    _row("under 5", "sub-byte unpacking", stage_io.unpack_time, stage_io.IO_VALIDITY, "compressed_byte l_setup_s",
         "unpack_byte_per_s"),
    _row("above 6", "traffic of a CTA pair", printed_stage.pair_traffic, _STEP, "m_a_byte m_b_byte"),
    _row("above 6", "memory time of a CTA pair", printed_stage.pair_memory_time, _STEP, "m_a_byte m_b_byte",
         "shared_byte_per_s"),
    _row("above 6", "commits of a CTA pair", printed_stage.pair_sync_time, _STEP, "k_tiles l_commit_s"),
    _row("above 7", "barriers of a K-step", stage_io.sync_time, stage_io.IO_VALIDITY, "n_barriers l_mbar_s"),
    _row("above 8", "steady state of a full pipeline", printed_stage.step_time_pipelined, _STEP,
         "t_tma_s t_decomp_s t_compute_s t_sync_s epsilon_s"),
    _row("under 8", "kernel time of the stage-centric model", printed_stage.kernel_time, _STEP,
         "t_launch_s k_tiles t_step_s t_sync_s t_writeback_s waves"),
    _row("under 8", "plain store of a tile", printed_stage.store_time, _STEP, "c_tile_byte l_store_setup_s",
         "gmem_byte_per_s"),
    _row("under 8", "TMA store of a tile", printed_stage.tma_store_time, _STEP, "c_tile_byte l_tma_store_s",
         "tma_byte_per_s"),
    _row("missing in print", "waves of a grid", waves.wave_count, (), "ctas", "units ctas_per_unit"),
    _row("under 9", "occupancy as printed", printed_wavefront.occupancy_printed, occupancy.OCCUPANCY_VALIDITY, "",
         "vgpr_per_wavefront"),
    _row("under 9", "occupancy as the hardware allocates", occupancy.workgroups_per_cu, occupancy.OCCUPANCY_VALIDITY,
         "lds_capacity_byte vgprs_per_simd max_waves_per_cu max_workgroups",
         "waves_per_workgroup vgpr_per_lane lds_byte"),
    _row("under 10", "mix of two bandwidths, printed", printed_cache.bandwidth_arithmetic, (),
         "hit_rate cache_byte_per_s memory_byte_per_s"),
    _row("under 10", "mix of two bandwidths, times added", cachemodel.bandwidth_harmonic, (),
         "hit_rate cache_byte_per_s memory_byte_per_s"),
    _row("Table III", "hit rate of the last-level cache, continuous", printed_cache.hit_rate_table_iii,
         printed_cache.TABLE_III_VALIDITY, "join", "working_set_byte"),
    _row("Table III", "hit rate by fitted knees", cachemodel.knee_hit_rate, cachemodel.KNEES_VALIDITY,
         "knee_start_byte knee_end_byte", "working_set_byte"),
    _row("after 12", "consistent K-step of N wavefronts", wavefront.step_time, _WAVEFRONT,
         "t_memory_s t_compute_s n_wavefronts"),
    _row("above 14", "one CTA of the tile study", printed_wavefront.tile_step_time, _WAVEFRONT,
         "flop_per_cta byte_per_cta", "cu_flop_per_s cu_byte_per_s"),
    _row("under 14", "wavefronts within MWP and CWP", printed_wavefront.effective_wavefronts, (), "n_active"),
    _row("under 14", "concurrent kernels, streams, devices", generic.concurrency_time, (), "count tau_s"),
    _row("section IV.B", "bank conflicts of the LDS", lds.lds_time, occupancy.OCCUPANCY_VALIDITY,
         "byte conflict_degree", "lds_byte_per_s"),
    _row("under 15", "host synchronisations", generic.host_sync_time, generic.GENERIC_VALIDITY, "syncs tau_sync_s"),
    _row("section IV.F", "launches beyond the first", generic.extra_launch_time, generic.GENERIC_VALIDITY,
         "kernels t_launch_s"),
)

_BY_NUMBER: Mapping[str, Equation] = {row.number: row for row in EQUATIONS}


def equation(number: int | str) -> Equation:
    """The numbered equation, 1 to 16. KeyError for any other."""
    return _BY_NUMBER[str(number)]


# Platform parameters that stand for an argument of an equation: name -> (equation, argument, is in cycles).
_STANDS_FOR: dict[str, tuple[Equation, str, bool]] = {
    "tmem_read_bw_per_cu": (_BY_NUMBER["2"], "read_byte_per_s", False),
    "tmem_write_bw_per_cu": (_BY_NUMBER["2"], "write_byte_per_s", False),
    "tensor_instr_latency": (_BY_NUMBER["2"], "l_mma_s", True),
    "tma_latency": (_BY_NUMBER["4"], "l_tma_s", True),
    "tma_participants_a": (_BY_NUMBER["4"], "participants", False),
    "tma_participants_b": (_BY_NUMBER["4"], "participants", False),
    "two_sm_speedup": (_BY_NUMBER["6"], "s_2sm", False),
    "pipeline_overlap_alpha": (_BY_NUMBER["7"], "alpha", False),
    "step_misc_overhead": (_BY_NUMBER["8"], "o_misc_s", False),
    "mfma_utilisation": (_BY_NUMBER["11"], "utilisation", False),
    "coherence_latency": (_BY_NUMBER["13"], "t_coherence_s", False),
    "cross_xcd_latency": (_BY_NUMBER["13"], "t_cross_xcd_s", False),
    "effective_warps_per_cu": (_BY_NUMBER["14"], "w_eff", False),
    "memcpy_bandwidth": (_BY_NUMBER["15"], "byte_per_s", False),
    "memcpy_latency": (_BY_NUMBER["15"], "tau_s", False),
    "working_set_scale": (_BY_NUMBER["16"], "w0_byte", False),
}


def out_of_range(platform: Platform, names: Iterable[str] | None = None) -> list[str]:
    """Sentences on those of the named parameters (all that stand for an argument) that leave their equation's range.

    A unit that a part has not (a rate or latency of 0) is not judged.
    """
    wanted = set(_STANDS_FOR if names is None else names)
    said = []
    for name, (row, argument, in_cycles) in _STANDS_FOR.items():
        value = platform.get(name)
        if name not in wanted or not value:
            continue
        shown = value / platform.value("clock_boost") if in_cycles else value
        if bool(np.any(row.outside(**{argument: shown})[argument])):
            known = next(item for item in row.ranges if item.name == argument)
            unit = "" if known.unit == "1" else f" {known.unit}"
            said.append(f"{name} = {shown:.4g} is outside {known.low:g} to {known.high:g}{unit}, "
                        f"where Eq. ({row.number}) was published or checked")
    return said
