"""Profiled kernels of no known family: counters as numbers, whole families left out, and every way to ask for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.platform import load_platform
from kernelcast.bench.evaluation import segments as bench
from kernelcast.bench.evaluation import sources
from kernelcast.bench.evaluation.score import METHODS
from kernelcast.bench.evaluation.segments import BLOCKS, SEGMENT_CASES, half_widths, left_out, score_segments
from kernelcast.bench.ship import slim
from kernelcast.features.counted import LEVELS, Counts, level_of, make_counts, occupancy, segment_terms
from kernelcast.features.describe import describe
from kernelcast.registry.store import read_model, write_model
from kernelcast.service.answer import predict
from kernelcast.service.application import predict_workload
from kernelcast.service.batch import predict_runs
from kernelcast.training.hybrid.fit import fit_model, refit_model
from kernelcast.training.hybrid.model import Model
from kernelcast.training.profiled.pool import Pool, build_pool, call_keys, counted_table
from kernelcast.training.profiled.segment import (
    CENTRE,
    SegmentModel,
    family_folds,
    fit_level,
    fit_segment_pool,
    fit_segments,
    judged,
    segment_bands,
)

H200 = load_platform("h200")
PROFILE = {"flops": 2e9, "bytes": 5e7, "l2_bytes": 9e7, "grid": [2000, 1, 1], "block": [256, 1, 1], "registers": 32,
           "smem_bytes": 0, "int_ops": 3e8, "fp_inst": 1.2e9}
FEW = 16


@pytest.fixture(scope="module", autouse=True)
def few_trees() -> Iterator[None]:
    """Who is left out of what does not hang on how long is learned, nor on how many groups of a family there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "fit_level", partial(fit_level, rounds=5))
        patch.setattr(bench, "QUICK_GROUPS", 2)
        patch.setattr("kernelcast.training.profiled.segment.ROUNDS", 30)
        yield


@pytest.fixture(scope="module")
def slice_of_corpus() -> pd.DataFrame:
    """The counted calls of some families of the shipped H200 table, and a few runs of each that nobody counted."""
    frame, counted = sources.own("h200"), counted_table("h200")
    assert counted is not None
    families = sorted(set(counted["kernel"]))[::3][:FEW]
    frame = frame[frame["kernel"].isin(families)].reset_index(drop=True)
    known = np.isin(call_keys(frame), call_keys(counted))
    few = frame.groupby("kernel").cumcount() < 6
    return frame[known | few].reset_index(drop=True)


@pytest.fixture(scope="module")
def pool(slice_of_corpus: pd.DataFrame) -> Pool:
    found = build_pool(slice_of_corpus, describe(slice_of_corpus), counted_table("h200"), most=8)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def segments(pool: Pool) -> SegmentModel:
    found = fit_segment_pool(pool, H200, count=3, rounds=25)
    assert found is not None
    return found


@pytest.fixture
def with_segments(small_model: Model, segments: SegmentModel) -> Model:
    """A model of a made-up platform's families that also knows profiled kernels."""
    return replace(small_model, segments=segments)


def one(**columns: float) -> Counts:
    return make_counts(1, "fp32", **columns)


def test_limits_of_a_cold_stream_by_hand() -> None:
    counts = one(byte=4.3e9, l2_byte=9.78e9, flop=4.95e9, cold=1.0)
    terms = segment_terms(counts, H200, "traffic")
    assert terms["memory"][0] == pytest.approx(4.3e9 / H200.sustained_hbm_byte_per_s())
    assert terms["cache"][0] == pytest.approx((9.78e9 - 150e3) / H200.value("l2_bw"))  # less what a launch itself moves
    assert terms["compute"][0] == pytest.approx(4.95e9 / H200.sustained_flop_per_s("fp32", "vector"))


def test_a_warm_call_reads_nothing_that_fits_and_a_cold_one_reads_it_once() -> None:
    resident = {"byte": 4e6, "launches": 4.0}
    warm = segment_terms(one(**resident), H200, "work")["memory"][0]
    cold = segment_terms(one(**resident, cold=1.0), H200, "work")["memory"][0]
    assert warm == 0.0
    # the first of four launches fetches its 1 MB, a quarter of a launch's share each
    assert cold == pytest.approx(4e6 / 4.0 / 4.0 / H200.sustained_hbm_byte_per_s())


def test_few_blocks_have_the_rate_of_the_units_they_run_on() -> None:
    shape = {"byte": 1e6, "l2_byte": 2e6, "int_ops": 1e9, "fp_inst": 0.0, "block": 128.0}
    wide = segment_terms(one(**shape, threads=132 * 128.0), H200, "profile")
    half = segment_terms(one(**shape, threads=66 * 128.0), H200, "profile")
    assert wide["issue"][0] == pytest.approx(1e9 / (132 * 64.0 * H200.value("clock_boost")))
    assert half["issue"][0] == pytest.approx(2.0 * wide["issue"][0])


@pytest.mark.parametrize(
    ("shape", "share"),
    [
        ({"block": 256.0, "registers": 32.0}, 1.0),  # 65,536 ÷ (32 · 256) = 8 blocks of 8 warps: all 64
        ({"block": 256.0, "registers": 128.0}, 0.25),  # 65,536 ÷ (128 · 256) = 2 blocks: 16 of 64 warps
        ({"block": 32.0, "registers": 16.0}, 0.5),  # 32 blocks at most, of one warp each
        ({"block": 256.0, "registers": 32.0, "smem_byte": 100e3}, 0.25),  # 233,472 B hold two blocks
    ],
)
def test_occupancy_by_hand(shape: dict[str, float], share: float) -> None:
    assert occupancy(one(byte=1.0, **shape), H200)[0] == pytest.approx(share)


def test_the_level_is_the_highest_that_everything_is_known_of() -> None:
    all_known = {"byte": 1e6, "l2_byte": 2e6, "threads": 1e5, "block": 256.0, "int_ops": 1e7}
    assert [LEVELS[int(level_of(one(**{k: v for k, v in all_known.items() if k not in without}), H200)[0])]
            for without in ((), ("int_ops",), ("block",), ("l2_byte",))] == [
        "profile", "traffic", "traffic", "work"]


def test_a_counted_call_has_its_own_counts_and_families_count_alike(slice_of_corpus: pd.DataFrame, pool: Pool) -> None:
    table = counted_table("h200")
    assert table is not None
    # a call that the corpus holds twice, from two draws, has its counts twice
    assert pool.counted.sum() == np.isin(call_keys(slice_of_corpus), call_keys(table)).sum() > 100
    row = table[(table["kernel"] == pool.families[0])].iloc[0]
    mine = (pool.family == row["kernel"]) & pool.counted & (pool.counts.byte == row["bytes"])
    assert pool.time_s[mine][0] == row["time_s"]
    assert pool.counts.l2_byte[mine][0] == row["l2_bytes"]
    assert pool.counts.block[mine][0] == np.prod(json.loads(row["block"]))
    weights = pd.Series(pool.weight()).groupby(pool.family).sum()
    both = [family for family in pool.families if len(set(pool.counted[pool.family == family])) == 2]
    assert len(both) > 3
    assert weights[both].to_numpy() == pytest.approx(np.full(len(both), weights[both].iloc[0]))


def test_an_uncounted_call_is_scaled_from_the_nearest_counted_one(pool: Pool) -> None:
    rows = (pool.family == "vector_add") if "vector_add" in pool.families else (pool.family == pool.families[-1])
    scaled = rows & ~pool.counted
    assert scaled.any()
    assert set(pool.counts.block[scaled]) <= set(pool.counts.block[rows & pool.counted])
    assert (pool.counts.l2_byte[scaled] > 0.0).all()


def test_a_level_fits_what_it_saw_and_no_row_of_a_family_left_out(pool: Pool) -> None:
    model = fit_level("profile", pool, H200, rounds=25)
    seen = np.abs(np.log(model.predict(pool.counts, H200)[0] / pool.time_s))
    assert np.median(seen) < 0.5
    changed = replace(pool, time_s=np.where(pool.family == pool.families[0], 10.0, 1.0) * pool.time_s)
    first = pool.family == pool.families[0]
    before, after = (left_out(p.take(p.family != p.families[1]), H200, "work")[0] for p in (pool, changed))
    kept = first[pool.family != pool.families[1]]
    assert before[kept] == pytest.approx(after[kept], rel=1e-12)  # its own times, ten times as long, change nothing
    assert np.abs(np.log(before[~kept] / after[~kept])).max() > 1e-3


def test_a_band_never_looks_at_the_times_it_covers(pool: Pool) -> None:
    rows = judged("profile", pool)
    block_of = family_folds(pool.families, BLOCKS, seed=1)
    mine = np.array([block_of[str(family)] == 0 for family in pool.family])
    changed = replace(pool, time_s=np.where(mine, 5.0, 1.0) * pool.time_s)
    before, after = (half_widths(p, H200, "profile", rows, 0.8) for p in (pool, changed))
    assert before[mine] == pytest.approx(after[mine], rel=1e-12)
    assert not np.allclose(before[~mine], after[~mine])


@settings(max_examples=40, deadline=None)
@given(
    size=st.tuples(st.floats(2.0, 10.0), st.floats(3.0, 10.0), st.floats(0.0, 2.0), st.floats(2.0, 11.0)),
    more=st.sampled_from(["byte", "l2_byte", "flop", "int_ops"]),
    factor=st.floats(1.01, 100.0),
    cold=st.booleans(),
)
def test_more_work_is_never_predicted_to_be_faster(segments: SegmentModel, size: tuple[float, ...], more: str,
                                                   factor: float, cold: bool) -> None:
    flop, byte, reuse, steps = 10.0 ** np.array(size)
    work = {"flop": flop, "byte": byte, "l2_byte": byte * reuse, "int_ops": steps}
    shape = {"threads": 131072.0, "block": 256.0, "registers": 32.0, "smem_byte": 0.0, "cold": float(cold)}
    less, greater = one(**work, **shape), one(**work | {more: work[more] * factor}, **shape)
    times = [segments.levels["profile"].predict(counts, H200)[0][0] for counts in (less, greater)]
    assert times[1] >= times[0] * (1.0 - 1e-5)  # trees are single precision


def test_too_few_families_teach_nothing(small_runs: pd.DataFrame) -> None:
    assert fit_segments(small_runs, describe(small_runs)) is None


def test_bands_cover_a_family_not_seen_and_say_when_there_are_too_few() -> None:
    rng = np.random.default_rng(0)
    spread = np.repeat(np.exp(rng.normal(0.0, 0.7, 200)), 10)
    error, family = spread * rng.normal(size=2000), np.repeat([f"f{i}" for i in range(200)], 10)
    label = np.full(2000, "work", dtype=object)
    seen = family < "f5"
    bands = segment_bands(error[seen], label[seen], family[seen])
    half = bands.half_width(np.ones(int((~seen).sum())), label[~seen], 0.9)[0]
    assert 0.86 < np.mean(np.abs(error[~seen]) <= half) < 0.96
    few = segment_bands(error[:50], label[:50], family[:50])
    assert np.isinf(few.half_width(np.ones(1), label[:1], 0.9)[0]).all()


def test_every_way_to_ask_gives_the_learned_time(with_segments: Model, tmp_path: Path) -> None:
    alone = predict("segment", platform="t4", precision="fp32", model=with_segments, **PROFILE)
    assert alone.lower_s is not None and alone.upper_s is not None
    assert alone.lower_s < alone.predicted_s < alone.upper_s
    assert alone.predicted_s != pytest.approx(alone.baseline_s, rel=1e-3)
    assert not alone.in_domain
    assert "whole families left out" in alone.note and f"from {len(with_segments.segments.families)}" in alone.note  # type: ignore[union-attr]
    unknown = predict("my_kernel", platform="t4", precision="fp32", model=with_segments, **PROFILE)
    assert (unknown.predicted_s, unknown.upper_s) == (alone.predicted_s, alone.upper_s)
    counted = {k: PROFILE[k] for k in ("flops", "bytes")}
    params = {k: v for k, v in PROFILE.items() if k not in counted}
    table = pd.DataFrame([{"platform": "t4", "kernel": kernel, "precision": "fp32", "params": json.dumps(params),
                           "cache": "warm", **counted} for kernel in ("segment", "other")])
    answered = predict_runs(table, model=with_segments)
    assert answered["predicted_s"].to_numpy() == pytest.approx([alone.predicted_s] * 2)
    assert not answered["in_domain"].any()


def test_what_is_not_counted_widens_the_band_and_is_named(with_segments: Model) -> None:
    assert with_segments.segments is not None
    asked = [{k: PROFILE[k] for k in names} for names in (("flops", "bytes"), ("flops", "bytes", "l2_bytes"))]
    work, traffic = (predict("segment", platform="t4", precision="fp32", model=with_segments, **p) for p in asked)
    assert "l2_bytes, grid, block and int_ops would narrow the band" in work.note
    assert "; grid, block and int_ops would narrow the band" in traffic.note
    assert set(with_segments.segments.levels) == set(CENTRE)


def test_flop_follows_from_instructions_where_only_those_were_counted(with_segments: Model) -> None:
    params = {k: v for k, v in PROFILE.items() if k != "flops"}
    without = predict("segment", platform="t4", precision="fp32", model=with_segments, **params)
    given_flop = predict("segment", platform="t4", precision="fp32", model=with_segments, **params, flops=1.5 * 1.2e9)
    assert without.predicted_s == pytest.approx(given_flop.predicted_s)


def test_segments_of_an_application_carry_the_band_into_the_sum(with_segments: Model, tmp_path: Path) -> None:
    path = tmp_path / "app.yaml"
    path.write_text("name: app\ncharacterisation: profiler-derived\nsource: own count\nsegments:\n"
                    "  - {name: sweep, class: balanced, precision: fp32, flop: 1e9, bytes: 1 GB, n_exec: 2}\n"
                    "  - {name: product, kernel: gemm, precision: fp16, params: {m: 1024, n: 2048, k: 512}}\n")
    found = predict_workload(str(path), platform="t4", model=with_segments)
    alone = predict("segment", platform="t4", precision="fp32", model=with_segments, flops=1e9, bytes=1e9)
    sweep = found.segments[0]
    assert sweep.predicted_s / sweep.baseline_s == pytest.approx(alone.predicted_s / alone.baseline_s)
    assert "whole families left out" in sweep.note and not found.in_domain
    assert found.lower_s == pytest.approx(sum(part.lower_s for part in found.segments))  # type: ignore[misc]
    assert found.upper_s == pytest.approx(sum(part.upper_s for part in found.segments))  # type: ignore[misc]


def test_without_a_model_of_segments_the_time_stays_analytic(small_model: Model) -> None:
    found = predict("segment", platform="t4", precision="fp32", model=small_model, flops=1e9, bytes=1e9)
    assert found.predicted_s == found.baseline_s
    assert "analytic only" in found.note


def test_a_stored_model_predicts_the_same(with_segments: Model, tmp_path: Path) -> None:
    write_model(with_segments, tmp_path / "model")
    again = read_model(tmp_path / "model")
    for params in (PROFILE, {"flops": 1e9, "bytes": 1e8}):
        first, second = (predict("segment", platform="t4", precision="fp32", model=m, **params)
                         for m in (with_segments, again))
        assert (first.predicted_s, first.lower_s, first.note) == (second.predicted_s, second.lower_s, second.note)


def test_no_prediction_beats_the_memory_or_an_empty_kernel(with_segments: Model) -> None:
    t4 = load_platform("t4")
    stream = predict("segment", platform="t4", precision="fp32", model=with_segments, cache="cold", flops=0, bytes=1e10)
    assert stream.lower_s is not None
    assert min(stream.lower_s, stream.predicted_s) >= 1e10 / t4.value("hbm_peak_bw")
    empty = predict("segment", platform="t4", precision="fp32", model=with_segments, flops=0, bytes=0, launches=3)
    assert empty.lower_s is not None and empty.lower_s >= 3.0 * 0.8e-6


def test_flop_of_a_matrix_precision_are_those_of_the_matrix_units() -> None:
    asked = {"flops": 1e13, "bytes": 1e6}
    half = predict("segment", platform="h200", precision="bf16", analytic=True, **asked)
    single = predict("segment", platform="h200", precision="fp32", analytic=True, **asked)
    assert half.terms["compute"] == pytest.approx(1e13 / H200.sustained_flop_per_s("bf16", "matrix"))
    assert single.terms["compute"] == pytest.approx(1e13 / H200.sustained_flop_per_s("fp32", "vector"))


def test_training_a_platform_learns_its_segments_and_shipping_keeps_them(slice_of_corpus: pd.DataFrame) -> None:
    few = slice_of_corpus[slice_of_corpus.groupby("kernel").cumcount() < 12].reset_index(drop=True)
    trained = fit_model(few, quick=True)
    assert trained.segments is not None and trained.segments.families == sorted(set(few["kernel"]))
    again = refit_model(few, trained)
    assert again.segments is trained.segments  # a quick look keeps what was judged
    first, second = (predict("segment", platform="h200", precision="fp32", model=m, **PROFILE)
                     for m in (trained, slim(trained)))
    assert first.predicted_s == second.predicted_s != first.baseline_s


def test_the_report_scores_every_level_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, counted = sources.own("h200"), counted_table("h200")
    assert counted is not None
    counted = counted[counted.groupby("kernel").cumcount() < 8]
    few = np.isin(call_keys(frame), call_keys(counted)) | (frame.groupby("kernel").cumcount() < 6)
    frame = frame[few].reset_index(drop=True)  # of every family, for a fit each
    monkeypatch.setattr(bench.sources, "own", lambda platform: frame)
    monkeypatch.setattr(bench, "counted_table", lambda platform: counted)
    assert {case.level for case in SEGMENT_CASES.values()} == {"profile", "work"}
    found = score_segments(SEGMENT_CASES["segment-h200-work"], {"train": 100, "test": 100}, 0.9)
    assert set(METHODS) <= set(found["methods"])
    assert found["folds"] == len(found["classes"]) == 51  # every family left out once
    assert found["bands"]["unbounded"] == 0
    assert {line["label"] for line in found["subsets"]} >= {"one launch a call", "counted calls"}


def test_a_stated_class_keeps_the_analytic_time_within_a_band_that_holds_both(with_segments: Model, tmp_path: Path
                                                                             ) -> None:
    text = ("name: app\ncharacterisation: first-principles\nsource: own count\nsegments:\n"
            "  - {{name: sweep, class: {}, precision: fp32, flop: 1e9, bytes: 1 GB}}\n")
    path = tmp_path / "app.yaml"
    found = {}
    for work_class in ("memory", "irregular"):
        path.write_text(text.format(work_class), encoding="utf-8")
        found[work_class] = predict_workload(str(path), platform="t4", model=with_segments).segments[0]
    stated, unknown = found["memory"], found["irregular"]
    assert stated.predicted_s == pytest.approx(stated.baseline_s)
    assert "class memory is stated" in stated.note and "class" not in unknown.note
    assert unknown.predicted_s != pytest.approx(unknown.baseline_s, rel=1e-3)
    for part in (stated, unknown):
        assert part.lower_s <= part.predicted_s <= part.upper_s  # type: ignore[operator]
    assert stated.lower_s <= stated.baseline_s <= stated.upper_s  # type: ignore[operator]
