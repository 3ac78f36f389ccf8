"""The model store: bit-identical predictions, lazy reading, damage found and named, nothing half-written."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from kernelcast.analytic.errors import InputError
from kernelcast.features.describe import describe
from kernelcast.registry import store
from kernelcast.registry.store import read_meta, read_model, verify_model, write_model

if TYPE_CHECKING:
    import pandas as pd
    from kernelcast.training.hybrid.model import Model


@pytest.fixture(scope="module")
def folder(small_model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "small"
    write_model(small_model, path)
    return path


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    import shutil

    return Path(shutil.copytree(folder, tmp_path / "copy"))


def test_predictions_are_bit_identical(folder: Path, small_model: Model, small_runs: pd.DataFrame) -> None:
    described = describe(small_runs)
    before, after = small_model.predict(described, 0.9), read_model(folder).predict(described, 0.9)
    for name in ("predicted_s", "lower_s", "upper_s", "calibrated_s", "sigma"):
        assert getattr(before, name).tobytes() == getattr(after, name).tobytes(), name
    assert before.note.tolist() == after.note.tolist()
    assert before.in_domain.tolist() == after.in_domain.tolist()
    assert any(model.residual is not None for model in small_model.families.values())  # a booster took part


def test_a_model_read_and_written_again_is_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    write_model(read_model(folder), tmp_path / "again")
    for path in folder.iterdir():
        if path.suffix != ".npz":  # a zip carries the time of writing
            assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes(), path.name


def test_a_family_is_read_when_it_is_used(copy: Path) -> None:
    (copy / "vector_add.ubj.gz").unlink()
    model = read_model(copy)
    assert set(model.families) == {"gemm", "vector_add", "transpose"}
    assert "gemm" in model.families and model.families.loaded == ()  # type: ignore[attr-defined]
    assert model.families["gemm"].family == "gemm"
    assert model.families.loaded == ("gemm",)  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"vector_add\.ubj.gz"):
        model.families["vector_add"]


def test_meta_is_read_without_the_other_files(copy: Path) -> None:
    for path in copy.iterdir():
        if path.name != "model.json":
            path.unlink()
    meta = read_meta(copy)
    assert meta["platform"] == "t4" and "gemm" in meta["families"]
    assert meta["meta"]["heldout"]["n"] > 0


def test_no_file_is_a_pickle(folder: Path) -> None:
    assert {path.suffix for path in folder.iterdir()} == {".json", ".gz", ".npz"}
    for path in folder.iterdir():
        assert path.read_bytes()[:1] != b"\x80", path.name  # how every pickle since protocol 2 begins
    for path in folder.glob("*.npz"):
        with np.load(path, allow_pickle=False) as arrays:
            assert all(arrays[key].dtype != object for key in arrays.files)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "bit flip": flip,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "empty": lambda path: path.write_bytes(b""),
    "missing": Path.unlink,
    "a folder": lambda path: (path.unlink(), path.mkdir())[0],
}


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", ["model.json", "difficulty.ubj.gz", "difficulty.npz", "gemm.ubj.gz", "gemm.npz"])
def test_damage_is_found_and_named(copy: Path, name: str, how: str) -> None:
    if not (copy / name).exists():
        pytest.skip(f"this model has no {name}")
    DAMAGES[how](copy / name)
    with pytest.raises(InputError) as caught:
        read_model(copy).families["gemm"]
    assert name in str(caught.value)
    assert "kernelcast train" in str(caught.value)  # the way out
    with pytest.raises(InputError):
        verify_model(copy)


def rewrite(folder: Path, change: Callable[[dict[str, Any]], None], sign: bool = True) -> None:
    """Change model.json as someone who knows the format would, with a fitting SHA-256."""
    path = folder / "model.json"
    outer = json.loads(path.read_text())
    change(outer["content"])
    if sign:
        text = json.dumps(outer["content"], sort_keys=True, separators=(",", ":")).encode()
        outer["sha256"] = hashlib.sha256(text).hexdigest()
    path.write_text(json.dumps(outer))


def test_a_changed_number_in_model_json_is_found(copy: Path) -> None:
    rewrite(copy, lambda content: content["model"]["data"]["typical"].update({"": 0.5}), sign=False)
    with pytest.raises(InputError, match="SHA-256"):
        read_model(copy)


@pytest.mark.parametrize("target", ["../../secret.ubj.gz", "/etc/passwd", "gemm.pkl", "other.ubj.gz"])
def test_a_file_outside_the_list_is_not_opened(copy: Path, target: str) -> None:
    rewrite(copy, lambda content: content["families"]["gemm"].update({"boosters": [target]}))
    with pytest.raises(InputError, match=r"model\.json"):
        read_model(copy).families["gemm"]


def test_foreign_classes_are_refused_even_when_signed(copy: Path) -> None:
    foreign = {"$class": "training.train.fit_model", "fields": {}}
    rewrite(copy, lambda content: content["families"]["gemm"].update({"data": foreign}))
    with pytest.raises(InputError, match="damaged"):
        read_model(copy).families["gemm"]


def test_another_format_version_says_so(copy: Path) -> None:
    path = copy / "model.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 99'))
    with pytest.raises(InputError, match="format 99"):
        read_model(copy)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '"model"', "\x00\x01", "[" * 100_000])
def test_what_is_no_model_description_says_so(copy: Path, text: str) -> None:
    (copy / "model.json").write_text(text)
    with pytest.raises(InputError, match=r"model\.json"):
        read_model(copy)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("call", ["rename", "write_bytes"])
def test_a_full_or_read_only_disk_leaves_nothing(
    tmp_path: Path, small_model: Model, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(*((store.os, "rename") if call == "rename" else (Path, "write_bytes")), fail)
    with pytest.raises(InputError, match="cannot be written"):
        write_model(small_model, tmp_path / "models" / "1")
    assert list((tmp_path / "models").iterdir()) == []


def test_a_store_below_a_file_cannot_be_written(tmp_path: Path, small_model: Model) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="KERNELCAST_HOME"):
        write_model(small_model, tmp_path / "file" / "models" / "1")
