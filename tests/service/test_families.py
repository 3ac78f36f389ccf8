"""`families`: every parameter with its meaning, who implements a family, an example that runs; labels of a question."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import kernelcast as kc
import pandas as pd
import pytest
from kernelcast.analytic.families import FAMILIES
from kernelcast.registry import index, store
from kernelcast.service.cli.main import status_of
from kernelcast.service.families import families

GEMM = {"m": 4096, "n": 4096, "k": 4096}


@pytest.fixture(scope="module", autouse=True)
def read_once() -> Iterator[None]:
    """Nothing here changes a model: the description of each is read once, not once a family."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "trained_implementations", cache(store.trained_implementations))
        yield


def record(name: str) -> dict[str, Any]:
    found = families(name)
    assert isinstance(found, dict)
    return found


def test_a_record_is_plain_data_and_holds_every_parameter() -> None:
    for name, family in FAMILIES.items():
        found = json.loads(json.dumps(record(name), allow_nan=False))
        assert [p["name"] for p in found["parameters"]] == list(family.names)
        assert all(p["meaning"] for p in found["parameters"]) and found["damaged"] == []


def test_implementations_are_those_the_champions_were_trained_on() -> None:
    found = record("gather")["implementations"]
    champion = index.open_champion("h200")
    assert champion is not None
    assert found["h200"] == sorted(champion.families["gather"].domain.implementations) == ["thread_element", "torch"]
    assert record("gemm")["reference"] == {"nvidia": "cublas", "amd": "rocblas"}


def test_records_are_read_without_xgboost() -> None:
    code = ("import sys\nfrom kernelcast.service.families import families\nassert families('gemm')['implementations']\n"
            "print([name for name in ('xgboost', 'pandas', 'sklearn', 'mlflow') if name in sys.modules])")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_every_example_has_a_time_by_the_champion(home: Any) -> None:
    champion = index.open_champion("h200")
    outside = set()
    for name in FAMILIES:
        example = record(name)["example"]
        found = kc.predict(name, platform="h200", precision=example["precision"], model=champion, **example["params"])
        assert found.predicted_s > 0
        outside |= set() if found.in_domain else {name}
    # families the H200 has no run of, and a kernel known by its counts alone
    assert outside == {"spmv_hybrid", "dot", "rmsnorm", "memcopy_d2d", "segment"}


@pytest.mark.parametrize("name", ["attention", "bfs", "conv2d"])
def test_the_command_of_an_example_runs_as_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(record(name)["example"]["command"])
    assert status_of([*words[1:], "--analytic", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kernel"] == name and found["predicted_s"] > 0


def test_the_command_shows_the_record_and_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["families"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in FAMILIES)
    assert status_of(["families", "bfs"]) == 0
    out = capsys.readouterr().out
    assert "small_world" in out and "direction_optimising" in out and "as edges / nodes" in out
    assert "levels is more than nodes" in out and "kernelcast predict bfs nodes=1000000" in out
    assert status_of(["families", "--json"]) == 0
    assert {line["name"] for line in json.loads(capsys.readouterr().out)} == set(FAMILIES)
    assert status_of(["families", "gem"]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_case_of_an_implementation_costs_nothing(home: Any) -> None:
    plain, loud = (kc.predict("gemm", platform="h200", precision="bf16", implementation=name, **GEMM)
                   for name in ("cublas", "cuBLAS"))
    assert (loud.implementation, loud.predicted_s, loud.upper_s) == ("cublas", plain.predicted_s, plain.upper_s)
    assert loud.note == plain.note == "" and loud.in_domain
    frame = pd.DataFrame({"platform": "h200", "kernel": "gemm", "precision": "bf16", "params": json.dumps(GEMM),
                          "implementation": ["cublas", "CUBLAS"]})
    done = kc.predict_runs(frame)
    assert done["upper_s"].nunique() == 1 and done["note"].tolist() == ["", ""]


def test_a_mistyped_implementation_is_refused_another_ones_is_told_what_is_known(home: Any) -> None:
    with pytest.raises(kc.InputError, match=r"'cublass' is unknown \(did you mean cublas\?\); known: .*cublas"):
        kc.predict("gemm", platform="h200", precision="bf16", implementation="cublass", **GEMM)
    other = kc.predict("gather", platform="h200", implementation="somebody_elses", table=1000, n=1000, order="random")
    assert "implementations known of gather: thread_element, torch" in other.note and not other.in_domain
    # a table may hold anybody's
    frame = pd.DataFrame({"platform": "h200", "kernel": "gemm", "precision": "bf16", "params": [json.dumps(GEMM)],
                          "implementation": "cublass"})
    assert "not in training (did you mean cublas," in kc.predict_runs(frame)["note"][0]


def test_words_of_a_question_are_checked_and_spelt_as_they_are_stored(home: Any) -> None:
    asked = {"batch": 1, "heads": 8, "seq": 1024, "head_dim": 128}
    found = kc.predict("attention", platform="h200", analytic=True, kv_precision="FP8", **asked)
    assert found.params["kv_precision"] == "fp8"
    with pytest.raises(kc.InputError, match=r"'kv_precision' is 'banana' \(valid: "):
        kc.predict("attention", platform="h200", kv_precision="banana", **asked)
    with pytest.raises(kc.InputError, match=r"'structure' is 'banana'.*leave it out for any other"):
        kc.predict("bfs", platform="h200", analytic=True, nodes=100, edges=900, levels=4, structure="banana")
    params = [json.dumps(asked | {"kv_precision": word}) for word in ("banana", "Fp8")]
    frame = pd.DataFrame({"platform": "h200", "kernel": "attention", "precision": "bf16", "params": params})
    done = kc.predict_runs(frame)
    assert done["predicted_s"].notna().tolist() == [False, True] and "'banana' (valid: " in done["note"][0]
