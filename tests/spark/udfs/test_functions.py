"""The metrics in people's own Spark code and SQL."""

import math

import pytest
from pyspark.sql import SparkSession

from schemas.errors import ConfigurationError
from udfs.functions import compute_metric, register_functions

ROWS = [
    (1, ["b", "x", "a"], {"a": 3.0, "b": 2.0, "c": 2.0}, 3),
    (2, ["a", "a", "b"], {"a": 1.0, "b": 1.0}, 1),
    (3, [], {"a": 1.0}, 3),
    (4, None, {"a": 1.0}, None),
    (5, ["a"], None, 1),
    (6, ["c", "a"], {"a": 1.0, "c": None}, None),
]
SCHEMA = "id int, ranked array<string>, labels map<string,double>, k int"


def test_a_metric_is_a_column(spark: SparkSession) -> None:
    lists = spark.createDataFrame(ROWS, SCHEMA)
    rows = lists.select("id", compute_metric("ndcg(gain=linear)@3", "ranked", "labels").alias("value")).collect()
    values = {row["id"]: row["value"] for row in rows}
    ideal = 3 + 2 / math.log2(3) + 1
    assert values[1] == pytest.approx(3.5 / ideal)
    assert values[2] == pytest.approx(1.0)  # the second `a` is dropped, and `b` moves up
    assert (values[3], values[4], values[5]) == (0.0, 0.0, None)
    assert values[6] == pytest.approx(1 / math.log2(3))


def test_every_metric_of_a_list_is_a_sql_function_after_one_call(spark: SparkSession) -> None:
    names = register_functions(spark)
    assert {"ndcg", "recall", "mrr", "metric_map", "err", "metric"} <= set(names)
    spark.createDataFrame(ROWS, SCHEMA).createOrReplaceTempView("lists")
    rows = spark.sql(
        "SELECT id, recall(ranked, labels, k) AS at_k, metric('mrr@2', ranked, labels) AS first FROM lists"
    )
    values = {row["id"]: (row["at_k"], row["first"]) for row in rows.collect()}
    assert values[1] == (pytest.approx(2 / 3), 1.0)
    assert values[2] == (0.5, 1.0)
    assert values[3] == (0.0, 0.0)
    assert values[5] == (None, None)
    assert values[6] == (1.0, 0.5)


def test_functions_of_spark_itself_keep_their_names(spark: SparkSession) -> None:
    register_functions(spark)
    row = spark.sql("SELECT map('a', 1)['a'] AS own, metric_map(array('b', 'a'), map('a', 1.0D), 10) AS ours").first()
    assert row is not None
    assert (row["own"], row["ours"]) == (1, 0.5)


def test_an_unknown_metric_is_reported_at_once() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'ndcg@3'"):
        compute_metric("ndgc@3", "ranked", "labels")
