"""Readers: formats, windows of days, digests."""

import datetime as dt
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from pipelines.inputs.listing import list_locally, list_with_spark
from pipelines.inputs.read import read_input
from pipelines.inputs.settings import InputSource
from schemas.conform import CORRUPT, conform
from schemas.errors import InputError
from schemas.inputs import JUDGMENTS, RANKINGS
from schemas.spark_errors import raise_input_errors
from tests.helpers.judgments import GRADES_DDL

DAY = dt.date(2026, 11, 1)


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_csv_keeps_text_as_it_is_and_marks_lines_of_another_length(spark: SparkSession, tmp_path: Path) -> None:
    text = 'query_id,doc_id,grade\n007,"a, ""b""",1\nq,d\nq,e,2,extra\n'
    raw = read_input(spark, "judgments", InputSource(path=write(tmp_path / "j.csv", text), format="csv"), DAY).raw
    assert [row["query_id"] for row in raw.where(f"{CORRUPT} IS NULL").collect()] == ["007"]
    conformed = conform(raw, JUDGMENTS)
    assert [tuple(row) for row in conformed.rows.collect()] == [("007", 'a, "b"', 1.0, None, None)]
    assert [row["reason"] for row in conformed.rejected_rows.collect()] == ["line cannot be parsed"] * 2


def test_csv_files_with_different_headers_are_refused_rather_than_mixed_up(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "j" / "a.csv", "query_id,doc_id,grade\nq,d,1\n")
    write(tmp_path / "j" / "b.csv", "doc_id,query_id,grade\nd,q,1\n")
    source = InputSource(path=str(tmp_path / "j"), format="csv")
    raw = read_input(spark, "judgments", source, DAY).raw
    with pytest.raises(InputError, match="CSV header does not conform"), raise_input_errors("inputs.judgments"):
        raw.collect()


def test_json_lines_keep_ids_whole_and_mark_what_cannot_be_parsed(spark: SparkSession, tmp_path: Path) -> None:
    text = '{"query_id": 12345678901234567890, "doc_id": "d", "grade": 2}\n{broken\n'
    raw = read_input(spark, "judgments", InputSource(path=write(tmp_path / "j.json", text), format="json"), DAY).raw
    conformed = conform(raw, JUDGMENTS)
    assert [tuple(row) for row in conformed.rows.collect()] == [("12345678901234567890", "d", 2.0, None, None)]
    assert [row["reason"] for row in conformed.rejected_rows.collect()] == ["line cannot be parsed"]


def test_trec_files_are_read_as_they_come(spark: SparkSession, tmp_path: Path) -> None:
    run = write(tmp_path / "run.txt", "401 Q0 FT911-1 0 12.5 bm25\n401\tQ0  FT911-2 1 -3e-2 bm25 \n\nbroken line\n")
    raw = read_input(spark, "rankings", InputSource(path=run, format="trec_run"), DAY).raw
    conformed = conform(raw, RANKINGS)
    rows = sorted(tuple(row) for row in conformed.rows.collect())
    assert rows == [("bm25", "401", "FT911-1", 0, 12.5), ("bm25", "401", "FT911-2", 1, -0.03)]
    assert [row["reason"] for row in conformed.rejected_rows.collect()] == ["line cannot be parsed"]
    qrels = write(tmp_path / "qrels.txt", "401 0 FT911-1 2\n401 0 FT911-9 -1\n")
    graded = conform(read_input(spark, "judgments", InputSource(path=qrels, format="trec_qrels"), DAY).raw, JUDGMENTS)
    grades = graded.rows.select("query_id", "doc_id", "grade").collect()
    assert sorted(tuple(row) for row in grades) == [("401", "FT911-1", 2.0), ("401", "FT911-9", -1.0)]


def test_a_window_reads_its_days_and_lists_the_missing_ones(spark: SparkSession, tmp_path: Path) -> None:
    for day, grade in (("2026-10-30", 1), ("2026-11-01", 2), ("2026-11-02", 3)):
        write(tmp_path / f"dt={day}" / "j.csv", f"query_id,doc_id,grade\nq,d{grade},{grade}\n")
    source = InputSource(path=str(tmp_path / "dt={date}"), format="csv", days=3)
    table = read_input(spark, "judgments", source, DAY)
    assert sorted(row["grade"] for row in table.raw.collect()) == ["1", "2"]
    assert table.missing_days == ("2026-10-31",)


def test_a_catalog_table_can_be_an_input(spark: SparkSession) -> None:
    spark.createDataFrame([("q", "d", 1.0), ("q", "e", 2.0)], GRADES_DDL).createOrReplaceTempView("labels_of_us")
    source = InputSource(table="labels_of_us", where="grade > 1")
    table = read_input(spark, "judgments", source, DAY)
    assert [row["doc_id"] for row in table.raw.collect()] == ["e"]
    assert table.digest == read_input(spark, "judgments", source, DAY).digest
    assert table.digest != read_input(spark, "judgments", InputSource(table="labels_of_us"), DAY).digest


@pytest.mark.parametrize(
    ("path", "message"),
    [("nowhere", "judgments does not exist"), ("dt={date}", "judgments has no data for 2026-11-01")],
)
def test_a_missing_input_is_reported_with_its_path(
    spark: SparkSession, tmp_path: Path, path: str, message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_input(spark, "judgments", InputSource(path=str(tmp_path / path)), DAY)
    assert str(tmp_path) in str(caught.value)


def test_a_file_that_is_not_parquet_is_an_input_error(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "j.parquet", "this is not parquet, whatever its name says")
    with pytest.raises(InputError, match="not a Parquet file"):
        read_input(spark, "judgments", InputSource(path=path), DAY)


def test_a_digest_changes_when_a_file_does(spark: SparkSession, tmp_path: Path) -> None:
    source = InputSource(path=write(tmp_path / "j.csv", "query_id,doc_id,grade\nq,d,1\n"), format="csv")
    before = read_input(spark, "judgments", source, DAY).digest
    assert read_input(spark, "judgments", source, DAY).digest == before
    write(tmp_path / "j.csv", "query_id,doc_id,grade\nq,d,10\n")
    assert read_input(spark, "judgments", source, DAY).digest != before


def test_times_that_spark_cannot_read_are_an_input_error_that_says_what_to_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    """pandas writes nanoseconds by default."""
    place = tmp_path / "i.parquet"
    pd.DataFrame({"ts": [pd.Timestamp("2026-11-01")]}).to_parquet(place)
    with pytest.raises(InputError, match=r'INT64 .TIMESTAMP.NANOS.*coerce_timestamps="us"') as caught:
        read_input(spark, "impressions", InputSource(path=str(place)), DAY)
    assert caught.value.exit_code == 3


def test_spark_and_python_list_the_same_files_with_the_same_digest(spark: SparkSession, tmp_path: Path) -> None:
    names = ("a.csv", "sub dir/é %20.csv", "_k=1/b.csv", "_SUCCESS", ".a.csv.crc", "_temporary/0/c.csv", "d._COPYING_")
    for day, name in ((day, name) for day in ("2026-10-30", "2026-11-01") for name in names):
        write(tmp_path / f"dt={day}" / name, f"query_id,doc_id,grade\n{name},{day},1\n")
    source = InputSource(path=f"{tmp_path}/./dt={{date}}", format="csv", days=3)
    listing = list_with_spark(spark, "judgments", source, DAY)
    assert (listing.files, listing.missing_days) == (6, ("2026-10-31",))
    assert list_locally("judgments", source, DAY) == listing
