"""Training as people see it: an experiment a platform, metrics a family, a registered champion; or nothing at all."""

from __future__ import annotations

import copy
import re
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from kernelcast.analytic.errors import InputError
from kernelcast.registry import index, publish, tracking
from kernelcast.registry.heldout import duel, group_keys, row_keys
from kernelcast.service import train as fit
from kernelcast.training.tables.schema import runs_digest

if TYPE_CHECKING:
    import pandas as pd
    from kernelcast.training.hybrid.compare import Comparison
    from kernelcast.training.hybrid.model import Model

Scored = tuple["Model", "Comparison | None"]


@pytest.fixture(scope="module")
def scored(small_runs: pd.DataFrame) -> Scored:
    return fit.fit_scored(small_runs, "kernelcast-t4", runs="synthetic")


@pytest.fixture
def train(scored: Scored, small_runs: pd.DataFrame, unshipped: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`train_platforms` on the synthetic runs, without fitting them again every time."""

    def ready(frame: pd.DataFrame, name: str, **_: Any) -> Scored:
        model = copy.copy(scored[0])
        model.name, model.meta = name, dict(scored[0].meta)
        return model, scored[1]

    monkeypatch.setattr(fit, "fit_scored", ready)
    yield lambda **options: fit.train_platforms(small_runs, runs="synthetic", **options)[0]


def client() -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=tracking.tracking_uri(), registry_uri=tracking.tracking_uri())


def alias(name: str) -> str:
    """Registered version that carries the alias `champion`."""
    return str(client().get_model_version_by_alias(name, "champion").version)


def everything_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.name != "mlflow.db"}


def test_a_run_holds_metrics_digest_and_the_model(train: Any, tracked_home: Path, small_runs: pd.DataFrame) -> None:
    trained = train()
    experiment = client().get_experiment_by_name("kernelcast/t4")
    (run,) = client().search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    record = next(r for r in trained.comparison.records if r["kernel"] == "gemm")
    for method in ("naive_roofline", "analytic", "nearest_utilisation", "hybrid"):
        for metric in ("mape", "median_ape", "p90_ape"):
            assert run.data.metrics[f"gemm.{method}.{metric}"] == pytest.approx(record[method][metric])
    assert run.data.metrics["all.hybrid.coverage"] == pytest.approx(trained.comparison.records[0]["hybrid"]["coverage"])
    assert run.data.metrics["gemm.training_rows"] == 70
    assert run.data.tags["kernelcast.runs_digest"] == run.data.params["runs_digest"] == runs_digest(small_runs)
    assert run.data.params["rows"] == str(len(small_runs))
    assert run.inputs.dataset_inputs[0].dataset.digest == runs_digest(small_runs)[:36]
    kept = client().download_artifacts(run.info.run_id, "model", str(tracked_home))
    assert (Path(kept) / "model.json").read_bytes() == (trained_folder("1") / "model.json").read_bytes()
    assert (tracked_home / "artifacts").is_dir()


def trained_folder(version: str) -> Path:
    return index.find_entry("t4", f"kernelcast-t4@{version}").folder


def test_the_first_model_is_registered_as_champion(train: Any, tracked_home: Path) -> None:
    trained = train()
    assert trained.champion and "first model" in trained.verdict
    assert alias("kernelcast-t4") == "1"
    entry = index.champion_entry("t4")
    assert entry is not None and entry.label == "kernelcast-t4@1"


def test_an_equal_model_does_not_replace_the_champion_but_can_be_promoted(train: Any, tracked_home: Path) -> None:
    train()
    second = train()
    assert not second.champion and "not better" in second.verdict
    assert re.search(r"on \d+ held-out (rows|groups).*p = .*against kernelcast-t4@1", second.verdict)
    assert alias("kernelcast-t4") == "1"
    publish.promote("kernelcast-t4@2")
    assert alias("kernelcast-t4") == "2"
    entry = index.champion_entry("t4")
    assert entry is not None and entry.version == "2"


def test_a_better_model_replaces_the_champion(train: Any, tracked_home: Path) -> None:
    first = train()
    folder = trained_folder("1")
    worse = copy.copy(first.model)
    worse.meta = {k: v for k, v in first.model.meta.items() if k != "version"}
    worse.meta["record"] = worse.meta["record"] | {"error": worse.meta["record"]["error"] + 0.5}
    index.drop_model(index.Entry("t4", "kernelcast-t4", "1", folder))
    index.add_model(worse)
    second = train()
    assert second.champion and re.search(r": better: .*on \d+ held-out (rows|groups).*p = ", second.verdict)
    entry = index.champion_entry("t4")
    assert entry is not None and entry.version == second.model.meta["version"] == "2"
    assert alias("kernelcast-t4") == "2"


def test_one_group_is_trained_on_and_not_scored(small_runs: pd.DataFrame) -> None:
    frame = small_runs[small_runs["kernel"] == "gemm"].assign(group="one")
    model, comparison = fit.fit_scored(frame.reset_index(drop=True), "kernelcast-t4", quick=True)
    assert len(frame) >= fit.FEWEST_HELD_OUT and comparison is None
    assert model.meta["rows"] == len(frame) and "heldout" not in model.meta


def test_a_given_name_names_the_registered_model(train: Any, tracked_home: Path) -> None:
    train(name="my-gpu")
    assert alias("my-gpu") == "1"
    assert client().get_experiment_by_name("kernelcast/t4") is not None


def test_a_smaller_mean_within_chance_does_not_replace_the_champion(train: Any, tracked_home: Path) -> None:
    """One row much worse and all others as good: the mean differs, the paired test does not."""
    first = train()
    worse = copy.copy(first.model)
    worse.meta = {k: v for k, v in first.model.meta.items() if k != "version"}
    error = np.array(worse.meta["record"]["error"], copy=True)
    error[0] += 1.0
    worse.meta["record"] = worse.meta["record"] | {"error": error}
    index.drop_model(index.Entry("t4", "kernelcast-t4", "1", trained_folder("1")))
    index.add_model(worse)
    second = train()
    assert not second.champion and "within chance" in second.verdict
    assert alias("kernelcast-t4") == "1"


def test_a_shipped_champion_is_tested_against_too(
    train: Any, tracked_home: Path, scored: Scored, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from kernelcast.registry.store import write_model

    error = scored[0].meta["record"]["error"]
    shipped = copy.copy(scored[0])
    monkeypatch.setattr(index, "shipped_folder", lambda platform: tmp_path / "package" / platform)
    shipped.meta = scored[0].meta | {"record": scored[0].meta["record"] | {"error": np.zeros_like(error)}}
    write_model(shipped, tmp_path / "package" / "t4")
    trained = train()
    assert not trained.champion and "not better" in trained.verdict and "kernelcast-t4@shipped" in trained.verdict
    shipped.meta = scored[0].meta | {"record": scored[0].meta["record"] | {"error": error + 0.5}}
    write_model(shipped, tmp_path / "worse" / "t4")
    monkeypatch.setattr(index, "shipped_folder", lambda platform: tmp_path / "worse" / platform)
    assert train().champion


def test_the_duel_is_fought_on_rows_that_neither_learned_from(scored: Scored) -> None:
    model, comparison = scored
    assert comparison is not None
    test = comparison.rows
    equal = duel(test, model)
    assert equal is not None and equal.rows == len(test) and equal.new_mape == pytest.approx(equal.champion_mape)
    assert not equal.verdict.better
    other = copy.copy(model)
    # a champion trained on these very rows, with no held-out record of them: nothing fair is left
    other.meta = {"record": {"groups": np.unique(group_keys(test)), "rows": row_keys(test)[:0], "error": np.zeros(0)}}
    assert duel(test, other) is None
    # one that has never seen any of them: all rows count, and its errors are computed now
    other.meta = {"record": {"groups": group_keys(test)[:0], "rows": row_keys(test)[:0], "error": np.zeros(0)}}
    fresh = duel(test, other)
    assert fresh is not None and fresh.rows == len(test) and fresh.champion_mape < 30


def test_held_out_rows_are_not_among_those_of_another_row(scored: Scored, small_runs: pd.DataFrame) -> None:
    assert len(np.unique(row_keys(small_runs))) == len(small_runs.drop_duplicates(["kernel", "params"]))


def refuses(train: Any, home: Path, match: str) -> None:
    """Training raises one InputError and the state folder is as it was."""
    before = everything_in(home) if home.exists() else set()
    with pytest.raises(InputError, match=match):
        train()
    after = everything_in(home) if home.is_dir() else set()
    assert {path for path in after - before if not path.startswith("artifacts")} <= {"models"}
    assert index.own_champion("t4") is None


def test_a_locked_store_is_refused_before_anything_is_trained(
    train: Any, tracked_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "fit_scored", lambda *_, **__: pytest.fail("trained for nothing"))
    monkeypatch.setattr(tracking, "_LOCK_WAIT_S", 0.1)
    holder = sqlite3.connect(tracked_home / "mlflow.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        refuses(train, tracked_home, r"mlflow\.db.*locked")
    finally:
        holder.close()


def test_a_store_that_gets_locked_during_training_leaves_nothing(
    train: Any, tracked_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(tracking, "_ensure_registered", fail)
    refuses(train, tracked_home, "locked")
    experiment = client().get_experiment_by_name("kernelcast/t4")
    assert [run.info.status for run in client().search_runs([experiment.experiment_id])] == ["FAILED"]


def test_a_failing_pointer_takes_all_back(train: Any, tracked_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise InputError("champion.json: cannot be written (No space left on device)")

    monkeypatch.setattr(index, "point_champion", fail)
    refuses(train, tracked_home, "No space left")
    assert not list((tracked_home / "models").rglob("model.json"))
    assert client().search_model_versions("name='kernelcast-t4'") == []


def test_a_failing_alias_puts_the_old_champion_back(
    train: Any, tracked_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train()

    def fail(*_: Any) -> None:
        raise InputError("the store is gone")

    monkeypatch.setattr(tracking, "give_alias", fail)
    monkeypatch.setattr(publish, "judge", lambda *_: (True, "better"))
    with pytest.raises(InputError, match="gone"):
        train()
    entry = index.champion_entry("t4")
    assert entry is not None and entry.version == "1"
    assert [e.version for e in index.entries("t4")] == ["1"]
    assert alias("kernelcast-t4") == "1"


def test_a_promotion_that_the_registry_cannot_take_is_none(train: Any, tracked_home: Path) -> None:
    train()
    train()
    holder = sqlite3.connect(tracked_home / "mlflow.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(InputError, match=r"locked.*close the program"):
            publish.promote("kernelcast-t4@2")
    finally:
        holder.close()
    entry = index.champion_entry("t4")
    assert entry is not None and entry.version == "1" and alias("kernelcast-t4") == "1"


def test_a_platform_has_one_champion_whatever_the_names(train: Any, tracked_home: Path) -> None:
    def champions() -> dict[str, str]:
        found = client().search_registered_models()
        return {model.name: str(model.aliases["champion"]) for model in found if "champion" in model.aliases}

    train()
    train(name="my-gpu")
    assert champions() == {"kernelcast-t4": "1"}
    publish.promote("my-gpu")
    assert champions() == {"my-gpu": "1"}
    publish.promote("kernelcast-t4")
    assert champions() == {"kernelcast-t4": "1"}


def test_going_back_to_the_shipped_model_leaves_no_champion_in_the_registry(
    train: Any, tracked_home: Path, scored: Scored, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from kernelcast.registry.store import write_model

    train()
    monkeypatch.setattr(index, "shipped_folder", lambda platform: tmp_path / "package" / platform)
    write_model(scored[0], tmp_path / "package" / "t4")
    publish.promote("kernelcast-t4@shipped")
    assert client().get_registered_model("kernelcast-t4").aliases == {}


def test_training_anew_mends_a_damaged_champion(train: Any, tracked_home: Path) -> None:
    train()
    trained_folder("1").joinpath("model.json").write_bytes(b"{")
    second = train()
    assert second.champion and "model.json" in second.verdict and alias("kernelcast-t4") == "2"
    (tracked_home / "models" / "t4" / index.CHAMPION_FILE).write_bytes(b"junk")
    third = train()
    assert third.champion and "damaged champion file" in third.verdict and alias("kernelcast-t4") == "3"
    entry = index.champion_entry("t4")
    assert entry is not None and entry.version == "3"


@pytest.mark.parametrize("content", [b"", b"this is no database" * 100])
def test_a_database_that_is_none(train: Any, home: Path, content: bytes) -> None:
    home.mkdir()
    (home / "mlflow.db").write_bytes(content)
    if not content:
        tracking.check_store()  # an empty file is an empty database
    else:
        refuses(train, home, r"mlflow\.db.*not a database.*move that file away")


def test_a_read_only_database(train: Any, tracked_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = sqlite3.connect
    # root may write anywhere, so the file is opened the way a user without the right would see it
    monkeypatch.setattr(sqlite3, "connect", lambda path, **options: real(path.replace("mode=rw", "mode=ro"), **options))
    refuses(train, tracked_home, "readonly")


def test_a_home_that_cannot_be_made(train: Any, home: Path) -> None:
    home.write_text("a file where the folder should be")
    refuses(train, home, "KERNELCAST_HOME")
    assert home.read_text().startswith("a file")


def test_a_home_without_write_permission(train: Any, tracked_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Path, data: bytes) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", fail)
    refuses(train, tracked_home, "Permission denied")
    assert stat.S_ISDIR(tracked_home.stat().st_mode)


def test_a_database_of_ones_own_leaves_no_files_in_the_working_folder(
    train: Any, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'own.db'}")
    train()
    assert list(place.iterdir()) == []
    assert list((home / "artifacts").rglob("model.json"))
    assert alias("kernelcast-t4") == "1"


def test_a_server_that_does_not_answer(train: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    refuses(train, home, "127.0.0.1:9")


def test_metric_names_are_those_of_the_comparison() -> None:
    record = {"platform": "t4", "kernel": "all", "n": 3, "hybrid": {"mape": 1.0, "coverage": None}, "split": "x"}
    assert tracking.metric_items([record]) == {"all.rows": 3.0, "all.hybrid.mape": 1.0}
