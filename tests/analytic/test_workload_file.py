"""Workload files: what is accepted, and that every fault names the file and the field."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernelcast.analytic.errors import InputError, RefusedError
from kernelcast.analytic.platform import load_platform
from kernelcast.analytic.workload import load_workload, workload_baseline
from kernelcast.analytic.workload_file import shipped_workloads

HEAD = "name: x\ncharacterisation: first-principles\nsource: own count\n"
RODINIA = ("hotspot_1024", "hotspot_512", "bfs_1M", "backprop_65536", "pathfinder_1000", "srad_502", "streamcluster_1M")
SPECHPC = ("lbm_t", "soma_t", "tealeaf_t", "clvleaf_t", "miniswp_t", "pot3d_t", "sph_exa_t", "hpgmgfv_t")


def write(tmp_path: Path, *segments: str, head: str = HEAD, name: str = "app.yaml") -> Path:
    path = tmp_path / name
    lines = "".join(f"  - {{{segment}}}\n" for segment in segments)
    path.write_text(head + (f"segments:\n{lines}" if segments else ""), encoding="utf-8")
    return path


FAULTS = {
    "flop without precision": ("name: a, flop: 1, bytes: 1", r"segments\[0\] \(a\)\.precision: FLOP without"),
    "flop at precision none": ("name: a, flop: 1, bytes: 1, precision: none", r"\(a\)\.precision: FLOP without"),
    "unknown precision": ("name: a, flop: 1, precision: fp31", r"\(a\)\.precision: unknown 'fp31' \(did you mean fp32"),
    "unknown class": ("name: a, bytes: 1, class: memroy", r"\(a\)\.class: unknown value .*memory.*found 'memroy'"),
    "alpha above 1": ("name: a, bytes: 1, alpha: 1.2", r"segments\[0\] \(a\)\.alpha: it must be 1 or less"),
    "alpha below 0": ("name: a, bytes: 1, alpha: -0.1", r"\(a\)\.alpha: it must be 0 or more"),
    "hit rate": ("name: a, bytes: 1, hit_rate: 2", r"segments\[0\] \(a\)\.hit_rate: it must be 1 or less"),
    "misspelt field": ("name: a, byts: 1", r"\(a\)\.byts: unknown field \(did you mean bytes\?\)"),
    "misspelt transfer": ("name: a, transfers: [{byts: 1, direction: h2d}]", r"transfers\[0\]\.byts: unknown field"),
    "direction": ("name: a, transfers: [{bytes: 1, direction: up}]",
                  r"transfers\[0\]\.direction: unknown value .*d2h, h2d"),
    "unknown family": ("name: a, kernel: gem", r"\(a\)\.kernel: unknown family 'gem' \(did you mean"),
    "unknown parameter": ("name: a, kernel: gemm, params: {q: 1}", r"\(a\)\.params\.q: unknown parameter"),
    "counts beside a family": ("name: a, kernel: gemm, flop: 3", r"\(a\)\.flop: not with kernel"),
    "parameter of a wrong kind": ("name: a, kernel: gemm, params: {m: [1]}", r"\(a\)\.params\.m: a whole number"),
    "a word that means nothing": ("name: a, kernel: gather, params: {table: 9, n: 9, order: up}",
                                  r"\(a\)\.params\.order: is 'up' \(valid: random, sorted\)"),
    "half a size": ("name: a, kernel: gemm, params: {m: 1.5}", r"\(a\)\.params\.m: a whole number, 1 or more"),
    "tile of a transform": ("name: a, kernel: fft, params: {n: 8}, tile: [64, 64, 64]", r"\(a\)\.tile: only a matrix"),
    "truth for a number": ("name: a, bytes: true", r"\(a\)\.bytes: a number in B is needed"),
    "nothing to do": ("name: a, bytes: 0", r"\(a\)\.flop: the segment has no work"),
    "nothing in flight": ("name: a, bytes: 1, bytes_in_flight: 0", r"\(a\)\.bytes_in_flight: it must be more than 0"),
    "published nonsense": ("name: a, bytes: 1, published: [{platform: t4, quantity: t_s, value: soon}]",
                           r"published\[0\]: 'soon' is not a number"),
    "implementation without a family": ("name: a, bytes: 1, implementation: x", r"\(a\)\.implementation: only with"),
    "tile without a family": ("name: a, bytes: 1, tile: [64, 64, 64]", r"\(a\)\.tile: only with kernel"),
    "wrong unit": ("name: a, flop: 1 GB, precision: fp32", r"\(a\)\.flop: unit 'GB' has the wrong dimension"),
    "negative": ("name: a, bytes: -1", r"\(a\)\.bytes: it must be 0 or more"),
    "no work": ("name: a", r"\(a\)\.flop: the segment has no work"),
    "zero executions": ("name: a, bytes: 1, n_exec: 0", r"\(a\)\.n_exec: it must be 1 or more"),
    "infinite": ("name: a, bytes: .inf", r"\(a\)\.bytes: "),
    "undisclosed multiplier": ("name: a, bytes: 1, m_case: 1.1", r"\(a\)\.m_case_source: a fitted multiplier"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_names_file_and_field(tmp_path: Path, case: str) -> None:
    segment, message = FAULTS[case]
    with pytest.raises(InputError, match=r"app\.yaml: .*" + message):
        load_workload(write(tmp_path, segment))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("- 1\n", "expected 'key: value'"),
        ("name: [\n", "not valid YAML"),
        ("name: x\n", "required field 'characterisation' is missing"),
        ("# nothing but a remark\n\n", "the file is empty; expected a workload"),
        (HEAD, "segments: the workload is empty"),
        (HEAD + "segments:\n", "segments: the workload is empty"),
        (HEAD + "segments: 3\n", "segments: a list is needed"),
        (HEAD + "segments: [3]\n", r"segments\[0\]: 'field: value' entries are needed"),
        (HEAD + "segments: []\n", "segments: the workload is empty"),
        (HEAD.replace("first-principles", "guessed"), "characterisation: .*'guessed'"),
        (HEAD + "name: y\n", "key 'name' appears twice"),
        (HEAD + "bogus: 1\n", "bogus: unknown field"),
        (HEAD + "segments: [{name: a, bytes: 1}, {name: a, bytes: 1}]\n", r"segments\[1\]\.name: 'a' is used twice"),
        (HEAD + "include: nowhere.yaml\n", r"include\[0\]\.file: nowhere.yaml: no such workload file"),
        (HEAD + "x: !!python/object/apply:os.system [exit]\n", "not valid YAML"),
    ],
)
def test_a_file_that_is_no_workload(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "app.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"app\.yaml: .*" + message):
        load_workload(path)


def test_files_that_include_each_other(tmp_path: Path) -> None:
    write(tmp_path, head=HEAD + "include: b.yaml\n", name="a.yaml")
    write(tmp_path, head=HEAD + "include: [a.yaml]\n", name="b.yaml")
    with pytest.raises(InputError, match=r"b\.yaml: include\[0\]\.file: .*a\.yaml → b\.yaml → a\.yaml"):
        load_workload(tmp_path / "a.yaml")


def test_included_segments_come_first_and_run_as_often_as_asked(tmp_path: Path) -> None:
    write(tmp_path, "name: inner, bytes: 1 GB, n_exec: 3", name="layer.yaml")
    outer = write(tmp_path, "name: last, bytes: 1", head=HEAD + "include: [{file: layer.yaml, n_exec: 4}]\n")
    loaded = load_workload(outer)
    assert [(segment.name, segment.n_exec) for segment in loaded.segments] == [("inner", 12.0), ("last", 1.0)]


@pytest.mark.parametrize(
    ("platform", "tile", "what"),
    [("b200", "[256, 512, 16]", "tensor memory"), ("h200", "[128, 128, 1024]", "shared memory"),
     ("mi300x", "[512, 512, 16]", "VGPRs and LDS")],
)
def test_a_tile_that_does_not_fit(tmp_path: Path, platform: str, tile: str, what: str) -> None:
    path = write(tmp_path, f"name: product, kernel: gemm, precision: fp16, params: {{m: 512, n: 512, k: 512}}, "
                           f"tile: {tile}")
    with pytest.raises(InputError, match=rf"app\.yaml: segments \(product\)\.tile: .*does not fit.*{what}"):
        workload_baseline(load_workload(path), load_platform(platform))


def test_a_precision_the_platform_has_not(tmp_path: Path) -> None:
    path = write(tmp_path, "name: a, flop: 1, bytes: 1, precision: fp4, unit: matrix")
    with pytest.raises(InputError, match=r"app\.yaml: segments \(a\)\.precision: platform h200 has no fp4"):
        workload_baseline(load_workload(path), load_platform("h200"))


def test_a_missing_family_parameter(tmp_path: Path) -> None:
    path = write(tmp_path, "name: a, kernel: gemm, params: {m: 1, n: 1}", "name: b, kernel: gemm, params: "
                           "{m: 1, n: 1, k: 1}")
    with pytest.raises(InputError, match=r"segments \(a\)\.params: gemm: parameter 'k' is missing"):
        workload_baseline(load_workload(path), load_platform("h200"))


@pytest.mark.parametrize(
    ("fusion", "message"),
    [
        ("segments: [a, c], intermediate_bytes: 1", r"fusions\[0\] \(f\): segments: no segment 'c' \(valid: a, b\)"),
        ("segments: [a, a], intermediate_bytes: 1", r"fusions\[0\] \(f\): segments: one is named twice"),
        ("segments: [a, b], intermediate_bytes: 3 MB",
         r"fusions\[0\] \(f\): intermediate_bytes: 3 MB stay on chip, but the kernels move 2 MB in all"),
        ("segments: [a, b], intermediate_bytes: -1", r"fusions\[0\] \(f\)\.intermediate_bytes: it must be 0 or more"),
    ],
)
def test_segments_that_cannot_be_fused(tmp_path: Path, fusion: str, message: str) -> None:
    head = HEAD + f"fusions: [{{name: f, {fusion}}}]\n"
    path = write(tmp_path, "name: a, bytes: 1 MB", "name: b, bytes: 1 MB", head=head)
    with pytest.raises(InputError, match=r"app\.yaml: .*" + message):
        load_workload(path)


def test_what_is_not_said_is_disclosed(tmp_path: Path) -> None:
    path = write(tmp_path, "name: a, flop: 1 GFLOP, precision: fp32, note: of a listing", "name: b, bytes: 1 GB")
    notes = {part.name: part.notes for part in workload_baseline(load_workload(path), load_platform("h200")).segments}
    assert notes == {"a": ("of a listing", "no bytes given: taken as 0"), "b": ("no FLOP given: taken as 0",)}


def test_sizes_beyond_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, "name: a, bytes: 1.0e+308, n_exec: 1.0e+308")
    with pytest.raises(InputError, match=r"app\.yaml: segments \(a\): too large"):
        workload_baseline(load_workload(path), load_platform("h200"))


def test_numbers_that_yaml_reads_as_text(tmp_path: Path) -> None:
    segment = load_workload(write(tmp_path, "name: a, kernel: vector_copy, params: {n: 1e6}")).segments[0]
    assert segment.params == {"n": 1000000}


def test_quantities_carry_units(tmp_path: Path) -> None:
    segment = load_workload(
        write(tmp_path, "name: a, flop: 200 GFLOP, bytes: 80 GB, working_set: 50 MiB, precision: fp32")
    ).segments[0]
    assert (segment.flop, segment.bytes, segment.working_set) == (200e9, 80e9, 50 * 2**20)


def test_shipped_files_load_and_say_where_their_inputs_come_from() -> None:
    names = shipped_workloads()
    for prefix, cases in (("rodinia", RODINIA), ("spechpc", SPECHPC)):
        assert {f"{prefix}-{case}" for case in cases} == {name for name in names if name.startswith(prefix)}
    for name in names:
        loaded = load_workload(name)
        assert loaded.name == name
        assert loaded.source
        assert bool(loaded.open_fields()) == name.startswith(("rodinia", "spechpc"))


@pytest.mark.parametrize("case", [*(f"rodinia-{case}" for case in RODINIA), *(f"spechpc-{case}" for case in SPECHPC)])
def test_open_inputs_are_refused_by_name(case: str) -> None:
    loaded = load_workload(case)
    with pytest.raises(RefusedError, match="cannot be predicted") as refusal:
        workload_baseline(loaded, load_platform("mi300a"))
    for field in loaded.open_fields():
        assert f"--set {field}=VALUE" in str(refusal.value)
    assert refusal.value.exit_status == 3


def test_open_inputs_can_be_set_by_hand() -> None:
    loaded = load_workload("rodinia-srad_502")
    done = loaded.with_settings({"srad_502.flop": "1 GFLOP", "srad_502.bytes": 2e9, "srad_502.n_exec": "10"})
    assert not done.open_fields()
    assert done.changed == ("srad_502.flop=1 GFLOP", "srad_502.bytes=2000000000.0", "srad_502.n_exec=10")
    found = workload_baseline(done, load_platform("mi300a"))
    assert found.segments[0].byte == 2e10  # 2 GB × 10 executions
    assert loaded.open_fields()  # the original is as it was


def test_settings_reach_families_transfers_and_the_whole(tmp_path: Path) -> None:
    path = write(tmp_path, "name: a, kernel: gemv, params: {m: 8, n: 8}, transfers: [{bytes: 1, direction: h2d}]")
    done = load_workload(path).with_settings({"a.m": "64", "a.transfers.0.bytes": "1 MB", "workload.devices": 2})
    assert done.segments[0].params == {"m": 64.0, "n": 8}
    assert done.segments[0].transfers[0].bytes == 1e6
    assert done.devices == 2.0
    tiled = load_workload(write(tmp_path, "name: p, kernel: gemm, params: {m: 8, n: 8, k: 8}", name="tiled.yaml"))
    for text in ("128x64x32", "[128, 64, 32]"):
        assert tiled.with_settings({"p.tile": text}).segments[0].tile == (128, 64, 32)
    with pytest.raises(InputError, match=r"cannot set p\.tile=128: tile: a list is needed"):
        tiled.with_settings({"p.tile": "128"})
    wrong = {"b.flop": "no segment 'b'", "a.floop": r"floop: unknown field \(did you mean flop\?\)",
             "workload.speed": "no such field", "a.transfers.0.direction": "h2d",
             "a.m": r"cannot set a\.m=1 GB: params\.m: a whole number, 1 or more is needed",
             "workload.devices": r"app\.yaml: cannot set workload\.devices=1 GB: .*dimension"}
    for key, message in wrong.items():
        with pytest.raises(InputError, match=message) as fault:
            load_workload(path).with_settings({key: "1 GB"})
        assert "found {" not in str(fault.value)
