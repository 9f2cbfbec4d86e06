"""A new MLflow store is a copy of an empty one, so that its migrations do not run again."""

from functools import partial
from pathlib import Path

import pytest

from pipelines.sharing.settings import TrackingSettings
from pipelines.sharing.tracking.backends import mlflow as backend
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
