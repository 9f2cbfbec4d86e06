"""Conventions as an argument: a wrong one is the project's own error, with its key and what it may be."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import assay
from pipelines.config.load import build_config
from schemas.errors import ConfigurationError

ORDERS = "it must be 'rank', 'score' or 'score_float32'"
RANKINGS = pd.DataFrame({"system": ["a"], "query_id": ["q"], "doc_id": ["d"], "rank": [1]})
LABELS = pd.DataFrame({"query_id": ["q"], "doc_id": ["d"], "grade": [1]})


def test_a_wrong_value_names_its_key_and_what_it_may_be() -> None:
    with pytest.raises(ConfigurationError, match=f"wrong value 'scroe' in assay.Conventions at order: {ORDERS}"):
        assay.Conventions(**{"order": "scroe"})


def test_an_unknown_name_suggests_the_closest_one() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown key in assay.Conventions at ordr: did you mean 'order'"):
        assay.Conventions(**{"ordr": "score"})


def test_all_wrong_values_are_reported_at_once() -> None:
    with pytest.raises(ConfigurationError) as raised:
        assay.Conventions(**{"order": "scroe", "depth": 0})
    assert "- wrong value 'scroe'" in str(raised.value)
    assert "- wrong value 0 in assay.Conventions at depth: it must be at least 1" in str(raised.value)


@pytest.mark.parametrize(
    "use",
    [
        lambda conventions: assay.Evaluator(metrics=["mrr"], conventions=conventions),
        lambda conventions: assay.evaluate_tables(RANKINGS, LABELS, ["mrr"], conventions=conventions),
        lambda conventions: assay.evaluate_systems(RANKINGS, ["catalog_coverage@3"], conventions=conventions),
        lambda conventions: assay.evaluate_pairs(RANKINGS, "a", "a", conventions=conventions),
        lambda conventions: assay.compute_metric("mrr", "ranked", "labels", conventions),
    ],
)
def test_every_function_takes_a_mapping_and_refuses_what_is_none(use: Callable[[Any], object]) -> None:
    with pytest.raises(ConfigurationError, match=ORDERS):
        use({"order": "scroe"})
    with pytest.raises(ConfigurationError, match=r"conventions is a str: give assay.Conventions"):
        use("score")


def test_a_mapping_is_the_same_as_conventions() -> None:
    items, labels = [("a", 1), ("b", 2)], {"b": 1}
    by_class, by_mapping = (
        assay.Evaluator(metrics=["mrr"], conventions=conventions).evaluate_ranking(items, labels)
        for conventions in (assay.Conventions(order="score"), {"order": "score"})
    )
    assert by_class == by_mapping == {"mrr": 1.0}


def test_a_top_grade_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"wrong value -1 in assay.Conventions at max_grade: it must be gr"):
        assay.Evaluator(metrics=["err@3"], max_grade=-1)


def test_in_a_configuration_the_key_is_the_whole_one() -> None:
    inputs = {"rankings": {"path": "r"}, "judgments": {"path": "j"}}
    with pytest.raises(ConfigurationError, match=f"in a.yaml at conventions.order: {ORDERS}"):
        build_config({"inputs": inputs, "metrics": ["mrr"], "conventions": {"order": "scroe"}}, "a.yaml")
