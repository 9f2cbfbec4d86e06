"""The pool: ranks of its documents in systems that served the log and in systems that did not."""

from pyspark.sql import SparkSession

from pipelines.labels.pool import LogEvidence, build_pool
from schemas.inputs import RANKINGS
from udfs.conventions import Conventions
from udfs.posterior.factors import ABSENT, UNKNOWN, FactorPlan


def test_a_serving_system_has_the_ranks_of_its_list_for_queries_that_it_never_served(spark: SparkSession) -> None:
    log = LogEvidence(
        pairs=spark.createDataFrame(
            [("served", "a", 3.0, 10.0, 0.0), ("served", "b", 1.0, 5.0, 3.5)],
            "query_id string, doc_id string, clicks_due double, examinations double, depth double",
        ),
        positions=spark.createDataFrame(
            [("production", "served", "a", 1), ("production", "served", "b", 2)],
            "system string, query_id string, doc_id string, position int",
        ),
        traffic=spark.createDataFrame([("production", 20)], "system string, impressions bigint"),
        exponent=spark.createDataFrame([], "exponent_sd double"),
    )
    labels = spark.createDataFrame([], "query_id string, doc_id string, grade double, source string, reason string")
    lists = {
        ("production", "served"): "bac",
        ("candidate", "served"): "ca",
        ("production", "new"): "xy",
        ("candidate", "new"): "yz",
        ("candidate", "only"): "q",
    }
    ranked = [(*key, doc, rank, None) for key, docs in lists.items() for rank, doc in enumerate(docs, 1)]
    plan = FactorPlan(("production",), ("candidate",))
    pool = build_pool(
        log, labels, spark.createDataFrame(ranked, RANKINGS.struct()), plan, conventions=Conventions(), top=10
    )
    rows = pool.collect()
    assert {(row["query_id"], row["doc_id"]): tuple(row["ranks"]) for row in rows} == {
        ("served", "a"): (1, 2),  # what the log showed decides, whatever the list says
        ("served", "b"): (2, ABSENT),
        ("served", "c"): (ABSENT, 1),
        ("new", "x"): (1, ABSENT),
        ("new", "y"): (2, 1),
        ("new", "z"): (ABSENT, 2),
        ("only", "q"): (UNKNOWN, 1),
    }
