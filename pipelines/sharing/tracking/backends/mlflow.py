"""Log runs to MLflow in few batched calls."""

from __future__ import annotations

import importlib.metadata
import logging
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.sharing.settings import TrackingSettings
from pipelines.sharing.tracking.protocol import Payload, TrackedRun
from pipelines.sharing.tracking.registry import TRACKERS
from pipelines.warehouse.owner import name_process, open_temporary_folder
from pipelines.warehouse.storage import Storage
from schemas.errors import ConfigurationError
from schemas.redact import redact_text

if TYPE_CHECKING:
    from mlflow import MlflowClient

logger = logging.getLogger(__name__)

BATCH, BATCH_OF_PARAMS = 1000, 100  # MLflow's limits
PARENT, SYSTEM, NAME = "mlflow.parentRunId", "system", "mlflow.runName"
QUIET = {
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
}
# An empty store of this MLflow, written by `make setup`: its fifty migrations take longer than a small run.
EMPTY_STORE = Path(sys.prefix) / "share" / "assay" / f"mlflow-{importlib.metadata.version('mlflow')}.db"
KIND, WITH_RUNS = "mlflow.experimentKind", "custom_model_development"  # opens on its runs rather than on traces


class MlflowTracker:
    """An MLflow server, or a local SQLite store: the configured one, or one inside a local warehouse."""

    def __init__(self, settings: TrackingSettings, storage: Storage) -> None:
        self.settings = settings
        self.storage = storage
        self.uri = settings.uri or _locate_sqlite(storage)

    def send(self, payload: Payload) -> str:
        """Log the parent, its children and the artifacts, each updated where it exists."""
        client = self._connect()
        experiment = self._require_experiment(client, payload.experiment)
        parent_id = _find_runs(client, experiment, f"tags.key = '{payload.key}'").get(None)
        parent_id = _log_run(client, experiment, parent_id, payload, payload.parent, {"key": payload.key})
        _log_inputs(client, parent_id, payload)
        children = _find_runs(client, experiment, f"tags.`{PARENT}` = '{parent_id}'")
        for system in payload.systems:
            child_id = children.get(system.tags[SYSTEM])
            child_id = _log_run(client, experiment, child_id, payload, system, {PARENT: parent_id})
            _log_inputs(client, child_id, payload)
            client.set_terminated(child_id, "FINISHED", payload.ended)
        _log_files(client, parent_id, payload, self.storage)
        client.set_terminated(parent_id, "FINISHED", payload.ended)
        return self._describe_place(payload.experiment, experiment, parent_id)

    def _describe_place(self, name: str, experiment: str, run: str) -> str:
        """Where a run can be seen: of a server, the link, with which MLflow 3.17 shows runs rather than traces."""
        if not self.uri.startswith(("http://", "https://")):
            return f"{redact_text(self.uri)}, experiment {name}, run {run}"
        return (
            f"{redact_text(self.uri.rstrip('/'))}/#/experiments/{experiment}/runs/{run}?workflowType=machine_learning"
        )

    def check(self) -> str:
        """Ask for the experiment."""
        name = self.settings.experiment
        exists = self._connect().get_experiment_by_name(name) is not None
        return f"{redact_text(self.uri)} answers; experiment {name} {'exists' if exists else 'will be created'}"

    def warm_up(self) -> None:
        """Import MLflow and create the tables of a new SQLite store, which takes seconds."""
        self._connect()

    def _connect(self) -> MlflowClient:
        """A client that gives up after seconds rather than minutes, without telemetry; the environment wins."""
        defaults = {
            "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
            # There are three tries.
            "MLFLOW_HTTP_REQUEST_TIMEOUT": f"{max(1, round(min(self.settings.seconds / 4, 10)))}",
            "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
            **QUIET,
        }
        for name, value in defaults.items():
            os.environ.setdefault(name, value)
        if self.settings.uri is None:  # SQLite needs its folder
            self.storage.put("mlflow/README", "The MLflow store of this warehouse: its runs and their artifacts.\n")
            _copy_empty_store(Path(self.uri.removeprefix("sqlite:///")))
        from mlflow import MlflowClient

        return MlflowClient(self.uri)

    def _require_experiment(self, client: MlflowClient, name: str) -> str:
        """The id of an experiment, which is created where it does not exist."""
        experiment = client.get_experiment_by_name(name)
        if experiment is not None:
            if KIND not in experiment.tags:
                client.set_experiment_tag(experiment.experiment_id, KIND, WITH_RUNS)
            return str(experiment.experiment_id)
        local = self.uri.startswith("sqlite:///") and self.storage.uri.startswith("file://")
        location = self.storage.path("mlflow/artifacts") if local else None
        return str(client.create_experiment(name, artifact_location=location, tags={KIND: WITH_RUNS}))


TRACKERS.register("mlflow", MlflowTracker)


def _locate_sqlite(storage: Storage) -> str:
    if not storage.uri.startswith("file://"):
        hint = "set tracking.uri, or tracking.enabled to false"
        raise ConfigurationError(f"{storage.uri} cannot hold an SQLite store", where="tracking.uri", hint=hint)
    return f"sqlite:///{storage.local('mlflow/mlflow.db')}"


def write_empty_store(target: Path = EMPTY_STORE) -> None:
    """Let MLflow create the tables of a store; the file appears when it is complete."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        store, compact = Path(folder) / "store.db", Path(folder) / "compact.db"
        MlflowClient(f"sqlite:///{store}").search_experiments()
        with closing(sqlite3.connect(store)) as database:
            # The default experiment has a path of this folder; MLflow creates another where there is none.
            for table in ("experiment_tags", "experiments"):
                database.execute(f"DELETE FROM {table}")
            database.commit()
            database.execute("VACUUM INTO ?", (str(compact),))
        compact.replace(target)


def _copy_empty_store(target: Path, source: Path = EMPTY_STORE) -> None:
    """Start a new store with a copy of the empty one; where there is none, MLflow creates the tables."""
    if target.exists() or not source.exists():
        return
    part = target.with_name(f"{target.name}.{name_process()}.part")
    with suppress(OSError):
        shutil.copyfile(source, part)
        os.link(part, target)  # fails where another process was faster, and never shows a part of the file
    part.unlink(missing_ok=True)


def _find_runs(client: MlflowClient, experiment: str, condition: str) -> dict[str | None, str]:
    """Ids of the runs that match a condition, by system; None is the key of a parent."""
    runs = client.search_runs([experiment], filter_string=condition, max_results=1000)
    return {run.data.tags.get(SYSTEM): run.info.run_id for run in reversed(runs)}


def _log_run(
    client: MlflowClient,
    experiment: str,
    run_id: str | None,
    payload: Payload,
    content: TrackedRun,
    extra_tags: dict[str, str],
) -> str:
    """Log the content of a run, which is created where it has no id yet.

    Parameters that a run already has stay as they are: MLflow refuses to change them, and runs of the same work differ
    only in the spelling of a path.
    """
    from mlflow.entities import Metric, Param, RunTag

    tags = {**content.tags, **extra_tags, NAME: content.name}
    logged: Mapping[str, str] = {}
    if run_id is None:
        run_id = str(client.create_run(experiment, payload.started, tags, content.name).info.run_id)
    else:
        logged = client.get_run(run_id).data.params
    metrics = [Metric(key, float(value), payload.timestamp, payload.step) for key, value in content.metrics.items()]
    added = [Param(key, value) for key, value in content.params.items() if key not in logged]
    params = _split_batches(added, BATCH_OF_PARAMS)
    batches = _split_batches(metrics, BATCH - BATCH_OF_PARAMS - len(tags)) or [[]]
    for number in range(max(len(batches), len(params))):
        client.log_batch(
            run_id,
            metrics=batches[number] if number < len(batches) else (),
            params=params[number] if number < len(params) else (),
            tags=[RunTag(key, value) for key, value in tags.items()] if number == 0 else (),
        )
    return run_id


def _log_inputs(client: MlflowClient, run_id: str, payload: Payload) -> None:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    datasets: list[Any] = [
        DatasetInput(
            Dataset(
                name=record["name"],
                digest=record["digest"],
                source_type="assay",
                source=record["source"],
                profile=record["profile"],
            ),
            [InputTag("mlflow.data.context", "evaluation")],
        )
        for record in payload.inputs
    ]
    if datasets:
        client.log_inputs(run_id, datasets)


def _log_files(client: MlflowClient, run_id: str, payload: Payload, storage: Storage) -> None:
    """The report, the manifest and the small tables; files that no longer exist are left out."""
    with open_temporary_folder() as temporary:
        folder = temporary / "artifacts"
        for name, place in payload.files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                if name.endswith(".parquet"):
                    _copy_table(storage, place, target)
                else:
                    target.write_text(storage.get(place), encoding="utf-8")
            except OSError as error:
                logger.debug("%s is not logged: %s", name, error)
        client.log_artifacts(run_id, str(folder))


def _copy_table(storage: Storage, place: str, target: Path) -> None:
    """Copy all files of a small table into one."""
    import pyarrow.parquet as pq

    data = storage.dataset(place)
    with pq.ParquetWriter(target, data.schema) as writer:
        for batch in data.to_batches():
            writer.write_batch(batch)


def _split_batches(items: list[Any], size: int) -> list[list[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
