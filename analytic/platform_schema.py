"""What a platform parameter file may say: every name, its unit, its meaning and its range.

This table is where the parameter files and the equations meet: an equation that needs a number names a row here, and a
file that holds anything else is refused. Units are SI; cycles stay cycles (a `_time` twin gives seconds).
"""

from __future__ import annotations

from dataclasses import dataclass

from .published.switches import SWITCHES

KINDS = ("spec", "measured", "published", "derived", "assumed")
PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8", "int32")
WORKLOAD_CLASSES = ("memory", "compute", "balanced", "stencil", "irregular")

TEXT = "text"
BOOL = "bool"


@dataclass(frozen=True)
class ParameterSpec:
    """One allowed parameter: SI unit (or `text`, `bool`), meaning, range, and the words a text parameter may be."""

    name: str
    unit: str
    meaning: str
    minimum: float = 0.0
    maximum: float = float("inf")
    required: bool = False
    choices: tuple[str, ...] = ()


def _rows(unit: str, /, **meanings: str) -> list[ParameterSpec]:
    return [ParameterSpec(name, unit, meaning) for name, meaning in meanings.items()]


def _fractions(**meanings: str) -> list[ParameterSpec]:
    return [ParameterSpec(name, "ratio", meaning, 0.0, 1.0) for name, meaning in meanings.items()]


def _switches(**choices: tuple[str, ...]) -> list[ParameterSpec]:
    """Ways to read the printed equations: (meaning, what holds where no file says otherwise, the other way). They act
    where equations are taken as printed (as-published sets); `tmem_strategy` also decides what fits."""
    return [ParameterSpec(name, TEXT, meaning, choices=tuple(ways)) for name, (meaning, *ways) in choices.items()]


def _needed(name: str, unit: str, meaning: str, minimum: float = 0.0) -> ParameterSpec:
    return ParameterSpec(name, unit, meaning, minimum, required=True)


_POSITIVE = 1e-30
_GEOMETRY = [
    _needed("compute_units", "count", "SMs (NVIDIA) or CUs (AMD) that a kernel can use", 1),
    _needed("warp_size", "thread", "threads per warp or wavefront", 1),
    _needed("max_warps_per_cu", "warp", "resident warps or wavefronts per SM/CU", 1),
    _needed("registers_per_cu", "reg32", "32-bit registers per SM/CU", 1),
    _needed("shared_mem_per_cu", "B", "shared memory or LDS per SM/CU, largest carve-out", 1),
    _needed("l2_size", "B", "L2 capacity, all partitions together", 1),
    _needed("llc_size", "B", "memory-side last-level cache (AMD Infinity Cache); 0 where there is none"),
    _needed("hbm_capacity", "B", "device memory a program can use", 1),
    *_rows("count", die_count="GPU dies (XCD, GCD)", simds_per_cu="SIMDs or warp schedulers per SM/CU",
           l2_partitions="private L2s: data in one is not seen from another (XCD, GCD)",
           shared_mem_banks="banks of shared memory or LDS", barriers_per_step="N_bar of eq. (7)",
           tma_participants_a="P of eq. (4): CTAs that share an A tile by multicast; 1 where not given",
           tma_participants_b="P of eq. (4): CTAs that share a B tile by multicast; 1 where not given",
           loads_in_flight_per_warp="vector loads a warp keeps in flight (Little's law)",
           mwp_limit="memory-warp parallelism limit (Hong & Kim); 0 = not set",
           cwp_limit="compute-warp parallelism limit (Hong & Kim); 0 = not set",
           gemm_tile_m="rows of the default GEMM tile", gemm_tile_n="columns of the default GEMM tile",
           gemm_tile_k="depth of one K-step of the default GEMM tile"),
    *_rows("cta", max_ctas_per_cu="resident CTAs or workgroups per SM/CU"),
    *_rows("vgpr", vgprs_per_simd="vector registers per SIMD and lane (architectural and accumulation together)",
           vgpr_granule="VGPR allocation granularity per wavefront"),
    *_rows("B", tmem_per_cu="tensor memory per SM; 0 where there is none", l1_size="L1 per SM/CU",
           shared_mem_bank_width="bytes one bank serves per cycle",
           lds_granule="pieces in which LDS is given to a workgroup; 512 B where not given",
           l2_knee_start="working set up to which L2 holds all (h = 1)",
           l2_knee_end="working set from which L2 holds nothing (h = 0)",
           llc_knee_start="working set up to which the LLC holds all (h = 1)",
           llc_knee_end="working set from which the LLC holds nothing (h = 0)",
           working_set_scale="w0 of eq. (16); 0 switches the blend off"),
    ParameterSpec("accumulate_in", TEXT, "where matrix accumulators live", choices=("tmem", "registers")),
    ParameterSpec("llc_hit_form", TEXT, "LLC hit rate: fitted knees, or Table III of arXiv 2605.04178",
                  choices=("knees", "table3")),
    ParameterSpec("bandwidth_mix", TEXT, "how two levels' bandwidths combine: times add, or the printed weighted mean",
                  choices=("harmonic", "arithmetic")),
    *_switches(**SWITCHES),
    ParameterSpec("unified_memory", BOOL, "CPU and GPU share one memory: no host-device copies", required=True),
]

_RATES = [
    _needed("clock_boost", "Hz", "boost clock; turns cycles into seconds", _POSITIVE),
    _needed("hbm_peak_bw", "B/s", "device memory bandwidth, datasheet", _POSITIVE),
    _needed("sustained_hbm_bw", "B/s", "device memory bandwidth a tuned streaming kernel reaches", _POSITIVE),
    *_rows("Hz", clock_base="base clock", clock_matrix="clock implied by the dense matrix peak"),
    *_rows("W", tdp="board power limit"),
    *_rows("B/s", l1_bw="L1 bandwidth, all SMs/CUs", lds_bw="LDS bandwidth, all CUs", l2_bw="L2 bandwidth, device",
           llc_bw="LLC bandwidth a streaming kernel reaches; 0 where there is none",
           llc_peak_bw="LLC bandwidth by slices x width x clock",
           tmem_read_bw="tensor memory read, device", tmem_write_bw="tensor memory write, device",
           tmem_read_bw_per_cu="BW_TMEM_read of eq. (2), one SM",
           tmem_write_bw_per_cu="BW_TMEM_write of eq. (2), one SM",
           tma_bw_per_cu="B_TMA of eq. (4): tile loads of one SM, operands resident in L2",
           shared_mem_bw_per_cu="shared memory, DSMEM or LDS bandwidth of one SM/CU (BW_shared of eq. (6))",
           host_link_bw="host link per direction, specification", host_link_bw_measured="host link, measured copy",
           memcpy_bandwidth="B_dir of eq. (15): host-device copies",
           inter_die_bw="link between the dies",
           decompression_engine_rate="decompression engine rate, vendor; 0 where there is none",
           decompression_output_rate="R_DE of eq. (5): bytes the engine puts out, whatever the ratio",
           decompression_unpack_rate="R_decomp: sub-byte unpacking, all SMs together",
           decompression_rate_lz4="engine output rate, LZ4", decompression_rate_snappy="engine output rate, Snappy",
           decompression_rate_zstd="output rate, Zstd (not an engine format)",
           decompression_rate_gzip="engine output rate, GZIP (Deflate)",
           decompression_rate_bitcomp="output rate, Bitcomp (not an engine format)",
           decompression_rate_ans="output rate, ANS (not an engine format)"),
]

_LATENCIES = [
    _needed("kernel_launch_latency", "s", "T_launch: interval between back-to-back launches"),
    *_rows("s", kernel_launch_latency_graph="launch interval inside a captured graph",
           kernel_launch_latency_event_bracketed="an empty kernel between two events",
           kernel_launch_latency_sync="launch and device synchronisation as the host sees it",
           empty_kernel_duration="duration of an empty kernel: floor of every kernel time",
           grid_barrier_latency="barrier over the whole grid",
           latency_l1_time="L1 load latency", latency_l2_time="L2 load latency", latency_llc_time="LLC load latency",
           latency_hbm_time="device memory load latency",
           step_misc_overhead="O_misc of eq. (8), per K-step", pipeline_epsilon="epsilon of the pipelined steady state",
           coherence_latency="T_coherence of eq. (13)", cross_xcd_latency="T_cross_XCD of eq. (13)",
           cta_overhead="tau_cta of eq. (14): dispatch of one CTA",
           memcpy_latency="tau_memcpy of eq. (15): fixed cost of one copy",
           sync_latency="tau_sync: one host synchronisation",
           concurrent_kernel_overhead="tau_c, tau_interf: each kernel beyond the first that runs at the same time",
           multi_device_overhead="tau_g, tau_interf_gpu: each device beyond the first",
           fusion_overhead="tau_fusion: extra cost of a fused kernel",
           decompression_setup_latency="L_decomp_setup of the unpacking stage"),
    *_rows("cycle", latency_l1="L1 load latency", latency_l2="L2 load latency", latency_llc="LLC load latency",
           latency_hbm="device memory load latency", latency_shared_mem="shared memory load latency",
           tma_latency="L_TMA of eq. (4)", tma_store_latency="L_TMA_store of the write-back",
           store_setup_latency="L_store_setup of the write-back",
           barrier_latency="barrier within a CTA, measured", mbarrier_latency="L_mbar of eq. (7)",
           commit_latency="L_commit of eq. (6), per K-step of a CTA pair",
           tmem_alloc_latency="L_alloc of eq. (3)", tmem_dealloc_latency="L_dealloc of eq. (3)",
           tensor_instr_latency="L_mma of eq. (2): what a matrix instruction adds beyond its throughput",
           tensor_instr_latency_wgmma_m64n64k16="dependent wgmma m64n64k16",
           tensor_instr_latency_wgmma_m64n128k16="dependent wgmma m64n128k16",
           tensor_instr_latency_wgmma_m64n256k16="dependent wgmma m64n256k16",
           tensor_instr_latency_tcgen05_m64n64k16="dependent tcgen05.mma m64n64k16",
           tensor_instr_latency_tcgen05_m128n128k16="dependent tcgen05.mma m128n128k16",
           tensor_instr_latency_tcgen05_m256n256k16="dependent tcgen05.mma m256n256k16",
           tensor_instr_occupancy_m128n128k16_fp16="tensor core busy with one m128n128k16",
           tensor_instr_occupancy_m256n256k16_fp16_2sm="two tensor cores busy with one m256n256k16"),
]

_MODEL = [
    *_fractions(pipeline_overlap_alpha="alpha of eq. (7): share of input time hidden behind compute",
                mfma_utilisation="utilisation of eq. (11)",
                typical_sustained_fraction_matrix="sustained over peak where a matrix rate was not measured",
                typical_sustained_fraction_vector="sustained over peak where a vector rate was not measured",
                l1_hit_rate="h_L1 of eq. (10) for streaming access",
                l2_hit_rate="h_L2 of eq. (10) for streaming access",
                tma_l2_hit_rate="share of TMA loads found in L2, for B_TMA of eq. (4); all of them where not given",
                decompression_efficiency="eta_DE of eq. (5)"),
    ParameterSpec("operand_compression_ratio", "ratio", "the B operand is stored so many times smaller and unpacked on "
                  "the SMs (T_decomp of eq. (7)); not compressed where not given", 1.0),
    *_rows("ratio", two_sm_speedup="S_2SM of eq. (6), measured",
           two_sm_speedup_model="S_2SM as the paper's model has it",
           tmem_passes_per_step="times eq. (2) moves the accumulator per K-step: 1 as printed, 0 when the matrix unit "
                                "accumulates in place",
           effective_warps_per_cu="W_eff of eq. (14); 1 when a CU's share of the peak is already in T_step_cta",
           int32_vector_fraction="int32 vector rate over fp32 vector rate",
           llc_transition_alpha="alpha of Table III", llc_streaming_beta="beta of Table III"),
    *[ParameterSpec(f"class_scale_{name}", "ratio", f"time scale of {name} segments on the generic path", _POSITIVE)
      for name in WORKLOAD_CLASSES],
    *[ParameterSpec(f"precision_efficiency_{name}", "ratio", f"{name} rate multiplier on the generic path", _POSITIVE)
      for name in PRECISIONS],
]


def _compute_rates() -> list[ParameterSpec]:
    rows = []
    for precision in PRECISIONS:
        unit = "OP/s" if precision.startswith("int") else "FLOP/s"
        for where in ("matrix", "vector"):
            name = f"{precision}_{where}"
            required = name == "fp32_vector"
            dense = f"dense {precision} peak of the {where} units"
            rows.append(ParameterSpec(f"peak_{name}", unit, dense, required=required))
            rows.append(ParameterSpec(f"sustained_{name}", unit, f"{precision} {where} rate of large, tuned kernels"))
            rows.append(ParameterSpec(f"sustained_{name}_max", unit, f"best {precision} {where} rate seen"))
    return rows


PARAMETERS: dict[str, ParameterSpec] = {
    spec.name: spec for spec in (*_GEOMETRY, *_RATES, *_compute_rates(), *_LATENCIES, *_MODEL)
}
REQUIRED = tuple(name for name, spec in PARAMETERS.items() if spec.required)

# Names people type for `--set` and lookups; each stands for exactly one parameter. The memory bandwidth names in
# DRAM_BANDWIDTH stand for two (see `Platform.with_overrides`).
ALIASES = {
    "sm_count": "compute_units", "num_sms": "compute_units", "cu_count": "compute_units", "sms": "compute_units",
    "clock": "clock_boost", "frequency": "clock_boost", "lds_size": "shared_mem_per_cu",
    "lds_banks": "shared_mem_banks",
    "smem_per_sm": "shared_mem_per_cu", "l2_bandwidth": "l2_bw", "llc_bandwidth": "llc_bw",
    "infinity_cache_size": "llc_size", "infinity_cache_bw": "llc_bw", "launch_latency": "kernel_launch_latency",
    "latency_dram": "latency_hbm", "dram_latency": "latency_hbm", "dram_capacity": "hbm_capacity",
    "dram_peak_bandwidth": "hbm_peak_bw", "sustained_dram_bandwidth": "sustained_hbm_bw",
    "alpha": "pipeline_overlap_alpha", "overlap_alpha": "pipeline_overlap_alpha", "w0": "working_set_scale",
    "mfma_utilization": "mfma_utilisation", "memcpy_bw": "memcpy_bandwidth",
    "interference": "concurrent_kernel_overhead",
    "power": "tdp",
}
DRAM_BANDWIDTH = ("dram_bandwidth", "memory_bandwidth", "hbm_bandwidth", "hbm_bw", "dram_bw")


def canonical_name(name: str) -> str:
    """Return the parameter an alias stands for; other names come back unchanged."""
    return ALIASES.get(name, name)
