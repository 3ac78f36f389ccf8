"""MLflow: one experiment a platform, metrics a family, the run table's digest, the model as artifact and registered.

The default store is SQLite under KERNELCAST_HOME; MLFLOW_TRACKING_URI is honoured. This module is imported by training
only: predicting never loads MLflow. Every fault of a store becomes one InputError.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..analytic.errors import InputError, KernelcastError
from .home import artifacts_folder, check_writable, database_path, make_folder

if TYPE_CHECKING:
    from mlflow import MlflowClient

URI_VARIABLE = "MLFLOW_TRACKING_URI"
ALIAS = "champion"
VERSION_TAG = "kernelcast.version"
_EXPERIMENTS = "kernelcast/"
_LOCK_WAIT_S = 2.0
SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",  # nothing leaves this machine
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SQLALCHEMYSTORE_POOLCLASS": "NullPool",
    "GIT_PYTHON_REFRESH": "quiet",
}
_NOISY = ("mlflow", "alembic", "sqlalchemy", "urllib3")


def tracking_uri() -> str:
    """MLFLOW_TRACKING_URI, else the SQLite file under KERNELCAST_HOME."""
    return os.environ.get(URI_VARIABLE) or f"sqlite:///{database_path()}"


def is_default() -> bool:
    return not os.environ.get(URI_VARIABLE)


def _is_database(uri: str) -> bool:
    """Whether runs go into a database, which holds no files: MLflow would put those into ./mlruns, wherever one is."""
    return uri.partition(":")[0].partition("+")[0] in ("sqlite", "postgresql", "mysql", "mssql")


def _sqlite_path(uri: str) -> Path | None:
    return Path(uri.removeprefix("sqlite:///")) if uri.startswith("sqlite:///") else None


def check_store() -> None:
    """Raise InputError where the tracking store cannot take a run: locked, read-only, not SQLite, unreachable."""
    uri = tracking_uri()
    path = _sqlite_path(uri)
    if path is not None:
        check_writable(path.parent)
        _check_sqlite(path)
    if _is_database(uri):
        make_folder(artifacts_folder())
    if uri.startswith(("http://", "https://")):
        _check_server(uri)


def _check_sqlite(path: Path) -> None:
    if not path.exists():
        return
    try:
        connection = sqlite3.connect(f"file:{path}?mode=rw", timeout=_LOCK_WAIT_S, uri=True, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE kernelcast_probe (x)")  # a read-only file is only noticed by a write
            connection.execute("ROLLBACK")
        finally:
            connection.close()
    except sqlite3.Error as fault:
        raise InputError(_store_fault(str(path), str(fault))) from None


_WAYS_OUT = {"locked": "close the program that holds it, or ", "not a database": "move that file away, or "}


def _store_fault(where: str, why: str) -> str:
    first = next((way for sign, way in _WAYS_OUT.items() if sign in why), "")
    return f"{where}: the tracking store cannot be written ({why}); {first}set {_place(where)} to another place"


def _place(where: str) -> str:
    return f"KERNELCAST_HOME or {URI_VARIABLE}" if is_default() else URI_VARIABLE


def _check_server(uri: str) -> None:
    request = urllib.request.Request(f"{uri.rstrip('/')}/health")
    try:
        with urllib.request.urlopen(request, timeout=5.0):
            pass
    except urllib.error.HTTPError:
        pass  # it answers; a hosted MLflow need not have /health
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "reason", fault)
        raise InputError(_store_fault(uri, f"no answer: {reason}")) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """MLflow and Alembic log their table set-up at INFO on standard error."""
    levels = {name: logging.getLogger(name).level for name in _NOISY}
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


@contextmanager
def _session() -> Iterator[MlflowClient]:
    """A client on the store; whatever MLflow or the database raises becomes an InputError."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    import warnings

    with _quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mlflow import MlflowClient

        _quiet_handlers()
        uri = tracking_uri()
        try:
            yield MlflowClient(tracking_uri=uri, registry_uri=uri)
        except KernelcastError:
            raise
        except Exception as fault:  # MLflow, SQLAlchemy, requests and sqlite3 have no base in common
            text = str(fault).strip().splitlines()
            raise InputError(_store_fault(uri, text[0][:200] if text else type(fault).__name__)) from fault


def _quiet_handlers() -> None:
    """Importing MLflow sets its own levels anew."""
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.ERROR)


@dataclass(frozen=True)
class Logged:
    """What a training run left in MLflow."""

    experiment: str
    run_id: str
    registered_name: str
    registered_version: str


def experiment_name(platform: str) -> str:
    return f"{_EXPERIMENTS}{platform}"


def metric_items(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """`<kernel>.<method>.<metric>` → value, for every number of a comparison's records."""
    out: dict[str, float] = {}
    for record in records:
        out[f"{record['kernel']}.rows"] = float(record["n"])
        for method, scores in record.items():
            if isinstance(scores, Mapping):
                out |= {f"{record['kernel']}.{method}.{k}": float(v) for k, v in scores.items() if v is not None}
    return out


def _experiment(client: MlflowClient, name: str) -> str:
    found = client.get_experiment_by_name(name)
    if found is not None:
        if found.lifecycle_stage == "deleted":
            client.restore_experiment(found.experiment_id)
        return str(found.experiment_id)
    location = artifacts_folder().joinpath(name).as_uri() if _is_database(tracking_uri()) else None
    return str(client.create_experiment(name, artifact_location=location))


def _log(client: MlflowClient, run_id: str, params: Mapping[str, Any], metrics: Mapping[str, float]) -> None:
    from mlflow.entities import Metric, Param

    now = int(time.time() * 1000)
    values = [Metric(key, value, now, 0) for key, value in metrics.items()]
    texts = [Param(key, str(value)[:500]) for key, value in params.items()]
    client.log_batch(run_id, params=texts[:100])
    for start in range(0, len(values), 900):
        client.log_batch(run_id, metrics=values[start : start + 900])


def _log_table(client: MlflowClient, run_id: str, tags: Mapping[str, str]) -> None:
    from mlflow.entities import Dataset, DatasetInput

    digest = tags["kernelcast.runs_digest"]
    source = tags.get("kernelcast.runs", "table")
    data = Dataset(name=Path(source).name[:200] or "table", digest=digest[:36], source_type="local",
                   source=f'{{"uri": "{Path(source).name}"}}')
    client.log_inputs(run_id, [DatasetInput(data)])


def log_training(
    platform: str,
    registered_name: str,
    version: str,
    folder: Path,
    *,
    params: Mapping[str, Any],
    metrics: Mapping[str, float],
    tags: Mapping[str, str],
) -> Logged:
    """Log one trained model: run, metrics, artifact, registered version. A run that fails is marked failed."""
    with _session() as client:
        experiment = experiment_name(platform)
        name = f"{registered_name}@{version}"
        run = client.create_run(_experiment(client, experiment), run_name=name, tags=dict(tags))
        run_id = str(run.info.run_id)
        try:
            _log(client, run_id, params, metrics)
            _log_table(client, run_id, tags)
            client.log_artifacts(run_id, str(folder), "model")
            _ensure_registered(client, registered_name, platform)
            tag = {VERSION_TAG: f"{platform}/{version}"}
            source = f"{run.info.artifact_uri}/model"
            registered = client.create_model_version(registered_name, source=source, run_id=run_id, tags=tag)
        except Exception:
            with suppress(Exception):  # the first fault is the one to report
                client.set_terminated(run_id, "FAILED")
            raise
        client.set_terminated(run_id)
        return Logged(experiment, run_id, registered_name, str(registered.version))


def give_alias(logged: Logged) -> None:
    """Make a registered version the one with the alias `champion`."""
    with _session() as client:
        client.set_registered_model_alias(logged.registered_name, ALIAS, logged.registered_version)
        _take_alias_from_others(client, logged.experiment.removeprefix(_EXPERIMENTS), logged.registered_name)


def _take_alias_from_others(client: MlflowClient, platform: str, keep: str) -> None:
    """A platform has one champion: no registered model of another name may call a version of it so."""
    for model in client.search_registered_models(f"tags.`kernelcast.platform` = '{platform}'"):
        if model.name != keep and ALIAS in model.aliases:
            tags = client.get_model_version_by_alias(model.name, ALIAS).tags
            if tags.get(VERSION_TAG, "").startswith(f"{platform}/"):
                client.delete_registered_model_alias(model.name, ALIAS)


def take_back(logged: Logged) -> None:
    """Undo a registration as far as the store allows: no registered version stays behind, the run is marked failed."""
    with suppress(Exception), _session() as client:  # the fault that led here is the one to report
        client.set_terminated(logged.run_id, "FAILED")
        client.delete_model_version(logged.registered_name, logged.registered_version)


def _ensure_registered(client: MlflowClient, name: str, platform: str) -> None:
    from mlflow.exceptions import MlflowException

    try:
        client.create_registered_model(name, tags={"kernelcast.platform": platform})
    except MlflowException as fault:
        if fault.error_code != "RESOURCE_ALREADY_EXISTS":
            raise


def move_alias(registered_name: str, platform: str, version: str) -> bool:
    """Give the alias `champion` to our `version` of a registered model; False where MLflow does not know it.

    Whatever else of the platform had it loses it, so that the registry never shows a champion that is none.
    """
    if is_default() and not database_path().exists():
        return False
    check_store()
    with _session() as client:
        found = client.search_model_versions(f"name='{registered_name}'")
        fitting = [v for v in found if v.tags.get(VERSION_TAG) == f"{platform}/{version}"]
        if fitting:
            client.set_registered_model_alias(registered_name, ALIAS, fitting[0].version)
        _take_alias_from_others(client, platform, registered_name if fitting else "")
        return bool(fitting)
