"""A real MLflow server over HTTP: MLFLOW_TRACKING_URI is honoured, and its REST API shows what was logged."""

from __future__ import annotations

import json
import shutil
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kernelcast.training.hybrid.model import Model

@pytest.fixture
def server(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """MLflow's own server application behind a socket, in a thread: a process would only import all of it once more."""
    from mlflow.server import app, constants, handlers
    from werkzeug.serving import make_server

    folder = tmp_path / "server"
    folder.mkdir()
    shutil.copy(empty_database, folder / "mlflow.db")
    database = f"sqlite:///{folder / 'mlflow.db'}"
    for name, value in {
        constants.BACKEND_STORE_URI_ENV_VAR: database, constants.REGISTRY_STORE_URI_ENV_VAR: database,
        constants.ARTIFACT_ROOT_ENV_VAR: "mlflow-artifacts:/", constants.SERVE_ARTIFACTS_ENV_VAR: "true",
        constants.ARTIFACTS_DESTINATION_ENV_VAR: str(folder / "artifacts"),
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("_tracking_store", "_model_registry_store", "_artifact_repo"):  # opened with the first request
        monkeypatch.setattr(handlers, name, None)
    serving = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{serving.server_port}"
    serving.shutdown()
    thread.join(20.0)
    serving.server_close()


def rest(uri: str, call: str, body: dict[str, Any] | None = None, **query: str) -> dict[str, Any]:
    url = f"{uri}/api/2.0/mlflow/{call}?{urllib.parse.urlencode(query)}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as reply:
        found: dict[str, Any] = json.load(reply)
    return found


def test_training_logs_to_a_server(
    server: str, home: Path, unshipped: None, small_model: Model, small_runs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import copy

    from kernelcast.service import train as fit
    from kernelcast.service.answer import predict

    fresh = copy.copy(small_model)
    fresh.meta = dict(small_model.meta)
    monkeypatch.setattr(fit, "fit_scored", lambda *_, **__: (fresh, None))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
    (trained,) = fit.train_platforms(small_runs, runs="synthetic")
    assert trained.logged is not None and trained.champion

    experiment = rest(server, "experiments/get-by-name", experiment_name="kernelcast/t4")["experiment"]
    runs = rest(server, "runs/search", {"experiment_ids": [experiment["experiment_id"]]})["runs"]
    assert [run["info"]["run_id"] for run in runs] == [trained.logged.run_id]
    metrics = {m["key"]: m["value"] for m in runs[0]["data"]["metrics"]}
    assert metrics["gemm.training_rows"] == 70
    tags = {t["key"]: t["value"] for t in runs[0]["data"]["tags"]}
    assert tags["kernelcast.runs_digest"] == small_model.meta["runs_digest"]
    champion = rest(server, "registered-models/alias", name="kernelcast-t4", alias="champion")["model_version"]
    assert champion["run_id"] == trained.logged.run_id
    files = rest(server, "artifacts/list", run_id=trained.logged.run_id, path="model")["files"]
    assert {Path(item["path"]).name for item in files} >= {"model.json", "gemm.ubj.gz"}

    assert not (home / "mlflow.db").exists()  # nothing of it went to the default store
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    found = predict("gemm", platform="t4", precision="fp16", m=512, n=512, k=512)  # the server is not needed for it
    assert found.model == "kernelcast-t4@1"
