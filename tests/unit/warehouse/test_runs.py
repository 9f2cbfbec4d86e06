"""Runs, without Spark: what is live, what can go, and where things are written."""

import datetime as dt
import os
import time
from pathlib import Path

import pytest

from pipelines.warehouse.run_key import build_run_key
from pipelines.warehouse.runs import Manifest, TableRecord, list_committed, manifest_path, select_live
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.vacuum import find_removable, remove_runs
from pipelines.warehouse.views import render_duckdb_views
from schemas.errors import ConfigurationError, InputError, PublishError


def publish(storage: Storage, date: str, run: str, minute: int) -> Manifest:
    path = f"query_metrics/dt={date}/run={run}"
    storage.put(f"{path}/part-0.parquet", run)
    manifest = Manifest(
        run=run,
        key=run.partition("-")[0],
        dt=date,
        status="committed",
        committed_at=f"2026-11-02T00:{minute:02d}:00+00:00",
        seconds={},
        config={},
        config_hash="c",
        code="v",
        spark="4",
        inputs={},
        systems=("s",),
        conventions={},
        tables={"query_metrics": TableRecord(path=path, rows=1)},
    )
    storage.put(manifest_path(date, run), manifest.model_dump_json())
    return manifest


def test_the_newest_committed_run_of_a_date_is_live(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    publish(storage, "2026-11-01", "b-1", 3)
    publish(storage, "2026-11-01", "a-1", 7)
    publish(storage, "2026-10-31", "c-1", 9)
    assert [m.run for m in list_committed(storage)] == ["c-1", "a-1", "b-1"]
    assert [m.run for m in select_live(list_committed(storage))] == ["a-1", "c-1"]
    assert [m.run for m in list_committed(storage, date="2026-10-31")] == ["c-1"]


def test_vacuum_keeps_the_newest_and_what_may_still_be_written(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    for minute, run in enumerate(["a-1", "a-2", "a-3"]):
        publish(storage, "2026-11-01", run, minute)
    crashed, running = "query_metrics/dt=2026-11-01/run=x-1", "query_metrics/dt=2026-11-01/run=x-2"
    for folder in (crashed, running):
        storage.put(f"{folder}/part-0.parquet", "")
    yesterday = time.time() - 100_000
    os.utime(tmp_path / crashed / "part-0.parquet", (yesterday, yesterday))
    os.utime(tmp_path / crashed, (yesterday, yesterday))
    rubbish = find_removable(storage, keep=2, hours=24)
    assert [m.run for m in rubbish.runs] == ["a-1"]
    assert rubbish.orphans == (crashed,)
    remove_runs(storage, rubbish)
    assert [m.run for m in list_committed(storage)] == ["a-3", "a-2"]
    left = sorted(p.name for p in (tmp_path / "query_metrics/dt=2026-11-01").iterdir())
    assert left == ["run=a-2", "run=a-3", "run=x-2"]


def test_the_key_follows_everything_that_decides_the_numbers() -> None:
    day, other = dt.date(2026, 11, 1), dt.date(2026, 11, 2)
    key = build_run_key(day, {"metrics": ["ndcg@10"]}, {"rankings": "d1"})
    assert key == build_run_key(day, {"metrics": ["ndcg@10"]}, {"rankings": "d1"})
    assert len({key, build_run_key(other, {"metrics": ["ndcg@10"]}, {"rankings": "d1"})}) == 2
    assert len({key, build_run_key(day, {"metrics": ["ndcg@5"]}, {"rankings": "d1"})}) == 2
    assert len({key, build_run_key(day, {"metrics": ["ndcg@10"]}, {"rankings": "d2"})}) == 2


def test_a_put_leaves_one_whole_file_and_no_part_of_one(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "a b'c"))
    storage.put("runs/x.json", "ä" * 1000)
    storage.put("runs/x.json", "new")
    assert storage.get("runs/x.json") == "new"
    assert list(storage.list("runs")) == ["runs/x.json"]
    assert list(storage.list("nowhere")) == []


def test_a_warehouse_that_is_a_file_is_a_publishing_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PublishError, match="cannot write"):
        Storage(str(tmp_path / "file")).put("runs/x.json", "")


def test_an_unknown_scheme_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="cannot use the warehouse"):
        Storage("gopher://somewhere")


def test_views_of_an_empty_warehouse_say_what_to_do_first(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="assay evaluate"):
        render_duckdb_views(Storage(str(tmp_path)))
