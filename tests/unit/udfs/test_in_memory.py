"""The API for notebooks and unit tests: one ranking, or whole tables of any kind."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import ConfigurationError, InputError
from tests.helpers.cases import label_table, per_query, random_case, ranking_table
from udfs.conventions import Conventions
from udfs.evaluator import Evaluator, MetricChange, evaluate_tables
from udfs.registry import parse_metric

LABELS = {"a": 3.0, "b": 1.0, "c": 0.0}


@dataclass
class Result:
    key: str
    score: float


def test_a_ranking_is_scored_by_the_names_that_were_asked_for() -> None:
    got = Evaluator(metrics=["ndcg@3", "mrr", "judged@3"]).evaluate_ranking(["x", "a", "b"], LABELS)
    ndcg = (7 / math.log2(3) + 1 / 2) / (7 + 1 / math.log2(3))
    assert got == pytest.approx({"ndcg@3": ndcg, "mrr": 0.5, "judged@3": 2 / 3}, abs=1e-12)


def test_cut_offs_alone_choose_the_usual_metrics() -> None:
    got = Evaluator(k_values=[1, 3]).evaluate_ranking(["a"], LABELS)
    assert list(got) == [f"{m}@{k}" for m in ("ndcg", "recall", "precision", "hit") for k in (1, 3)] + ["mrr", "map"]


@pytest.mark.parametrize(
    "items",
    [
        ["b", "a"],
        [{"key": "b", "score": 0.9}, {"key": "a", "score": 0.3}],
        [{"id": "b"}, {"doc_id": "a"}],
        [Result("b", 0.9), Result("a", 0.3)],
        [("b", 0.9), ("a", 0.3)],
    ],
)
def test_items_come_as_ids_mappings_or_objects(items: list[Any]) -> None:
    assert Evaluator(metrics=["mrr(rel=2)"]).evaluate_ranking(items, LABELS) == {"mrr(rel=2)": 0.5}


def test_items_are_taken_as_they_come_unless_scores_are_to_order_them() -> None:
    items = [Result("b", 0.1), Result("a", 0.9), Result("z", 0.9)]
    as_they_come = Evaluator(metrics=["mrr(rel=2)"])
    by_score = Evaluator(metrics=["mrr(rel=2)"], conventions=Conventions(order="score"))
    with pytest.warns(UserWarning, match="item 2 has a higher score than item 1: sort them"):
        assert as_they_come.evaluate_ranking(items, LABELS) == {"mrr(rel=2)": 0.5}
    assert by_score.evaluate_ranking(items, LABELS) == {"mrr(rel=2)": 0.5}  # z stands before a: doc_id descending
    assert by_score.evaluate_ranking(items[:2], LABELS) == {"mrr(rel=2)": 1.0}
    with pytest.raises(InputError, match="no score"):
        by_score.evaluate_ranking(["a"], LABELS)


def test_ids_are_integers_of_numpy_as_a_vector_index_returns_them() -> None:
    evaluator = Evaluator(metrics=["mrr"])
    ids, scores = np.array([7, 5]), np.array([0.9, 0.3], dtype=np.float32)
    assert evaluator.evaluate_ranking(ids, {5: 1}) == {"mrr": 0.5}
    assert evaluator.evaluate_ranking(zip(ids, scores, strict=True), {np.int64(5): 1}) == {"mrr": 0.5}


@pytest.mark.parametrize(
    "judgments",
    [[("a", 3), ("b", 1)], [{"doc_id": "a", "grade": 3}, {"doc_id": "b", "grade": 1}], [{"id": "a", "grade": 3.0}]],
)
def test_judgments_come_as_pairs_or_mappings(judgments: list[Any]) -> None:
    assert Evaluator(metrics=["mrr(rel=2)"]).evaluate_ranking(["b", "a"], judgments) == {"mrr(rel=2)": 0.5}


def test_a_judgment_without_a_grade_is_refused() -> None:
    with pytest.raises(InputError, match=r"a judgment of type dict has no grade"):
        Evaluator(metrics=["mrr"]).evaluate_ranking(["a"], [{"doc_id": "a", "relevance": 3}])


@pytest.mark.parametrize(
    ("items", "judgments", "message"),
    [
        (None, {"a": 1}, "a ranking of type NoneType has no items"),
        ("abc", {"a": 1}, "a ranking of type str has no items"),
        ([["a", "b"]], {"a": 1}, "the score 'b' is not a number: a pair is an id and then its number"),
        ([(0.9, "a"), (0.1, "b")], {"a": 1}, "the score 'a' is not a number"),
        (["a"], None, "judgments are of type NoneType: give a mapping"),
        (["a"], {"a": "good"}, "the grade 'good' is not a number"),
        (["a"], [("a", "good")], "the grade 'good' is not a number"),
        (np.array([3, 1]), {"3": 1}, "ranked ids are int and judged ids are text: convert one"),
        (["3", "1"], {3: 1}, "ranked ids are text and judged ids are int"),
    ],
)
def test_what_is_no_ranking_or_no_judgment_is_refused(items: Any, judgments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Evaluator(metrics=["mrr"]).evaluate_ranking(items, judgments)


def test_judgments_may_have_integers_of_numpy_as_ids() -> None:
    assert Evaluator(metrics=["mrr"]).evaluate_ranking([7, 3], {np.int64(3): np.int8(1)}) == {"mrr": 0.5}


def test_a_metric_that_is_no_text_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="cannot read the metric 3"):
        Evaluator(metrics=[3])  # type: ignore[list-item]


def test_what_is_undefined_is_none() -> None:
    evaluator = Evaluator(metrics=["ndcg@3", "mrr"])
    assert evaluator.evaluate_ranking(["a"], {}) == {"ndcg@3": None, "mrr": None}
    assert evaluator.evaluate_ranking([], LABELS) == {"ndcg@3": 0.0, "mrr": 0.0}
    with pytest.raises(InputError, match="has no id"):
        evaluator.evaluate_ranking([object()], LABELS)


def test_err_needs_the_top_of_the_scale_never_that_of_the_query() -> None:
    with pytest.raises(ConfigurationError, match="max_grade"):
        Evaluator(metrics=["err@3"]).evaluate_ranking(["a"], LABELS)
    assert Evaluator(metrics=["err@3"], max_grade=4).evaluate_ranking(["a"], LABELS) == {"err@3": 7 / 16}


def test_two_rankings_are_compared() -> None:
    got = Evaluator(metrics=["mrr", "hit@1"]).compare_rankings(["x", "a"], ["a"], LABELS)
    assert got == {"mrr": MetricChange(0.5, 1.0, 0.5, 1.0), "hit@1": MetricChange(0.0, 1.0, 1.0, None)}


def as_kind(table: pa.Table, kind: str) -> Any:
    return {"arrow": table, "pandas": table.to_pandas(), "polars": pl.from_arrow(table)}[kind]


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_tables_of_any_kind_give_the_same_numbers_in_their_own_kind(kind: str) -> None:
    case = random_case(5)
    rankings, labels = ranking_table({"s": case.run, "t": case.run}), label_table(case.labels)
    metrics = ["ndcg@5", "map", "rbp_residual", "kendall_tau"]
    expected = evaluate_tables(rankings, labels, metrics)
    got = evaluate_tables(as_kind(rankings, kind), as_kind(labels, kind), metrics)
    assert type(got) is type(as_kind(expected, kind))
    pd.testing.assert_frame_equal(pl.DataFrame(expected).to_pandas(), pl.DataFrame(got).to_pandas())


def test_every_system_has_a_row_for_every_labelled_query() -> None:
    rankings = ranking_table({"s": {"q1": {"a": 1.0}, "q3": {"a": 1.0}}, "t": {"q2": {"b": 1.0}}})
    labels = label_table({"q1": {"a": 1.0}, "q2": {"a": 1.0}})
    queries = pa.table({"query_id": ["q1", "q4"], "weight": [5.0, 2.0]})
    rows = evaluate_tables(rankings, labels, ["mrr"], queries=queries).to_pylist()
    got = {(row["system"], row["query_id"]): (row["mrr"], row["retrieved"], row["weight"]) for row in rows}
    assert got == {
        ("s", "q1"): (1.0, 1, 5.0),
        ("s", "q2"): (0.0, 0, 1.0),  # labelled, nothing returned
        ("s", "q3"): (None, 1, 1.0),  # ranked, never labelled
        ("s", "q4"): (None, 0, 2.0),  # listed only
        ("t", "q1"): (0.0, 0, 5.0),
        ("t", "q2"): (0.0, 1, 1.0),
        ("t", "q4"): (None, 0, 2.0),
    }


def test_ranks_win_over_scores_and_may_come_in_any_order() -> None:
    rankings = pa.table(
        {"query_id": ["q", "p", "q"], "doc_id": ["a", "a", "b"], "rank": [7, 0, 3], "score": [9.0, 1.0, 1.0]}
    )
    labels = label_table({"q": {"a": 1.0}, "p": {"a": 1.0}})
    assert per_query(evaluate_tables(rankings, labels, ["mrr"]))["q"]["mrr"] == 0.5
    by_score = evaluate_tables(rankings, labels, ["mrr"], conventions=Conventions(order="score"))
    assert per_query(by_score)["q"]["mrr"] == 1.0


def test_scores_decide_where_ranks_repeat() -> None:
    rankings = pa.table({"query_id": ["q"] * 2, "doc_id": ["b", "a"], "rank": [0, 0], "score": [1.0, 2.0]})
    row = per_query(evaluate_tables(rankings, label_table({"q": {"a": 1.0}}), ["mrr"]))["q"]
    assert (row["mrr"], row["tied"]) == (1.0, 0)


def test_whole_numbers_are_ids_too() -> None:
    rankings = pd.DataFrame({"query_id": [1, 1], "doc_id": [10, 9], "score": [1.0, 1.0]})
    labels = pd.DataFrame({"query_id": [1], "doc_id": [9], "grade": [1]})
    got = evaluate_tables(rankings, labels, ["mrr"])
    assert got["query_id"].tolist() == ["1"]
    assert got["mrr"].tolist() == [1.0]  # as text, "9" comes after "10", so it stands first


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=4), min_size=1, max_size=12, unique=True))
def test_ids_are_any_unicode_text(ids: list[str]) -> None:
    run = dict.fromkeys(ids, 1.0)
    labels = {ids[0]: 1.0}
    row = per_query(evaluate_tables(ranking_table({"s": {"\0": run}}), label_table({"\0": labels}), ["mrr"]))["\0"]
    place = sorted(ids, reverse=True).index(ids[0]) + 1  # Python compares text by code point
    assert row["mrr"] == pytest.approx(1 / place)
    by_score = Evaluator(metrics=["mrr"], conventions=Conventions(order="score"))
    items = [{"id": doc, "score": 1.0} for doc in ids]
    assert by_score.evaluate_ranking(items, labels) == {"mrr": pytest.approx(1 / place)}


def test_half_a_surrogate_pair_is_refused_in_words() -> None:
    rankings = pd.DataFrame({"query_id": ["q"], "doc_id": ["\ud800"], "score": [1.0]})
    with pytest.raises(InputError, match=r"rankings.doc_id holds text that is not Unicode"):
        evaluate_tables(rankings, pd.DataFrame({"query_id": ["q"], "doc_id": ["a"], "grade": [1]}))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"query_id": ["q"], "score": [1.0]}, "rankings has no column 'doc_id'"),
        ({"query_id": [None], "doc_id": ["a"], "score": [1.0]}, "rankings.query_id is empty in 1 rows"),
        ({"query_id": ["q"], "doc_id": ["a"], "score": [None]}, "1 rows with neither rank nor score"),
        ({"query_id": ["q"], "doc_id": ["a"], "score": ["high"]}, "rankings.score does not hold numbers"),
    ],
)
def test_a_table_that_cannot_be_read_is_named(broken: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate_tables(pa.table(broken), label_table({"q": {"a": 1.0}}))


def test_what_is_not_a_table_is_refused() -> None:
    with pytest.raises(InputError, match=r"labels is a builtins\.dict"):
        evaluate_tables(ranking_table({"s": {"q": {"a": 1.0}}}), {"q": {"a": 1}})


@pytest.mark.parametrize(
    ("items", "judgments", "message"),
    [
        (pd.DataFrame({"doc_id": ["a"]}), LABELS, r"a table is no ranking: give its ids, best first"),
        (pa.table({"doc_id": ["a"]}), LABELS, r"a table is no ranking"),
        (["a"], pd.DataFrame({"doc_id": ["a"], "grade": [1]}), r"a table is no mapping .*dict\(zip"),
        ([("a", 0.9), ("b", math.nan)], LABELS, r"a score is NaN: leave out what has no score"),
        (["a"], {"a": math.nan}, r"a grade is NaN: leave out what has no grade"),
        (["a"], {"a": math.inf}, r"the grade inf is not finite"),
    ],
)
def test_what_would_be_scored_as_something_else_is_refused(items: Any, judgments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Evaluator(metrics=["mrr"]).evaluate_ranking(items, judgments)


def test_one_metric_may_be_text_and_a_metric_is_no_cut_off() -> None:
    evaluator = Evaluator(metrics="ndcg@10")
    assert repr(evaluator) == "<Evaluator of ndcg@10>"
    names: Any = ["ndcg@10"]
    with pytest.raises(InputError, match=r"the cut-off 'ndcg@10' is not a whole number: name metrics as metrics="):
        Evaluator(names)
    number: Any = 10
    with pytest.raises(InputError, match=r"10 is no list of cut-offs: write \[10\]"):
        Evaluator(number)


def test_an_empty_grade_is_no_label_and_of_two_the_higher_counts() -> None:
    labels = pa.table({"query_id": ["q"] * 4, "doc_id": ["a", "b", "b", "c"], "grade": [None, 1.0, 3.0, 0.0]})
    row = per_query(evaluate_tables(ranking_table({"s": {"q": {"b": 1.0}}}), labels, ["dcg@1"]))["q"]
    assert (row["labelled"], row["relevant"], row["dcg_at_1"]) == (2, 1, 7.0)


def test_documents_and_decisions_reach_their_metrics() -> None:
    rankings = ranking_table({"s": {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}})
    documents = pa.table(
        {"doc_id": ["a", "b", "c", "z"], "category": ["x", "x", None, "y"], "popularity": [2.0, 4.0, None, 2.0]}
    )
    decisions = pa.table(
        {
            "system": ["s", "s"],
            "query_id": ["q", "r"],
            "expert": ["e", None],
            "optimal_expert": ["e", "e"],
            "retrieved": [True, False],
            "retrieval_needed": [True, False],
        }
    )
    metrics = ["subtopic_recall@3", "intra_list_diversity@3", "novelty@3", "routing_accuracy", "gate_efficiency"]
    table = evaluate_tables(
        rankings, label_table({"q": {"a": 1.0, "z": 1.0}}), metrics, documents=documents, decisions=decisions
    )
    rows = per_query(table)
    assert [rows["q"][parse_metric(name).key] for name in metrics] == [0.5, 0.0, 1.5, 1.0, 0.0]
    assert [rows["r"][parse_metric(name).key] for name in metrics[3:]] == [None, 1.0]


@given(st.integers(0, 2**32 - 1))
def test_one_ranking_and_whole_tables_agree(seed: int) -> None:
    case = random_case(seed, queries=6, longest=15)
    names = ["ndcg@5", "map", "err(gmax=4)@5", "rbp", "q_measure", "bpref", "kendall_tau", "judged@5"]
    rules = Conventions(order="score")
    table, single = case.evaluate(names, rules), Evaluator(metrics=names, conventions=rules)
    for query, labels in case.labels.items():
        items = [{"id": doc, "score": score} for doc, score in case.run.get(query, {}).items()]
        assert single.evaluate_ranking(items, labels) == {name: table[query][parse_metric(name).key] for name in names}


def test_the_rows_of_a_table_may_come_in_any_order() -> None:
    case = random_case(23, queries=50)
    rankings, labels = ranking_table({"s": case.run, "t": case.run}), label_table(case.labels)
    mixed = np.random.default_rng(1).permutation(rankings.num_rows)
    names = ["ndcg@5", "map", "bpref"]
    straight = evaluate_tables(rankings, labels, names).sort_by([("system", "ascending"), ("query_id", "ascending")])
    shuffled = evaluate_tables(rankings.take(pa.array(mixed)), labels, names)
    assert shuffled.sort_by([("system", "ascending"), ("query_id", "ascending")]).equals(straight)


def test_the_import_does_not_bring_spark_or_pandas() -> None:
    heavy = "{'pyspark', 'pandas', 'polars', 'mlflow', 'scipy'}"
    code = f"import sys, udfs.evaluator; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
