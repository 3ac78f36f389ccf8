"""Shared fixtures: a state folder of its own for every test, and one small model trained once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

# small fits gain nothing from threads, and threads that wait by spinning starve whatever else runs on the machine
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

if TYPE_CHECKING:
    import pandas as pd
    from kernelcast.training.hybrid.model import Model

SYNTHETIC = "t4"
"""Platform of the synthetic runs: one for which no measured runs ship."""
FAMILIES = (
    ("gemm", "fp16", ("m", "n", "k"), (64, 8192), "cublas", 70),
    ("vector_add", "fp32", ("n",), (1e4, 1e8), "hand-written", 60),
    ("transpose", "fp32", ("m", "n"), (64, 8192), "hand-written", 12),
)


@pytest.fixture(scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(autouse=True)
def _own_state(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees or touches the state folder of whoever runs the tests."""
    monkeypatch.setenv("KERNELCAST_HOME", str(state / "shared"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture(scope="session", autouse=True)
def _few_trees() -> Iterator[None]:
    """Small families learn from a third of the trees: they take most of the time, and no test asks for more of them."""
    from kernelcast.training.learners import trees

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "small_rounds", lambda rows: trees.rounds_for(rows) // 5)
        yield


@pytest.fixture(scope="session")
def empty_database(state: Path) -> Path:
    """MLflow's tables, set up once: that takes seconds, a copy takes none."""
    path = state / "template" / "mlflow.db"
    path.parent.mkdir()
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{path}", registry_uri=f"sqlite:///{path}")
    client.get_experiment_by_name("kernelcast/none")
    client.search_registered_models()
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh, empty state folder."""
    folder = tmp_path / "home"
    monkeypatch.setenv("KERNELCAST_HOME", str(folder))
    return folder


@pytest.fixture
def tracked_home(home: Path, empty_database: Path) -> Path:
    """A fresh state folder with MLflow's tables in place."""
    home.mkdir()
    shutil.copy(empty_database, home / "mlflow.db")
    return home


@pytest.fixture
def unshipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no champion shipped with the package."""
    from kernelcast.registry import index

    monkeypatch.setattr(index, "shipped_folder", lambda platform: tmp_path / "nothing" / platform)


def synthetic_runs(platform: str = SYNTHETIC, seed: int = 7, rows: float = 1.0) -> pd.DataFrame:
    """Times drawn from the analytic baseline times a seeded smooth error: made up, only for the plumbing's tests."""
    import pandas as pd
    from kernelcast.features.describe import describe
    from kernelcast.training.tables.schema import validate_runs

    rng = np.random.default_rng(seed)
    lines = []
    for kernel, precision, names, (low, high), implementation, count in FAMILIES:
        sizes = np.exp(rng.uniform(np.log(low), np.log(high), (int(count * rows), len(names)))).astype(int)
        lines += [
            {"platform": platform, "kernel": kernel, "precision": precision, "implementation": implementation,
             "params": dict(zip(names, map(int, size), strict=True)), "time_s": 1.0, "cache": "warm"}
            for size in sizes
        ]
    frame, _ = validate_runs(pd.DataFrame(lines), "synthetic")
    base = describe(frame).baseline_s
    error = 0.3 * np.sin(np.log(base * 1e6)) + 0.05 * rng.standard_normal(len(frame))
    return frame.assign(time_s=base * np.exp(error))


@pytest.fixture(scope="session")
def small_runs() -> pd.DataFrame:
    return synthetic_runs()


@pytest.fixture(scope="session")
def small_model(small_runs: pd.DataFrame, state: Path) -> Iterator[Model]:
    """A model of the synthetic runs, scored; treat it as read-only."""
    from kernelcast.service.train import fit_scored

    model, comparison = fit_scored(small_runs, f"kernelcast-{SYNTHETIC}", runs="synthetic")
    assert comparison is not None
    yield model


@pytest.fixture
def stored(home: Path, small_model: Model, unshipped: None) -> Path:
    """A state folder in which the small model is the champion of its platform; the folder of the model."""
    import copy

    from kernelcast.registry import index

    entry = index.add_model(copy.copy(small_model))
    small_model.meta.pop("version", None)
    index.point_champion(entry)
    return entry.folder


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are laid out for the window; the tests that want another one set it themselves."""
    monkeypatch.setenv("COLUMNS", "140")
