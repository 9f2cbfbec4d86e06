"""Logs in Parquet files that workers read by themselves: the same labels as through Spark, of a window and by day."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

import pipelines.inputs.count_files as count_files
import pipelines.inputs.log_rows as log_rows
import pipelines.quality.day_figures as day_figures
import pipelines.run
from pipelines.config.model import Config
from pipelines.inputs.validate import ValidatedInputs
from pipelines.label import label
from pipelines.plan import list_inputs
from pipelines.run import inspect_inputs
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.storage import Storage
from tests.helpers.small_data import DATE, LOG, build_clean_tables

THROUGH_SPARK: dict[str, Any] = {"where": "true"}  # a condition, which only Spark knows how to apply
LABELS = ("labels", "propensities", "denoise_funnel", "quarantine")
ESTIMATED = ("queries", "pages")  # figures that Spark estimates in another way


def build_frames() -> dict[str, pd.DataFrame]:
    """Pages with contexts, paid slots, crawlers, staff and users who are nobody; events that no page showed."""
    frames = {name: build_clean_tables()[name] for name in LOG}
    shown, done = frames["impressions"], frames["interactions"]
    page = shown["serp_id"].str.slice(1).astype(int)
    shown["device"] = page.mod(3).map({1: "phone", 2: "größe"})
    shown["sponsored"] = shown.index % 17 == 0
    shown["user_agent"] = np.where(page % 11 == 0, "Googlebot/2.1", "Firefox")
    shown["user_id"] = shown["user_id"].mask(page % 7 == 0, "Guest").mask(page % 19 == 0, "staff-1")
    done["serp_id"] = done["serp_id"].where(done["kind"] == "click", None)
    done["user_id"] = done["user_id"].mask(done.index % 6 == 0)
    done.loc[3, "doc_id"] = "never shown"
    done["dwell_seconds"] = done["dwell_seconds"].where(done.index % 4 != 0)
    again = done.tail(3)
    return {"impressions": shown, "interactions": pd.concat([done, again], ignore_index=True)}


def write_frames(folder: Path, frames: dict[str, pd.DataFrame]) -> None:
    """Two files for each day, each with several row groups; the times of one are milliseconds."""
    for name, frame in frames.items():
        for day, rows in frame.groupby(frame["ts"].dt.date):
            place = folder / name / f"day={day}"
            place.mkdir(parents=True)
            for at, half in enumerate(np.array_split(np.arange(len(rows)), 2)):
                part = rows.iloc[half]
                unit: Any = ("us", "ms")[at]
                part.to_parquet(place / f"{at}.parquet", row_group_size=17, index=False, coerce_timestamps=unit)


def build_config(folder: Path, *, incremental: bool = False, sample_rows: int = 150, **more: Any) -> Config:
    name = f"warehouse {incremental} {len(more)}"
    log = {name: {"path": f"{folder}/{name}/day={{date}}", "days": 2} | more for name in LOG}
    labels = {"contexts": ["device"], "incremental": incremental, "denoise": {"internal_user": {"pattern": "^staff"}}}
    values = {"inputs": log, "labels": labels, "warehouse": str(folder / name), "quality": {"sample_rows": sample_rows}}
    return Config.model_validate(values)


def run(spark: SparkSession, config: Config, date: dt.date = DATE) -> Manifest:
    return label(spark, config, date, listings=list_inputs(config, date)).manifest


def read(config: Config, manifest: Manifest, table: str) -> list[tuple[Any, ...]]:
    path = Storage(config.warehouse).path(manifest.tables[table].path)
    rows = duckdb.execute(f"SELECT * FROM read_parquet('{path}/*.parquet', hive_partitioning=false)").fetchall()
    return sorted(rows, key=repr)


def read_figures(manifest: Manifest) -> dict[str, dict[str, Any]]:
    figures: dict[str, dict[str, Any]] = manifest.checks["figures"]
    return {table: {n: value for n, value in own.items() if n not in ESTIMATED} for table, own in figures.items()}


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count_files, "ROWS_WORTH_A_JOB", 0)
    monkeypatch.setattr(count_files, "ROWS_PER_PART", 50)
    monkeypatch.setattr(log_rows, "ROWS_AT_ONCE", 60)


@pytest.mark.parametrize("incremental", [False, True])
def test_files_give_the_labels_that_spark_gives(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_parts: None, incremental: bool
) -> None:
    write_frames(tmp_path, build_frames())
    through_spark = build_config(tmp_path, incremental=incremental, **THROUGH_SPARK)
    expected = run(spark, through_spark)
    monkeypatch.setattr(pipelines.run, "count_rows", None)  # raises where Spark would count
    monkeypatch.setattr(day_figures, "count_rows", None)
    monkeypatch.setattr(log_rows, "_run_on_rows", None)  # and where it would pass rows to workers
    config = build_config(tmp_path, incremental=incremental)
    got = run(spark, config)
    assert read_figures(got) == read_figures(expected)
    assert got.checks["figures"]["impressions"]["pages"] == 120
    assert {name: got.tables[name].rows for name in LABELS} == {name: expected.tables[name].rows for name in LABELS}
    assert got.tables["labels"].rows > 90 and got.tables["quarantine"].rows >= 1
    for table in LABELS:
        assert read(config, got, table) == read(through_spark, expected, table), table
    assert got.labels is not None and expected.labels is not None
    for name in ("read", "kept", "dropped", "attributions", "verdicts"):
        assert got.labels[name] == expected.labels[name]


def test_a_new_day_is_checked_beside_the_pages_of_kept_ones(
    spark: SparkSession, tmp_path: Path, small_parts: None
) -> None:
    """An event of the second day on a page of the first one has its impression there."""
    frames = build_frames()
    done = frames["interactions"]
    last, first_result = done.index[-6:], frames["impressions"].iloc[0]
    done.loc[last, "ts"] = pd.Timestamp("2026-11-02T20:00:00")
    for name in ("serp_id", "doc_id"):
        done.loc[last, name] = first_result[name]
    write_frames(tmp_path, frames)
    config = build_config(tmp_path, incremental=True, sample_rows=10_000)
    run(spark, config, DATE - dt.timedelta(days=1))
    manifest = run(spark, config)
    assert manifest.labels is not None and manifest.labels["computed_days"] == 1
    figures = manifest.checks["figures"]["interactions"]
    of_day = done[(done["ts"].dt.date == DATE) & done["serp_id"].notna()].drop(last)
    assert (figures["placed"], figures["unshown"]) == (len(of_day), 0) and len(of_day) > 10


@pytest.fixture
def validated(monkeypatch: pytest.MonkeyPatch) -> list[ValidatedInputs]:
    """The inputs whose samples are checked."""
    inputs: list[ValidatedInputs] = []
    select = ValidatedInputs.select_samples

    def record(each: ValidatedInputs, name: str) -> Any:
        inputs.append(each)
        return select(each, name)

    monkeypatch.setattr(ValidatedInputs, "select_samples", record)
    return inputs


def write_files(folder: Path, frames: dict[str, pd.DataFrame], place: str = "") -> Config:
    """One file for each table in this place of its folder."""
    for name, frame in frames.items():
        (folder / name / place).mkdir(parents=True)
        frame.to_parquet(folder / name / place / "0.parquet", index=False, coerce_timestamps="us")
    log = {name: {"path": f"{folder}/{name}"} for name in LOG}
    quality = {name: {"severity": "warn"} for name in ("positions_from_zero", "time_units")}
    return Config.model_validate({"inputs": log, "warehouse": str(folder / "w"), "quality": quality})


@pytest.mark.parametrize(
    ("table", "column", "value", "figure"),
    [
        ("impressions", "doc_id", " ", None),
        ("impressions", "position", 0, None),
        ("interactions", "kind", "hover", None),
        ("interactions", "ts", pd.Timestamp("1999-12-31"), "strange_times"),
        ("interactions", "dwell_seconds", 90_000.0, "strange_dwells"),
    ],
)
def test_a_table_with_a_doubtful_row_is_left_to_spark(
    spark: SparkSession,
    tmp_path: Path,
    validated: list[ValidatedInputs],
    table: str,
    column: str,
    value: Any,
    figure: str | None,
) -> None:
    frames = build_frames()
    frames[table].loc[0, column] = value
    config = write_files(tmp_path, frames)
    inspection = inspect_inputs(spark, config, DATE, list_inputs(config, DATE))
    assert set(validated[0].files) == set(LOG) - {table}
    rejected = sum(validated[0].counts[table].rejected.values())
    assert rejected == (0 if figure else 1)
    assert figure is None or inspection.figures[table][figure] == 1


def test_a_column_from_the_name_of_a_folder_is_read_by_spark(
    spark: SparkSession, tmp_path: Path, validated: list[ValidatedInputs]
) -> None:
    config = write_files(tmp_path, build_frames(), "system=night")
    inspect_inputs(spark, config, DATE, list_inputs(config, DATE))
    assert set(validated[0].files) == {"interactions"}, "which has no column of this name"
    assert validated[0].systems == ("night",)
