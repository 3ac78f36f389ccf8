"""Parameter files that are wrong: one error that names the file and the key."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.platform import load_platform, load_platform_file
from kernelcast.analytic.platform_file import _value_text
from kernelcast.analytic.platform_schema import PARAMETERS, REQUIRED

HEADER = "id: mine\ndescription: a GPU\nvendor: nvidia\narch: hopper\nparameters:\n"
VALUES = {
    "compute_units": "132", "warp_size": "32", "max_warps_per_cu": "64", "registers_per_cu": "65536",
    "shared_mem_per_cu": "228 KiB", "l2_size": "60 MB", "llc_size": "0", "hbm_capacity": "141 GB",
    "unified_memory": "false", "clock_boost": "1.98 GHz", "hbm_peak_bw": "4.8 TB/s", "sustained_hbm_bw": "4.3 TB/s",
    "peak_fp32_vector": "66.9 TFLOP/s", "kernel_launch_latency": "2.47 us",
}


def entry(name: str, value: str, extra: str = "") -> str:
    return f"  {name}: {{value: {value}, kind: spec, source: data sheet{extra}}}\n"


def body(**changes: str) -> str:
    return HEADER + "".join(entry(name, value) for name, value in (VALUES | changes).items())


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_minimal_file_in_human_units(tmp_path: Path) -> None:
    assert set(VALUES) == set(REQUIRED)
    platform = load_platform_file(write(tmp_path, body()))
    assert platform.value("hbm_peak_bw") == 4.8e12
    assert platform.value("shared_mem_per_cu") == 228 * 1024
    assert platform.value("kernel_launch_latency") == 2.47e-6
    assert platform.flags == ()
    assert load_platform(str(tmp_path / "mine.yaml")).id == "mine"


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ("value: 4.8, unit: TB/s", 4.8e12),
        ("value: 4.8e12, unit: B/s", 4.8e12),  # YAML 1.1 reads this exponent as text
        ("value: 4.8e+12", 4.8e12),
        ("value: 4800, unit: GB/s", 4.8e12),
        ("value: 4800 GB/s", 4.8e12),
        ("value: 2, unit: TiB/s", 2.0 * 2**40),
    ],
)
def test_ways_to_write_a_value(tmp_path: Path, fields: str, value: float) -> None:
    text = body() + f"  l2_bw: {{{fields}, kind: spec, source: x}}\n"
    assert load_platform_file(write(tmp_path, text)).value("l2_bw") == value


def test_a_date_may_be_a_yaml_date(tmp_path: Path) -> None:
    text = body() + entry("tdp", "700", ", date: 2026-11-03") + entry("l1_size", "1", ", date: 2026")
    platform = load_platform_file(write(tmp_path, text))
    assert platform.parameter("tdp").date == "2026-11-03"
    assert platform.parameter("l1_size").date == "2026"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("# only a comment\n", "the file is empty"),
        ("- a\n- b\n", "found a list"),
        ("just words", "found a str"),
        ("a: [1, 2", "not valid YAML"),
        ("a: !!python/object:os.system x", "not valid YAML"),
        ("a: \x07", "not valid YAML"),
        (body() + "extra: 1\n", "unknown key 'extra'"),
        (body().replace("vendor:", "vendr:"), r"unknown key 'vendr' \(did you mean .*vendor"),
        (body().replace("vendor: nvidia\n", ""), "required key 'vendor' is missing"),
        (body().replace("nvidia", "intel"), "vendor: .*'nvidia' or 'amd'"),
        (body().replace("hopper", "rubin"), "arch: .*'rubin'"),
        (body().replace("id: mine", "id: My GPU"), "id: "),
        (HEADER, "parameters: .*dictionary"),
        (HEADER + "  - 1\n", "parameters: .*dictionary"),
        (body() + "  l2_bw: 5\n", "parameters.l2_bw: "),
        (body() + entry("l2_bandwith", "1"), r"unknown parameter 'l2_bandwith'.*did you mean"),
        (body() + entry("l2_bw", "1", ", sorce: x"), r"parameters.l2_bw: unknown key 'sorce' \(did you mean source"),
        (body() + entry("l2_bw", "1", ", unit: TB"), "parameters.l2_bw: unit 'TB' has the wrong dimension"),
        (body() + entry("l2_bw", "5 furlong"), "parameters.l2_bw: unknown unit 'furlong'"),
        (body() + entry("l2_bw", ".nan"), "parameters.l2_bw: .*not a finite"),
        (body() + entry("l2_bw", ".inf"), "parameters.l2_bw: .*not a finite"),
        (body() + entry("l2_bw", ".nan", ", unit: TB/s"), "parameters.l2_bw: .*not"),
        (body() + entry("l2_bw", "-1"), "parameters.l2_bw: .*out of range"),
        (body() + entry("l2_bw", "true"), "parameters.l2_bw: 'True' is not a number"),
        (body() + entry("l2_bw", "[1, 2]"), "parameters.l2_bw.value"),
        (body() + entry("l2_bw", "1").replace("kind: spec", "kind: guess"), "parameters.l2_bw.kind"),
        (body() + entry("l2_bw", "1").replace("source: data sheet", "source: ''"), "parameters.l2_bw.source"),
        (body() + entry("l2_bw", "1").replace(", source: data sheet", ""), "parameters.l2_bw.source: Field required"),
        (body() + entry("l2_bw", "1") + entry("l2_bw", "2"), r"key 'l2_bw' appears twice \(line 21\)"),
        (body() + "id: other\n", "key 'id' appears twice"),
        (body() + entry("l2_bw", "1, value: 2"), "key 'value' appears twice"),
        (body(compute_units="0"), "parameters.compute_units: .*out of range: expected at least 1"),
        (body(hbm_peak_bw="null"), "required parameter 'hbm_peak_bw' is missing"),
        (body(unified_memory="maybe"), "parameters.unified_memory: 'maybe' is not true or false"),
    ],
)
def test_a_bad_file_names_itself_and_the_key(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        load_platform_file(path)
    assert str(caught.value).startswith(str(path))
    assert caught.value.exit_status == 2


@pytest.mark.parametrize("name", REQUIRED)
def test_each_required_parameter_is_required(tmp_path: Path, name: str) -> None:
    text = HEADER + "".join(entry(key, value) for key, value in VALUES.items() if key != name)
    with pytest.raises(InputError, match=f"required parameter '{name}' is missing"):
        load_platform_file(write(tmp_path, text))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such platform file"):
        load_platform(str(tmp_path / "none.yaml"))
    with pytest.raises(InputError, match="cannot be read"):
        load_platform_file(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(InputError, match="cannot be read"):
        load_platform(str(tmp_path / "binary.yaml"))


def test_flags_of_an_implausible_file(tmp_path: Path) -> None:
    text = body(sustained_hbm_bw="5 TB/s", peak_fp32_vector="80 TFLOP/s")
    for name, value in {"l1_size": "64 MiB", "l2_bw": "3 TB/s", "latency_l1": "300", "latency_l2": "200",
                        "l2_knee_start": "50 MiB", "l2_knee_end": "40 MiB", "sustained_fp32_vector": "90 TFLOP/s",
                        "peak_fp16_matrix": "1000 TFLOP/s", "clock_matrix": "1.83 GHz"}.items():
        text += entry(name, value)
    flags = load_platform_file(write(tmp_path, text)).flags
    # 132 x 4096 x 1.83 GHz = 989 TFLOP/s, 1.1 % below 1000: no flag
    assert {flag.key for flag in flags} == {
        "sustained_hbm_bw", "l1_size", "latency_l1", "l2_knee_start", "sustained_fp32_vector", "peak_fp32_vector"
    }
    assert {flag.file for flag in flags} == {str(tmp_path / "mine.yaml")}


def test_the_schema_explains_every_name() -> None:
    for name, spec in PARAMETERS.items():
        assert name == spec.name
        assert spec.meaning
        assert spec.minimum <= spec.maximum
        assert bool(spec.choices) == (spec.unit == "text")


@given(value=st.floats(0, 1e20), unit=st.sampled_from(["B", "B/s", "s", "cycle"]))
@settings(deadline=None, max_examples=200)
def test_written_numbers_are_exact_yaml_numbers(value: float, unit: str) -> None:
    read = yaml.safe_load(_value_text(value, unit))
    assert isinstance(read, int | float)
    assert read == value


def test_a_file_is_read_again_only_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, body())
    first = load_platform(str(path))
    assert load_platform(str(path)) is first
    name = next(name for name, parameter in first.parameters.items() if isinstance(parameter.value, float))
    value = first.value(name)
    assert first.with_overrides({name: 2.0 * value}).value(name) == 2.0 * value
    assert load_platform(str(path)).value(name) == value  # what one caller changes no other sees
    path.write_text(path.read_text() + "# looked at again\n")
    assert load_platform(str(path)) is not first
    path.unlink()
    with pytest.raises(InputError, match=path.name):
        load_platform(str(path))
