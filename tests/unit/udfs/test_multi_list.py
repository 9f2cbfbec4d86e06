"""Metrics between the lists of two systems, and of a whole system, from tables."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from schemas.errors import ConfigurationError
from tests.unit.cases import label_table, per_query, ranking_table
from udfs.between import evaluate_pairs, evaluate_systems


def ranked(docs: str) -> dict[str, float]:
    return {doc: float(-place) for place, doc in enumerate(docs)}


RANKINGS = ranking_table(
    {
        "new": {"q1": ranked("abcde"), "q2": ranked("ab")},
        "old": {"q1": ranked("bacde"), "q3": ranked("xy")},
    }
)


def test_two_systems_are_compared_query_by_query() -> None:
    rows = per_query(evaluate_pairs(RANKINGS, "new", "old"))
    assert rows["q1"] == {"query_id": "q1", "rbo": pytest.approx(0.9), "rank_tau": pytest.approx(0.8)}
    assert rows["q2"] == {"query_id": "q2", "rbo": 0.0, "rank_tau": None}  # one of them returned nothing
    assert evaluate_pairs(RANKINGS, "old", "new").equals(evaluate_pairs(RANKINGS, "new", "old"))


def test_a_hand_over_needs_labels() -> None:
    labels = label_table({"q1": {"a": 1.0, "b": 1.0, "e": 1.0}, "q2": {"a": 1.0}})
    table = evaluate_pairs(RANKINGS.to_pandas(), "new", "old", ["retention(from=2)@1"], labels=labels)
    assert isinstance(table, pd.DataFrame)
    found = table.set_index("query_id")["retention_from_2_at_1"]
    assert found["q1"] == 0.5
    assert found[["q2", "q3"]].isna().all()  # the earlier stage found nothing relevant


def test_an_unknown_system_is_answered_with_those_there_are() -> None:
    with pytest.raises(ConfigurationError, match=r"no system 'odl': did you mean 'old'\? Known: new, old"):
        evaluate_pairs(RANKINGS, "new", "odl")


def test_coverage_counts_what_any_top_k_shows_of_the_catalogue() -> None:
    catalogue = pa.table({"doc_id": list("abcdefgh")})
    table = evaluate_systems(RANKINGS, catalogue, ["catalog_coverage@1", "catalog_coverage@5"])
    assert table.to_pylist() == [
        {"system": "new", "catalog_coverage_at_1": 1 / 8, "catalog_coverage_at_5": 5 / 8},
        {"system": "old", "catalog_coverage_at_1": 1 / 8, "catalog_coverage_at_5": 5 / 8},  # x and y are not in it
    ]
    with pytest.raises(ConfigurationError, match="not a metric of a whole system"):
        evaluate_systems(RANKINGS, catalogue, ["ndcg@5"])
