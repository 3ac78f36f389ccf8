"""Compressed data at a platform's own parameters, and in an application's transfers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kernelcast.analytic.compressed import compressed_load_time
from kernelcast.analytic.errors import InputError
from kernelcast.analytic.platform import load_platform
from kernelcast.analytic.workload import load_workload, workload_baseline


def test_compressed_loads() -> None:
    platform = load_platform("b200")
    link, out = platform.value("memcpy_bandwidth"), platform.value("decompression_output_rate")
    ratio = np.array([1.0, 2.0, 4.0, 15.0, 245.0])
    assert compressed_load_time(platform, 1e9, ratio, "link") == pytest.approx(1e9 / (ratio * link))
    engine = compressed_load_time(platform, 1e9, ratio)
    assert engine == pytest.approx(np.maximum(1e9 / ratio / link, 1e9 / out))
    assert engine[-2:] == pytest.approx(1e9 / out)  # bound by what the engine puts out: no ratio helps further
    unpacking = platform.with_overrides({"decompression_unpack_rate": "1 TB/s"})
    setup = platform.value("decompression_setup_latency")
    assert compressed_load_time(unpacking, 1e9, 4.0, "unpack") == pytest.approx(
        1e9 / 4 / link + 1e9 / 4 / 1e12 + setup
    )
    with pytest.raises(InputError, match="form 'gzip': link, engine, unpack"):
        compressed_load_time(platform, 1e9, 2.0, "gzip")
    with pytest.raises(InputError, match=r"compression_ratio is 0\.5"):
        compressed_load_time(platform, 1e9, 0.5)


def test_a_part_without_the_unit_says_so() -> None:
    with pytest.raises(InputError, match="h200: parameter 'decompression_output_rate' is not"):
        compressed_load_time(load_platform("h200"), 1e9, 2.0)
    with pytest.raises(InputError, match="b200: parameter 'decompression_unpack_rate' is not"):
        compressed_load_time(load_platform("b200"), 1e9, 2.0, "unpack")


UPLOAD = """\
name: upload
characterisation: first-principles
source: a test
segments:
  - {name: up, n_exec: 3, transfers: [{%s}]}
"""


def upload(tmp_path: Path, transfer: str) -> Path:
    path = tmp_path / "upload.yaml"
    path.write_text(UPLOAD % transfer)
    return path


def test_an_application_loads_compressed_data(tmp_path: Path) -> None:
    platform = load_platform("b200")
    path = upload(tmp_path, "bytes: 1 GB, direction: h2d, episodes: 2, compression_ratio: 4")
    time = workload_baseline(load_workload(path), platform)
    latency = 3 * 2 * platform.value("memcpy_latency")
    expected = 3 * 2 * float(compressed_load_time(platform, 1e9, 4.0)) + latency
    assert time.segments[0].terms["transfers"] == pytest.approx(expected)


def test_only_what_goes_in_is_unpacked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only what goes to the device"):
        load_workload(upload(tmp_path, "bytes: 1 GB, direction: d2h, compression_ratio: 4"))
    with pytest.raises(InputError, match="h200: parameter 'decompression_output_rate' is not"):
        packed = upload(tmp_path, "bytes: 1 GB, direction: h2d, compression_ratio: 2")
        workload_baseline(load_workload(packed), load_platform("h200"))
