"""Architecture files: what is in them, what is refused, and who reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernelcast.analytic.architecture import architecture_ids, load_architecture, read_architecture
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.gemm_tiles import candidates, machine
from kernelcast.analytic.platform import load_platform, load_platform_file, platform_ids

RUBIN = """\
id: rubin
vendor: nvidia
description: an architecture to come
matrix_route: stage
multicast: {value: 4, kind: assumed, source: nobody has one}
flop_per_cycle: {kind: assumed, source: nobody has one, value: {fp32_vector: 256}}
"""


def write(folder: Path, text: str = RUBIN, name: str = "rubin.yaml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("name", architecture_ids())
def test_every_shipped_file_is_read_and_says_its_sources(name: str) -> None:
    found = load_architecture(name)
    assert found.id == name and found.multicast.source and found.flop_per_cycle.source
    assert found.matrix_route in ("stage", "wavefront")
    assert "fp32_vector" in found.flop_per_cycle.value


def test_every_shipped_platform_is_of_a_known_architecture_of_its_vendor() -> None:
    for name in platform_ids():
        platform = load_platform(name)
        assert platform.architecture.vendor == platform.vendor


def test_a_tile_of_b_is_shared_where_the_architecture_says_so() -> None:
    shared = {name: machine(load_platform(name), "fp16", "matrix").multicast for name in ("b200", "h200", "a100-sxm",
                                                                                         "mi300x")}
    assert shared == {"b200": 2.0, "h200": 2.0, "a100-sxm": 1.0, "mi300x": 1.0}
    assert machine(load_platform("h200"), "fp32", "vector").multicast == 1.0  # the vector units share nothing


def test_candidate_tiles_follow_the_route_and_not_the_vendor() -> None:
    assert float(candidates(load_platform("h200"), "bf16", "matrix", None).tile_m[0, 0]) == 256.0
    widest = [float((c.tile_m * c.tile_n).max()) for c in (candidates(load_platform(name), "bf16", "matrix", None)
                                                           for name in ("h200", "mi300x"))]
    assert widest == [256 * 128, 256 * 256]


def test_a_new_architecture_is_one_file(tmp_path: Path) -> None:
    found = read_architecture(write(tmp_path))
    assert (found.id, found.matrix_route, found.multicast.value) == ("rubin", "stage", 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RUBIN.replace("matrix_route: stage\n", ""), "required key 'matrix_route' is missing"),
        (RUBIN.replace("stage", "systolic"), "matrix_route: .*'stage' or 'wavefront'"),
        (RUBIN.replace("matrix_route", "matrix_rout"), "unknown key 'matrix_rout'.*did you mean matrix_route"),
        (RUBIN.replace("value: 4", "value: 0"), "multicast.value: .*greater than or equal to 1"),
        (RUBIN.replace("value: 4, kind: assumed, source: nobody has one", "value: 4, kind: assumed"),
         "multicast.source: Field required"),
        (RUBIN.replace("fp32_vector", "fp31_vector"), "unknown rate 'fp31_vector' .did you mean fp32_vector"),
        (RUBIN.replace("fp32_vector: 256", "fp32_vector: 0"), "fp32_vector is 0"),
        (RUBIN.replace("id: rubin", "id: feynman"), "'feynman' is not the name of the file; expected 'rubin'"),
        ("", "the file is empty; expected an architecture file"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_name(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        read_architecture(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_and_an_unknown_name_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such architecture file"):
        read_architecture(tmp_path / "rubin.yaml")
    with pytest.raises(InputError, match=r"unknown architecture 'hoper' \(did you mean hopper"):
        load_architecture("hoper")


def test_a_platform_cannot_claim_another_vendors_architecture(tmp_path: Path) -> None:
    shipped = Path(load_platform("h200").path)
    from importlib import resources

    text = resources.files("kernelcast.configs").joinpath("platforms", shipped.name).read_text(encoding="utf-8")
    with pytest.raises(InputError, match="arch: 'cdna3' is an architecture of amd, not of nvidia"):
        load_platform_file(write(tmp_path, text.replace("arch: hopper", "arch: cdna3"), "mine.yaml"))
