"""The roofline picture: which ceilings, what is refused, and files that are pictures."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.platform import load_platform, platform_ids
from kernelcast.service.plot import Point, _apart, check_file, roofline, roofs

matplotlib = pytest.importorskip("matplotlib")
POINT = Point("gemm 8192", 1.1e12, 4.03e8, 1.4e-3, 1.3e-3, 1.5e-3)


def test_ceilings_of_a_platform() -> None:
    found = {roof.label: roof.rate for roof in roofs(load_platform("mi300x"), "fp64")}
    assert set(found) == {"fp64 matrix peak", "fp64 matrix sustained", "fp64 vector peak", "fp64 vector sustained",
                          "HBM peak", "HBM sustained", "LLC", "L2"}
    assert found["HBM sustained"] < found["HBM peak"] < found["LLC"] < found["L2"]
    assert found["fp64 vector peak"] == load_platform("mi300x").value("peak_fp64_vector")
    assert "L2" in {roof.label for roof in roofs(load_platform("h200"), "bf16")}


@pytest.mark.parametrize("name", platform_ids())
def test_every_platform_has_flat_and_sloped_ceilings(name: str) -> None:
    found = roofs(load_platform(name), "fp32")
    assert any(roof.sloped for roof in found) and any(not roof.sloped for roof in found)


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_files_are_pictures(tmp_path: Path, suffix: str, start: bytes) -> None:
    path = roofline(load_platform("h200"), "bf16", [POINT], tmp_path / f"roof{suffix}")
    data = path.read_bytes()
    assert data.startswith(start) and len(data) > 5000


def test_a_picture_names_its_kernels(tmp_path: Path) -> None:
    import matplotlib.pyplot as plt

    with plt.rc_context({"svg.fonttype": "none"}):
        points = [POINT, Point("solve", 1e9, 4e9, 1e-3), Point("norm", 1e9, 4.1e9, 1.01e-3)]
        words = roofline(load_platform("h200"), "bf16", points, tmp_path / "a.svg").read_text(encoding="utf-8")
    for name in ("gemm 8192", "solve", "norm", "bf16 matrix sustained", "HBM sustained"):
        assert name in words
    assert "2, 3" in words  # the two that lie on each other share a mark


def test_bad_files_and_kernels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.svg, \.png, \.pdf"):
        check_file("roof.gif")
    with pytest.raises(InputError, match="no folder"):
        check_file(tmp_path / "nowhere" / "roof.png")
    with pytest.raises(InputError, match="no FLOP"):
        roofline(load_platform("h200"), "fp32", [Point("copy", 0.0, 1.0, 1.0)], tmp_path / "a.png")


def test_labels_are_pushed_apart() -> None:
    places = _apart([0.1, 0.5, 0.51, 0.52, 0.9], step=0.05)
    assert all(b - a >= 0.05 - 1e-12 for a, b in pairwise(places))
    assert places[0] == 0.1 and places[-1] == 0.9
    assert sum(places[1:4]) / 3 == pytest.approx(0.51)


def test_matplotlib_is_imported_only_when_something_is_drawn() -> None:
    code = "import sys, kernelcast.service.plot, kernelcast.service.cli.main; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
