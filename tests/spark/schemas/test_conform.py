"""Inputs are conformed to their contracts; rows that do not fit are rejected with the reason."""

import json
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from pipelines.inputs.in_memory import conform_arrow
from schemas.conform import conform
from schemas.errors import InputError
from schemas.inputs import DOCUMENTS, IMPRESSIONS, JUDGMENTS, RANKINGS
from tests.unit.inputs.test_in_memory import SEVERAL
from udfs.tables import TableReader


def rejected(table: DataFrame) -> dict[str, str]:
    return {row["reason"]: row["row"] for row in table.collect()}


def test_rows_that_fit_are_cast_and_the_others_are_quarantined_with_a_reason(spark: SparkSession) -> None:
    raw = spark.createDataFrame(
        [
            ("s", "q1", "d1", "1"),
            ("s", "q1", "d2", "2.0"),
            ("s", "q1", "d3", "third"),
            ("s", " ", "d4", "4"),
            ("s", "q1", None, "5"),
            ("s", "q1", "d6", "-1"),
            ("s", "q1", "d7", None),
            ("s", "q1", "é" * 5_001, "8"),
        ],
        "system string, query_id string, doc_id string, rank string",
    )
    conformed = conform(raw, RANKINGS)
    kept = [tuple(row) for row in conformed.rows.orderBy("rank").collect()]
    assert kept == [("s", "q1", "d1", 1, None), ("s", "q1", "d2", 2, None)]
    reasons = rejected(conformed.rejected_rows)
    assert set(reasons) == {
        "rank: not an int",
        "query_id: empty",
        "doc_id: empty",
        "rank: below 0",
        "rank and score: empty",
        "doc_id: longer than 10,000 bytes",
    }
    assert json.loads(reasons["rank: not an int"]) == {"system": "s", "query_id": "q1", "doc_id": "d3", "rank": "third"}
    assert conformed.rows.count() + conformed.rejected_rows.count() == raw.count()


def test_columns_are_renamed_by_configuration(spark: SparkSession) -> None:
    raw = spark.createDataFrame([("q", "d", 2)], "qid string, `doc.no` string, rel int")
    conformed = conform(raw, JUDGMENTS, columns={"query_id": "qid", "doc_id": "doc.no", "grade": "rel"})
    assert [tuple(row)[:3] for row in conformed.rows.collect()] == [("q", "d", 2.0)]


def test_a_missing_column_is_named_with_what_was_found(spark: SparkSession) -> None:
    raw = spark.createDataFrame([("q", "d")], "query string, doc_id string")
    with pytest.raises(InputError) as caught:
        conform(raw, RANKINGS)
    assert "rankings lacks system, query_id, rank or score (inputs.rankings): found query, doc_id" in str(caught.value)
    assert caught.value.exit_code == 3


def test_a_renamed_column_that_is_not_there_is_named_with_its_key(spark: SparkSession) -> None:
    raw = spark.createDataFrame([("q", "d", 1.0)], "query_id string, doc_id string, grade double")
    with pytest.raises(InputError, match=r"inputs\.judgments\.columns\.grade.*did you mean 'grade'"):
        conform(raw, JUDGMENTS, columns={"grade": "grades"})


def test_expressions_are_not_listed_among_the_columns_of_the_data(spark: SparkSession) -> None:
    raw = spark.createDataFrame([("q", "d")], "`Query Text` string, `lower(d)` string")  # the second is an expression
    with pytest.raises(InputError, match=r"judgments lacks query_id, grade \(inputs\.judgments\): found Query Text\."):
        conform(raw, JUDGMENTS, columns={"doc_id": "lower(d)"})


def test_a_number_that_is_not_finite_is_no_grade(spark: SparkSession) -> None:
    raw = spark.createDataFrame(
        [("q", "d", "NaN"), ("q", "e", "Infinity")], "query_id string, doc_id string, grade string"
    )
    assert set(rejected(conform(raw, JUDGMENTS).rejected_rows)) == {"grade: not a finite number"}


@pytest.mark.parametrize("kind", ["array<string>", "string"])
def test_an_array_of_documents_is_unfolded_in_its_order(spark: SparkSession, kind: str) -> None:
    value = '["b", "a", "c"]' if kind == "string" else ["b", "a", "c"]
    nothing = "[]" if kind == "string" else []
    raw = spark.createDataFrame(
        [("s", "q1", value), ("s", "q2", nothing), ("s", "q3", None)],
        f"system string, query_id string, ranked_items {kind}",
    )
    conformed = conform(raw, RANKINGS)
    rows = [(row["query_id"], row["doc_id"], row["rank"]) for row in conformed.rows.orderBy("rank").collect()]
    assert rows == [("q1", "b", 1), ("q1", "a", 2), ("q1", "c", 3)]
    assert [row["reason"] for row in conformed.rejected_rows.collect()] == ["doc_id: empty"]


def test_pages_with_an_array_become_impressions_with_positions(spark: SparkSession) -> None:
    raw = spark.createDataFrame(
        [("p", "q", "u", "2026-11-01 10:00:00", ["x", "y"])],
        "serp_id string, query_id string, user_id string, ts string, object_ids array<string>",
    )
    rows = conform(raw, IMPRESSIONS).rows.orderBy("position").collect()
    assert [(row["doc_id"], row["position"], str(row["ts"])) for row in rows] == [
        ("x", 1, "2026-11-01 10:00:00"),
        ("y", 2, "2026-11-01 10:00:00"),
    ]


def test_an_array_of_results_with_scores_keeps_their_order(spark: SparkSession) -> None:
    raw = spark.createDataFrame(
        [("s", "q", [("b", 0.5), ("a", 0.9)])],
        "system string, query_id string, ranked_items array<struct<id string, score double>>",
    )
    rows = conform(raw, RANKINGS).rows.orderBy("rank").collect()
    assert [(row["doc_id"], row["rank"], row["score"]) for row in rows] == [("b", 1, 0.5), ("a", 2, 0.9)]


def test_a_type_that_leads_nowhere_rejects_its_rows_and_stops_nothing(spark: SparkSession) -> None:
    """As where two columns were swapped: Spark has no cast from a time to a number, nor from a list to anything."""
    raw = spark.sql(
        "SELECT 's' AS system, 'q' AS query_id, 'd' AS doc_id, TIMESTAMP '2026-11-01' AS rank, array(1) AS score"
    )
    conformed = conform(raw, RANKINGS)
    assert conformed.rows.count() == 0
    assert list(rejected(conformed.rejected_rows)) == ["rank: not an int"]
    shown = spark.sql(
        "SELECT 'p' AS serp_id, 'q' AS query_id, 'u' AS user_id, 'd' AS doc_id, 1 AS position, true AS ts"
    )
    assert list(rejected(conform(shown, IMPRESSIONS).rejected_rows)) == ["ts: not a timestamp"]


def test_types_that_others_write_are_read_like_in_memory(spark: SparkSession, tmp_path: Path) -> None:
    """Numbers as ids, decimals, dictionaries and large texts."""
    table = pa.table(
        {
            "query_id": pa.array([7, 8], pa.uint32()),
            "doc_id": pa.array(["a", "b"], pa.large_string()).dictionary_encode(),
            "grade": pa.array([Decimal("1.50"), Decimal("2.00")]),
        }
    )
    pq.write_table(table, tmp_path / "j.parquet")
    rows = conform(spark.read.parquet(str(tmp_path / "j.parquet")), JUDGMENTS).rows.toArrow()
    in_memory = conform_arrow(TableReader(table, "judgments"), JUDGMENTS).rows
    assert rows.select(in_memory.column_names).to_pydict() == in_memory.to_pydict()
    assert rows["query_id"].to_pylist() == ["7", "8"]
    assert rows["grade"].to_pylist() == [1.5, 2.0]


def test_times_without_a_zone_are_taken_in_the_zone_of_the_session(spark: SparkSession, tmp_path: Path) -> None:
    shown = pd.Timestamp("2026-11-01T12:00:00")
    for unit, name in (("us", "micros"), ("ms", "millis")):
        times = pa.array([shown.to_pydatetime()], pa.timestamp(unit))
        texts = {key: ["x"] for key in ("serp_id", "query_id", "doc_id")}
        pq.write_table(pa.table({**texts, "position": [1], "ts": times}), tmp_path / f"{name}.parquet")
        raw = spark.read.parquet(str(tmp_path / f"{name}.parquet"))
        assert raw.schema["ts"].dataType.simpleString() == "timestamp_ntz"
        (row,) = conform(raw, IMPRESSIONS).rows.selectExpr("unix_seconds(ts) AS seconds").collect()
        assert row["seconds"] == shown.tz_localize("UTC").timestamp()


def test_arrays_of_text_are_those_of_memory(spark: SparkSession) -> None:
    rows = [(str(number), texts) for number, (texts, _, _) in enumerate(SEVERAL)]
    conformed = conform(spark.createDataFrame(rows, "doc_id string, category array<string>"), DOCUMENTS)
    kept = [row["category"] for row in conformed.rows.orderBy("doc_id").collect()]
    assert kept == [texts for _, texts, why in SEVERAL if why is None]
    assert list(rejected(conformed.rejected_rows)) == ["category: longer than 10,000 bytes"]
    numbers = conform(spark.createDataFrame([("a", 1), ("b", None)], "doc_id string, category int"), DOCUMENTS)
    assert [row["category"] for row in numbers.rows.orderBy("doc_id").collect()] == [["1"], None]
