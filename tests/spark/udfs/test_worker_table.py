"""Workers write their rows themselves: the same rows as Spark has, in files that appear when they are complete."""

import datetime as dt
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.storage import Storage
from schemas.errors import PublishError
from udfs.spark.worker_table import WorkerTable

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])


def name_even_numbers(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    for batch in batches:
        numbers = batch["id"].to_pylist()
        names = pa.array([f"n{number}" if number % 2 == 0 else None for number in numbers], pa.string())
        yield pa.RecordBatch.from_pydict({"id": batch["id"], "name": names})


def build_table(spark: SparkSession, rows: int, partitions: int) -> WorkerTable:
    return WorkerTable(spark.range(0, rows, 1, partitions), name_even_numbers, SCHEMA)


@pytest.mark.parametrize(("rows", "partitions"), [(10, 3), (1, 2), (0, 2)])
def test_written_rows_are_those_of_spark(spark: SparkSession, tmp_path: Path, rows: int, partitions: int) -> None:
    table = build_table(spark, rows, partitions)
    with Attempt(Storage(str(tmp_path)), dt.date(2026, 11, 1), "key") as attempt:
        written = attempt.write("named", table)
        files = attempt.list_files("named")
        assert sorted(written.collect()) == sorted(table.rows().collect())
        assert written.columns == ["id", "name"] and written.count() == rows
        assert (attempt.tables["named"].rows, attempt.tables["named"].files) == (rows, len(files))
        assert all(pq.read_schema(file).equals(SCHEMA) for file in files)


def test_a_repeated_task_replaces_its_file(spark: SparkSession, tmp_path: Path) -> None:
    for _ in range(2):
        build_table(spark, 10, 2).write(str(tmp_path))
    assert pq.read_table(tmp_path).num_rows == 10
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part-00000.parquet", "part-00001.parquet"]


def test_a_folder_that_cannot_be_written_to_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with Attempt(Storage(str(tmp_path)), dt.date(2026, 11, 1), "key") as attempt:
        tables = tmp_path / "_attempts" / attempt.run / "tables"
        tables.mkdir(parents=True)
        (tables / "named").write_text("a file, not a folder")
        with pytest.raises(PublishError, match=r"cannot write: .*named"):
            attempt.write("named", build_table(spark, 10, 2))


def test_a_task_that_fails_leaves_no_part_of_a_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "part-00000.parquet").mkdir()  # the file cannot take this name
    with pytest.raises(Exception, match="cannot write"):
        build_table(spark, 10, 1).write(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["part-00000.parquet"]
