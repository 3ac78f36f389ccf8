"""Microbenchmarks as a process: what was measured is in the file whenever one fails, hangs, or the disk is full."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kernelcast.analytic.errors import KernelcastError
from kernelcast.measure import microbench
from kernelcast.measure.gpu import Skip

HANGING = """
import sys, time
from types import SimpleNamespace
from pathlib import Path
from kernelcast.measure import microbench as m
nothing = SimpleNamespace(cuda=SimpleNamespace(empty_cache=lambda: None))
m.Gpu = lambda: SimpleNamespace(name="NVIDIA H200", torch=nothing, sync=lambda: None)
m.Bench = lambda g: SimpleNamespace(units=132)
m.versions, m.card_state, m._warm_up = (lambda g: {}), dict, (lambda g: None)
m.SECTIONS = {"first": lambda g, b: {"x_s": 1.0}, "second": lambda g, b: time.sleep(3600)}
m.measure("h200", Path(sys.argv[1]), hang_s=0.5)
"""


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sections on a GPU made of paper: `paper(name=function, …)`."""
    nothing = SimpleNamespace(cuda=SimpleNamespace(empty_cache=lambda: None))
    gpu = SimpleNamespace(name="NVIDIA H200", torch=nothing, sync=lambda: None)
    monkeypatch.setattr(microbench, "Gpu", lambda: gpu)
    monkeypatch.setattr(microbench, "Bench", lambda g: SimpleNamespace(units=132))
    monkeypatch.setattr(microbench, "versions", lambda g: {})
    monkeypatch.setattr(microbench, "card_state", dict)
    monkeypatch.setattr(microbench, "_warm_up", lambda g: None)

    def install(**sections: Callable[..., Any]) -> None:
        monkeypatch.setattr(microbench, "SECTIONS", sections)

    return install


def fails(error: BaseException) -> Callable[..., Any]:
    def section(*_: object) -> None:
        raise error

    return section


def test_a_section_that_fails_is_named_and_the_others_go_on(tmp_path: Path, paper: Callable[..., None]) -> None:
    paper(first=lambda g, b: 1.0, two=fails(Skip("one device only")), memory=fails(RuntimeError("CUDA out of memory")),
          last=lambda g, b: 2.0)
    steps: list[tuple[str, int, int]] = []
    out = tmp_path / "micro.json"
    report = microbench.measure("h200", out, step=lambda *step: steps.append(step))
    assert report["results"] == {"first": 1.0, "last": 2.0}
    assert report["failed"] == {"two": "one device only", "memory": "RuntimeError: CUDA out of memory"}
    assert json.loads(out.read_text()) == report
    assert steps == [("microbenchmarks", n, 4) for n in range(4)]
    assert list(tmp_path.iterdir()) == [out]


def test_interrupted_the_file_has_what_was_measured(tmp_path: Path, paper: Callable[..., None]) -> None:
    paper(first=lambda g, b: 1.0, second=fails(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        microbench.measure("h200", tmp_path / "micro.json")
    assert json.loads((tmp_path / "micro.json").read_text())["results"] == {"first": 1.0}


def test_a_section_that_hangs_ends_the_process_and_the_file_has_the_rest(tmp_path: Path) -> None:
    out = tmp_path / "micro.json"
    done = subprocess.run([sys.executable, "-c", HANGING, str(out)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "second gave no answer in 0.5 s" in done.stderr
    report = json.loads(out.read_text())
    assert report["results"] == {"first": {"x_s": 1.0}}
    assert report["failed"] == {"second": "no answer in 0.5 s"}


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_measured(
    tmp_path: Path, paper: Callable[..., None]
) -> None:
    paper(first=fails(AssertionError("measured")))
    with pytest.raises(KernelcastError, match=r"micro\.json: cannot be written"):
        microbench.measure("h200", tmp_path / "nowhere" / "micro.json")


def test_a_disk_that_fills_leaves_the_last_whole_file(
    tmp_path: Path, paper: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text

    def full(path: Path, text: str) -> int:
        if '"second"' in text:
            write(path, text[:50])
            raise OSError(28, "No space left on device")
        return write(path, text)

    paper(first=lambda g, b: 1.0, second=lambda g, b: 2.0)
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(KernelcastError, match="No space left"):
        microbench.measure("h200", tmp_path / "micro.json")
    assert json.loads((tmp_path / "micro.json").read_text())["results"] == {"first": 1.0}
    assert [p.name for p in tmp_path.iterdir()] == ["micro.json"]
