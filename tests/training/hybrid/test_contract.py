"""A model is opened only for the columns and terms it was trained for, and says with which constants it was made."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kernelcast.analytic.errors import InputError
from kernelcast.configs import folder
from kernelcast.features import rows as features
from kernelcast.registry.store import read_model, write_model
from kernelcast.training.hybrid import contract, fit
from kernelcast.training.hybrid.settings import ROOMS, settings

if TYPE_CHECKING:
    from kernelcast.training.hybrid.model import Model

H200 = folder("champions", "h200")


@pytest.fixture(scope="module")
def stored_model(small_model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "small"
    write_model(small_model, path)
    return path


def renamed_column(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """As if a common feature column had been given another name."""
    made = features.common_columns

    def other(*args: Any) -> dict[str, Any]:
        return {new if name == old else name: values for name, values in made(*args).items()}

    monkeypatch.setattr(features, "common_columns", other)


@pytest.mark.parametrize("platform", sorted(path.name for path in folder("champions").iterdir()))
def test_every_family_of_a_shipped_champion_finds_its_columns(platform: str) -> None:
    if not (folder("champions", platform) / "model.json").is_file():
        pytest.skip("no champion in this folder")
    model = read_model(folder("champions", platform))
    few = sorted(model.families)[:: max(1, len(model.families) // 6)]  # opening is lazy; test_shipped opens the others
    assert [model.families[name].family for name in few] == few
    assert all(not contract.column_fault(model.partials[name]) for name in sorted(model.partials)[:3])


def test_a_renamed_column_is_refused_by_name_and_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    renamed_column(monkeypatch, "tail_threads", "tail_of_threads")
    model = read_model(H200)
    with pytest.raises(InputError, match=r"family softmax .*'tail_threads'.*kernelcast train") as caught:
        model.families["softmax"]
    assert caught.value.exit_status == 2


def test_a_missing_size_of_the_box_is_refused_too() -> None:
    model = read_model(H200).families["transpose"]
    model.domain.names[0] = "log2_rows_of_old"
    assert "'log2_rows_of_old'" in contract.column_fault(model)


def test_learners_that_take_columns_in_another_order_are_refused(stored_model: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(stored_model, tmp_path / "copy"))
    path = copy / "model.json"
    outer = json.loads(path.read_text())
    fields = outer["content"]["families"]["gemm"]["data"]["fields"]["encoder"]["fields"]
    fields["names"] = fields["names"][::-1]
    from kernelcast.registry.store import _canonical, _sha256

    path.write_text(json.dumps({**outer, "sha256": _sha256(_canonical(outer["content"]))}))
    with pytest.raises(InputError, match="family gemm take their columns in another order"):
        read_model(copy).families["gemm"]


@pytest.mark.parametrize(("signed", "name"), [(True, "TERMS"), (False, "TERMS"), (True, "COMMON"), (False, "COMMON")])
def test_what_is_taken_by_place_may_not_move(stored_model: Path, monkeypatch: pytest.MonkeyPatch, signed: bool,
                                             name: str) -> None:
    now = getattr(contract, name)
    monkeypatch.setattr(contract, name, (now[1], now[0], *now[2:]))
    with pytest.raises(InputError, match=f"number 1 was '{now[0]}' when it was trained and is '{now[1]}'"):
        read_model(stored_model if signed else H200)


def test_a_term_may_be_added_last(stored_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "TERMS", (*contract.TERMS, "new"))
    assert read_model(stored_model).platform and read_model(H200).platform == "h200"


def test_columns_of_profiled_kernels_are_counted_where_they_are_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made = contract.profiled_columns
    monkeypatch.setattr(contract, "profiled_columns", lambda level: [*made(level), "more"])
    with pytest.raises(InputError, match="profiled kernels had"):
        read_model(H200)


def test_the_constants_a_model_was_made_with_are_stored_with_it(
    small_model: Model, stored_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = read_model(stored_model).meta["settings"]
    assert kept == small_model.meta["settings"] and set(kept) == set(ROOMS)
    assert kept["hybrid.fit"]["FOLDS"] == fit.FOLDS
    assert kept["learners.trees"]["BOOSTER"]["max_leaves"] == 64
    assert tuple(kept["hybrid.calibration"]["TERMS"]) == contract.TERMS
    monkeypatch.setattr(fit, "FOLDS", 4)
    assert settings()["hybrid.fit"]["FOLDS"] == 4  # what was used, not what the source says


def test_a_family_adapted_from_others_is_asked_for_their_columns() -> None:
    model = read_model(H200).families["transpose"]
    from dataclasses import replace

    class Adapted:
        family, encoder, domain = model.family, model.encoder, model.domain
        sources = (replace(model, encoder=replace(model.encoder, names=["log2_lost"])),)

    assert "'log2_lost'" in contract.column_fault(Adapted())
    assert contract.columns_digest(Adapted()) != contract.columns_digest(model)
