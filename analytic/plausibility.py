"""Checks that a set of hardware numbers can describe one machine. Findings are flags beside the data, never edits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .architecture import load_architecture
from .platform_file import Parameter
from .platform_schema import PARAMETERS, PRECISIONS
from .units import format_quantity

PEAK_TOLERANCE = 0.02
# One tensor memory port moves 128 B per cycle and sub-partition; four sub-partitions, read and write.
TMEM_BYTE_PER_CYCLE_LIMIT = 1024.0

# (smaller, larger): the first may not exceed the second. Missing and zero values are skipped.
_ORDERED = (
    ("l1_size", "l2_size"), ("l2_size", "llc_size"), ("l2_size", "hbm_capacity"), ("llc_size", "hbm_capacity"),
    ("sustained_hbm_bw", "hbm_peak_bw"), ("sustained_hbm_bw", "llc_bw"), ("sustained_hbm_bw", "l2_bw"),
    ("llc_bw", "llc_peak_bw"), ("llc_bw", "l2_bw"), ("l2_bw", "l1_bw"),
    ("latency_l1", "latency_l2"), ("latency_l2", "latency_llc"), ("latency_l2", "latency_hbm"),
    ("latency_llc", "latency_hbm"), ("latency_shared_mem", "latency_l2"),
    ("l2_knee_start", "l2_knee_end"), ("llc_knee_start", "llc_knee_end"), ("clock_base", "clock_boost"),
    ("clock_matrix", "clock_boost"), ("kernel_launch_latency_graph", "kernel_launch_latency"),
    ("kernel_launch_latency", "kernel_launch_latency_sync"), ("host_link_bw_measured", "host_link_bw"),
)


@dataclass(frozen=True)
class Flag:
    """A value that cannot be right beside the others: where it stands and why."""

    file: str
    key: str
    message: str


def plausibility_flags(parameters: Mapping[str, Parameter], arch: str, file: str) -> tuple[Flag, ...]:
    """Return every implausible value of one set. Order follows the checks; a clean set gives an empty tuple."""
    numbers = {name: float(p.value) for name, p in parameters.items() if isinstance(p.value, float | int) and p.value}
    found = [*_rates(numbers), *_order(numbers), *_peaks(numbers, arch), *_geometry(numbers)]
    return tuple(Flag(file, key, message) for key, message in found)


def _show(name: str, value: float) -> str:
    return format_quantity(value, PARAMETERS[name].unit)


def dense_peak_name(rate: str, numbers: Mapping[str, float]) -> str | None:
    """Return the peak that bounds `rate` ("fp32_matrix"): its own, or the vector peak where no matrix peak is known."""
    precision, _, where = rate.partition("_")
    vector = f"peak_{precision}_vector"
    own = f"peak_{rate}"
    if numbers.get(own):
        return own
    return vector if where == "matrix" and numbers.get(vector) else None


def _rates(numbers: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    for precision in PRECISIONS:
        for where in ("matrix", "vector"):
            rate = f"{precision}_{where}"
            peak = dense_peak_name(rate, numbers)
            for key in (f"sustained_{rate}", f"sustained_{rate}_max"):
                if key not in numbers or peak is None or numbers[key] <= numbers[peak]:
                    continue
                excess = numbers[key] / numbers[peak] - 1
                yield key, (f"{_show(key, numbers[key])} is {excess:.0%} above the dense peak "
                            f"{_show(peak, numbers[peak])} ({peak})")


def _order(numbers: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    for small, large in _ORDERED:
        if small in numbers and large in numbers and numbers[small] > numbers[large]:
            yield small, f"{_show(small, numbers[small])} is more than {large} = {_show(large, numbers[large])}"


def _peaks(numbers: Mapping[str, float], arch: str) -> Iterator[tuple[str, str]]:
    """Compare each peak with units x FLOP/cycle x clock. Matrix peaks use `clock_matrix` where the file has one."""
    for rate, per_cycle in load_architecture(arch).flop_per_cycle.value.items():
        key = f"peak_{rate}"
        # FP64 matrix instructions run at the boost clock: every dense FP64 peak in the files is quoted at it.
        tensor = rate.endswith("_matrix") and not rate.startswith("fp64")
        clock_name = "clock_matrix" if tensor and "clock_matrix" in numbers else "clock_boost"
        if key not in numbers or clock_name not in numbers or "compute_units" not in numbers:
            continue
        units, clock = numbers["compute_units"], numbers[clock_name]
        expected = units * per_cycle * clock
        difference = numbers[key] / expected - 1
        if abs(difference) > PEAK_TOLERANCE:
            yield key, (f"{_show(key, numbers[key])} differs by {difference:+.0%} from {units:g} units x {per_cycle} "
                        f"FLOP/cycle x {format_quantity(clock, 'Hz')} = {_show(key, expected)}")


def _geometry(numbers: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    wanted = ("registers_per_cu", "vgprs_per_simd", "simds_per_cu", "warp_size")
    if all(name in numbers for name in wanted):
        registers, *factors = (numbers[name] for name in wanted)
        expected = factors[0] * factors[1] * factors[2]
        if registers != expected:
            yield "registers_per_cu", (f"{registers:g} differs from {factors[0]:g} VGPR x {factors[1]:g} SIMD x "
                                       f"{factors[2]:g} lanes = {expected:g}")
    for key in ("tmem_read_bw_per_cu", "tmem_write_bw_per_cu"):
        if key in numbers and numbers[key] / numbers["clock_boost"] > TMEM_BYTE_PER_CYCLE_LIMIT:
            per_cycle = numbers[key] / numbers["clock_boost"]
            yield key, (f"{_show(key, numbers[key])} for one SM is {per_cycle:.0f} B/cycle, above the "
                        f"{TMEM_BYTE_PER_CYCLE_LIMIT:.0f} B/cycle its four ports could move")
    if "tmem_read_bw" in numbers and "tmem_read_bw_per_cu" in numbers:
        total = numbers["tmem_read_bw_per_cu"] * numbers["compute_units"]
        if abs(total / numbers["tmem_read_bw"] - 1) > PEAK_TOLERANCE:
            yield "tmem_read_bw", (f"{_show('tmem_read_bw', numbers['tmem_read_bw'])} is not the per-SM rate times the "
                                   f"units ({_show('tmem_read_bw', total)})")
