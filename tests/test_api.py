"""The Python face: a cheap import, and the calls of the interface."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import kernelcast as kc
import pytest

if TYPE_CHECKING:
    import pandas as pd


def test_importing_costs_nothing() -> None:
    code = (
        "import sys, time\nbefore = set(sys.modules)\nstart = time.perf_counter()\nimport kernelcast\n"
        "took = time.perf_counter() - start\nimport sys\n"
        "print(took, len([m for m in set(sys.modules) - before if not m.startswith('_')]))"
    )
    # the best of three: the machine may be busy with something else
    tries = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
             for _ in range(3)]  # fmt: skip
    assert min(float(took) for took, _ in tries) < 0.05
    assert int(tries[0][1]) < 40  # no numpy, pandas, typer


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
