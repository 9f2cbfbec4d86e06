"""Runs in Delta and Iceberg tables: readers see whole runs, whatever is published, fails or changes meanwhile."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipelines.inputs.read import read_input
from pipelines.inputs.settings import InputSource
from pipelines.warehouse.catalog import write
from pipelines.warehouse.catalog.publish import publish_to_catalog
from pipelines.warehouse.catalog.read import read_catalog_table
from pipelines.warehouse.catalog.registry import TABLE_FORMATS
from pipelines.warehouse.catalog.settings import OutputSettings
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.views import render_catalog_views
from schemas.errors import PublishError
from tests.end_to_end.conftest import ROOT
from tests.helpers.published_runs import publish

pytestmark = pytest.mark.lakehouse

DATE = "2026-11-01"
ROWS = 20  # of query_metrics: two systems with ten queries
QUERIES = tuple(f"q{number}" for number in range(10))


def publish_files(warehouse: Path, number: int, **fields: Any) -> tuple[Storage, Manifest]:
    """Commit a run in the warehouse; the number says how new it is."""
    return publish(
        warehouse, run=f"aaaaaaaaaaaa-{number:06d}", queries=QUERIES, files=1,
        committed_at=f"2026-11-02T04:{number:02d}:00.000000+00:00", **fields,
    )  # fmt: skip


def count_by_run(spark: SparkSession, namespace: str | None, name: str = "query_metrics") -> dict[str, int]:
    rows = read_catalog_table(spark, str(namespace), name, date=DATE).groupBy("run").count().collect()
    return {row["run"]: row["count"] for row in rows}


def test_readers_see_one_whole_run_during_ten_publishes(
    spark: SparkSession, output: OutputSettings, tmp_path: Path
) -> None:
    storage, first = publish_files(tmp_path, 0)
    publish_to_catalog(spark, storage, first, output)
    view = f"live_{output.format}"
    spark.sql(
        render_catalog_views(str(output.namespace), ["query_metrics"])
        .rstrip(";")
        .replace("VIEW query_metrics", f"VIEW {view}")
    )
    readers: dict[str, Callable[[], dict[str, int]]] = {
        "function": lambda: count_by_run(spark, output.namespace),
        "view": lambda: {
            row["run"]: row["count"]
            for row in spark.sql(f"SELECT run, count(*) AS count FROM {view} GROUP BY run").collect()
        },
    }
    done = threading.Event()

    def read(reader: Callable[[], dict[str, int]]) -> list[dict[str, int]]:
        results = []
        while not done.is_set():
            start = time.monotonic()
            results.append(reader())
            done.wait(2 * (time.monotonic() - start))  # without a pause, readers take all cores from the publisher
        return [*results, reader()]

    with ThreadPoolExecutor(2) as pool:
        running = {name: pool.submit(read, reader) for name, reader in readers.items()}
        try:
            for number in range(1, 11):
                publish_to_catalog(spark, *publish_files(tmp_path, number), output)
        finally:
            done.set()
        seen = {name: future.result() for name, future in running.items()}
    for name, results in seen.items():
        print(
            f"{output.format}: {len(results)} reads by the {name}, {len({run for r in results for run in r})} runs seen"
        )
        assert all(list(counts.values()) == [ROWS] for counts in results), (name, results)
        runs = [run for counts in results for run in counts]
        assert len(set(runs)) >= 3, "it has read while runs were published"
        assert runs == sorted(runs)  # never back to an earlier run
        assert runs[-1] == "aaaaaaaaaaaa-000010"


def test_a_failed_publish_leaves_the_former_run_live(
    spark: SparkSession, output: OutputSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "FIRST_WAIT", 0.0)
    publish_to_catalog(spark, *publish_files(tmp_path, 1), output)
    storage, second = publish_files(tmp_path, 2)
    folder = tmp_path / second.tables["query_changes"].path  # the last table: others are in the catalog by then
    shutil.move(folder, tmp_path / "away")
    folder.mkdir()
    (folder / "part-0.parquet").write_bytes(b"no Parquet")
    with pytest.raises(PublishError, match="query_changes") as raised:
        publish_to_catalog(spark, storage, second, output)
    assert raised.value.exit_code == 5
    assert "Run the same command again" in str(raised.value)
    assert spark.table(f"{output.namespace}.query_metrics").count() == 2 * ROWS
    assert count_by_run(spark, output.namespace) == {"aaaaaaaaaaaa-000001": ROWS}
    shutil.rmtree(folder)
    shutil.move(tmp_path / "away", folder)
    for _ in range(2):  # once to finish it, once more to see that nothing is added
        publish_to_catalog(spark, storage, second, output)
        assert spark.table(f"{output.namespace}.query_metrics").count() == 2 * ROWS
        assert count_by_run(spark, output.namespace) == {"aaaaaaaaaaaa-000002": ROWS}
        assert spark.table(f"{output.namespace}.runs").count() == 2


def test_two_publishers_of_one_date_both_end_well(spark: SparkSession, output: OutputSettings, tmp_path: Path) -> None:
    runs = [publish_files(tmp_path, number) for number in (1, 2)]
    together = threading.Barrier(2)

    def copy(number: int) -> None:
        together.wait()
        publish_to_catalog(spark, *runs[number], output)

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(copy, number) for number in (0, 1)]:
            future.result()
    assert count_by_run(spark, output.namespace) == {"aaaaaaaaaaaa-000002": ROWS}
    for number in (1, 2):
        run = f"aaaaaaaaaaaa-{number:06d}"
        assert read_catalog_table(spark, str(output.namespace), "query_metrics", run=run).count() == ROWS
    assert spark.table(f"{output.namespace}.runs").count() == 2


def test_a_new_metric_adds_a_column_and_time_travel_sees_the_table_before(
    spark: SparkSession, output: OutputSettings, tmp_path: Path
) -> None:
    table = f"{output.namespace}.query_metrics"
    publish_to_catalog(spark, *publish_files(tmp_path, 1), output)
    version = TABLE_FORMATS[output.format].find_version(spark, table)
    storage, second = publish_files(tmp_path, 2)
    place = storage.path(second.tables["query_metrics"].path)
    spark.read.parquet(place).withColumn("mrr_at_10", F.lit(0.5)).write.parquet(f"{place}-wider")
    shutil.rmtree(place.removeprefix("file://"))
    shutil.move(f"{place}-wider".removeprefix("file://"), place.removeprefix("file://"))
    publish_to_catalog(spark, storage, second, output)
    publish_to_catalog(spark, *publish_files(tmp_path, 3), output)  # without the metric again
    sums = spark.table(table).groupBy("run").agg(F.count("*").alias("rows"), F.sum("mrr_at_10").alias("sum")).collect()
    expected = {1: (ROWS, None), 2: (ROWS, ROWS / 2), 3: (ROWS, None)}
    assert {int(row["run"][-1]): (row["rows"], row["sum"]) for row in sums} == expected
    earlier = spark.sql(f"SELECT * FROM {table} VERSION AS OF {version}")
    assert "mrr_at_10" not in earlier.columns
    assert [tuple(row) for row in earlier.groupBy("run").count().collect()] == [("aaaaaaaaaaaa-000001", ROWS)]


def test_an_input_is_read_from_one_version(spark: SparkSession, output: OutputSettings) -> None:
    table = f"{output.namespace}.lists"
    spark.sql(f"CREATE NAMESPACE {output.namespace}")
    ddl = "system STRING, query_id STRING, doc_id STRING, rank INT"
    spark.sql(f"CREATE TABLE {table} ({ddl}) USING {output.format}")
    spark.sql(f"INSERT INTO {table} VALUES ('a', 'q', 'd1', 1), ('a', 'q', 'd2', 2)")
    source, date = InputSource(table=table), dt.date(2026, 11, 1)
    before = read_input(spark, "rankings", source, date)
    spark.sql(f"INSERT INTO {table} VALUES ('a', 'q', 'd3', 3)")
    after = read_input(spark, "rankings", source, date)
    assert (before.raw.count(), after.raw.count()) == (2, 3)
    assert before.digest != after.digest
    assert before.digest == read_input(spark, "rankings", InputSource(table=table, where="rank < 3"), date).digest


READ_WITH_POLARS = """
import json, sys
from pathlib import Path
import duckdb, polars

kind, folder = sys.argv[1], Path(sys.argv[2])

def scan(name):
    if kind == "delta":
        return polars.scan_delta(str(folder / name))
    newest = (folder / name / "metadata" / "version-hint.text").read_text().strip()
    return polars.scan_iceberg(str(folder / name / "metadata" / f"v{newest}.metadata.json"))

runs = scan("runs").sort("committed_at").collect()
live = runs["run"][-1]
rows = scan("query_metrics").filter(polars.col("run") == live).collect()
mean = duckdb.sql("SELECT avg(ndcg_at_10) FROM rows").fetchall()[0][0]
print(json.dumps({"live": live, "rows": rows.height, "mean": mean}))
"""


def test_polars_and_duckdb_read_the_newest_run(
    spark: SparkSession, output: OutputSettings, lake: Path, tmp_path: Path
) -> None:
    for number in (1, 2):
        publish_to_catalog(spark, *publish_files(tmp_path, number, lift=0.1 * number), output)
    name = str(output.namespace).partition(".")[2]
    folder = lake / (f"delta/{name}.db" if output.format == "delta" else f"iceberg/{name}")
    python = ROOT / ".venv-lakehouse" / "bin" / "python"
    command = [str(python), "-c", READ_WITH_POLARS, output.format, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    expected = read_catalog_table(spark, str(output.namespace), "query_metrics").agg(F.avg("ndcg_at_10")).first()
    assert expected is not None
    assert (result["live"], result["rows"]) == ("aaaaaaaaaaaa-000002", ROWS)
    assert result["mean"] == pytest.approx(expected[0], abs=1e-12)
