"""Every command as a person meets it: exit status, one JSON document, one message for each kind of bad input."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from kernelcast.registry import index
from kernelcast.service.cli.main import COMMANDS, status_of

if TYPE_CHECKING:
    from kernelcast.training.hybrid.model import Model

Run = Callable[..., tuple[int, str, str]]
GEMM = ("gemm", "m=1024", "n=2048", "k=512", "precision=fp16")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        status = status_of([str(a) for a in arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


def one_message(result: tuple[int, str, str], status: int = 2) -> str:
    """The single line on standard error of a failed command, which printed nothing else and no traceback."""
    code, out, err = result
    assert code == status, (code, err)
    assert out == ""
    assert err.startswith("kernelcast: ") and len(err.strip().splitlines()) == 1, err
    assert "Traceback" not in err
    return err


# ---- help and version


@pytest.mark.parametrize("command", [None, *(c.__name__ for c in COMMANDS)])
def test_help_of_every_command(run: Run, command: str | None) -> None:
    status, out, err = run(*([command] if command else []), "--help")
    assert (status, err) == (0, "") and "Usage: " in out


def test_version(run: Run) -> None:
    import kernelcast

    assert run("--version") == (0, f"kernelcast {kernelcast.__version__}\n", "")


@pytest.mark.parametrize("words", [("frobnicate",), ("predict", "--frobnicate"), ("predict", "gemm", "--level", "x")])
def test_usage_errors(run: Run, words: tuple[str, ...]) -> None:
    assert "--help" in one_message(run(*words))


def test_without_a_command_the_help_is_shown(run: Run) -> None:
    status, out, err = run()
    assert status == 2 and out == "" and "Usage: " in err and "predict" in err


# ---- platforms


def test_platforms_as_a_table_and_as_json(run: Run) -> None:
    status, out, err = run("platforms")
    assert (status, err) == (0, "") and "h200" in out and "NVIDIA H200" in out
    status, out, err = run("platforms", "--json")
    lines = json.loads(out)
    assert (status, err) == (0, "")
    assert {"h200", "b200", "mi300a", "t4"} <= {line["id"] for line in lines}
    assert all({"measured", "assumed", "flags", "heldout"} <= set(line) for line in lines)


def test_one_platform_shows_every_parameter_with_its_source(run: Run) -> None:
    status, out, _ = run("platforms", "h200")
    assert status == 0 and "hbm_peak_bw" in out and "4.8 TB/s" in out and "spec" in out
    detail = json.loads(run("platforms", "h200", "--json")[1])
    row = next(row for row in detail["parameters"] if row["name"] == "hbm_peak_bw")
    assert row["value"] == 4.8e12 and row["unit"] == "B/s" and row["source"]


def test_a_measured_platform_says_with_what_error(run: Run, stored: Path, small_model: Model) -> None:
    line = next(line for line in json.loads(run("platforms", "--json")[1]) if line["id"] == "t4")
    assert line["measured"] and line["rows"] == small_model.meta["rows"]
    assert line["heldout"]["mape"] == small_model.meta["heldout"]["mape"]


def test_what_predicts_a_platform_without_a_champion(run: Run, home: Path) -> None:
    lines = {line["id"]: line for line in json.loads(run("platforms", "--json")[1])}
    for name, model in (("h100-pcie", "_transfer@shipped"), ("h200-as-published", None)):
        assert lines[name]["model"] == model and not lines[name]["measured"]
        used = json.loads(run("predict", *GEMM, "-p", name, "--json")[1])["model"]
        assert used == (model or "analytic")
    assert "model across the measured GPUs" in run("platforms", "h100-pcie")[1]
    assert "analytic only" in run("platforms", "h200-as-published")[1]


def test_unknown_platform(run: Run) -> None:
    assert "did you mean" in one_message(run("platforms", "h20o"))


# ---- predict


def test_predict_as_a_table(run: Run, stored: Path) -> None:
    status, out, err = run("predict", *GEMM, "-p", "t4", "-p", "h200", "--level", "0.8")
    assert (status, err) == (0, "")
    assert "80 % band" in out and "t4" in out and "h200" in out and "kernelcast-t4@1" in out and "note: " in out


def test_predict_as_json(run: Run, stored: Path) -> None:
    status, out, err = run("predict", *GEMM, "-p", "t4", "--json")
    document = json.loads(out)
    assert (status, err) == (0, "") and document["lower_s"] <= document["predicted_s"] <= document["upper_s"]
    several = json.loads(run("predict", *GEMM, "-p", "t4", "-p", "b200", "--json")[1])
    assert several[0] == document and several[1]["platform"] == "b200"


def test_an_unbounded_band_is_null(run: Run, home: Path, unshipped: None) -> None:
    document = json.loads(run("predict", *GEMM, "-p", "t4", "--json")[1])
    assert document["lower_s"] is None and document["upper_s"] is None and document["model"] == "analytic"


def test_predict_options_reach_the_prediction(run: Run, stored: Path) -> None:
    def ask(*more: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(run("predict", "vector_add", "n=1e5", "-p", "t4", "--json", *more)[1])
        return found

    assert ask()["cache"] == "warm" and ask("--cache", "cold")["baseline_s"] > ask()["baseline_s"]
    assert ask("cache=cold") == ask("--cache", "cold")
    assert ask("--analytic")["model"] == "analytic"
    assert ask("--model", "kernelcast-t4@1") == ask()
    assert "hbm_peak_bw" in ask("--set", "hbm_peak_bw=1TB/s")["note"]
    assert ask("implementation=other")["implementation"] == "other"


BAD_QUESTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "no family": ((), "what to predict"),
    "family missing": (("m=1", "-p", "t4"), "family comes first"),
    "no platform": (GEMM, "-p PLATFORM"),
    "unknown platform": ((*GEMM, "-p", "h20o"), "did you mean"),
    "unknown family": (("gemmm", "m=1", "-p", "t4"), "did you mean gemm"),
    "unknown parameter": ((*GEMM, "mm=3", "-p", "t4"), "'mm'"),
    "repeated parameter": ((*GEMM, "m=3", "-p", "t4"), "twice"),
    "malformed parameter": ((*GEMM, "banana", "-p", "t4"), "key=value"),
    "zero": (("gemm", "m=0", "n=1", "k=1", "-p", "h200"), "at least 1"),
    "negative": (("gemm", "m=-1", "n=1", "k=1", "-p", "h200"), "at least 1"),
    "NaN": (("gemm", "m=nan", "n=1", "k=1", "-p", "h200"), "finite"),
    "not a number": (("gemm", "m=4k", "n=1", "k=1", "-p", "h200"), "must be a number"),
    "missing": (("gemm", "m=4", "n=1", "-p", "h200"), "'k' is missing"),
    "precision the platform lacks": (("gemm", "m=4", "n=4", "k=4", "precision=fp8", "-p", "t4"), "t4"),
    "unknown precision": (("gemm", "m=4", "n=4", "k=4", "precision=fp12", "-p", "t4"), "did you mean"),
    "level": ((*GEMM, "-p", "t4", "--level", "90"), "between 0 and 1"),
    "cache": ((*GEMM, "-p", "t4", "--cache", "hot"), "warm, cold"),
    "cache twice": ((*GEMM, "cache=warm", "-p", "t4", "--cache", "cold"), "twice"),
    "unknown model": ((*GEMM, "-p", "t4", "--model", "nobody"), "nobody"),
    "unknown override": ((*GEMM, "-p", "t4", "--set", "hbm_peek_bw=1"), "hbm_peak_bw"),
    "override without a value": ((*GEMM, "-p", "t4", "--set", "hbm_peak_bw"), "such as hbm_peak_bw="),
    "family in capitals": (("GEMM", "m=1", "n=1", "k=1", "-p", "t4"), "did you mean gemm"),
    "parameter in capitals": (("gemm", "M=1", "n=1", "k=1", "-p", "t4"), "did you mean m?"),
    "precision in capitals": (("gemm", "m=1", "n=1", "k=1", "precision=BF16", "-p", "t4"), "did you mean bf16"),
    "impossible together": (("bfs", "nodes=9", "edges=9", "levels=10", "-p", "t4"), "'levels' is more than nodes"),
    "override with a wrong unit": ((*GEMM, "-p", "t4", "--set", "hbm_peak_bw=1GB"), "dimension"),
    "option as a parameter": ((*GEMM, "-p", "t4", "level=0.5"), "--level"),
    "only --runs": (("--runs", "x.csv"), "--out"),
    "table and family": ((*GEMM, "--runs", "x.csv", "--out", "y.csv"), "leave FAMILY"),
}


@pytest.mark.parametrize("case", BAD_QUESTIONS)
@pytest.mark.parametrize("command", ["predict", "explain"])
def test_a_bad_question_is_one_message(run: Run, home: Path, command: str, case: str) -> None:
    words, message = BAD_QUESTIONS[case]
    if command == "explain" and case in ("no family", "only --runs", "table and family"):
        pytest.skip("explain has no tables and words of its own")
    assert message in one_message(run(command, *words))
    assert not home.exists()


def test_a_refused_prediction_has_a_status_of_its_own(run: Run, home: Path) -> None:
    assert "bytes" in one_message(run("predict", "segment", "name=k", "-p", "h200"), status=3)


def test_text_from_outside_cannot_drive_the_terminal(run: Run, home: Path) -> None:
    evil = "x\x1b[31m[red]\x07"
    status, out, err = run("predict", evil, "bytes=1e6", "flops=1", "-p", "h200")
    assert status == 0 and "\x1b" not in out + err and "\x07" not in out + err and "[red]" in out
    assert "\x1b" not in one_message(run("predict", evil, "m=1", "-p", "h200"))


def test_a_damaged_model_is_named_with_the_way_out(run: Run, stored: Path) -> None:
    stored.joinpath("gemm.ubj.gz").write_bytes(b"broken")
    message = one_message(run("predict", *GEMM, "-p", "t4"))
    assert "gemm.ubj.gz" in message and "kernelcast train" in message
    status, out, _ = run("models", "-p", "t4")
    assert status == 0 and "kernelcast-t4@1" in out


def test_a_damaged_description_is_shown_in_the_lists(run: Run, stored: Path) -> None:
    stored.joinpath("model.json").write_bytes(b"{")
    for command in ("models", "platforms"):
        status, out, err = run(command)
        assert status == 0 and "model.json" in err and "t4" in out
    lines = json.loads(run("models", "--json")[1])
    assert "damaged" in next(line["fault"] for line in lines if line["platform"] == "t4")


def test_a_damaged_champion_file_can_be_mended_as_its_message_says(run: Run, stored: Path) -> None:
    stored.parent.parent.joinpath(index.CHAMPION_FILE).write_bytes(b"junk")
    message = one_message(run("predict", *GEMM, "-p", "t4"))
    assert index.CHAMPION_FILE in message and "promote" in message
    for command in ("models", "platforms"):  # lists go on, and say so
        status, out, err = run(command)
        assert status == 0 and "t4" in out and err.count(index.CHAMPION_FILE) == 1
    assert run("promote", "kernelcast-t4@1")[0] == 0
    assert run("predict", *GEMM, "-p", "t4")[0] == 0


def test_a_store_that_may_not_be_read(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.read_bytes

    def fail(self: Path) -> bytes:
        if self.name == index.CHAMPION_FILE:
            raise PermissionError(13, "Permission denied")
        return real(self)

    monkeypatch.setattr(Path, "read_bytes", fail)
    for words in (("predict", *GEMM, "-p", "t4"), ("platforms",), ("models",)):
        assert "cannot be read (Permission denied)" in one_message(run(*words))


# ---- a table of questions


def questions(path: Path, **columns: Any) -> Path:
    frame = pd.DataFrame({
        "platform": "t4", "kernel": ["gemm", "gemm"], "precision": "fp16",
        "params": ['{"m":1024,"n":2048,"k":512}', '{"m":0,"n":1,"k":1}'],
    } | columns)
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_batch(run: Run, stored: Path, tmp_path: Path, suffix: str) -> None:
    source, target = questions(tmp_path / f"in{suffix}", mine=["a", "b"]), tmp_path / f"out{suffix}"
    status, out, err = run("predict", "--runs", source, "--out", target)
    assert status == 0 and "1 of 2 rows predicted" in out and "'m'" in err
    done = pd.read_csv(target) if suffix == ".csv" else pd.read_parquet(target)
    assert done["mine"].tolist() == ["a", "b"] and len(done) == 2
    document = json.loads(run("predict", *GEMM, "-p", "t4", "--json")[1])
    assert done["predicted_s"].iloc[0] == pytest.approx(document["predicted_s"], rel=1e-15)
    assert pd.isna(done["predicted_s"].iloc[1]) and "'m'" in done["note"].iloc[1]


def test_batch_for_a_platform_given_on_the_line(run: Run, home: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(questions(tmp_path / "in.csv")).drop(columns="platform").iloc[:1]
    frame.to_csv(tmp_path / "in.csv", index=False)
    counts = json.loads(run("predict", "--runs", tmp_path / "in.csv", "--out", tmp_path / "out.csv", "-p", "h200",
                            "-p", "mi300x", "--json")[1])
    assert counts["rows"] == counts["predicted"] == 2
    assert "platform" in one_message(run("predict", "--runs", tmp_path / "in.csv", "--out", tmp_path / "out2.csv"))
    assert not (tmp_path / "out2.csv").exists()


def test_a_table_that_cannot_be_written_is_not_predicted_first(
    run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernelcast.service import batch

    monkeypatch.setattr(batch, "predict_runs", lambda *_, **__: pytest.fail("predicted for nothing"))
    source = questions(tmp_path / "in.csv")
    (tmp_path / "folder.csv").mkdir()
    for target, words in (("no/such/out.csv", "No such file or directory"), ("folder.csv", "directory"),
                          ("out.txt", "must end in")):
        assert words in one_message(run("predict", "--runs", source, "--out", tmp_path / target))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.csv", "in.csv"]


def test_a_table_in_which_nothing_can_be_predicted_is_refused(run: Run, home: Path, tmp_path: Path) -> None:
    source = questions(tmp_path / "in.csv", params=['{"m":0,"n":1,"k":1}'] * 2)
    status, _, err = run("predict", "--runs", source, "--out", tmp_path / "out.csv")
    assert status == 3 and "no row could be predicted" in err


def no_table(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 10)


BAD_TABLES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing file": (lambda path: None, "no such file"),
    "empty file": (lambda path: path.write_bytes(b""), "empty"),
    "header only": (lambda path: path.write_text("platform,kernel,precision,params,time_s\n"), "no rows"),
    "no table": (no_table, "in.csv"),
    "a folder": (lambda path: path.mkdir(), "folder"),
    "missing column": (lambda path: path.write_text("platform,kernel,time_s\nt4,gemm,1\n"), "precision, params"),
    "unknown platform": (lambda path: questions(path, platform="h20o", time_s=1.0), "row 1"),
    "params are no JSON": (lambda path: questions(path, params="m=1", time_s=1.0), "row 1"),
}
BAD_TIMES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "time of zero": (lambda path: questions(path, time_s=[1.0, 0.0]), "row 2"),
    "negative time": (lambda path: questions(path, time_s=[-1.0, 1.0]), "row 1"),
    "time missing": (lambda path: questions(path, time_s=[None, 1.0]), "row 1"),
    "time infinite": (lambda path: questions(path, time_s=["inf", 1.0]), "row 1"),
    "time column missing": (lambda path: questions(path), "time_s missing"),
    "too few rows": (lambda path: questions(path, time_s=1.0), "at least"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_of_questions(run: Run, home: Path, tmp_path: Path, case: str) -> None:
    make, message = BAD_TABLES[case]
    make(tmp_path / "in.csv")
    said = one_message(run("predict", "--runs", tmp_path / "in.csv", "--out", tmp_path / "out.csv"))
    assert message in said and "in.csv" in said
    assert not (tmp_path / "out.csv").exists() and not home.exists()


@pytest.mark.parametrize("case", [*BAD_TABLES, *BAD_TIMES])
@pytest.mark.parametrize("command", ["train", "compare"])
def test_a_bad_table_of_runs(run: Run, tracked_home: Path, tmp_path: Path, command: str, case: str) -> None:
    make, message = (BAD_TABLES | BAD_TIMES)[case]
    make(tmp_path / "in.csv")
    assert message in one_message(run(command, "--runs", tmp_path / "in.csv"))
    assert not list(tracked_home.rglob("model.json")) and not list(tracked_home.rglob("champion.json"))


def test_an_output_that_cannot_be_written(run: Run, home: Path, tmp_path: Path) -> None:
    source = questions(tmp_path / "in.csv", params='{"m":8,"n":8,"k":8}')
    assert "cannot be written" in one_message(run("predict", "--runs", source, "--out", source / "out.csv"))
    assert "out.txt" in one_message(run("predict", "--runs", source, "--out", tmp_path / "out.txt"))


# ---- explain


def test_explain_in_words(run: Run, stored: Path) -> None:
    status, out, err = run("explain", *GEMM, "-p", "t4")
    assert (status, err) == (0, "")
    # 2 * 1024 * 2048 * 512 FLOP, and what the bound says about it
    assert "2.147 GFLOP ÷" in out and "FLOP/s =" in out
    for words in ("naive roofline", "correction", "parameters looked up", "peak_fp16_matrix", "guard"):
        assert words in out


def test_explain_as_json_adds_up(run: Run, stored: Path) -> None:
    document = json.loads(run("explain", *GEMM, "-p", "t4", "--json")[1])
    assert sum(document["shares"].values()) == pytest.approx(1.0)
    assert document["hybrid_factor"] == pytest.approx(document["predicted_s"] / document["baseline_s"])
    assert document["sensitivity"] and all(abs(line["change"]) >= 0.001 for line in document["sensitivity"])
    predicted = json.loads(run("predict", *GEMM, "-p", "t4", "--json")[1])
    assert predicted.items() <= document.items()


# ---- train, compare, models, promote


@pytest.fixture
def runs_file(small_runs: pd.DataFrame, tmp_path: Path) -> Path:
    from kernelcast.training.tables.schema import write_runs

    write_runs(small_runs, tmp_path / "runs.csv")
    return tmp_path / "runs.csv"


def test_train_then_predict_list_compare_and_promote(
    run: Run, tracked_home: Path, unshipped: None, runs_file: Path
) -> None:
    status, out, err = run("train", "--runs", runs_file, "--json")
    assert status == 0, err
    (line,) = json.loads(out)
    assert line["champion"] and line["model"] == "kernelcast-t4@1" and line["experiment"] == "kernelcast/t4"
    assert json.loads(run("predict", *GEMM, "-p", "t4", "--json")[1])["model"] == "kernelcast-t4@1"
    status, out, err = run("models")
    assert status == 0 and "*" in out and "kernelcast-t4@1" in out
    (model,) = json.loads(run("models", "-p", "t4", "--json")[1])
    assert model["champion"] and model["rows"] == line["rows"]
    # its own table: the scores of the rows that were held out while it was trained
    records = json.loads(run("compare", "--runs", runs_file, "--model", "kernelcast-t4", "--json")[1])
    assert records[0]["kernel"] == "all" and records[0]["hybrid"]["mape"] == line["heldout"]["mape"]
    assert records[0]["model"] == "kernelcast-t4@1"
    status, out, err = run("promote", "kernelcast-t4@1")
    assert status == 0 and "champion of t4" in out
    assert "did you mean" in one_message(run("promote", "kernelcast-t5"))


def test_compare_reports_every_method(run: Run, home: Path, runs_file: Path) -> None:
    status, out, err = run("compare", "--runs", runs_file, "--json")
    assert status == 0, err
    records = json.loads(out)
    assert records[0]["kernel"] == "all" and {"gemm", "vector_add"} <= {r["kernel"] for r in records}
    for method in ("naive_roofline", "analytic", "nearest_utilisation", "hybrid"):
        assert {"mape", "median_ape", "p90_ape"} <= set(records[0][method])
    assert {"coverage", "level", "median_relative_width"} <= set(records[0]["hybrid"])
    assert "held-out" in records[0]["split"]
    assert not home.exists()  # comparing remembers nothing
    status, out, _ = run("compare", "--runs", runs_file)
    assert status == 0 and "runs.csv" in out and "nearest util." in out


@pytest.mark.parametrize("words", [("-p", "h200"), ("--name", "a/b"), ("--level", "2")])
@pytest.mark.parametrize("command", ["train"])
def test_train_refuses_before_it_works(run: Run, home: Path, runs_file: Path, command: str, words: Any) -> None:
    one_message(run(command, "--runs", runs_file, *words))
    assert not home.exists()


def test_training_on_a_locked_store(
    run: Run, tracked_home: Path, runs_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernelcast.registry import tracking

    monkeypatch.setattr(tracking, "_LOCK_WAIT_S", 0.1)
    holder = sqlite3.connect(tracked_home / "mlflow.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        assert "locked" in one_message(run("train", "--runs", runs_file))
    finally:
        holder.close()
    assert not list(tracked_home.rglob("model.json"))


def test_training_below_a_file(run: Run, home: Path, runs_file: Path) -> None:
    home.write_text("")
    assert "KERNELCAST_HOME" in one_message(run("train", "--runs", runs_file))


def test_no_models_yet(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "entries", lambda platform=None: [])
    status, out, _ = run("models")
    assert status == 0 and "no models yet" in out
    assert json.loads(run("models", "--json")[1]) == []


def test_platforms_without_shipped_runs_need_a_table(run: Run, home: Path) -> None:
    assert "--runs FILE" in one_message(run("train", "-p", "t4"))


# ---- faults of ours


def test_an_unexpected_fault_is_short_and_has_status_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernelcast.service import platforms

    monkeypatch.setattr(platforms, "platform_lines", lambda: 1 / 0)
    message = one_message(run("platforms"), status=1)
    assert "ZeroDivisionError" in message and "KERNELCAST_DEBUG" in message
    monkeypatch.setenv("KERNELCAST_DEBUG", "1")
    assert "Traceback" in run("platforms")[2]


def test_control_c_is_clean(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernelcast.service import platforms

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(platforms, "platform_lines", interrupt)
    assert "interrupted" in one_message(run("platforms"), status=130)


def test_ui_starts_mlflow_on_this_machine_only(run: Run, tracked_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    seen: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda program, command: seen.append(command))
    for name in ("MLFLOW_DISABLE_TELEMETRY", "GIT_PYTHON_REFRESH"):
        monkeypatch.setenv(name, os.environ.get(name, "true"))
    assert run("ui", "--port", "5001")[0] == 0
    (command,) = seen
    assert command[command.index("--host") + 1] == "127.0.0.1" and command[command.index("--port") + 1] == "5001"
    assert command[command.index("--backend-store-uri") + 1] == f"sqlite:///{tracked_home / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")
    assert "browser" in one_message(run("ui"))


def test_ui_on_a_port_that_is_taken(run: Run, tracked_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr("os.execv", lambda *_: pytest.fail("started all the same"))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        assert "choose another with --port" in one_message(run("ui", "--port", str(other.getsockname()[1])))


# ---- measure


def test_measuring_says_what_is_missing(run: Run, home: Path, tmp_path: Path) -> None:
    assert "--out FILE" in one_message(run("measure"))
    assert "did you mean" in one_message(run("measure", "-p", "h20o", "--out", tmp_path / "x.parquet"))
    assert "budget" in one_message(run("measure", "-p", "h200", "--out", tmp_path / "x.parquet", "--budget", "soon"))
    assert "nothing-like-it" in one_message(
        run("measure", "-p", "h200", "--out", tmp_path / "x.parquet", "--suite", "nothing-like-it")
    )
    assert list(tmp_path.iterdir()) == []
