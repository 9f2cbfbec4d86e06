"""The Spark path: lists are ordered, matched and scored as stated, whatever the partitioning."""

import math

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from pipelines.comparison.estimate import estimate_metrics, select_segment_metrics
from pipelines.scoring.score import ScoringTables, score_lists
from schemas.inputs import QUERIES, RANKINGS
from schemas.table import Column
from tests.helpers.judgments import GRADES_DDL
from udfs.conventions import Conventions
from udfs.registry import parse_metrics
from udfs.statistics.plan import Plan

SPECS = parse_metrics(["ndcg(gain=linear)@3", "recall@2", "dcg(gain=linear)"])
WITH_DEVICE = QUERIES.add_columns([Column("device", "string", "a segment", nullable=True)])


def scored(
    spark: SparkSession,
    rankings: list[tuple[object, ...]],
    labels: list[tuple[object, ...]],
    conventions: Conventions | None = None,
    queries: DataFrame | None = None,
) -> dict[tuple[str, str], Row]:
    table = score_lists(
        spark.createDataFrame(rankings, RANKINGS.struct()),
        ScoringTables(spark.createDataFrame(labels, GRADES_DDL), queries),
        systems=sorted({str(row[0]) for row in rankings}),
        segments=["device"] if queries is not None else [],
        specs=SPECS,
        conventions=conventions or Conventions(),
    )
    return {(row["system"], row["query_id"]): row for row in table.rows().collect()}


LABELS: list[tuple[object, ...]] = [("q", "a", 3.0), ("q", "b", 2.0), ("q", "c", 2.0), ("q", "z", 0.0)]


def test_a_list_is_scored_against_all_labels_of_its_query(spark: SparkSession) -> None:
    row = scored(spark, [("s", "q", "b", 1, None), ("s", "q", "x", 2, None), ("s", "q", "a", 3, None)], LABELS)[
        "s", "q"
    ]
    ideal = 3 + 2 / math.log2(3) + 2 / 2
    assert row["ndcg_gain_linear_at_3"] == pytest.approx((2 + 3 / 2) / ideal, abs=1e-15)
    assert row["recall_at_2"] == pytest.approx(1 / 3)
    assert (row["retrieved"], row["labelled"], row["relevant"], row["judged"]) == (3, 4, 3, 2)


def test_gaps_and_duplicates_close_up_and_are_counted(spark: SparkSession) -> None:
    rankings: list[tuple[object, ...]] = [
        ("s", "q", "b", 10, None),
        ("s", "q", "b", 20, None),
        ("s", "q", "a", 30, None),
    ]
    row = scored(spark, rankings, LABELS)["s", "q"]
    assert row["dcg_gain_linear"] == pytest.approx(2 + 3 / math.log2(3), abs=1e-15)
    assert (row["retrieved"], row["duplicates"], row["tied"]) == (2, 1, 0)


@pytest.mark.parametrize(
    ("conventions", "expected"),
    [
        (Conventions(), ["c", "b", "a"]),  # equal ranks by score, equal scores by doc_id descending
        (Conventions(ties="doc_id_asc"), ["b", "c", "a"]),
        (Conventions(order="score"), ["c", "b", "a"]),
    ],
)
def test_documents_at_one_place_are_ordered_by_score_then_doc_id(
    spark: SparkSession, conventions: Conventions, expected: list[str]
) -> None:
    rankings: list[tuple[object, ...]] = [
        ("s", "q", "a", 0, 1.0),
        ("s", "q", "b", 0, 5.0),
        ("s", "q", "c", 0, 5.0),
    ]
    labels: list[tuple[object, ...]] = [("q", "a", 1.0), ("q", "b", 10.0), ("q", "c", 100.0)]
    row = scored(spark, rankings, labels, conventions)["s", "q"]
    grade = {"a": 1.0, "b": 10.0, "c": 100.0}
    dcg = sum(grade[doc] / math.log2(place + 2) for place, doc in enumerate(expected))
    assert row["dcg_gain_linear"] == pytest.approx(dcg, abs=1e-12)
    assert row["tied"] == 1


def test_rank_wins_over_score_unless_the_order_is_by_score(spark: SparkSession) -> None:
    rankings: list[tuple[object, ...]] = [("s", "q", "a", 2, 9.0), ("s", "q", "z", 1, 1.0)]
    assert scored(spark, rankings, LABELS)["s", "q"]["dcg_gain_linear"] == pytest.approx(3 / math.log2(3))
    by_score = scored(spark, rankings, LABELS, Conventions(order="score"))["s", "q"]
    assert by_score["dcg_gain_linear"] == pytest.approx(3.0)


def test_scores_that_differ_beyond_32_bits_tie_only_where_that_is_asked_for(spark: SparkSession) -> None:
    rankings: list[tuple[object, ...]] = [("s", "q", "a", None, 1.0 + 1e-12), ("s", "q", "z", None, 1.0)]
    assert scored(spark, rankings, LABELS, Conventions(order="score"))["s", "q"]["dcg_gain_linear"] == 3.0
    narrow = scored(spark, rankings, LABELS, Conventions(order="score_float32"))["s", "q"]
    assert narrow["dcg_gain_linear"] == pytest.approx(3 / math.log2(3))
    assert narrow["tied"] == 1


def test_every_system_has_a_row_for_every_query_that_was_asked(spark: SparkSession) -> None:
    rankings: list[tuple[object, ...]] = [("s", "q", "a", 1, None), ("t", "never labelled", "a", 1, None)]
    queries = spark.createDataFrame([("q", 5.0, None, "ios"), ("no labels", None, None, None)], WITH_DEVICE.struct())
    rows = scored(spark, rankings, LABELS, queries=queries)
    assert set(rows) == {
        ("s", "q"),
        ("t", "q"),
        ("s", "no labels"),
        ("t", "no labels"),
        ("t", "never labelled"),
    }
    assert rows["t", "q"]["recall_at_2"] == 0.0
    assert (rows["t", "q"]["weight"], rows["t", "q"]["device"], rows["t", "q"]["retrieved"]) == (5.0, "ios", 0)
    assert rows["s", "no labels"]["recall_at_2"] is None
    assert rows["t", "never labelled"]["recall_at_2"] is None
    assert rows["t", "never labelled"]["weight"] == 1.0
    skipping = scored(spark, rankings, LABELS, Conventions(nothing_returned="skip"))
    assert skipping["t", "q"]["recall_at_2"] is None


def test_a_query_without_relevant_documents_is_undefined_or_zero(spark: SparkSession) -> None:
    labels: list[tuple[object, ...]] = [("q", "a", 0.0)]
    rankings: list[tuple[object, ...]] = [("s", "q", "a", 1, None)]
    assert scored(spark, rankings, labels)["s", "q"]["recall_at_2"] is None
    assert scored(spark, rankings, labels, Conventions(no_relevant="zero"))["s", "q"]["recall_at_2"] == 0.0


def test_of_two_labels_for_one_document_the_higher_counts_once(spark: SparkSession) -> None:
    row = scored(spark, [("s", "q", "a", 1, None)], [("q", "a", 1.0), ("q", "a", 2.0)])["s", "q"]
    assert (row["labelled"], row["relevant"], row["retrieved"], row["duplicates"]) == (1, 1, 1, 0)
    assert row["dcg_gain_linear"] == 2.0


def test_means_by_segment_leave_out_and_count_what_is_undefined(spark: SparkSession) -> None:
    rankings: list[tuple[object, ...]] = [("s", q, "a", 1, None) for q in ("q1", "q2", "q3", "q4")]
    labels: list[tuple[object, ...]] = [("q1", "a", 1.0), ("q2", "b", 1.0), ("q3", "a", 0.0), ("q4", "a", 1.0)]
    weights = {"q1": (3.0, "ios"), "q2": (1.0, "ios"), "q3": (1.0, "ios"), "q4": (2.0, None)}
    rows = [(query, weight, None, device) for query, (weight, device) in weights.items()]
    queries = spark.createDataFrame(rows, WITH_DEVICE.struct())
    table = score_lists(
        spark.createDataFrame(rankings, RANKINGS.struct()),
        ScoringTables(spark.createDataFrame(labels, GRADES_DDL), queries),
        systems=["s"],
        segments=["device"],
        specs=SPECS,
        conventions=Conventions(),
    )
    plan = Plan(systems=("s",), metrics=tuple(spec.key for spec in SPECS), segments=(("device",),))
    means = select_segment_metrics(estimate_metrics(table.rows(), plan=plan)).where("metric = 'recall_at_2'").collect()
    by_segment = {(r["segment"], r["value"]): (r["macro"], r["weighted"], r["queries"], r["skipped"]) for r in means}
    assert by_segment == {
        ("all", "all"): (pytest.approx(2 / 3), pytest.approx(5 / 6), 3, 1),
        ("device", "ios"): (0.5, 0.75, 2, 1),
        ("device", "(none)"): (1.0, 1.0, 1, 0),
    }


@pytest.mark.parametrize(
    ("rows", "partitions"),
    [(1_000, 1), (150_000, 2), (1_000_000, 3), (1_550_000, 4), (40_000_000, 20)],
)
def test_a_task_has_rows_enough_to_be_worth_it_and_no_more_than_a_worker_can_hold(
    spark: SparkSession, rows: int, partitions: int
) -> None:
    usual = spark.conf.get("spark.sql.shuffle.partitions") or ""
    spark.conf.set("spark.sql.shuffle.partitions", "16")
    try:
        rankings = spark.createDataFrame([("a", "q", "d", 1, None)], RANKINGS.struct())
        labels = spark.createDataFrame(LABELS, GRADES_DDL)
        table = score_lists(
            rankings,
            ScoringTables(labels),
            systems=["a"],
            segments=[],
            specs=SPECS,
            conventions=Conventions(),
            rows=rows,
        )
        assert table.rows().rdd.getNumPartitions() == partitions
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", usual)
