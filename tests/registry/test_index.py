"""Which model a platform uses: the user's champion, else the shipped one, else none."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kernelcast.analytic.errors import InputError
from kernelcast.registry import index
from kernelcast.registry.publish import promote
from kernelcast.registry.store import write_model

if TYPE_CHECKING:
    from kernelcast.training.hybrid.model import Model

PLATFORM = "t4"
NAME = f"kernelcast-{PLATFORM}"


def added(model: Model, name: str = NAME) -> index.Entry:
    fresh = copy.copy(model)
    fresh.name, fresh.meta = name, dict(model.meta)
    return index.add_model(fresh)


@pytest.fixture
def shipped(tmp_path: Path, small_model: Model, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As if the small model shipped with the package."""
    folder = tmp_path / "package"
    monkeypatch.setattr(index, "shipped_folder", lambda platform: folder / platform)
    write_model(small_model, folder / PLATFORM)
    return folder / PLATFORM


def test_no_model_at_all(home: Path, unshipped: None) -> None:
    assert index.champion_entry(PLATFORM) is None
    assert index.open_champion(PLATFORM) is None
    assert not home.exists()  # looking does not make folders


def test_the_shipped_champion_is_used_until_there_is_an_own_one(home: Path, shipped: Path, small_model: Model) -> None:
    entry = index.champion_entry(PLATFORM)
    assert entry is not None and entry.label == f"{NAME}@shipped" and entry.folder == shipped
    own = added(small_model)
    assert index.champion_entry(PLATFORM) == entry  # stored is not promoted
    index.point_champion(own)
    found = index.open_champion(PLATFORM)
    assert found is not None and index.label(found) == f"{NAME}@1"
    promote(f"{NAME}@shipped")
    assert index.champion_entry(PLATFORM) == entry


def test_versions_count_up_and_the_newest_is_found_by_name(home: Path, unshipped: None, small_model: Model) -> None:
    assert [added(small_model).version for _ in range(11)] == [str(i) for i in range(1, 12)]
    assert index.find_entry(PLATFORM, NAME).version == "11"
    assert index.find_entry(PLATFORM, f"{NAME}@2").version == "2"
    assert [e.version for e in index.entries(PLATFORM)][-2:] == ["10", "11"]


def test_exactly_one_model_carries_the_star(home: Path, shipped: Path, small_model: Model) -> None:
    for name in (NAME, "other"):
        added(small_model, name)
    promote("other", [PLATFORM])
    lines = [index.summary(entry) for entry in index.entries(PLATFORM)]
    assert [(line["name"], line["version"], line["champion"]) for line in lines] == [
        (NAME, "shipped", False), (NAME, "1", False), ("other", "1", True),
    ]
    assert all(line["fault"] is None and line["bytes"] > 1000 for line in lines)


def test_unknown_names_get_the_nearest(home: Path, unshipped: None, small_model: Model) -> None:
    added(small_model, "my-gpu")
    with pytest.raises(InputError, match="did you mean my-gpu"):
        index.find_entry(PLATFORM, "my-gpo")
    with pytest.raises(InputError, match="my-gpu"):
        promote("my-gpo")
    with pytest.raises(InputError, match="kernelcast train -p h200"):
        index.find_entry("h200", "anything")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a b", "-x", "a:b", "x" * 65, "a\n", "é"])
def test_names_that_could_leave_the_store_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="model name"):
        index.check_name(name)


def test_a_model_folder_can_be_named_by_its_path(home: Path, shipped: Path) -> None:
    assert index.open_model(PLATFORM, str(shipped)).platform == PLATFORM
    with pytest.raises(InputError, match="not for h200"):
        index.open_model("h200", str(shipped))
    with pytest.raises(InputError, match="no model folder"):
        index.open_model(PLATFORM, str(shipped.parent))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "x"}', "\x00"])
def test_a_damaged_pointer_says_so(stored: Path, text: str) -> None:
    stored.parent.parent.joinpath("champion.json").write_text(text)
    with pytest.raises(InputError, match=r"champion\.json.*promote"):
        index.open_champion(PLATFORM)


def test_a_pointer_cannot_lead_out_of_the_store(stored: Path) -> None:
    stored.parent.parent.joinpath("champion.json").write_text('{"name": "../../..", "version": "1"}')
    with pytest.raises(InputError, match="model name"):
        index.open_champion(PLATFORM)


def test_a_damaged_model_does_not_become_champion(stored: Path, small_model: Model) -> None:
    second = added(small_model)
    second.folder.joinpath("gemm.ubj.gz").write_bytes(b"")
    with pytest.raises(InputError, match=r"gemm\.ubj.gz"):
        promote(NAME)
    champion = index.champion_entry(PLATFORM)
    assert champion is not None and champion.version == "1"


def test_a_damaged_model_is_listed_as_such(stored: Path) -> None:
    stored.joinpath("model.json").write_text("{")
    (line,) = [index.summary(entry) for entry in index.entries(PLATFORM)]
    assert "model.json" in line["fault"]


def test_a_champion_that_was_deleted_is_named(stored: Path) -> None:
    stored.joinpath("model.json").unlink()
    with pytest.raises(InputError, match=r"model\.json.*missing"):
        index.open_champion(PLATFORM)
