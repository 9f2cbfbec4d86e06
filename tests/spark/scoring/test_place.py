"""Documents are placed at the ranks they are scored at, wherever ranks are shown."""

import json

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipelines.comparison.movers import add_moved_documents
from pipelines.scoring.place import place_documents
from pipelines.scoring.score import ScoringTables, score_lists
from schemas.inputs import RANKINGS
from tests.helpers.judgments import GRADES_DDL
from udfs.conventions import Conventions
from udfs.registry import parse_metrics

LISTS = [
    ("old", "q", "x", 1, None),
    ("old", "q", "x", 2, None),  # a duplicate: what follows moves up
    ("old", "q", "a", 3, None),
    ("new", "q", "a", 7, 0.5),
    ("new", "q", "x", None, 0.9),  # a document without a rank comes last
]


def place(rankings: DataFrame, conventions: Conventions) -> dict[tuple[str, str], list[tuple[int, str]]]:
    lists: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for row in place_documents(rankings, conventions).collect():
        lists.setdefault((row["system"], row["query_id"]), []).append((row["rank"], row["doc_id"]))
    return {key: sorted(rows) for key, rows in lists.items()}


def test_ranks_close_up_after_a_duplicate(spark: SparkSession) -> None:
    assert place(spark.createDataFrame(LISTS, RANKINGS.struct()), Conventions()) == {
        ("old", "q"): [(1, "x"), (2, "a")],
        ("new", "q"): [(1, "a"), (2, "x")],
    }


@pytest.mark.parametrize(
    ("conventions", "expected"),
    [
        (Conventions(), ["c", "b", "a"]),
        (Conventions(ties="doc_id_asc"), ["b", "c", "a"]),
        (Conventions(order="score"), ["a", "c", "b"]),
    ],
)
def test_documents_are_ordered_by_the_conventions(
    spark: SparkSession, conventions: Conventions, expected: list[str]
) -> None:
    rows = [("s", "q", "a", 2, 9.0), ("s", "q", "b", 1, 5.0), ("s", "q", "c", 1, 5.0)]
    placed = place(spark.createDataFrame(rows, RANKINGS.struct()), conventions)
    assert placed["s", "q"] == list(enumerate(expected, start=1))


def test_movers_show_the_ranks_that_were_scored(spark: SparkSession) -> None:
    rankings = spark.createDataFrame(LISTS, RANKINGS.struct())
    labels = spark.createDataFrame([("q", "a", 1.0)], GRADES_DDL)
    specs, conventions = parse_metrics(["mrr"]), Conventions()
    scored = score_lists(
        rankings, ScoringTables(labels), systems=["old", "new"], segments=[], specs=specs, conventions=conventions
    )
    values = {row["system"]: row["mrr"] for row in scored.rows().collect()}
    assert values == {"old": 0.5, "new": 1.0}
    changed = spark.createDataFrame(
        [("old", "new", "mrr", "mrr", "q", 1.0, 0.5, 1.0, 0.5, "gain", 1)],
        "baseline string, candidate string, metric string, metric_name string, query_id string, weight double, "
        "baseline_value double, candidate_value double, delta double, direction string, place int",
    )
    queries = spark.createDataFrame([("q", "red shoes"), ("other", "socks")], "query_id string, query string")
    documents = spark.createDataFrame([("a", "A shoe")], "doc_id string, title string")
    (row,) = add_moved_documents(
        changed, rankings, labels, specs=specs, conventions=conventions, queries=queries, documents=documents
    ).collect()
    assert row["moved"] == "a (1) 2 → 1; x (?) 1 → 2"  # 1 / 2 is the mrr of the baseline
    assert json.loads(row["baseline_top"]) == [{"doc_id": "x"}, {"doc_id": "a", "title": "A shoe", "grade": 1.0}]
    assert row["query"] == "red shoes"
