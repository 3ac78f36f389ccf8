"""A real MLflow server over HTTP: MLFLOW_TRACKING_URI is honoured, and its REST API shows what was logged."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kernelcast.training.hybrid.model import Model

PATIENCE_S = 90.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def server(tmp_path: Path, empty_database: Path) -> Iterator[str]:
    folder = tmp_path / "server"
    folder.mkdir()
    shutil.copy(empty_database, folder / "mlflow.db")
    uri = f"http://127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", uri.rpartition(":")[2],
               "--workers", "1", "--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}",
               "--artifacts-destination", str(folder / "artifacts")]
    settings = os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true"}
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=settings, start_new_session=True)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not answers(uri):
            assert process.poll() is None, (folder / "log").read_text()[-2000:]
            if time.monotonic() > deadline:
                pytest.skip(f"mlflow server did not answer within {PATIENCE_S:.0f} s on this machine")
            time.sleep(0.2)
        yield uri
    finally:
        os.killpg(process.pid, 15)
        process.wait(20)


def answers(uri: str) -> bool:
    try:
        with urllib.request.urlopen(f"{uri}/health", timeout=2):
            return True
    except OSError:
        return False


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
