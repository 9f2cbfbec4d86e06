"""What a run on a log with kept days reads, measured before Spark starts."""

import datetime as dt
from pathlib import Path

import pytest

from pipelines.config.model import Config
from pipelines.inputs import day_files
from pipelines.inputs.day_files import describe_sources, list_day, measure_spark_bytes, select_log_sources
from pipelines.plan import list_inputs
from pipelines.warehouse.day_records import DayRecord
from pipelines.warehouse.storage import Storage

DATE = dt.date(2026, 11, 3)


def build_config(folder: Path, *, incremental: bool) -> Config:
    log = {
        name: {"path": f"{folder}/{name}/{{date}}", "days": 3, "where": "position > 0"}
        for name in ("impressions", "interactions")
    }
    return Config.model_validate(
        {"inputs": log, "warehouse": str(folder / "warehouse"), "labels": {"incremental": incremental}}
    )


def write_day(folder: Path, day: int, size: int) -> None:
    for name in ("impressions", "interactions"):
        place = folder / name / f"2026-11-0{day}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "part.parquet").write_bytes(b"x" * size)


def keep_day(config: Config, day: int) -> None:
    """Commit a day of these files, under any settings."""
    date = DATE.replace(day=day)
    listings = {name: list_day(name, source, date) for name, source in select_log_sources(config).items()}
    sources = describe_sources({name: listing for name, listing in listings.items() if listing is not None})
    record = DayRecord(dt=date.isoformat(), key="k", name="k-1", tables={}, facts={"sources": sources})
    Storage(config.warehouse).create(record.path, record.model_dump_json())


def measure(config: Config) -> int:
    listings = list_inputs(config, DATE)
    assert listings is not None
    return measure_spark_bytes(config, DATE, listings)


def test_only_days_with_other_files_than_the_kept_ones_are_read(tmp_path: Path) -> None:
    for day, size in ((1, 10), (2, 200), (3, 3_000)):
        write_day(tmp_path, day, size)
    config = build_config(tmp_path, incremental=True)
    assert measure(config) == 2 * 3_210
    keep_day(config, 1)
    keep_day(config, 2)
    assert measure(config) == 2 * 3_000
    assert measure(build_config(tmp_path, incremental=False)) == 2 * 3_210
    write_day(tmp_path, 1, 11)
    assert measure(config) == 2 * 3_011, "a file of a kept day changed"


def test_days_that_other_code_kept_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_day(tmp_path, 3, 3_000)
    config = build_config(tmp_path, incremental=True)
    keep_day(config, 3)
    assert measure(config) == 0
    monkeypatch.setattr(day_files, "hash_code", lambda: "other")
    assert measure(config) == 2 * 3_000


def test_rows_that_workers_read_do_not_pass_through_spark(tmp_path: Path) -> None:
    write_day(tmp_path, 3, 3_000)
    config = build_config(tmp_path, incremental=False)
    plain = config.model_dump(exclude_unset=True, by_alias=True)
    for source in plain["inputs"].values():
        del source["where"]
    assert (measure(config), measure(Config.model_validate(plain))) == (2 * 3_000, 0)
