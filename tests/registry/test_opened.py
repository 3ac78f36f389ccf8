"""Models that are open stay open until a file of theirs changes."""

from __future__ import annotations

import copy
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kernelcast.analytic.errors import InputError
from kernelcast.registry import index, opened, publish
from kernelcast.registry.store import read_model, write_model
from kernelcast.service.answer import Prediction, predict

if TYPE_CHECKING:
    from kernelcast.training.hybrid.model import Model


def ask() -> Prediction:
    return predict("gemm", platform="t4", precision="fp16", m=1024, n=2048, k=512)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were read from disk, in order."""
    found: list[Path] = []

    def read(folder: Path) -> Model:
        found.append(folder)
        return read_model(folder)

    monkeypatch.setattr(opened, "read_model", read)
    opened.OPENED.forget()
    return found


def named(model: Model, name: str) -> Model:
    made = copy.copy(model)
    made.name, made.meta = name, model.meta.copy()
    return made


def test_a_second_prediction_opens_nothing(stored: Path, reads: list[Path]) -> None:
    first, second = ask(), ask()
    assert reads == [stored] and first.to_dict() == second.to_dict()


def test_the_families_that_were_read_stay_read(stored: Path, reads: list[Path]) -> None:
    ask()
    model = index.open_champion("t4")
    assert model is not None and model.families.loaded == ("gemm",)  # type: ignore[attr-defined]


def test_what_one_caller_writes_down_no_other_reads(stored: Path, reads: list[Path]) -> None:
    model = index.open_champion("t4")
    assert model is not None
    model.meta["version"], model.meta["rows"] = "mine", -1
    again = index.open_champion("t4")
    assert again is not None and again.meta["version"] == "1" and again.meta["rows"] > 0
    assert reads == [stored]


def test_a_folder_that_was_replaced_is_read_anew(stored: Path, small_model: Model, reads: list[Path]) -> None:
    before = ask()
    other = copy.copy(small_model)
    other.bands = copy.copy(small_model.bands)
    other.bands.pooled = small_model.bands.pooled + 1.0
    other.bands.by_class = {name: scores + 1.0 for name, scores in small_model.bands.by_class.items()}
    fresh = stored.with_name(".fresh")
    write_model(other, fresh)
    shutil.rmtree(stored)
    os.rename(fresh, stored)
    after = ask()
    assert len(reads) == 2 and after.predicted_s == before.predicted_s
    assert after.upper_s > before.upper_s  # type: ignore[operator]


def test_a_file_that_was_damaged_since_is_noticed(stored: Path, reads: list[Path]) -> None:
    ask()
    stored.joinpath("gemm.ubj.gz").write_bytes(b"")
    with pytest.raises(InputError, match=r"gemm\.ubj.gz"):
        ask()
    shutil.rmtree(stored)
    with pytest.raises(InputError, match="missing"):
        ask()


def test_promoting_another_one_switches_at_once(stored: Path, small_model: Model, reads: list[Path], monkeypatch:
                                                pytest.MonkeyPatch) -> None:
    assert ask().model == "kernelcast-t4@1"
    other = index.add_model(named(small_model, "other"))
    assert ask().model == "kernelcast-t4@1" and len(reads) == 1
    monkeypatch.setattr(publish.tracking, "move_alias", lambda *_: None)
    publish.promote("other")
    assert ask().model == "other@1"
    publish.promote("kernelcast-t4")
    assert ask().model == "kernelcast-t4@1"
    assert reads == [stored, other.folder]


def test_threads_open_a_model_once(stored: Path, reads: list[Path]) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: ask().predicted_s, range(24)))
    assert reads == [stored] and len(set(found)) == 1


def test_only_the_last_ones_are_kept(tmp_path: Path, small_model: Model, reads: list[Path]) -> None:
    folders = [tmp_path / str(i) for i in range(3)]
    for folder in folders:
        write_model(small_model, folder)
    kept = opened.Opened(most=2)
    for i in (0, 1, 0, 2, 0, 1):  # 1 was asked for longest ago when 2 came
        kept.read(folders[i])
    assert reads == [folders[i] for i in (0, 1, 2, 1)]
