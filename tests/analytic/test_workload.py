"""Applications: sums, Eqs. (15) and (16), launches, fusion, concurrency, routing, and the properties they must keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.baseline import baseline
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.fusion import fuse_segments
from kernelcast.analytic.generic import CLASSES
from kernelcast.analytic.platform import Platform, load_platform, platform_ids
from kernelcast.analytic.workload import SegmentTime, Workload, workload_baseline
from kernelcast.analytic.workload_file import Segment

H200, MI300A, MI300X = (load_platform(name) for name in ("h200", "mi300a", "mi300x"))
# Of the H200, as its file has them: sustained and peak B/s of HBM, s a launch, B/s, s a copy and s a wait of the host
HBM, PEAK, LAUNCH, LINK, COPY, WAIT = 4.302e12, 4.8e12, 0.863e-6, 55.11e9, 2.525e-6, 5.064e-6


def application(*segments: Segment, **fields: Any) -> Workload:
    defaults: dict[str, Any] = {
        "name": "app", "description": "", "characterisation": "first-principles", "source": "test", "note": "",
        "routing": None, "concurrent_kernels": 1.0, "devices": 1.0, "published": (), "path": "app.yaml",
    }
    return Workload(segments=segments, **(defaults | fields))


def counted(name: str = "a", **fields: Any) -> Segment:
    return Segment.model_validate({"name": name, "precision": "fp64", "flop": 1e9, "bytes": 1e9} | fields)


def one(segment: Segment, platform: Platform = H200, **fields: Any) -> SegmentTime:
    return workload_baseline(application(segment, **fields), platform).segments[0]


def test_a_memory_bound_segment_by_hand() -> None:
    found = one(counted(flop=0, bytes=43.02e9))
    assert found.terms["memory"] == pytest.approx(43.02e9 / HBM)  # 10 ms at the sustained 4.302 TB/s
    assert found.time_s == pytest.approx(10e-3 + LAUNCH)  # and one launch: the floor of a kernel's time
    assert (found.limit, found.route) == ("HBM bytes", "generic (balanced)")


def test_a_compute_bound_segment_by_hand() -> None:
    rate = H200.sustained_flop_per_s("fp64", "vector")
    found = one(counted(flop=rate, bytes=1.0, **{"class": "compute"}))
    assert found.time_s == pytest.approx(1.0 + LAUNCH)
    assert found.limit == "vector FLOP"
    on_matrix = one(counted(flop=rate, bytes=1.0, unit="matrix"))
    assert on_matrix.terms["compute"] == pytest.approx(rate / H200.sustained_flop_per_s("fp64", "matrix"))


def test_overlap_alpha_between_sum_and_maximum() -> None:
    rate = H200.sustained_flop_per_s("fp64", "vector")
    flop, byte = 2e-3 * rate, 1e-3 * HBM  # 2 ms of arithmetic, 1 ms of traffic
    bodies = [one(counted(flop=flop, bytes=byte, alpha=alpha)).time_s - LAUNCH for alpha in (0.0, 0.5, 1.0)]
    assert bodies == pytest.approx([3e-3, 2.5e-3, 2e-3])


def test_executions_and_further_kernels_multiply_launches() -> None:
    found = one(counted(n_exec=10, kernels=3))
    assert found.terms["launch"] == pytest.approx(30 * LAUNCH)
    once = one(counted())
    assert found.time_s == pytest.approx(10 * (once.time_s + 2 * LAUNCH))


def test_copies_and_syncs_follow_eq_15() -> None:
    transfers = [{"bytes": 55.11e6, "direction": "h2d", "episodes": 2}, {"bytes": 55.11e6, "direction": "d2h"}]
    parts: dict[str, Any] = {"transfers": transfers, "syncs": 2, "n_exec": 5}
    found = one(counted(**parts))
    assert found.terms["transfers"] == pytest.approx(5 * 3 * (55.11e6 / LINK + COPY))  # 1 ms and 2.5 us each
    assert found.terms["syncs"] == pytest.approx(5 * 2 * WAIT)
    unified = one(counted(**parts), MI300A)
    assert unified.terms["transfers"] == 0.0
    assert unified.terms["syncs"] == pytest.approx(30e-6)
    assert "unified memory: no copies" in unified.notes


def test_a_segment_of_copies_alone_launches_nothing() -> None:
    found = one(Segment.model_validate({"name": "copy", "transfers": [{"bytes": 1e9, "direction": "h2d"}]}))
    assert {name for name, value in found.terms.items() if value} == {"transfers"}
    assert found.limit == "transfers"


def test_working_set_bandwidth_follows_eq_16() -> None:
    blended = H200.with_overrides({"working_set_scale": "1 GB"})
    found = one(counted(flop=0, bytes=1e9), blended)
    rate = HBM + (PEAK - HBM) * np.exp(-1.0)  # W = w0
    assert found.terms["memory"] == pytest.approx(1e9 / rate)
    assert one(counted(flop=0, bytes=1e9)).terms["memory"] == pytest.approx(1e9 / HBM)  # w0 = 0: switched off


def test_the_hit_rate_given_wins_over_the_working_set() -> None:
    half = one(counted(flop=0, bytes=1e9, hit_rate=0.5), MI300X)
    llc, hbm = MI300X.value("llc_bw"), MI300X.value("sustained_hbm_bw")
    assert half.terms["memory"] == pytest.approx(0.5e9 / llc + 0.5e9 / hbm)
    assert one(counted(flop=0, bytes=1e9, working_set=1e6), MI300X).details["hit_rate"] == 1.0
    assert one(counted(flop=0, bytes=1e9, working_set=1e6, cache="cold"), MI300X).details["hit_rate"] == 0.0


def test_few_bytes_in_flight_follow_littles_law() -> None:
    found = one(counted(flop=0, bytes=8e9, bytes_in_flight=1e5), MI300X)
    assert found.terms["memory"] == pytest.approx(8e9 * MI300X.value("latency_hbm_time") / 1e5)
    assert one(counted(flop=0, bytes=8e9, bytes_in_flight=1e9), MI300X).terms["memory"] == pytest.approx(8e9 / 4.199e12)


def test_class_scale_and_disclosed_multiplier() -> None:
    scaled = H200.with_overrides({"class_scale_stencil": 1.5})
    plain = one(counted(flop=0, **{"class": "stencil"})).terms["memory"]
    assert one(counted(flop=0, **{"class": "stencil"}), scaled).terms["memory"] == pytest.approx(1.5 * plain)
    fitted = one(counted(flop=0, m_case=2.0, m_case_source="train part of a suite", **{"class": "stencil"}))
    assert fitted.terms["memory"] == pytest.approx(2.0 * plain)
    assert any("m_case = 2 (train part of a suite)" in note for note in fitted.notes)


def test_a_family_segment_is_its_baseline_times_its_executions() -> None:
    segment = Segment.model_validate(
        {"name": "p", "kernel": "gemm", "precision": "bf16", "params": {"m": 4096, "n": 4096, "k": 4096}, "n_exec": 7}
    )
    alone = baseline("gemm", {"m": 4096, "n": 4096, "k": 4096}, "bf16", H200)
    found = one(segment)
    assert found.time_s == pytest.approx(7 * alone.time_s[0])
    assert found.bound_s == pytest.approx(7 * alone.bound.seconds[0])
    assert (found.route, found.limit) == ("stage (gemm)", "matrix FLOP")


def test_published_routing_is_shown() -> None:
    classes = {"stencil": "transpose", "compute": "gemm", "memory": "vector_copy"}
    for platform in (load_platform("b200-as-published"), load_platform("mi300a-as-published")):
        for name, family in classes.items():
            found = one(counted(flop=1e12, bytes=1e10, **{"class": name}), platform)
            assert found.route.startswith(f"{name} → {family} (")
            assert found.terms[family] > 0.0
        assert one(counted(), platform).route == "generic (balanced)"
    ours = one(counted(flop=0, **{"class": "memory"}), routing="published")
    assert ours.route == "memory → vector_copy (generic), as published"
    assert ours.time_s == pytest.approx(one(counted(flop=0, **{"class": "memory"})).time_s, rel=0.01)


def test_concurrency_and_devices_add_their_tau_or_are_refused() -> None:
    platform = H200.with_overrides({"concurrent_kernel_overhead": "50 us", "multi_device_overhead": "20 us"})
    alone = workload_baseline(application(counted()), platform).total_s
    found = workload_baseline(application(counted(), concurrent_kernels=3.0, devices=2.0), platform)
    assert found.extra == pytest.approx({"concurrency": 100e-6, "devices": 20e-6})  # (3 - 1)·50 us, (2 - 1)·20 us
    assert found.total_s == pytest.approx(alone + 120e-6)
    with pytest.raises(InputError, match=r"multi_device_overhead"):  # not known there
        workload_baseline(application(counted(), devices=2.0), MI300X)


def test_fusion_removes_the_intermediate_traffic() -> None:
    parts = [counted("a", flop=1e9, bytes=3e9), counted("b", flop=2e9, bytes=2e9)]
    fused = fuse_segments(parts, 2e9, "ab")  # written once and read once: 1 GB each
    assert (fused.flop, fused.bytes, fused.kernels) == (3e9, 3e9, 1.0)
    slow = workload_baseline(application(*parts), H200).total_s
    tau = H200.with_overrides({"fusion_overhead": "5 us"})
    fast = workload_baseline(application(fused, fused=frozenset({"ab"})), tau).total_s
    assert slow - fast == pytest.approx(2e9 / HBM + LAUNCH - 5e-6)
    family = Segment.model_validate({"name": "b", "kernel": "gemv", "params": {"m": 1, "n": 1}})
    for wrong, message in (
        ([counted("a"), counted("b", precision="fp32")], "differ in precision"),
        ([counted("a"), counted("b", n_exec=2)], "differ in n_exec"),
        ([counted("a"), family], r"differ in precision \(a fp64, b fp32\)"),
    ):
        with pytest.raises(InputError, match=message):
            fuse_segments(wrong, 0.0, "ab")
    with pytest.raises(InputError, match=r"6 GB stay on chip, but the kernels move 5 GB"):
        fuse_segments(parts, 6e9, "ab")


def test_families_are_fused_by_the_work_they_count() -> None:
    n = 10**8
    parts = [Segment.model_validate({"name": name, "kernel": kernel, "params": {"n": n}, "precision": "fp32"})
             for name, kernel in (("scale", "vector_scale"), ("add", "vector_add"))]
    one = fuse_segments(parts, 2 * n * 4, "both")  # the scaled vector is neither written nor read again
    assert one.bytes == (2 + 3 - 2) * n * 4
    assert (one.kernel, one.kernels, one.precision) == (None, 1.0, "fp32")
    assert "scale, add" in one.note and "re-reads" in one.note
    apart = workload_baseline(application(*parts), H200).total_s
    found = workload_baseline(application(*parts).with_fusion(["scale", "add"], 2 * n * 4), H200)
    assert apart - found.total_s == pytest.approx(2 * n * 4 / HBM + LAUNCH)
    assert found.segments[0].name == "scale+add" and found.workload.fused == {"scale+add"}
    assert found.workload.changed == ("fused scale, add, 800 MB staying on chip",)
    with pytest.raises(InputError, match="cannot fuse scale,sub: segments: no segment 'sub'"):
        application(*parts).with_fusion(["scale", "sub"], 0.0)


positive = st.floats(1.0, 1e13)
platform_name = st.sampled_from(platform_ids())
segment_fields = st.fixed_dictionaries(
    {"flop": st.one_of(st.just(0.0), positive), "bytes": positive, "class": st.sampled_from(CLASSES),
     "precision": st.sampled_from(["fp64", "fp32"]), "n_exec": st.integers(1, 50), "kernels": st.integers(1, 5),
     "working_set": st.floats(0.0, 1e12), "alpha": st.floats(0.0, 1.0), "syncs": st.integers(0, 3)}
)


@settings(max_examples=80, deadline=None)
@given(platform_name, segment_fields)
def test_terms_are_positive_add_up_and_stay_above_the_bound(name: str, fields: dict[str, Any]) -> None:
    found = one(counted(**fields), load_platform(name))
    assert all(value >= 0.0 for value in found.terms.values())
    assert sum(found.terms.values()) == found.time_s
    assert found.time_s >= found.bound_s * (1 - 1e-12)


@settings(max_examples=60, deadline=None)
@given(platform_name, segment_fields, st.sampled_from(["flop", "bytes", "n_exec", "kernels", "syncs"]))
def test_more_work_never_takes_less_time(name: str, fields: dict[str, Any], which: str) -> None:
    platform = load_platform(name)
    if platform.as_published and fields["class"] == "compute":
        return  # the proxy's tiles quantise: a larger cube can fill its waves better
    more = fields | {which: fields[which] * 2 + 1}
    assert one(counted(**more), platform).time_s >= one(counted(**fields), platform).time_s * (1 - 1e-12)


@settings(max_examples=60, deadline=None)
@given(segment_fields, st.sampled_from(["sustained_hbm_bw", "sustained_fp32_vector", "memcpy_bandwidth", "l2_bw"]))
def test_faster_parts_and_more_overlap_never_take_longer(fields: dict[str, Any], rate: str) -> None:
    faster = H200.with_overrides({rate: H200.value(rate) * 1.05})
    plain = one(counted(**fields)).time_s
    assert one(counted(**fields), faster).time_s <= plain * (1 + 1e-12)
    more = fields | {"alpha": min(1.0, fields["alpha"] + 0.1)}
    assert one(counted(**more)).time_s <= plain * (1 + 1e-12)


@pytest.mark.parametrize("name", ["h200", "mi300x", "mi300a", "b200"])
def test_time_is_continuous_in_the_working_set(name: str) -> None:
    """Across both knees, in steps of 0.5 %, no jump of more than the slope allows."""
    sizes = np.geomspace(1e6, 1e10, 1850)
    segments = [counted(f"w{i}", flop=0, bytes=1e9, working_set=float(w)) for i, w in enumerate(sizes)]
    times = np.array([s.time_s for s in workload_baseline(application(*segments), load_platform(name)).segments])
    assert (np.diff(times) >= -1e-18).all()
    assert np.max(np.diff(times) / times[:-1]) < 0.02


@settings(max_examples=20, deadline=None)
@given(st.lists(segment_fields, min_size=2, max_size=6), platform_name)
def test_together_equals_one_by_one(many: list[dict[str, Any]], name: str) -> None:
    platform = load_platform(name)
    segments = [counted(f"s{i}", **fields) for i, fields in enumerate(many)]
    together = workload_baseline(application(*segments), platform)
    assert [s.time_s for s in together.segments] == [one(s, platform).time_s for s in segments]
    assert together.total_s == pytest.approx(sum(s.time_s for s in together.segments))
    assert sum(together.terms.values()) == pytest.approx(together.total_s)
