"""The public functions in the caller's session: numbers of the command, tables of every kind."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import assay
from pipelines.config.model import Config
from pipelines.label import label
from pipelines.warehouse.runs import find_run
from pipelines.warehouse.storage import Storage
from schemas.errors import ConfigurationError
from tests.helpers.small_data import DATE, LOG, build_clean_tables
from tests.unit.assay.test_evaluate import simulate

KEYS = {
    "query_metrics": ["system", "query_id"],
    "segment_metrics": ["system", "segment", "value", "metric"],
    "comparisons": ["baseline", "candidate", "segment", "value", "metric"],
}
SETTINGS: dict[str, Any] = {"metrics": ["ndcg@5", "map"], "baseline": "old", "segments": ["device"], "checks": "off"}


def sort_rows(table: Any, keys: list[str]) -> pd.DataFrame:
    rows = table if isinstance(table, pd.DataFrame) else table.toPandas() if isinstance(table, DataFrame) else table
    return rows.sort_values(keys, ignore_index=True)


ZONE, FOREIGN = "spark.sql.session.timeZone", "Asia/Tokyo"


@pytest.fixture(scope="module")
def result_and_zone(spark: SparkSession) -> tuple[Any, str | None]:
    """A result computed in a session whose time zone is another than ours, and the zone afterwards."""
    tables: dict[str, Any] = {name: spark.createDataFrame(table) for name, table in simulate().items()}
    spark.conf.set(ZONE, FOREIGN)
    try:
        got = assay.evaluate(**tables, **SETTINGS, date="2026-11-01")  # the session is that of the tables
        return got, spark.conf.get(ZONE)
    finally:
        spark.conf.set(ZONE, "UTC")


@pytest.fixture(scope="module")
def result(result_and_zone: tuple[Any, str | None]) -> Any:
    return result_and_zone[0]


def test_tables_of_spark_give_tables_of_spark_with_the_bits_of_memory(result: Any) -> None:
    memory = assay.evaluate(**simulate(), **{name: value for name, value in SETTINGS.items() if name != "checks"})
    for name, keys in KEYS.items():
        table = getattr(result, name)
        assert isinstance(table, DataFrame)
        mine, theirs = sort_rows(getattr(memory, name), keys), sort_rows(table, keys)
        assert list(mine.columns) == list(theirs.columns)
        pd.testing.assert_frame_equal(mine, theirs, check_exact=True, check_dtype=False)
    assert result.verdict == memory.verdict
    assert result.summary.toPandas()["ndcg@5"].tolist() == memory.summary["ndcg@5"].tolist()
    assert result._repr_html_() == memory._repr_html_()


def test_a_plan_that_gives_other_rows_each_time_is_computed_once(spark: SparkSession) -> None:
    tables: dict[str, Any] = simulate()
    shuffled = spark.createDataFrame(tables["rankings"]).withColumn("score", F.rand())
    got = assay.evaluate(shuffled, tables["judgments"], metrics=["ndcg@5"], baseline="old", checks="off")
    means = got.segment_metrics.where("segment = 'all' AND metric = 'ndcg_at_5'").toPandas().set_index("system")
    own = got.query_metrics.groupBy("system").agg(F.avg("ndcg_at_5").alias("mean")).toPandas().set_index("system")
    assert means.loc["old", "macro"] == pytest.approx(own.loc["old", "mean"], abs=1e-12)


def test_the_report_and_a_published_copy(result: Any, spark: SparkSession, tmp_path: Path) -> None:
    assert result.report(tmp_path / "report.html").read_text(encoding="utf-8").count("ndcg@5") > 3
    run = result.publish(tmp_path / "warehouse")
    assert result.publish(tmp_path / "warehouse") == run
    published = assay.read_table(spark, str(tmp_path / "warehouse"), "comparisons").drop("dt", "run")
    keys = KEYS["comparisons"]
    pd.testing.assert_frame_equal(sort_rows(published, keys), sort_rows(result.comparisons, keys), check_exact=True)
    manifest = find_run(Storage(str(tmp_path / "warehouse")), run)
    assert manifest.dt == "2026-11-01"
    assert manifest.config["warehouse"].endswith("/warehouse")
    assert not list((tmp_path / "warehouse").glob("_attempts/*"))


def test_paths_with_a_session_are_read_as_by_the_command(result: Any, spark: SparkSession, tmp_path: Path) -> None:
    tables = simulate()
    tables["rankings"].to_parquet(tmp_path / "rankings.parquet")
    tables["judgments"].to_csv(tmp_path / "judgments.csv", index=False)
    tables["queries"].to_json(tmp_path / "queries.jsonl", orient="records", lines=True)
    got = assay.evaluate(
        tmp_path / "rankings.parquet",
        {"path": str(tmp_path / "judgments.csv"), "format": "csv"},
        queries=str(tmp_path / "queries.jsonl"),
        spark=spark,
        warehouse=tmp_path / "warehouse",
        **SETTINGS,
    )
    assert isinstance(got.comparisons, pd.DataFrame)
    keys = KEYS["comparisons"]
    expected = sort_rows(result.comparisons, keys)
    pd.testing.assert_frame_equal(sort_rows(got.comparisons, keys), expected, check_exact=True, check_dtype=False)
    assert find_run(Storage(str(tmp_path / "warehouse")), got.publish(tmp_path / "warehouse")).systems == ("new", "old")


def test_the_settings_of_the_callers_session_are_restored(result_and_zone: tuple[Any, str | None]) -> None:
    """That the numbers are those of memory all the same is checked above."""
    assert result_and_zone[1] == FOREIGN


def test_two_results_are_compared_with_equal_bits_on_spark_and_in_memory(result: Any, spark: SparkSession) -> None:
    other = assay.evaluate(**simulate(seed=2), **SETTINGS, spark=spark)
    rows = [assay.compare(result, other, system="new", spark=s).comparisons for s in (None, spark)]
    keys = ["segment", "value", "metric"]
    mine, theirs = (sort_rows(each, keys) for each in rows)
    pd.testing.assert_frame_equal(mine, theirs[list(mine.columns)], check_exact=True, check_dtype=False)
    assert len(mine) == 6


@pytest.fixture(scope="module")
def labels_of_the_command(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("log")
    frames = build_clean_tables()
    for name in LOG:
        spark.createDataFrame(frames[name]).write.parquet(str(folder / name))
    inputs = {name: {"path": str(folder / name)} for name in LOG}
    label(spark, Config.model_validate({"inputs": inputs, "warehouse": str(folder / "w"), "checks": "off"}), DATE)
    return assay.read_table(spark, str(folder / "w"), "labels").drop("dt", "run").toPandas()


@pytest.mark.parametrize("kind", ["polars", "pyspark"])
def test_labels_are_those_of_the_command(kind: str, spark: SparkSession, labels_of_the_command: pd.DataFrame) -> None:
    frames = build_clean_tables()
    convert: dict[str, Any] = {"polars": pl.from_pandas, "pyspark": spark.createDataFrame}
    got = assay.label(*[convert[kind](frames[name]) for name in LOG], spark=spark, date=DATE, checks="off")
    assert type(got.labels).__module__.partition(".")[0] == kind
    rows = got.labels.toPandas() if kind == "pyspark" else got.labels.to_pandas()
    mine, theirs = (sort_rows(each, ["query_id", "doc_id"]) for each in (rows, labels_of_the_command))
    pd.testing.assert_frame_equal(mine, theirs, check_exact=True, check_dtype=False)
    assert any("impressions: " in line for line in got.diagnostics)
    assert "<table>" in got._repr_html_()


def test_a_log_is_evaluated(spark: SparkSession) -> None:
    frames = build_clean_tables()
    log: dict[str, Any] = {name: spark.createDataFrame(frames[name]) for name in ("rankings", *LOG)}
    systems = sorted(frames["rankings"]["system"].unique())
    got = assay.evaluate(**log, metrics=["ndcg@10"], baseline=systems[0], date=dt.date(2026, 11, 2), checks="off")
    assert "labels" in got.run.names
    assert got.table("labels").count() > 0
    with pytest.raises(ConfigurationError, match="a log needs both impressions and interactions"):
        assay.evaluate(impressions=log["impressions"])
