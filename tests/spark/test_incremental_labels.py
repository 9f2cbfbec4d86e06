"""Incremental labels equal those from scratch, while the window slides and old days change."""

import datetime as dt
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.config.model import Config
from pipelines.evaluate import evaluate
from pipelines.label import label
from pipelines.labels.denoise import days
from pipelines.simulation.settings import DirtSettings, SimulationSettings
from pipelines.simulation.simulate import simulate
from pipelines.warehouse.day_records import list_day_records
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import read_table

FIRST = dt.date(2026, 1, 5)
WINDOW = 3
CRAWLER = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
KEYS = {
    "labels": ["query_id", "doc_id"],
    "propensities": ["context", "position"],
    "denoise_funnel": ["rule"],
    "query_metrics": ["system", "query_id"],
    "label_posteriors": ["query_id", "doc_id"],
}


def day(number: int) -> dt.date:
    return FIRST + dt.timedelta(days=number - 1)


def draw(share: float, *columns: str) -> Any:
    return F.pmod(F.xxhash64(F.lit("draw"), *columns), F.lit(1_000)) < round(share * 1_000)


def write_days(rows: DataFrame, folder: Path) -> None:
    """One folder per file day."""
    stored = rows.repartition(2)
    stored.write.partitionBy("file_day").parquet(str(folder / "all"))
    for part in (folder / "all").glob("file_day=*"):
        part.rename(folder / part.name.removeprefix("file_day="))


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven days of a log whose rows often arrive in the files of the next day."""
    folder = tmp_path_factory.mktemp("days")
    settings = SimulationSettings(
        pages=2_000,
        queries=60,
        days=7,
        zipf=0.8,
        documents=12,
        examination={"desktop": 1.0, "phone": 0.7},
        dirt=DirtSettings(heavy=0.2, hammer=0.08, clockwork=0.05),
    )
    log = simulate(spark, settings)
    own_day = F.to_date("ts")
    next_day = F.date_add(own_day, 1)
    # Some users crawl on one day only, some pages are logged in two files, and a few rows do not fit their contract.
    agent = F.when(draw(0.01, "user_id") & draw(0.3, "serp_id"), F.lit(CRAWLER)).otherwise(F.col("user_agent"))
    impressions = log.impressions.withColumns(
        {
            "user_agent": agent,
            "file_day": F.when(draw(0.02, "serp_id") & draw(0.4, "doc_id"), next_day).otherwise(own_day),
            "position": F.when(draw(0.002, "serp_id", "doc_id"), F.lit(0)).otherwise(F.col("position")),
        }
    )
    write_days(impressions, folder / "impressions")
    arrived = log.interactions.withColumn("file_day", F.when(draw(0.05, "event_id"), next_day).otherwise(own_day))
    again = arrived.where(draw(0.03, "event_id", "kind")).withColumn("file_day", F.date_add("file_day", 1))
    write_days(arrived.unionByName(again), folder / "interactions")
    log.rankings.write.parquet(str(folder / "rankings"))
    return folder


def build_config(folder: Path, warehouse: str, *, incremental: bool, **values: Any) -> Config:
    log = {name: {"path": f"{folder}/{name}/{{date}}", "days": WINDOW} for name in ("impressions", "interactions")}
    labels = {
        "incremental": incremental,
        "contexts": ["device"],
        "denoise": {"internal_user": {"pattern": "^staff"}, "one_user_dominates": {"clicks": 3}},
    }
    fixed = {
        "inputs": log,
        "warehouse": str(folder / warehouse),
        "checks": "fast",
        "quality": {"positions_from_zero": {"severity": "warn"}},  # the rows that do not fit their contract
        "labels": labels,
    }
    return Config.model_validate(fixed | values)


def read_rows(spark: SparkSession, folder: Path, warehouse: str, manifest: Manifest, name: str) -> list[dict[str, Any]]:
    rows = read_table(spark, str(folder / warehouse), name, run=manifest.run).drop("dt", "run").collect()
    return sorted((row.asDict() for row in rows), key=lambda row: [str(row[key]) for key in KEYS[name]])


def count_quarantine(spark: SparkSession, folder: Path, warehouse: str, manifest: Manifest) -> dict[Any, int]:
    table = read_table(spark, str(folder / warehouse), "quarantine", run=manifest.run)
    return {
        (row["table"], row["reason"], row["row"]): row["count"]
        for row in table.groupBy("table", "reason", "row").count().collect()
    }


def require_equal_tables(spark: SparkSession, folder: Path, scratch: Manifest, incremental: Manifest) -> None:
    """Labels and curves to 1e-9, counts exactly."""
    for name in KEYS.keys() & scratch.tables.keys():
        expected = read_rows(spark, folder, "scratch", scratch, name)
        rows = read_rows(spark, folder, "incremental", incremental, name)
        assert len(rows) == len(expected) > 0, name
        for row, other in zip(rows, expected, strict=True):
            assert row.keys() == other.keys()
            for column, value in other.items():
                if isinstance(value, float):
                    assert row[column] == pytest.approx(value, rel=1e-9, abs=1e-9), (name, column, other)
                else:
                    assert row[column] == value, (name, column, other, row)
    quarantines = [
        count_quarantine(spark, folder, warehouse, manifest)
        for warehouse, manifest in (("scratch", scratch), ("incremental", incremental))
    ]
    assert quarantines[0] == quarantines[1]
    facts = [{**manifest.labels} for manifest in (scratch, incremental)]
    for name in ("read", "kept", "dropped", "attributions"):
        assert facts[0][name] == facts[1][name], name
    assert [verdict["sentence"] for verdict in facts[0]["verdicts"]] == [v["sentence"] for v in facts[1]["verdicts"]]
    for name in ("impressions", "interactions"):
        for figure in ("read", "kept", "rejected", "digest", "missing_days"):
            assert scratch.inputs[name][figure] == incremental.inputs[name][figure], (name, figure)
        figures = [dict(manifest.checks["figures"][name]) for manifest in (scratch, incremental)]
        for approximate in ("queries", "pages"):  # of the days that are read
            assert [figure.pop(approximate, 0) > 0 for figure in figures] in ([True, True], [False, False])
        assert figures[0] == figures[1], name


def run_both(spark: SparkSession, folder: Path, date: dt.date) -> tuple[Manifest, Manifest]:
    scratch = label(spark, build_config(folder, "scratch", incremental=False), date).manifest
    incremental = label(spark, build_config(folder, "incremental", incremental=True), date).manifest
    require_equal_tables(spark, folder, scratch, incremental)
    return scratch, incremental


def count_buckets(folder: Path) -> dict[str, int]:
    """The number of buckets of each kept day."""
    storage = Storage(str(folder / "incremental"))
    return {record.dt: record.facts["buckets"] for record in list_day_records(storage)}


def test_a_sliding_window_gives_the_numbers_from_scratch(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(days, "_BUCKETS", 1)
    monkeypatch.setattr(days, "_DAY_ROWS", 300)
    scratch, first = run_both(spark, folder, day(3))
    assert first.labels["computed_days"] == WINDOW
    dropped = {
        row["rule"]: row["impressions_dropped"]
        for row in read_rows(spark, folder, "incremental", first, "denoise_funnel")
    }
    assert min(dropped[name] for name in ("known_bot", "too_many_queries", "clockwork", "one_user_dominates")) > 0
    assert {row["context"] for row in read_rows(spark, folder, "incremental", first, "propensities")} >= {
        "device=desktop",
        "device=phone",
    }
    monkeypatch.setattr(days, "_DAY_ROWS", 50_000)
    for number, rows in (4, 2_000), (5, 100_000):  # a window with more buckets than the new day, and with one
        monkeypatch.setattr(days, "_WINDOW_ROWS", rows)
        scratch, run = run_both(spark, folder, day(number))
        assert run.labels["computed_days"] == 1
    buckets = count_buckets(folder)
    assert min(buckets[str(day(number))] for number in range(1, 4)) > 8 > buckets[str(day(4))] == 1
    assert scratch.labels["attributions"]["purchase/click"] > 0


def test_a_late_file_of_an_old_day_is_taken_in(spark: SparkSession, folder: Path) -> None:
    before = label(spark, build_config(folder, "incremental", incremental=True), day(5)).manifest
    old, late = folder / "interactions" / str(day(4)), folder / "interactions" / str(day(7))
    moved = spark.read.parquet(str(late)).where(draw(0.5, "event_id"))
    moved.coalesce(1).write.mode("append").parquet(str(old))
    _, run = run_both(spark, folder, day(5))
    assert run.run != before.run
    assert run.labels["computed_days"] == 1


def test_systems_that_served_the_log_are_evaluated_alike(spark: SparkSession, folder: Path) -> None:
    """With days that a system learned from, which the posterior leaves out."""
    trained = {"production": {"first": day(3), "last": day(4)}}
    scratch, incremental = (
        evaluate(spark, build_config(folder, name, incremental=name == "incremental", trained=trained), day(5)).manifest
        for name in ("scratch", "incremental")
    )
    assert incremental.labels["computed_days"] == 0
    assert 0 < incremental.labels["learned_share"] < 1
    assert {"query_metrics", "label_posteriors"} <= scratch.tables.keys()
    require_equal_tables(spark, folder, scratch, incremental)


def test_a_missing_day_is_left_out(spark: SparkSession, folder: Path) -> None:
    shutil.move(folder / "impressions" / str(day(5)), folder / "elsewhere")
    try:
        scratch, run = run_both(spark, folder, day(6))
    finally:
        shutil.move(folder / "elsewhere", folder / "impressions" / str(day(5)))
    assert scratch.inputs["impressions"]["missing_days"] == [str(day(5))]
    assert run.labels["computed_days"] == 2, "the new day, and the one that changed"


def test_days_are_committed_whole(folder: Path) -> None:
    storage = Storage(str(folder / "incremental"))
    records = list(list_day_records(storage))
    assert len({record.path for record in records}) == len(records) >= 6
    for record in records:
        for table in record.tables.values():
            assert storage.measure(table.path, suffix=".parquet") == (table.files, table.bytes)
            assert storage.dataset(table.path).count_rows() == table.rows
