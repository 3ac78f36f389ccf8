"""Applications with a champion: corrections and bands of the segments, and the band of the sum."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernelcast.analytic.errors import InputError, RefusedError
from kernelcast.service.answer import predict
from kernelcast.service.application import picture, predict_workload, split_settings

FILE = """
name: app
characterisation: first-principles
source: own count
published:
  - {platform: t4, quantity: measured_s, value: 1 ms}
segments:
  - {name: product, kernel: gemm, precision: fp16, params: {m: 1024, n: 2048, k: 512}, n_exec: 3}
  - {name: add, kernel: vector_add, precision: fp32, params: {n: 1000000}}
"""
COUNTED = "  - {name: sweep, class: stencil, precision: fp32, flop: 1e9, bytes: 1 GB, n_exec: 2}\n"
COPIES = "  - {name: copy, transfers: [{bytes: 1 MB, direction: h2d}], syncs: 1}\n"


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "app.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_sum_and_its_band(stored: Path, tmp_path: Path) -> None:
    found = predict_workload(write(tmp_path, FILE), platform="t4")
    alone = [
        predict("gemm", platform="t4", precision="fp16", m=1024, n=2048, k=512),
        predict("vector_add", platform="t4", precision="fp32", n=1000000),
    ]
    assert all(item.lower_s and item.upper_s for item in alone)
    times = [3.0, 1.0]
    for name in ("predicted_s", "lower_s", "upper_s"):
        expected = sum(count * getattr(item, name) for count, item in zip(times, alone, strict=True))
        assert getattr(found, name) == pytest.approx(expected, rel=1e-12)
    assert found.lower_s is not None and found.upper_s is not None
    assert found.lower_s <= found.predicted_s <= found.upper_s
    assert "added end to end" in found.note
    assert found.model == alone[0].model != "analytic"
    assert found.characterisation == "first-principles"
    assert found.published[0]["value"] == 1e-3


def test_a_family_counts_its_own_work_whatever_the_file_says(stored: Path, tmp_path: Path) -> None:
    text = FILE.replace("first-principles", "profiler-derived") + COUNTED
    found = predict_workload(write(tmp_path, text), platform="t4")
    assert found.characterisation == "profiler-derived"
    assert [part.characterisation for part in found.segments] == ["first-principles"] * 2 + ["profiler-derived"]


def test_an_implementation_of_the_file_is_asked_for_and_named(stored: Path, tmp_path: Path) -> None:
    text = FILE.replace("precision: fp16,", "precision: fp16, implementation: cublas,")
    assert predict_workload(write(tmp_path, text), platform="t4").segments[0].implementation == "cublas"


def test_a_fault_of_a_prediction_names_file_and_segment(stored: Path, tmp_path: Path) -> None:
    path = write(tmp_path, FILE + "  - {name: huge, class: memory, bytes: 1.0e+40}\n")
    with pytest.raises(InputError, match=r"app\.yaml: segments \(huge\): .*too large"):
        predict_workload(path, platform="t4")


def test_a_wider_level_gives_a_wider_sum(stored: Path, tmp_path: Path) -> None:
    path = write(tmp_path, FILE)
    narrow, wide = (predict_workload(path, platform="t4", level=level) for level in (0.5, 0.9))
    assert wide.lower_s <= narrow.lower_s  # type: ignore[operator]
    assert wide.upper_s >= narrow.upper_s  # type: ignore[operator]


def test_counted_segments_and_copies(stored: Path, tmp_path: Path) -> None:
    found = predict_workload(write(tmp_path, FILE + COUNTED + COPIES), platform="t4")
    sweep, copy = found.segments[2], found.segments[3]
    assert sweep.route == "generic (stencil)"
    assert not sweep.in_domain and not found.in_domain  # no model was trained on this segment
    assert (copy.kernel, copy.route) == ("host", "host side")
    assert copy.predicted_s == copy.lower_s == copy.upper_s == pytest.approx(1e6 / 12.8e9 + 2e-6 + 3e-6)
    assert sum(found.terms.values()) == pytest.approx(found.baseline_s)
    assert sum(part.predicted_s for part in found.segments) == pytest.approx(found.predicted_s)


def test_without_a_model_there_is_no_band(home: Path, unshipped: None, tmp_path: Path) -> None:
    found = predict_workload(write(tmp_path, FILE), platform="t4")
    assert (found.lower_s, found.upper_s, found.model) == (None, None, "analytic")
    assert found.predicted_s == found.baseline_s
    assert "no band: none for product, add" in found.note


def test_settings_reach_the_platform_and_the_file(stored: Path, tmp_path: Path) -> None:
    assert split_settings({"dram_bandwidth": "1TB/s", "a.n": 3}) == ({"dram_bandwidth": "1TB/s"}, {"a.n": 3})
    path = write(tmp_path, FILE)
    plain = predict_workload(path, platform="t4", analytic=True)
    faster = predict_workload(path, platform="t4", analytic=True, settings={"dram_bandwidth": "1 TB/s"})
    larger = predict_workload(path, platform="t4", analytic=True, settings={"add.n": "4e6"})
    assert faster.predicted_s < plain.predicted_s < larger.predicted_s
    assert "with dram_bandwidth set by hand" in faster.note and not faster.in_domain
    assert {row["name"]: row["kind"] for row in faster.parameters}["sustained_hbm_bw"] == "override"
    assert larger.changed == ["add.n=4e6"] and "set by hand: add.n=4e6" in larger.note


def test_open_inputs_are_refused(home: Path) -> None:
    with pytest.raises(RefusedError, match=r"srad_502\.flop, srad_502\.bytes, srad_502\.n_exec"):
        predict_workload("rodinia-srad_502", platform="mi300a")


def test_the_document_is_json(stored: Path, tmp_path: Path) -> None:
    import json

    document = predict_workload(write(tmp_path, FILE + COUNTED), platform="t4").to_dict()
    again = json.loads(json.dumps(document, allow_nan=False))
    assert again["segments"][0]["name"] == "product"
    assert {"predicted_s", "lower_s", "upper_s", "deciding_segment", "characterisation"} <= set(again)


def test_a_picture_of_an_application(home: Path, unshipped: None, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from kernelcast.analytic.platform import load_platform

    found = predict_workload(write(tmp_path, FILE + COUNTED), platform="t4")
    assert picture(found, load_platform("t4"), tmp_path / "roof.svg").stat().st_size > 5000
    copies = predict_workload(write(tmp_path, FILE.partition("  - {name: product")[0] + COPIES), platform="t4")
    with pytest.raises(InputError, match="nothing to draw"):
        picture(copies, load_platform("t4"), tmp_path / "none.svg")
