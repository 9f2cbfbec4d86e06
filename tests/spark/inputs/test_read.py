"""Readers: formats, windows of days, fingerprints."""

import datetime as dt
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from pipelines.complaints import input_errors
from pipelines.config import Source
from pipelines.read import read
from schemas.conform import CORRUPT, conform
from schemas.errors import InputError
from schemas.inputs import JUDGMENTS, RANKINGS

DAY = dt.date(2026, 11, 1)


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_csv_keeps_text_as_it_is_and_marks_lines_of_another_length(spark: SparkSession, tmp_path: Path) -> None:
    text = 'query_id,doc_id,grade\n007,"a, ""b""",1\nq,d\nq,e,2,extra\n'
    raw = read(spark, "judgments", Source(path=write(tmp_path / "j.csv", text), format="csv"), DAY).raw
    assert [row["query_id"] for row in raw.where(f"{CORRUPT} IS NULL").collect()] == ["007"]
    conformed = conform(raw, JUDGMENTS)
    assert [tuple(row) for row in conformed.rows.collect()] == [("007", 'a, "b"', 1.0)]
    assert [row["reason"] for row in conformed.rejected.collect()] == ["line cannot be parsed"] * 2


def test_csv_files_with_different_headers_are_refused_rather_than_mixed_up(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "j" / "a.csv", "query_id,doc_id,grade\nq,d,1\n")
    write(tmp_path / "j" / "b.csv", "doc_id,query_id,grade\nd,q,1\n")
    source = Source(path=str(tmp_path / "j"), format="csv")
    raw = read(spark, "judgments", source, DAY).raw
    with pytest.raises(InputError, match="CSV header does not conform"), input_errors("inputs.judgments"):
        raw.collect()


def test_json_lines_keep_ids_whole_and_mark_what_cannot_be_parsed(spark: SparkSession, tmp_path: Path) -> None:
    text = '{"query_id": 12345678901234567890, "doc_id": "d", "grade": 2}\n{broken\n'
    raw = read(spark, "judgments", Source(path=write(tmp_path / "j.json", text), format="json"), DAY).raw
    conformed = conform(raw, JUDGMENTS)
    assert [tuple(row) for row in conformed.rows.collect()] == [("12345678901234567890", "d", 2.0)]
    assert [row["reason"] for row in conformed.rejected.collect()] == ["line cannot be parsed"]


def test_trec_files_are_read_as_they_come(spark: SparkSession, tmp_path: Path) -> None:
    run = write(tmp_path / "run.txt", "401 Q0 FT911-1 0 12.5 bm25\n401\tQ0  FT911-2 1 -3e-2 bm25 \n\nbroken line\n")
    raw = read(spark, "rankings", Source(path=run, format="trec_run"), DAY).raw
    conformed = conform(raw, RANKINGS)
    rows = sorted(tuple(row) for row in conformed.rows.collect())
    assert rows == [("bm25", "401", "FT911-1", 0, 12.5), ("bm25", "401", "FT911-2", 1, -0.03)]
    assert [row["reason"] for row in conformed.rejected.collect()] == ["line cannot be parsed"]
    qrels = write(tmp_path / "qrels.txt", "401 0 FT911-1 2\n401 0 FT911-9 -1\n")
    graded = conform(read(spark, "judgments", Source(path=qrels, format="trec_qrels"), DAY).raw, JUDGMENTS)
    assert sorted(tuple(row) for row in graded.rows.collect()) == [("401", "FT911-1", 2.0), ("401", "FT911-9", -1.0)]


def test_a_window_reads_its_days_and_tells_which_are_missing(spark: SparkSession, tmp_path: Path) -> None:
    for day, grade in (("2026-10-30", 1), ("2026-11-01", 2), ("2026-11-02", 3)):
        write(tmp_path / f"dt={day}" / "j.csv", f"query_id,doc_id,grade\nq,d{grade},{grade}\n")
    source = Source(path=str(tmp_path / "dt={date}"), format="csv", days=3)
    found = read(spark, "judgments", source, DAY)
    assert sorted(row["grade"] for row in found.raw.collect()) == ["1", "2"]
    assert found.missing_days == ("2026-10-31",)


def test_a_catalog_table_can_be_an_input(spark: SparkSession) -> None:
    spark.createDataFrame([("q", "d", 1.0), ("q", "e", 2.0)], JUDGMENTS.struct()).createOrReplaceTempView(
        "labels_of_us"
    )
    source = Source(table="labels_of_us", where="grade > 1")
    found = read(spark, "judgments", source, DAY)
    assert [row["doc_id"] for row in found.raw.collect()] == ["e"]
    assert found.digest == read(spark, "judgments", source, DAY).digest
    assert found.digest != read(spark, "judgments", Source(table="labels_of_us"), DAY).digest


@pytest.mark.parametrize(
    ("path", "message"),
    [("nowhere", "judgments does not exist"), ("dt={date}", "judgments has no data for 2026-11-01")],
)
def test_what_is_not_there_is_named_with_where_it_was_sought(
    spark: SparkSession, tmp_path: Path, path: str, message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(spark, "judgments", Source(path=str(tmp_path / path)), DAY)
    assert str(tmp_path) in str(caught.value)


def test_a_file_that_is_not_parquet_is_an_input_error(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "j.parquet", "this is not parquet, whatever its name says")
    with pytest.raises(InputError, match="not a Parquet file"):
        read(spark, "judgments", Source(path=path), DAY)


def test_a_fingerprint_changes_when_a_file_does(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(path=write(tmp_path / "j.csv", "query_id,doc_id,grade\nq,d,1\n"), format="csv")
    before = read(spark, "judgments", source, DAY).digest
    assert read(spark, "judgments", source, DAY).digest == before
    write(tmp_path / "j.csv", "query_id,doc_id,grade\nq,d,10\n")
    assert read(spark, "judgments", source, DAY).digest != before


def test_times_that_spark_cannot_read_are_an_input_error_that_says_what_to_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    """pandas writes nanoseconds where it is not told otherwise."""
    place = tmp_path / "i.parquet"
    pd.DataFrame({"ts": [pd.Timestamp("2026-11-01")]}).to_parquet(place)
    with pytest.raises(InputError, match=r'INT64 .TIMESTAMP.NANOS.*coerce_timestamps="us"') as caught:
        read(spark, "impressions", Source(path=str(place)), DAY)
    assert caught.value.exit_code == 3
