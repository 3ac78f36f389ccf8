"""Every way to read the printed equations is a parameter: what it is when nobody says, and what the other way does."""

from __future__ import annotations

import numpy as np
import pytest
from kernelcast.analytic.baseline import baseline
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.explain import explain_baseline
from kernelcast.analytic.gemm import stage_gemm as our_stage_gemm
from kernelcast.analytic.gemm_common import GemmTime
from kernelcast.analytic.platform import Platform, load_platform
from kernelcast.analytic.platform_schema import PARAMETERS
from kernelcast.analytic.published.gemm import stage_gemm, wavefront_gemm
from kernelcast.analytic.published.wavefront import occupancy_printed, overlap_factor, step_time_printed

B200, MI300A = "b200-as-published", "mi300a-as-published"
SWITCHES = {"sync_count": ("once", "twice"), "wave_term": ("grid", "one_cta"), "step_form": ("guarded", "printed"),
            "k_step": ("step", "pipelined"), "occupancy_rule": ("hardware", "printed"), "tmem_strategy": ("A", "B"),
            "cta_pairs": ("off", "on"), "tma_order": ("overlapped", "serial"), "store_by": ("tma", "plain"),
            "tile_closing": ("once", "each_wave")}


def example(**changes: str | float) -> tuple[Platform, GemmTime]:
    """The worked example, 16384^3 at tile 128x128x32, on the published B200."""
    platform = load_platform(B200).with_overrides(changes)
    return platform, stage_gemm(platform, 16384, 16384, 16384, 1, "fp16", tile=(128, 128, 32))


def loop(found: GemmTime) -> float:
    """K loop over all waves [s]."""
    return float(sum(found.terms[name][0] for name in ("compute", "tail", "memory_exposed")))


def cycles(count: float) -> float:
    return count / load_platform(B200).value("clock_boost")


@pytest.mark.parametrize("name", SWITCHES)
def test_the_first_way_holds_where_nothing_is_said_and_other_words_are_refused(name: str) -> None:
    assert PARAMETERS[name].choices == SWITCHES[name]
    platform = load_platform(B200)
    assert platform.switch(name) == SWITCHES[name][0]
    assert platform.with_overrides({name: SWITCHES[name][1]}).switch(name) == SWITCHES[name][1]
    with pytest.raises(InputError, match=f"cannot set {name}=else"):
        platform.with_overrides({name: "else"})


@pytest.mark.parametrize("name", SWITCHES)
def test_saying_what_holds_anyway_changes_nothing(name: str) -> None:
    for platform_id, route in ((B200, stage_gemm), (MI300A, wavefront_gemm)):
        platform = load_platform(platform_id)
        said = platform.with_overrides({name: SWITCHES[name][0]})
        times = [route(p, [512, 8192], [512, 8192], 4096, 1, "fp16").time_s for p in (platform, said)]
        assert times[0].tolist() == times[1].tolist()


def test_synchronisation_counted_twice_adds_a_barrier_to_every_step() -> None:
    once, twice = (loop(example(sync_count=word)[1]) for word in SWITCHES["sync_count"])
    assert twice - once == pytest.approx(94 * 512 * cycles(45), rel=1e-9)  # waves x K-steps x L_mbar


def test_without_the_wave_term_one_cta_is_all_and_the_guard_says_so() -> None:
    _, found = example(wave_term="one_cta")
    assert loop(found) == pytest.approx(loop(example()[1]) / 94, rel=1e-12)
    assert found.guard.tolist() == [True]
    assert found.time_s[0] == pytest.approx(2 * 16384**3 / 2250e12)  # the bound: what one CTA takes is 1/94 of it


def test_steady_state_of_a_full_pipeline() -> None:
    platform, found = example(k_step="pipelined", pipeline_epsilon="2 ns")
    a_tile = 128 * 32 * 2  # B
    t_tma = platform.value("tma_latency") / platform.value("clock_boost") + a_tile / platform.value("tma_bw_per_cu")
    step = max(t_tma, float(found.details["t_compute_s"][0]), cycles(45)) + 2e-9
    assert found.details["t_step_s"][0] == pytest.approx(step, rel=1e-12)


def test_copies_one_after_the_other_double_the_exposed_part() -> None:
    settings = {"pipeline_overlap_alpha": 0.0}
    side, after = (example(tma_order=word, **settings)[1].details["t_io_s"][0] for word in SWITCHES["tma_order"])
    assert after - cycles(45) == pytest.approx(2 * (side - cycles(45)), rel=1e-12)  # A and B tiles are equal


def test_multicast_and_l2_residency_move_the_copy_time() -> None:
    plain = example(pipeline_overlap_alpha=0.0)
    latency = plain[0].value("tma_latency") / plain[0].value("clock_boost") + cycles(45)
    both = example(pipeline_overlap_alpha=0.0, tma_participants_a=4, tma_participants_b=2)[1].details["t_io_s"][0]
    one = example(pipeline_overlap_alpha=0.0, tma_participants_a=4, tma_participants_b=4)[1].details["t_io_s"][0]
    base = plain[1].details["t_io_s"][0]
    assert both - latency == pytest.approx((base - latency) / 2, rel=1e-9)  # the larger of A/4 and B/2
    assert one - latency == pytest.approx((base - latency) / 4, rel=1e-9)
    shares = [example(pipeline_overlap_alpha=0.0, tma_l2_hit_rate=h)[1].details["t_io_s"][0] for h in (1.0, 0.5, 0.0)]
    assert shares[0] == pytest.approx(base, rel=1e-12)
    assert shares[0] < shares[1] < shares[2]
    # nothing in L2: the SM's share of the HBM bandwidth
    hbm = plain[0].value("sustained_hbm_bw") / plain[0].value("compute_units")
    assert shares[2] - latency == pytest.approx(128 * 32 * 2 / hbm, rel=1e-9)


def test_a_compressed_operand_is_copied_small_and_unpacked() -> None:
    platform, plain = example(pipeline_overlap_alpha=0.0)
    units, tma = platform.value("compute_units"), platform.value("tma_bw_per_cu")
    packed = example(pipeline_overlap_alpha=0.0, operand_compression_ratio=4, decompression_unpack_rate=units * 1e11,
                     decompression_setup_latency=0)[1]
    small = 128 * 32 * 2 / 4  # B: a quarter of the B tile; A is as large as before, and the longer copy
    assert packed.details["t_io_s"][0] - plain.details["t_io_s"][0] == pytest.approx(small / 1e11, rel=1e-9)
    serial = {"pipeline_overlap_alpha": 0.0, "tma_order": "serial"}
    before, after = (example(**serial, **more)[1].details["t_io_s"][0] for more in
                     ({}, {"operand_compression_ratio": 4, "decompression_unpack_rate": units * 1e11,
                           "decompression_setup_latency": 0}))
    assert before - after == pytest.approx(0.75 * 128 * 32 * 2 / tma - small / 1e11, rel=1e-9)
    with pytest.raises(InputError, match="out of range"):
        platform.with_overrides({"operand_compression_ratio": 0.5})


def test_cta_pairs_speed_up_commit_and_never_beat_the_peak() -> None:
    platform, alone = example()
    _, pair = example(cta_pairs="on")
    rest = alone.details["t_tmem_s"][0] + (platform.value("tmem_alloc_latency") + platform.value("tmem_dealloc_latency")
                                           ) / platform.value("clock_boost") / 512
    tensor = [found.details["t_compute_s"][0] - rest for found in (alone, pair)]
    assert tensor[0] / tensor[1] == pytest.approx(1.28, rel=1e-9)
    step = max(pair.details["t_compute_s"][0], pair.details["t_io_s"][0]) + cycles(platform.value("commit_latency"))
    assert pair.details["t_step_s"][0] == pytest.approx(step, rel=1e-12)
    # 1.28 times the dense peak is no rate of the machine: the guard lifts it to the bound
    slow = example(cta_pairs="on", commit_latency=0)[1]
    assert slow.guard.tolist() == [True]
    assert slow.time_s[0] == pytest.approx(2 * 16384**3 / 2250e12, rel=1e-12)


def test_strategy_b_moves_the_a_tile_through_tensor_memory_and_frees_shared_memory() -> None:
    platform = load_platform(B200)
    a, b = (example(tmem_strategy=word)[1].details["t_tmem_s"][0] for word in "AB")
    per_byte = 1 / platform.value("tmem_read_bw_per_cu") + 1 / platform.value("tmem_write_bw_per_cu")
    assert b - a == pytest.approx(128 * 32 * 2 * per_byte, rel=1e-9)
    # default equations: two stages of (128 + 128) x 256 x 2 B = 256 KiB do not fit 228 KiB, of the B tile alone they do
    ours = load_platform("b200")
    deep = (128, 128, 256)
    with pytest.raises(InputError, match="shared memory"):
        our_stage_gemm(ours, 4096, 4096, 4096, 1, "bf16", tile=deep)
    without_a = ours.with_overrides({"tmem_strategy": "B"})
    assert our_stage_gemm(without_a, 4096, 4096, 4096, 1, "bf16", tile=deep).time_s[0] > 0
    # 256 x 256 accumulators fill the tensor memory: no room for the A operand
    full = (256, 256, 32)
    assert our_stage_gemm(ours, 4096, 4096, 4096, 1, "bf16", tile=full).time_s[0] > 0
    with pytest.raises(InputError, match="tensor memory"):
        our_stage_gemm(ours.with_overrides({"tmem_strategy": "B"}), 4096, 4096, 4096, 1, "bf16", tile=full)


def test_stores_plain_and_in_every_wave() -> None:
    platform, found = example()
    byte = 128 * 128 * 2
    plain = example(store_by="plain")[1].terms["writeback"][0]
    share = platform.value("sustained_hbm_bw") / platform.value("compute_units")
    assert plain == pytest.approx(byte / share + cycles(platform.value("store_setup_latency")), rel=1e-12)
    each = example(tile_closing="each_wave")[1]
    for name in ("writeback", "sync"):
        assert each.terms[name][0] == pytest.approx(94 * found.terms[name][0], rel=1e-12)


def test_printed_occupancy_is_by_registers_alone() -> None:
    platform = load_platform(MI300A)
    shape, tile = (4096, 4096, 4096, 1, "fp64"), (64, 64, 16)
    hardware, printed = (
        wavefront_gemm(platform.with_overrides({"occupancy_rule": word}), *shape, tile=tile)
        for word in SWITCHES["occupancy_rule"]
    )
    # (64x64 accumulators + 128x16 operands) x 8 B over 4 wavefronts of 64 lanes, and 32 for addresses: 80 per lane
    resident = occupancy_printed((64 * 64 * 8 + 128 * 16 * 8) / 4 / (4 * 64) * 64 + 32 * 64)
    assert resident == 12  # floor(65536 / (80 x 64)); registers alone allow 24, LDS 16
    eta = overlap_factor(resident, printed.details["t_compute_s"], printed.details["t_memory_s"])
    assert printed.details["eta_overlap"] == pytest.approx(eta)
    assert hardware.details["eta_overlap"][0] >= printed.details["eta_overlap"][0]


def test_hong_and_kim_limits_take_overlap_away() -> None:
    platform = load_platform(MI300A)
    times, overlaps = [], []
    for limit in (1, 2, 3, 4, 8, 0):  # 0: not set
        both = platform.with_overrides({"mwp_limit": limit, "cwp_limit": 2 * limit})
        found = wavefront_gemm(both, 4096, 4096, 4096, 1, "fp16", tile=(128, 128, 64))
        times.append(float(found.time_s[0]))
        overlaps.append(float(found.details["eta_overlap"][0]))
    assert overlaps[0] == 0.0  # one wavefront has no other to hide behind
    assert (np.diff(overlaps) >= 0.0).all() and overlaps[-1] > 0.0
    assert (np.diff(times) <= 0.0).all() and times[-1] < times[0]


@pytest.mark.parametrize("size", [1024, 4096, 16384])
def test_the_guard_of_eq_12_lifts_to_the_longer_time_and_says_so(size: int) -> None:
    platform = load_platform(MI300A)
    shape, tile = (size, size, size, 1, "fp16"), (128, 128, 64)
    printed = wavefront_gemm(platform.with_overrides({"step_form": "printed"}), *shape, tile=tile)
    guarded = wavefront_gemm(platform, *shape, tile=tile)
    details = printed.details
    longer = np.maximum(details["t_compute_s"], details["t_memory_s"])
    step = step_time_printed(details["t_memory_s"], details["t_compute_s"], details["eta_overlap"])
    steps = details["waves"] * details["k_tiles"]
    overhead = sum(printed.terms[name] for name in ("launch", "writeback", "sync"))
    assert guarded.guard.tolist() == (step < longer).tolist()
    assert guarded.time_s == pytest.approx(steps * np.maximum(step, longer) + overhead, rel=1e-12)
    assert (guarded.time_s >= printed.time_s).all()


@pytest.mark.parametrize("platform_id", [MI300A, "mi250x-as-published"])
@pytest.mark.parametrize("form, mix", [("table3", "arithmetic"), ("table3", "harmonic"), ("knees", "arithmetic"),
                                       ("knees", "harmonic")])
def test_a_kernel_family_takes_hit_rate_and_mix_from_the_file(platform_id: str, form: str, mix: str) -> None:
    """Table III and the mix under Eq. (10), by hand, on both sides of the knees and at the jump at the second one."""
    platform = load_platform(platform_id)
    printed = (platform.text("llc_hit_form"), platform.text("bandwidth_mix"))
    assert printed == ("table3", "arithmetic")
    if (form, mix) != printed:
        platform = platform.with_overrides({"llc_hit_form": form, "bandwidth_mix": mix})
    low, high = platform.value("llc_knee_start"), platform.value("llc_knee_end")
    cache, memory = platform.value("llc_bw"), platform.value("sustained_hbm_bw")
    byte = np.array([0.5 * low, 0.5 * (low + high), high, high * (1 + 1e-6), 4.0 * high])
    beyond = high / byte[3:] if form == "table3" else np.zeros(2)  # beta of Table III is 1 in both files
    hit = np.array([1.0, 0.5, 0.0, *beyond])
    rate = hit * cache + (1 - hit) * memory if mix == "arithmetic" else 1 / (hit / cache + (1 - hit) / memory)
    found = baseline("segment", {"bytes": byte, "flops": np.zeros(5)}, "fp32", platform, cache="warm")
    assert found.details["hit_rate"] == pytest.approx(hit, abs=1e-6)
    assert found.details["memory_s"] == pytest.approx(byte / rate, rel=1e-6)
    assert (found.time_s >= found.bound.seconds).all()
    said = explain_baseline(found, platform, "fp32", row=1)
    traffic = [step.time_s for step in said.steps if step.name.endswith(" traffic")]
    assert sum(traffic) == pytest.approx(float(found.details["memory_s"][1]), rel=1e-9)
    assert len(traffic) == (1 if mix == "arithmetic" else 2)
    words = " ".join(said.equations)
    assert ("Table III as printed" in words) == (form == "table3")
    assert ("mix under Eq. (10) as printed" in words) == (mix == "arithmetic")


def test_the_generic_path_blends_bandwidth_and_scales_precisions() -> None:
    """Eq. (16) and the precision multipliers of section IV.F act on a kernel family as on a counted segment."""
    plain = load_platform("h200")
    size = {"n": 10_000_000}  # 120 MB: past the cache
    before = baseline("vector_add", size, "fp32", plain, cache="cold")
    blended = plain.with_overrides({"working_set_scale": "120 MB"})
    after = baseline("vector_add", size, "fp32", blended, cache="cold")
    low, high = plain.value("sustained_hbm_bw"), plain.value("hbm_peak_bw")
    rate = low + (high - low) * np.exp(-1.0)
    assert after.details["memory_s"] == pytest.approx(120e6 / rate, rel=1e-9)
    assert before.details["memory_s"] == pytest.approx(120e6 / low, rel=1e-9)
    said = explain_baseline(after, blended, "fp32")
    traffic = next(step for step in said.steps if step.name == "memory traffic")
    assert "Eq. (16)" in traffic.equation and traffic.time_s == pytest.approx(120e6 / rate)

    slow = plain.with_overrides({"precision_efficiency_fp32": 0.5})
    whole, half = (baseline("nbody", {"bodies": 10**5}, "fp32", p).details["compute_s"][0] for p in (plain, slow))
    assert half == pytest.approx(2 * whole, rel=1e-12)
    words = explain_baseline(baseline("nbody", {"bodies": 10**5}, "fp32", slow), slow, "fp32").steps[0].words
    assert "precision_efficiency_fp32 0.5" in words
