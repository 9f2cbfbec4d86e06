"""Which queries count."""

import numpy as np
import pytest

from udfs.registry import parse_metric
from udfs.statistics.counting import (
    MIN_JUDGED,
    has_enough_judged,
    has_too_little_judged,
    judged_column,
    resolve_min_judged,
)


@pytest.mark.parametrize(
    ("setting", "unjudged", "from_behaviour", "minimum"),
    [
        ("auto", "posterior", True, None),
        (0.5, "posterior", True, 0.5),
        ("auto", "cut_then_condense", True, MIN_JUDGED),
        ("auto", "zero", True, None),
        ("auto", "cut_then_condense", False, None),  # judgments by people: comparing runs used to set a minimum here
        (0.5, "zero", False, 0.5),
        (None, "cut_then_condense", True, None),
    ],
)
def test_the_minimum_depends_on_labels_and_convention(
    setting: float | None, unjudged: str, from_behaviour: bool, minimum: float | None
) -> None:
    assert resolve_min_judged(setting, unjudged=unjudged, from_behaviour=from_behaviour) == minimum


def test_the_judged_share_is_taken_at_the_cutoff_of_the_metric() -> None:
    columns = ["ndcg_at_10", "judged_at_10", "judged"]
    assert judged_column(parse_metric("ndcg@10"), columns) == "judged_at_10"
    assert judged_column(parse_metric("ndcg@20"), columns) is None
    assert judged_column(parse_metric("mrr"), columns) == "judged"
    assert judged_column(parse_metric("judged@10"), columns) is None


def test_an_empty_list_counts_and_a_missing_list_is_neither_enough_nor_too_little() -> None:
    share, retrieved = np.array([0.9, 0.5, 0.0, np.nan]), np.array([10.0, 10.0, 0.0, np.nan])
    assert has_enough_judged(share, retrieved, 0.7).tolist() == [True, False, True, False]
    assert has_too_little_judged(share, retrieved, 0.7).tolist() == [False, True, False, False]


def test_a_list_of_a_query_without_labels_has_too_little_judged() -> None:
    share, retrieved = np.array([np.nan, np.nan]), np.array([10.0, 0.0])
    assert has_enough_judged(share, retrieved, 0.7).tolist() == [False, True]
    assert has_too_little_judged(share, retrieved, 0.7).tolist() == [True, False]
