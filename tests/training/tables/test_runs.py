"""The run table's door: what is read, what is refused and with which words, what survives writing and reading."""

from __future__ import annotations

import gzip
import json
import os
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic import platform as platform_module
from kernelcast.analytic.errors import InputError
from kernelcast.training.tables.schema import (
    COLUMNS,
    canonical_params,
    params_frame,
    read_runs,
    runs_digest,
    validate_runs,
    write_runs,
)

KNOWN = {"h200", "mi300x"}
HEADER = "platform,kernel,precision,params,time_s"
PARAMS = '"{""n"":1024}"'
GOOD = f"h200,vector_add,fp32,{PARAMS},1e-5"


def small_frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "platform": ["h200", "mi300x", "h200"],
            "kernel": ["gemm", "gemm", "attention"],
            "precision": ["bf16", "fp8", "none"],
            "params": ['{"m":1,"n":2,"k":3}', '{"k":3,"m":1,"n":2,"scheme":"rowwise"}', '{"batch":1,"causal":true}'],
            "time_s": [1e-5, 2.5e-5, 3e-4],
            "notes": ["a, b", 'say "x"', ""],
        }
    )


def write(folder: Path, text: str | bytes, name: str = "runs.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def complaint(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_runs(path, platforms=KNOWN, **options)
    message = str(caught.value)
    assert str(path) in message and "\n" not in message
    return message


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_table_survives_writing_and_reading(tmp_path: Path, name: str) -> None:
    frame, dropped = validate_runs(small_frame(), platforms=KNOWN)
    write_runs(frame, tmp_path / name)
    table = read_runs(tmp_path / name, platforms=KNOWN)
    assert (dropped, table.dropped, table.path) == (0, 0, tmp_path / name)
    assert list(table.frame.columns) == [*COLUMNS, "notes"]
    assert table.frame["time_s"].tolist() == [1e-5, 2.5e-5, 3e-4]
    assert table.frame["precision"].tolist() == ["bf16", "fp8", "none"]  # a precision called none is no missing cell
    assert table.frame["notes"].tolist() == ["a, b", 'say "x"', ""]
    assert runs_digest(table.frame) == runs_digest(frame)
    assert [path.name for path in tmp_path.iterdir()] == [name]  # no temporary file stays behind


def test_optional_columns_are_filled() -> None:
    frame, _ = validate_runs(small_frame().drop(columns="notes"), platforms=KNOWN)
    assert frame["cache"].tolist() == ["unknown"] * 3
    assert frame[["launches", "n_reps", "flops", "bytes", "spread_s"]].isna().all(axis=None)
    assert frame[["statistic", "implementation", "source", "license", "scope"]].isna().all(axis=None)


def test_equal_configurations_share_a_derived_group() -> None:
    frame = small_frame().iloc[[0, 0, 1]].copy()
    frame["params"] = ['{"m":1,"n":2,"k":3}', '{"k": 3.0, "n": 2, "m": 1}', '{"m":1,"n":2,"k":4}']
    groups = validate_runs(frame, platforms=KNOWN)[0]["group"]
    assert groups[0] == groups[1] != groups[2]
    assert groups[0].startswith("gemm:")
    kept = validate_runs(frame.assign(group=["mine", None, " "]), platforms=KNOWN)[0]["group"]
    assert kept[0] == "mine" and kept[1] == groups[1] and kept[2] == groups[2]


def test_platform_alias_becomes_the_canonical_id(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> Any:
        if name != "H200-SXM":
            raise InputError("unknown")
        return types.SimpleNamespace(id="h200")

    monkeypatch.setattr(platform_module, "platform_ids", lambda: ["h200"])
    monkeypatch.setattr(platform_module, "load_platform", load)
    frame = small_frame().iloc[:1].assign(platform="H200-SXM")
    assert validate_runs(frame)[0]["platform"].tolist() == ["h200"]
    with pytest.raises(InputError, match=r"row 1, column platform: unknown platform 'h20' \(did you mean h200\?\)"):
        validate_runs(frame.assign(platform="h20"))


@pytest.mark.parametrize(
    ("row", "column", "said"),
    [
        (f"h200,vector_add,fp32,{PARAMS},-1e-5", "time_s", "> 0"),
        (f"h200,vector_add,fp32,{PARAMS},0", "time_s", "'0'"),
        (f"h200,vector_add,fp32,{PARAMS},nan", "time_s", "finite"),
        (f"h200,vector_add,fp32,{PARAMS},inf", "time_s", "finite"),
        (f"h200,vector_add,fp32,{PARAMS},", "time_s", "empty"),
        (f"h200,vector_add,fp32,{PARAMS},10us", "time_s", "'10us'"),
        (f"h2000,vector_add,fp32,{PARAMS},1e-5", "platform", "did you mean h200"),
        (f",vector_add,fp32,{PARAMS},1e-5", "platform", "empty"),
        (f"h200,,fp32,{PARAMS},1e-5", "kernel", "empty"),
        (f"h200,vector_add,,{PARAMS},1e-5", "precision", "empty"),
        ("h200,vector_add,fp32,{n:1},1e-5", "params", "not readable as JSON"),
        ("h200,vector_add,fp32,[1],1e-5", "params", "not an object"),
        ("h200,vector_add,fp32,,1e-5", "params", "empty"),
        ('h200,vector_add,fp32,"{""n"":NaN}",1e-5', "params", "NaN is not allowed"),
    ],
)
def test_bad_row_is_named_and_can_be_skipped(tmp_path: Path, row: str, column: str, said: str) -> None:
    # header is line 1, the good row line 2, line 3 is blank: the bad row is data row 2 on line 4
    path = write(tmp_path, f"{HEADER}\n{GOOD}\n\n{row}\n{row}\n")
    message = complaint(path)
    assert f"row 2 (line 4), column {column}:" in message and said in message
    assert "1 other bad row" in message
    table = read_runs(path, skip_bad=True, platforms=KNOWN)
    assert (len(table.frame), table.dropped) == (1, 2)


@pytest.mark.parametrize(
    ("column", "value"), [("cache", "hot"), ("scope", "gpu"), ("launches", "many"), ("flops", "-1")]
)
def test_optional_column_with_an_impossible_value(tmp_path: Path, column: str, value: str) -> None:
    message = complaint(write(tmp_path, f"{HEADER},{column}\n{GOOD},\n{GOOD},{value}\n"))
    assert f"row 2 (line 3), column {column}:" in message and value in message


def test_all_rows_bad_leaves_nothing_to_read(tmp_path: Path) -> None:
    path = write(tmp_path, f"{HEADER}\nh200,vector_add,fp32,{PARAMS},-1\n")
    assert "no usable row" in complaint(path, skip_bad=True)


def test_lines_are_counted_through_cells_which_span_lines(tmp_path: Path) -> None:
    split = '"{""n"":\n1024}"'
    path = write(tmp_path, f"\n{HEADER}\nh200,relu,fp32,{split},1e-5\nh200,relu,fp32,{PARAMS},0\n")
    assert "row 2 (line 5), column time_s" in complaint(path)


def test_cell_beyond_the_csv_modules_limit_is_read(tmp_path: Path) -> None:
    long = '"{""name"":""' + "x" * 200_000 + '""}"'
    text = f"{HEADER}\nh200,segment,fp32,{long},1e-5\n"
    assert len(read_runs(write(tmp_path, text), platforms=KNOWN).frame) == 1
    assert "row 2, column time_s" in complaint(write(tmp_path, text + f"h200,relu,fp32,{PARAMS},0\n"))


def test_unquoted_params_are_explained(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + '\n{GOOD}\nh200,gemm,bf16,{"m":1,"n":2},1e-5\n'.replace("{GOOD}", GOOD))
    message = complaint(path)
    assert "row 2 (line 3)" in message and "quoted" in message
    table = read_runs(path, skip_bad=True, platforms=KNOWN)
    assert (len(table.frame), table.dropped) == (1, 1)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"", "empty"),
        ("a.csv", b" \n \n", "empty"),
        ("a.csv", b"<!DOCTYPE html><html></html>", "HTML"),
        ("a.csv", b"\x00\x01\x02binary", "binary"),
        ("a.csv", b"\xff\xfe\x00p", "UTF-8"),
        ("a.csv", b"PAR1....PAR1", "Parquet"),
        ("a.csv", gzip.compress(b"x", mtime=0), "gzip"),
        ("a.csv", HEADER.encode() + b"\n", "no rows"),
        ("a.csv", b"platform;kernel;precision;params;time_s\na;b;c;d;1\n", "missing"),
        ("a.csv", b"platform,kernel,precision,params,time\nh200,relu,fp32,{},1\n", "time_s missing"),
        ("a.csv", b"kernel,kernel\n1,2\n", "more than once"),
        ("a.csv.gz", b"not gzip at all", "gzip"),
        ("a.csv.gz", gzip.compress(b"platform,kernel" * 99, mtime=0)[:-9], "gzip"),
        ("a.parquet", b"no parquet here", "not a Parquet file"),
        ("a.txt", b"x", ".parquet"),
    ],
)
def test_file_which_is_no_table(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    path = write(tmp_path, content, name)
    assert said in complaint(path)
    assert said in complaint(path, skip_bad=True)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    assert "no such file" in complaint(tmp_path / "absent.csv")
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    assert "folder" in complaint(folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
def test_forbidden_file(tmp_path: Path) -> None:
    path = write(tmp_path, f"{HEADER}\n{GOOD}\n")
    path.chmod(0)
    assert "cannot be read" in complaint(path)


def test_byte_order_mark_and_foreign_line_ends_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, b"\xef\xbb\xbf" + f"{HEADER},extra\r\n{GOOD},7\r\n".encode())
    table = read_runs(path, platforms=KNOWN)
    assert table.frame["extra"].tolist() == [7]
    assert table.frame["params"].tolist() == ['{"n":1024}']


def test_table_of_questions_needs_no_time(tmp_path: Path) -> None:
    path = write(tmp_path, f"platform,kernel,precision,params\nh200,relu,fp32,{PARAMS}\n")
    assert "time_s missing" in complaint(path)
    assert read_runs(path, require_time=False, platforms=KNOWN).frame["time_s"].isna().all()


def test_writing_is_refused_where_nobody_may_write(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_runs(small_frame(), tmp_path / "absent" / "t.csv")
    with pytest.raises(InputError, match="unknown kind of table"):
        write_runs(small_frame(), tmp_path / "t.xlsx")


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "old", "t.csv")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    with pytest.raises(InputError, match="No space left"):
        write_runs(small_frame(), path)
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["t.csv"]


def test_unbounded_number_is_an_empty_csv_cell(tmp_path: Path) -> None:
    write_runs(small_frame().assign(upper_s=[1.0, np.inf, np.nan]), tmp_path / "t.csv")
    cells = pd.read_csv(tmp_path / "t.csv", dtype=str, keep_default_na=False)["upper_s"]
    assert cells.tolist() == ["1.0", "", ""]


def test_params_frame_types() -> None:
    texts = ['{"n":4,"causal":true,"name":"a","grid":[1,2,3]}', '{"n":2.5,"causal":false}', '{"n":4,"extra":null}']
    frame = params_frame(pd.Series(texts, index=[5, 7, 9]))
    assert frame.index.tolist() == [5, 7, 9]
    assert frame["n"].tolist() == [4.0, 2.5, 4.0]
    assert frame["causal"].tolist()[:2] == [1.0, 0.0] and np.isnan(frame["causal"].iloc[2])
    assert frame["name"].iloc[0] == "a" and pd.isna(frame["name"].iloc[1])
    assert frame["grid"].iloc[0] == [1, 2, 3]
    assert frame["extra"].isna().all()
    with pytest.raises(InputError, match="row 2, column params"):
        params_frame(pd.Series(["{}", "{"]))


def test_two_faulty_texts_which_join_to_sound_json_are_both_faulty() -> None:
    with pytest.raises(InputError, match="row 1"):
        params_frame(pd.Series(['{"a":1', '"b":2}']))


def test_digest_sees_content_and_nothing_else() -> None:
    frame = validate_runs(small_frame(), platforms=KNOWN)[0]
    digest = runs_digest(frame)
    assert runs_digest(frame.iloc[::-1]) == digest
    assert runs_digest(frame[frame.columns[::-1]].drop(columns="notes")) == digest
    respelled = frame["params"].map(lambda text: json.dumps(json.loads(text), indent=1))
    assert runs_digest(frame.assign(params=respelled)) == digest
    assert runs_digest(frame.assign(time_s=frame["time_s"] * 1.0000001)) != digest
    assert runs_digest(frame.iloc[:2]) != digest


values = st.one_of(st.integers(-(2**53), 2**53), st.booleans(), st.text(max_size=5), st.floats(-1e9, 1e9))


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.text(max_size=4), st.one_of(values, st.lists(st.integers(), max_size=3)), max_size=5))
def test_canonical_params_depend_on_content_only(params: dict[str, Any]) -> None:
    text = canonical_params(params)
    assert json.loads(text) == json.loads(json.dumps(params))
    assert canonical_params(dict(reversed(params.items()))) == text
    assert canonical_params(json.loads(text)) == text


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from([1e-5, -1.0, 0.0, float("nan"), float("inf"), 2.0]), min_size=1, max_size=12),
)
def test_skipping_keeps_exactly_the_sound_rows(times: list[float]) -> None:
    frame = pd.DataFrame({"platform": "h200", "kernel": "relu", "precision": "fp32", "params": "{}", "time_s": times})
    sound = [time for time in times if np.isfinite(time) and time > 0]
    if not sound:
        with pytest.raises(InputError, match="no usable row"):
            validate_runs(frame, skip_bad=True, platforms=KNOWN)
        return
    kept, dropped = validate_runs(frame, skip_bad=True, platforms=KNOWN)
    assert kept["time_s"].tolist() == sound
    assert dropped == len(times) - len(sound)
