"""Send a payload to MLflow in few batched calls. The same payload sent twice changes nothing."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.storage import Storage
from pipelines.track.payload import Payload, Tracked
from schemas.errors import TrackingError

if TYPE_CHECKING:
    from mlflow import MlflowClient

logger = logging.getLogger(__name__)

BATCH, BATCH_OF_PARAMS = 1000, 100  # MLflow's limits
PARENT, SYSTEM, NAME = "mlflow.parentRunId", "system", "mlflow.runName"


def send(payload: Payload, storage: Storage, uri: str, *, seconds: float) -> str:
    """Log the parent, its children and the artifacts; answers where to look."""
    with complaining(uri):
        client = client_of(uri, seconds)
        experiment = _experiment(client, payload.experiment, storage, uri)
        parent = _find(client, experiment, f"tags.key = '{payload.key}'").get(None)
        parent = _log(client, experiment, parent, payload, payload.parent, {"key": payload.key})
        _log_inputs(client, parent, payload)
        known = _find(client, experiment, f"tags.`{PARENT}` = '{parent}'")
        for system in payload.systems:
            mine = known.get(system.tags[SYSTEM])
            child = _log(client, experiment, mine, payload, system, {PARENT: parent})
            client.set_terminated(child, "FINISHED", payload.ended)
        _log_files(client, parent, payload, storage)
        client.set_terminated(parent, "FINISHED", payload.ended)
    return f"{plain(uri)}, experiment {payload.experiment}, run {parent}"


def client_of(uri: str, seconds: float) -> MlflowClient:
    """A client that gives up in seconds rather than minutes, and reports to nobody else.

    What the environment says wins. The first client of a process takes seconds: MLflow is imported, and a new
    SQLite store gets its tables.
    """
    wanted = {
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
        "MLFLOW_HTTP_REQUEST_TIMEOUT": f"{max(1, round(seconds))}",
        "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_LOGGING_LEVEL": "WARNING",
    }
    for name, value in wanted.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    return MlflowClient(uri)


@contextmanager
def complaining(uri: str) -> Iterator[None]:
    """Whatever goes wrong with MLflow is one kind of error: it could not be told."""
    try:
        yield
    except Exception as error:
        said = " ".join(str(error).split())[:300]
        raise TrackingError(
            f"MLflow could not be told: {type(error).__name__}: {said}",
            where=plain(uri),
            hint="the run is published; `assay track --pending` sends it later",
        ) from error


def plain(uri: str) -> str:
    """An address without the name and password that it may hold."""
    scheme, mark, rest = uri.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


def _experiment(client: MlflowClient, name: str, storage: Storage, uri: str) -> str:
    found = client.get_experiment_by_name(name)
    if found is not None:
        return str(found.experiment_id)
    ours = uri.startswith("sqlite:///") and storage.uri.startswith("file://")
    return str(client.create_experiment(name, artifact_location=storage.path("mlflow/artifacts") if ours else None))


def _find(client: MlflowClient, experiment: str, condition: str) -> dict[str | None, str]:
    """Runs that meet the condition, by the system they are about; None for a parent."""
    found = client.search_runs([experiment], filter_string=condition, max_results=1000)
    return {run.data.tags.get(SYSTEM): run.info.run_id for run in reversed(found)}


def _log(
    client: MlflowClient, experiment: str, run: str | None, payload: Payload, said: Tracked, more: dict[str, str]
) -> str:
    """Create a run where there is none yet, and log all that is said of it."""
    from mlflow.entities import Metric, Param, RunTag

    tags = {**said.tags, **more, NAME: said.name}
    if run is None:
        run = str(client.create_run(experiment, payload.started, tags, said.name).info.run_id)
    metrics = [Metric(key, float(value), payload.at, payload.step) for key, value in said.metrics.items()]
    params = _chunks([Param(key, value) for key, value in said.params.items()], BATCH_OF_PARAMS)
    batches = _chunks(metrics, BATCH - BATCH_OF_PARAMS - len(tags)) or [[]]
    for number in range(max(len(batches), len(params))):
        client.log_batch(
            run,
            metrics=batches[number] if number < len(batches) else (),
            params=params[number] if number < len(params) else (),
            tags=[RunTag(key, value) for key, value in tags.items()] if number == 0 else (),
        )
    return run


def _log_inputs(client: MlflowClient, run: str, payload: Payload) -> None:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    found: list[Any] = [
        DatasetInput(
            Dataset(
                name=given["name"],
                digest=given["digest"],
                source_type="assay",
                source=given["source"],
                profile=given["profile"],
            ),
            [InputTag("mlflow.data.context", "evaluation")],
        )
        for given in payload.inputs
    ]
    if found:
        client.log_inputs(run, found)


def _log_files(client: MlflowClient, run: str, payload: Payload, storage: Storage) -> None:
    """The report, the manifest and the small tables; what has gone since is left out."""
    with tempfile.TemporaryDirectory(prefix="assay-track-") as folder:
        for name, place in payload.files.items():
            target = Path(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                if name.endswith(".parquet"):
                    _copy_table(storage, place, target)
                else:
                    target.write_text(storage.get(place), encoding="utf-8")
            except OSError as error:
                logger.debug("%s is not logged: %s", name, error)
        client.log_artifacts(run, folder)


def _copy_table(storage: Storage, place: str, target: Path) -> None:
    """All files of a small table as one."""
    import pyarrow.parquet as pq

    data = storage.dataset(place)
    with pq.ParquetWriter(target, data.schema) as writer:
        for batch in data.to_batches():
            writer.write_batch(batch)


def _chunks(items: list[Any], size: int) -> list[list[Any]]:
    return [items[at : at + size] for at in range(0, len(items), size)]
