"""Parquet files that workers read by themselves: the same run as through Spark, and what only Spark can read."""

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
import pipelines.run
import pipelines.scoring.score as score
import pipelines.warehouse.listeners as listeners
from pipelines.config.model import Config
from pipelines.evaluate import evaluate
from pipelines.inputs.plain_files import split_files
from pipelines.inputs.read import InputTable, read_input
from pipelines.inputs.validate import ValidatedInputs, validate_inputs
from pipelines.plan import list_inputs
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.storage import Storage
from tests.helpers.small_data import build_clean_tables
from udfs.spark.worker_table import WorkerTable

DAY = dt.date(2026, 11, 1)
THROUGH_SPARK = {"where": "true"}  # a condition, which only Spark knows how to apply


def build_frames() -> dict[str, pd.DataFrame]:
    """Lists in no order, with ties, duplicates, missing ranks and queries that are listed twice."""
    frames = {name: build_clean_tables()[name] for name in ("rankings", "judgments", "queries")}
    rng = np.random.default_rng(7)
    rankings = pd.concat([frames["rankings"], frames["rankings"].head(3)])
    rankings["rank"] = rankings["rank"].mask(rng.random(len(rankings)) < 0.4).astype("Int64")
    rankings["score"] = rng.integers(0, 3, len(rankings)).astype(float)
    queries = pd.concat([frames["queries"], frames["queries"].tail(2).assign(weight=9.0)])
    queries["device"] = [None if at % 3 == 0 else "phone" for at in range(len(queries))]
    frames |= {"rankings": rankings, "queries": queries}
    for frame in frames.values():  # whole numbers as ids
        frame["query_id"] = frame["query_id"].str.slice(-2).astype(int) - 7
    return {name: frame.sample(frac=1, random_state=5) for name, frame in frames.items()}


def build_config(folder: Path, frames: dict[str, pd.DataFrame], **more: Any) -> Config:
    """A configuration that reads the tables from two Parquet files each, of which all have several row groups."""
    for name, frame in frames.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for at, half in enumerate(np.array_split(np.arange(len(frame)), 2)):
            frame.iloc[half].to_parquet(folder / name / f"{at}.parquet", row_group_size=17, index=False)
    inputs = {name: {"path": str(folder / name)} | more for name in frames}
    values = {"inputs": inputs, "metrics": ["ndcg@3", "recall@2"], "segments": ["device"]}
    checks = {"quality": {"sample_rows": 60}, "compare": {"baseline": "a"}}
    return Config.model_validate(values | checks | {"warehouse": str(folder / f"warehouse {len(more)}")})


def run(spark: SparkSession, config: Config) -> Manifest:
    return evaluate(spark, config, DAY, listings=list_inputs(config, DAY)).manifest


def read(config: Config, manifest: Manifest, table: str) -> list[tuple[Any, ...]]:
    path = Storage(config.warehouse).path(manifest.tables[table].path)
    rows = duckdb.execute(f"SELECT * FROM read_parquet('{path}/*.parquet', hive_partitioning=false)").fetchall()
    return sorted(rows, key=repr)


def validate(spark: SparkSession, config: Config) -> ValidatedInputs:
    listings = list_inputs(config, DAY) or {}
    inputs: dict[str, InputTable] = {
        name: read_input(spark, name, source, DAY, listings.get(name)) for name, source in config.sources().items()
    }
    return validate_inputs(inputs, config)


def test_files_give_the_run_that_spark_gives(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score, "ROWS_WORTH_A_TASK", 1)
    monkeypatch.setattr(count_files, "ROWS_WORTH_A_JOB", 0)
    monkeypatch.setattr(count_files, "ROWS_PER_PART", 50)
    through_spark = build_config(tmp_path, build_frames(), **THROUGH_SPARK)
    expected = run(spark, through_spark)
    monkeypatch.setattr(pipelines.run, "count_rows", None)  # raises where Spark would count
    monkeypatch.setattr(score, "_select_rankings", None)  # and where it would score
    config = build_config(tmp_path, build_frames())
    got = run(spark, config)
    assert got.checks["figures"] == expected.checks["figures"]
    assert got.tables["query_metrics"].rows == 48
    for table in ("query_metrics", "segment_metrics", "comparisons", "validation_results", "quarantine"):
        assert read(config, got, table) == read(through_spark, expected, table)


def test_a_file_with_a_row_that_does_not_fit_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    frames = build_frames()
    frames["judgments"].iloc[5, 1] = " "
    validated = validate(spark, build_config(tmp_path, frames))
    assert set(validated.files) == {"rankings", "queries"}
    assert validated.counts["judgments"].rejected == {"doc_id: empty": 1}
    assert validated.counts["rankings"].kept == len(frames["rankings"])


@pytest.mark.parametrize(
    "shape",
    [
        {"where": "rank > 0"},
        {"columns": {"doc_id": "upper(doc_id)"}},
        {"explode": "array(1)"},
        {"options": {"pathGlobFilter": "0*"}},
        {"view": "SELECT * FROM {lists}", "sources": {"lists": {"path": "PATH"}}, "path": None},
    ],
)
def test_what_the_configuration_shapes_is_left_to_spark(
    spark: SparkSession, tmp_path: Path, shape: dict[str, Any]
) -> None:
    config = build_config(tmp_path, build_frames())
    settings = config.model_dump(exclude_unset=True, by_alias=True)
    path = settings["inputs"]["rankings"]["path"]
    if "sources" in shape:
        shape = {**shape, "sources": {"lists": {"path": path}}}
    settings["inputs"]["rankings"] |= shape
    assert set(validate(spark, Config.model_validate(settings)).files) == {"judgments", "queries"}


def test_columns_of_other_names_are_read(spark: SparkSession, tmp_path: Path) -> None:
    frames = build_frames()
    frames["judgments"] = frames["judgments"].rename(columns={"grade": "relevance"})
    settings = build_config(tmp_path, frames).model_dump(exclude_unset=True, by_alias=True)
    settings["inputs"]["judgments"]["columns"] = {"grade": "relevance"}
    files = validate(spark, Config.model_validate(settings)).files["judgments"]
    assert files.columns == {"query_id": "query_id", "doc_id": "doc_id", "grade": "relevance"}


def test_folders_that_name_a_column_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    frames = build_frames()
    config = build_config(tmp_path, frames)
    for system, rows in frames["rankings"].groupby("system"):
        (tmp_path / "rankings" / f"system={system}").mkdir()
        rows.drop(columns="system").to_parquet(tmp_path / "rankings" / f"system={system}" / "part.parquet")
    for at in range(2):
        (tmp_path / "rankings" / f"{at}.parquet").unlink()
    validated = validate(spark, config)
    assert set(validated.files) == {"judgments", "queries"}
    assert validated.systems == ("a", "b")


def test_types_that_arrow_casts_differently_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    frames = build_frames()
    frames["queries"]["weight"] = frames["queries"]["weight"].astype(str)
    validated = validate(spark, build_config(tmp_path, frames))
    assert set(validated.files) == {"rankings", "judgments"}
    assert validated.counts["queries"].kept == len(frames["queries"])


def test_parts_have_all_row_groups_once(spark: SparkSession, tmp_path: Path) -> None:
    files = validate(spark, build_config(tmp_path, build_frames())).files["rankings"]
    assert files.rows == 195
    for rows in (1, 40, 10_000):
        parts = split_files(files, ["query_id"], rows)
        groups = [(part.file, group) for part in parts for group in part.groups]
        assert sorted(groups) == [(file.path, at) for file in files.files for at in range(len(file.groups))]
    assert len(parts) == 2, "one for each file"


def test_with_listeners_spark_reads_and_writes_everything(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorkerTable, "write", None)  # raises where workers would write
    monkeypatch.setattr(listeners, "_SETTINGS", ("spark.app.name",))  # those of listeners cannot be set in a session
    config = build_config(tmp_path, build_frames())
    assert not validate(spark, config).files
    assert run(spark, config).tables["query_metrics"].rows == 48
