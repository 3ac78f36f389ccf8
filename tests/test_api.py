"""The Python face: a cheap import, and the calls of the interface."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import kernelcast as kc
import pandas as pd
import pytest


def test_importing_costs_nothing() -> None:
    code = (
        "import sys, time\nbefore = set(sys.modules)\nstart = time.process_time()\nimport kernelcast\n"
        "print(time.process_time() - start, *(m for m in set(sys.modules) - before if not m.startswith('_')))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    took, modules = float(said[0]), {name.partition(".")[0] for name in said[1:]}
    assert not modules & {"numpy", "pandas", "xgboost", "sklearn", "scipy", "mlflow", "typer", "rich", "yaml"}
    assert len(said) - 1 < 40
    assert took < 0.5  # of the processor, whatever else the machine does; a tenth of it where it is idle


def test_every_public_name_is_there() -> None:
    for name in kc.__all__:
        assert getattr(kc, name) is not None
        assert name in dir(kc)
    with pytest.raises(AttributeError, match="no attribute 'predct'"):
        kc.predct  # noqa: B018


def test_predict(home: Path) -> None:
    found = kc.predict("gemm", platform="h200", precision="bf16", m=8192, n=8192, k=8192, analytic=True)
    # 2 * 8192**3 FLOP at the dense peak of 989.4e12 FLOP/s take 1.111 ms: nothing is faster
    assert isinstance(found, kc.Prediction) and 1.111e-3 < found.predicted_s < 2e-3
    with pytest.raises(kc.InputError, match="did you mean"):
        kc.predict("gemm", platform="h20o", m=1, n=1, k=1)
    with pytest.raises(kc.RefusedError):
        kc.predict("segment", platform="h200", name="k")


def test_platforms() -> None:
    assert {"h200", "b200", "mi300a"} <= set(kc.platforms())
    assert kc.load_platform("h200").vendor == "nvidia"


@pytest.mark.parametrize(("change", "words"), [
    ({"platform": None}, "platform is named by its id"),
    ({"platform": 3}, "platform is named by its id"),
    ({"family": None}, "kernel family is a name"),
    ({"precision": 16}, "precision is a name"),
    ({"implementation": 3}, "implementation is a name"),
    ({"m": None}, "'m' must be a number"),
    ({"m": [1, 2]}, "'m' must be a number"),
    ({"overrides": {"hbm_peak_bw": None}}, "a number is needed"),
])
def test_things_of_another_kind_are_named(home: Path, change: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"family": "gemm", "platform": "h200", "m": 64, "n": 64, "k": 64} | change
    with pytest.raises(kc.InputError, match=words):
        kc.predict(given.pop("family"), **given)


def test_a_table_too_small_to_hold_some_out_says_so(home: Path) -> None:
    frame = pd.DataFrame({"platform": "h200", "kernel": "gemm", "precision": "bf16", "time_s": 1e-3,
                          "params": ['{"m":64,"n":64,"k":64}'] * 3})
    with pytest.raises(kc.InputError, match="3 rows of 1 group are too few"):
        kc.compare(frame)


def test_train_compare_predict(small_runs: pd.DataFrame, tracked_home: Path, unshipped: None) -> None:
    model = kc.train(small_runs, name="my-gpu")
    assert isinstance(model, kc.Model) and model.meta["version"] == "1"
    comparison = kc.compare(small_runs, model=model)
    assert comparison.records[0]["kernel"] == "all" and comparison.records[0]["model"] == "my-gpu@1"
    table = kc.predict_runs(small_runs, model=model)
    assert len(table) == len(small_runs) and (table["model"] == "my-gpu@1").all()
    assert kc.predict("gemm", platform="t4", precision="fp16", m=512, n=512, k=512).model == "my-gpu@1"


def test_two_platforms_give_two_models(small_runs: pd.DataFrame, home: Path) -> None:
    import pandas as pd

    few = small_runs[small_runs["kernel"] == "transpose"]
    both = pd.concat([few, few.assign(platform="mi210")], ignore_index=True)
    models = kc.train(both, register=False)
    assert isinstance(models, dict) and set(models) == {"t4", "mi210"}
    assert not home.exists()


@pytest.mark.parametrize("call", [kc.train, kc.compare, kc.predict_runs])
@pytest.mark.parametrize("thing", [None, [1, 2], {"a": 1}, "runs.csv"])
def test_something_that_is_no_frame(call: object, thing: object) -> None:
    with pytest.raises(kc.InputError, match="DataFrame"):
        call(thing)  # type: ignore[operator]
