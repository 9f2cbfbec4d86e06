"""Metrics between the lists of two systems, and of a whole system, from tables."""

from __future__ import annotations

import string

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import ConfigurationError
from tests.helpers import slow_oracles
from tests.helpers.cases import label_table, per_query, ranking_table
from udfs.conventions import Conventions
from udfs.multi_list import evaluate_pairs, evaluate_systems


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
    values = table.set_index("query_id")["retention_from_2_at_1"]
    assert values["q1"] == 0.5
    assert values[["q2", "q3"]].isna().all()  # the earlier stage found nothing relevant


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
    twice = pa.table({"doc_id": list("abcdefgha")})
    assert evaluate_systems(RANKINGS, twice, ["catalog_coverage@5"])["catalog_coverage_at_5"].to_pylist() == [5 / 8] * 2
    with pytest.raises(ConfigurationError, match="not a metric of a whole system"):
        evaluate_systems(RANKINGS, catalogue, ["ndcg@5"])


LISTS = st.permutations(string.ascii_letters).flatmap(lambda docs: st.integers(1, 52).map(lambda size: docs[:size]))


@given(LISTS, LISTS, st.integers(1, 60), st.sets(st.sampled_from(string.ascii_letters), min_size=1))
def test_a_cut_off_compares_the_tops_of_lists_of_any_length(
    first: list[str], second: list[str], k: int, relevant: set[str]
) -> None:
    rankings = ranking_table({"a": {"q": ranked("".join(first))}, "b": {"q": ranked("".join(second))}})
    labels = label_table({"q": dict.fromkeys(relevant, 1.0)})
    names = [f"rbo(p=0.8)@{k}", f"rank_tau@{k}", f"retention(from=7)@{k}"]
    row = per_query(evaluate_pairs(rankings, "a", "b", names, labels=labels))["q"]
    tops = first[:k], second[:k]
    assert row[f"rbo_p_0_8_at_{k}"] == pytest.approx(slow_oracles.rbo(*tops, 0.8), abs=1e-9)
    rising, falling = slow_oracles.tau([tops[1].index(doc) for doc in tops[0] if doc in tops[1]])
    expected = None if rising + falling == 0 else pytest.approx((rising - falling) / (rising + falling))
    assert row[f"rank_tau_at_{k}"] == expected
    kept = slow_oracles.retention(first, second, relevant, 7, k) if relevant & set(second[:7]) else None
    assert row[f"retention_from_7_at_{k}"] == (None if kept is None else pytest.approx(kept))


def test_a_depth_holds_between_lists_and_for_whole_systems() -> None:
    two = Conventions(depth=2)
    labels = label_table({"q1": {"a": 1.0, "c": 1.0}})
    values = per_query(evaluate_pairs(RANKINGS, "new", "old", ["retention(from=5)@5"], labels=labels, conventions=two))
    assert values["q1"]["retention_from_5_at_5"] == 1.0  # c is below the depth of both
    catalogue = pa.table({"doc_id": list("abcdefgh")})
    table = evaluate_systems(RANKINGS, catalogue, ["catalog_coverage@5"], conventions=two)
    assert table["catalog_coverage_at_5"].to_pylist() == [2 / 8, 2 / 8]
