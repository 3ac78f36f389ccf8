"""The commands outside the wheel say what they take, and refuse what they do not know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kernelcast.bench import ship, vectorised
from kernelcast.registry.index import TRANSFER


def test_an_unknown_platform_is_refused_with_those_that_have_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert ship.main(["nosuch"]) == 2
    said = capsys.readouterr().err
    assert "nosuch" in said
    assert "h200" in said
    assert TRANSFER in said


def test_the_model_across_platforms_is_trained_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(ship, "ship_transfer", lambda seed: asked.append((TRANSFER, seed)))
    monkeypatch.setattr(ship, "ship", lambda platform, plan, seed: asked.append((platform, seed)))
    assert ship.main(["h200", TRANSFER, "--seed", "3"]) == 0
    assert asked == [("h200", 3), (TRANSFER, 3)]


def test_a_shipped_model_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_model: Any) -> None:
    monkeypatch.setattr(ship, "shipped_folder", lambda name: tmp_path / name)
    (tmp_path / "t4").mkdir()
    (tmp_path / "t4" / "stale").touch()
    folder = ship._put(small_model, "t4")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t4"]
    assert (folder / "model.json").is_file()
    assert not (folder / "stale").exists()


def test_whole_arrays_are_timed_beside_single_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectorised, "SINGLE", 2)
    vectorised.main(16)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["baseline", "features", "predict_runs"]
    assert all(float(line.split()[-1]) > 0 for line in lines)
