"""Which queries count, as a column of `query_metrics`."""

import pyarrow as pa

from udfs.statistics.counting import CountingRule

COLUMNS = {
    "system": pa.array(["old", "new", "old", "new"]),
    "query_id": pa.array(["q1", "q1", "q2", "q2"]),
    "retrieved": pa.array([10, 10, 10, 10]),
    "ndcg_at_10": pa.array([0.5, 0.6, 0.4, None]),
    "judged_at_10": pa.array([0.9, 0.8, 0.2, 0.9]),
}


def test_a_query_counts_where_the_metric_is_defined_and_enough_is_judged() -> None:
    rule = CountingRule("ndcg_at_10", "judged_at_10", 0.7)
    assert rule.mark(COLUMNS).to_pylist() == [True, True, False, False]
    assert CountingRule("ndcg_at_10").mark(COLUMNS).to_pylist() == [True, True, True, False]


def test_in_a_comparison_it_must_count_for_the_baseline_too() -> None:
    rule = CountingRule("ndcg_at_10", "judged_at_10", 0.85, baseline="old")
    assert rule.mark(COLUMNS).to_pylist() == [True, False, False, False]


def test_without_its_columns_nothing_is_said() -> None:
    """As where the same lists are scored again by a few metrics, for the sensitivity of the answer."""
    few = {name: column for name, column in COLUMNS.items() if name != "judged_at_10"}
    assert CountingRule("ndcg_at_10", "judged_at_10", 0.7).mark(few).null_count == 4
