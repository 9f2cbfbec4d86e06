"""A new MLflow store is a copy of an empty one, so that its migrations do not run again."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipelines.sharing.settings import TrackingSettings
from pipelines.sharing.tracking.backends import mlflow as backend
from pipelines.sharing.tracking.protocol import Payload, TrackedRun
from pipelines.warehouse.storage import Storage


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # MLflow uses what SQLAlchemy deprecates
def test_a_new_store_starts_as_a_copy_of_the_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "empty.db"
    backend.write_empty_store(empty)
    assert [path.name for path in tmp_path.iterdir()] == ["empty.db"]
    monkeypatch.setattr(backend, "_copy_empty_store", partial(backend._copy_empty_store, source=empty))
    tracker = backend.MlflowTracker(TrackingSettings(), Storage(str(tmp_path / "w")))
    migrations: list[str] = []
    monkeypatch.setattr("mlflow.store.db.utils._initialize_tables", lambda engine: migrations.append(str(engine)))
    assert tracker.check().endswith("experiment assay will be created") and not migrations
    assert sorted(path.name for path in (tmp_path / "w" / "mlflow").iterdir()) == ["README", "mlflow.db"]


def test_a_store_that_exists_is_not_replaced(tmp_path: Path) -> None:
    empty, store = tmp_path / "empty.db", tmp_path / "mlflow.db"
    empty.write_bytes(b"empty")
    store.write_bytes(b"runs")
    backend._copy_empty_store(store, empty)
    assert store.read_bytes() == b"runs" and len(list(tmp_path.iterdir())) == 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_same_work_with_another_spelling_of_a_path_is_logged_again(tmp_path: Path) -> None:
    tracker = backend.MlflowTracker(TrackingSettings(), Storage(str(tmp_path)))

    def send(path: str, value: float) -> Any:
        parent = TrackedRun(name="run", tags={}, metrics={"ndcg": value}, params={"inputs.rankings.path": path})
        payload = Payload(
            run="one", key="key", dt="2026-11-01", experiment="assay", started=0, ended=1, parent=parent, systems=(),
            inputs=(), files={},
        )  # fmt: skip
        tracker.send(payload)
        from mlflow import MlflowClient

        client = MlflowClient(tracker.uri)
        experiment = client.get_experiment_by_name("assay")
        assert experiment is not None
        return client.search_runs([experiment.experiment_id])

    assert len(send("rankings.csv", 0.5)) == 1
    (run,) = send("/data/rankings.csv", 0.75)
    assert run.data.params["inputs.rankings.path"] == "rankings.csv"
    assert run.data.metrics["ndcg"] == 0.75
