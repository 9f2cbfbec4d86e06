"""Kept days of a log: found by their key, checked, and removed when no window uses them."""

import datetime as dt
import os
from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.day_records import DayRecord, day_folder, find_day, list_day_records
from pipelines.warehouse.fsck import check_warehouse
from pipelines.warehouse.runs import TableRecord
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.vacuum import find_removable, remove_runs

FACTS = {
    "seconds": {}, "config": {}, "config_hash": "c", "code": "v", "spark": "4", "inputs": {}, "systems": ["s"],
    "conventions": {},
}  # fmt: skip


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path))


def commit_day(storage: Storage, date: str, name: str) -> DayRecord:
    place = f"{day_folder(date, name)}/cells"
    storage.write_parquet(place, pa.table({"position": [1, 2]}))
    files, size = storage.measure(place)
    tables = {"cells": TableRecord(path=place, rows=2, files=files, bytes=size)}
    record = DayRecord(dt=date, key=name.partition("-")[0], name=name, tables=tables, facts={})
    storage.create(record.path, record.model_dump_json())
    return record


def commit_run(storage: Storage, date: dt.date, days: list[DayRecord]) -> None:
    with Attempt(storage, date, "key") as attempt:
        attempt.commit(**FACTS, labels={"days": [day.path for day in days]})


def list_removable(storage: Storage, hours: float = 0) -> set[str]:
    return set(find_removable(storage, keep=1, hours=hours).orphans)


def test_a_day_is_found_by_its_key(storage: Storage) -> None:
    record = commit_day(storage, "2026-11-01", "aaaa-1")
    assert find_day(storage, "2026-11-01", "aaaa") == record
    assert find_day(storage, "2026-11-01", "bbbb") is None
    assert find_day(storage, "2026-11-02", "aaaa") is None


def test_a_day_without_a_record_or_with_a_damaged_one_does_not_exist(storage: Storage) -> None:
    record = commit_day(storage, "2026-11-01", "aaaa-1")
    storage.delete(record.path)
    assert find_day(storage, "2026-11-01", "aaaa") is None
    storage.put(record.path, record.model_dump_json()[:-9])
    assert find_day(storage, "2026-11-01", "aaaa") is None
    storage.put(record.path, record.model_dump_json().replace("key=aaaa-1", "key=other"))
    assert find_day(storage, "2026-11-01", "aaaa") is None, "a record names the folders of its own day only"
    storage.put(record.path, record.model_dump_json())
    assert list(list_day_records(storage)) == [record]


def test_vacuum_removes_days_that_the_newest_window_does_not_use(storage: Storage) -> None:
    old, replaced, used = (
        commit_day(storage, date, name)
        for date, name in (("2026-11-01", "aaaa-1"), ("2026-11-02", "aaaa-2"), ("2026-11-02", "bbbb-3"))
    )
    commit_run(storage, dt.date(2026, 11, 1), [old, replaced])
    commit_run(storage, dt.date(2026, 11, 2), [used])
    storage.write_parquet(f"{day_folder('2026-11-02', 'cccc-4')}/cells", pa.table({"position": [1]}))
    unused = [place for day in (old, replaced) for place in (day.path, day_folder(day.dt, day.name))]
    assert list_removable(storage) == {*unused, day_folder("2026-11-02", "cccc-4")}
    assert list_removable(storage, hours=1) == set(), "another run may have just computed them"
    plan = find_removable(storage, keep=1, hours=0)
    assert plan.orphans.index(old.path) < plan.orphans.index(day_folder(old.dt, old.name)), "the record goes first"
    remove_runs(storage, plan)
    assert list(list_day_records(storage)) == [used]
    assert check_warehouse(storage).problems == ()


def test_vacuum_leaves_days_while_a_run_may_be_reading_them(storage: Storage) -> None:
    day = commit_day(storage, "2026-11-01", "aaaa-1")
    with Attempt(storage, dt.date(2026, 11, 2), "key"):
        assert list_removable(storage) == set()
    assert list_removable(storage) == {day.path, day_folder(day.dt, day.name)}


def test_fsck_names_a_damaged_day_and_no_whole_one(storage: Storage) -> None:
    commit_day(storage, "2026-11-01", "aaaa-1")
    damaged = commit_day(storage, "2026-11-02", "aaaa-2")
    assert check_warehouse(storage).leftovers == ()
    os.truncate(Path(storage.local(damaged.tables["cells"].path), "part-00000.parquet"), 10)
    problems = check_warehouse(storage).problems
    assert [problem.path for problem in problems] == [damaged.tables["cells"].path]
    assert problems[0].advice == f"remove {damaged.path}: the next run computes the day again"
