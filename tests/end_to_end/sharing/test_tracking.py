"""Tracking with a real MLflow server: what is logged, kept while it is down, and never logged twice."""

import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.config.model import Config
from pipelines.sharing.settings import TrackingSettings
from pipelines.sharing.share import share_run
from pipelines.sharing.tracking.outbox import list_pending
from pipelines.sharing.tracking.track import track_run
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.storage import Storage
from schemas.errors import TrackingError
from tests.end_to_end.conftest import BIN, InTurn, WarmProcess
from tests.helpers.published_runs import HOSTILE, publish, write


class Server:
    """`mlflow server` on a port of its own; it can be stopped and restarted on the same store."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}"
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if self.process is not None:
            return
        place = self.folder / "server"
        place.mkdir(exist_ok=True)
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        options += ["--backend-store-uri", f"sqlite:///{place}/mlflow.db", "--artifacts-destination", str(place)]
        with (place / "log").open("ab") as log:
            # Without the seven processes of its job queue, which are not needed here.
            plain = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
            self.process = subprocess.Popen(
                [BIN / "mlflow", "server", *options],
                stdout=log,
                stderr=log,
                env=os.environ | plain,
                start_new_session=True,
            )
        until = time.monotonic() + 120
        while time.monotonic() < until:
            try:
                with urllib.request.urlopen(f"{self.uri}/health", timeout=2) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.1)
        raise AssertionError((place / "log").read_text())

    def stop(self) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGTERM)  # the server and its worker
            self.process.wait(timeout=60)
            self.process = None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    mlflow = Server(tmp_path_factory.mktemp("mlflow"))
    mlflow.start()
    yield mlflow
    mlflow.stop()


def parents(client: Any, experiment: str, run: Manifest) -> list[Any]:
    experiment_id = client.get_experiment_by_name(experiment).experiment_id
    listed: list[Any] = client.search_runs([experiment_id], f"tags.key = '{run.key}'")
    return listed


def test_a_run_is_logged_completely_and_only_once(server: Server, tmp_path: Path) -> None:
    from mlflow import MlflowClient

    verdict = {"verdict": "pass", "condition": "c", "candidate": "new", "segment": "all", "value": "all",
               "reason": "r", "warning": ""}  # fmt: skip
    _, manifest = publish(tmp_path, systems=["old", HOSTILE[0]], gate=[verdict])
    config = Config.model_validate(
        {
            "inputs": {"rankings": {"path": "a"}, "judgments": {"path": "b"}},
            "warehouse": str(tmp_path),
            "tracking": {"uri": server.uri, "experiment": "search"},
        }
    )
    for _ in range(2):
        shared = share_run(config, manifest)
        shared.raise_error()
    assert set(shared.places) == {"report", "mlflow"}
    client = MlflowClient(server.uri)
    (parent,) = parents(client, "search", manifest)
    assert parent.info.status == "FINISHED"
    assert parent.data.tags["gate"] == "pass" and parent.data.tags["dt"] == "2026-11-01"
    assert parent.data.tags["config_hash"] == "c0ffee" and len(parent.data.tags["git_sha"]) == 40
    assert parent.data.params["conventions.unjudged"] == "zero"
    assert [(i.dataset.name, i.dataset.digest) for i in parent.inputs.dataset_inputs] == [("judgments", "d1")]
    children = client.search_runs([parent.info.experiment_id], f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'")
    assert {child.data.tags["system"] for child in children} == {"old", HOSTILE[0]}
    old = next(child for child in children if child.data.tags["system"] == "old")
    assert old.data.metrics["recall_at_20"] == 1.0
    assert old.inputs is not None and [i.dataset.name for i in old.inputs.dataset_inputs] == ["judgments"]
    assert old.data.params["role"] == "baseline"
    kind = client.get_experiment(parent.info.experiment_id).tags["mlflow.experimentKind"]
    assert kind == "custom_model_development", "it opens on its runs"
    assert old.data.metrics["segment/device/ios/recall_at_20"] == 1.0
    (logged,) = client.get_metric_history(old.info.run_id, "ndcg_at_10")
    assert (logged.step, logged.timestamp) == (20758, 20758 * 86_400_000)
    names = {file.path for file in client.list_artifacts(parent.info.run_id)}
    assert names == {"report.html", "manifest.json", "tables"}
    page = Path(client.download_artifacts(parent.info.run_id, "report.html", str(tmp_path))).read_text(encoding="utf-8")
    assert "<script>alert" not in page and "The gate passes" in page


def test_a_large_run_takes_few_calls(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """50 segments × 20 metrics × 3 systems."""
    from mlflow import MlflowClient

    storage, manifest = publish(tmp_path)
    systems = ("a", "b", "c")
    rows = [
        {"system": system, "segment": "country", "value": f"c{value}", "metric": f"m{metric}", "macro": 0.5,
         "queries": 10, "skipped": 0}
        for system in systems for value in range(50) for metric in range(20)
    ]  # fmt: skip
    record = write(storage, manifest.dt, "large-1", "segment_metrics", rows)
    large = manifest.model_copy(
        update={"run": "large-1", "key": "large", "systems": systems, "tables": {"segment_metrics": record}}
    )
    calls = []
    log_batch = MlflowClient.log_batch

    def count_calls(self: MlflowClient, *args: Any, **kwargs: Any) -> Any:
        calls.append(kwargs)
        return log_batch(self, *args, **kwargs)

    monkeypatch.setattr(MlflowClient, "log_batch", count_calls)
    track_run(storage, large, TrackingSettings(uri=server.uri))
    assert len(calls) < 10
    assert sum(len(call["metrics"]) for call in calls) >= 3000
    client = MlflowClient(server.uri)
    (parent,) = parents(client, "assay", large)
    children = client.search_runs([parent.info.experiment_id], f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'")
    assert [len(child.data.metrics) for child in children] == [1000] * 3


def test_runs_are_kept_while_the_server_is_down_and_sent_later(server: Server, tmp_path: Path, in_turn: InTurn) -> None:
    from mlflow import MlflowClient

    storage, manifest = publish(tmp_path / "warehouse")
    send = ("assay", "track", "--pending", "--warehouse", tmp_path / "warehouse", "--uri", server.uri)
    server.stop()
    try:
        with pytest.raises(TrackingError, match="mlflow could not be reached"):
            track_run(storage, manifest, TrackingSettings(uri=server.uri, seconds=1))
        assert [payload.run for payload in list_pending(storage)] == [manifest.run]
        (refused,) = in_turn([send])
    finally:
        server.start()
    assert refused.returncode == 7
    assert "assay: Tracking: mlflow could not be reached" in refused.stderr and "Traceback" not in refused.stderr
    (sent,) = in_turn([send])
    assert sent.returncode == 0, sent.stderr
    assert "1 run sent" in sent.stdout
    assert list_pending(storage) == []
    (parent,) = parents(MlflowClient(server.uri), "assay", manifest)
    assert parent.data.tags["run"] == manifest.run


def test_a_server_that_dies_during_a_run_only_affects_tracking(
    server: Server, demo: Path, tmp_path: Path, warm_process: WarmProcess, in_turn: InTurn
) -> None:
    changes = {"warehouse": str(tmp_path / "w"), "tracking.enabled": "true", "tracking.uri": server.uri}
    options = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
    warm_process.start(["assay", "evaluate", "--config", demo / "demo.yaml", "--date", "2026-11-01", *options])
    deadline = time.monotonic() + 300
    while "stage=read" not in warm_process.read_output()[1]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    server.stop()
    done = warm_process.wait()
    server.start()
    assert done.returncode == 0, done.stderr
    assert any("mlflow could not be reached" in line and "WARNING" in line for line in done.stderr.splitlines())
    assert "\n neural " in done.stdout
    storage = Storage(str(tmp_path / "w"))
    (pending,) = list_pending(storage)
    place = ("--config", demo / "demo.yaml", "--warehouse", tmp_path / "w", "--uri", server.uri)
    (sent,) = in_turn([("assay", "track", "--pending", *place)])
    assert sent.returncode == 0, sent.stderr
    from mlflow import MlflowClient

    experiment = MlflowClient(server.uri).get_experiment_by_name("assay")
    assert experiment is not None
    logged = MlflowClient(server.uri).search_runs([experiment.experiment_id], f"tags.run = '{pending.run}'")
    assert len(logged) == 4  # the run and its three systems
