"""The edges of every metric: each convention, by its default and by its other value."""

from __future__ import annotations

import math

import numpy as np
import pytest

from schemas.errors import ConfigurationError, DataQualityError
from tests.helpers.cases import block_of, label_table, per_query, ranking_table, value
from udfs.compute import compute_metrics, compute_pools
from udfs.conventions import Conventions
from udfs.evaluator import evaluate_tables
from udfs.registry import METRICS, parse_metrics

RELEVANCE = ["ndcg@5", "dcg@5", "recall@5", "precision@5", "f1@5", "rprec", "hit@5", "bpref", "mrr", "map", "err@5"]
RELEVANCE += ["rbp", "q_measure"]
ZERO = Conventions(no_relevant="zero", max_grade=3)
DEFAULT = Conventions(max_grade=3)


@pytest.mark.parametrize("metric", RELEVANCE)
def test_a_query_without_relevant_documents_is_undefined_or_0(metric: str) -> None:
    assert math.isnan(value(metric, [0, None], [0, 0], DEFAULT))
    assert value(metric, [0, None], [0, 0], ZERO) == 0.0


@pytest.mark.parametrize("metric", RELEVANCE)
def test_a_query_that_was_never_labelled_is_undefined_whatever_the_convention(metric: str) -> None:
    assert math.isnan(value(metric, [None, None], [], DEFAULT))
    assert math.isnan(value(metric, [None, None], [], ZERO))


@pytest.mark.parametrize("metric", RELEVANCE)
def test_an_empty_list_scores_0_or_is_left_out(metric: str) -> None:
    assert value(metric, [], [1, 0], DEFAULT) == 0.0
    assert math.isnan(value(metric, [], [1, 0], Conventions(nothing_returned="skip", max_grade=3)))


def test_what_is_known_of_an_empty_list() -> None:
    assert value("judged@5", [], [1]) == 0.0
    assert value("rbp_residual", [], [1]) == 1.0
    assert math.isnan(value("kendall_tau", [], [1, 2]))


def test_kendall_tau_needs_two_labelled_documents_that_differ() -> None:
    assert math.isnan(value("kendall_tau", [1, None], [1]))
    assert math.isnan(value("kendall_tau", [1, 1], [1, 1]))
    assert value("kendall_tau(variant=a)", [1, 1], [1, 1]) == 0.0


def test_precision_divides_by_k_even_if_the_list_is_shorter() -> None:
    assert value("precision@10", [1, 1], [1, 1]) == pytest.approx(0.2)
    assert value("ndcg@10", [1, 1], [1, 1]) == 1.0


def test_an_unjudged_document_counts_as_0_or_is_taken_out() -> None:
    ranked, labels = [None, 1, None, 1], [1, 1]
    assert value("precision@2", ranked, labels) == 0.5
    assert value("precision(judged_only=true)@2", ranked, labels) == 1.0
    assert value("precision@2", ranked, labels, Conventions(unjudged="condense")) == 1.0
    assert value("mrr@2", ranked, labels, Conventions(unjudged="cut_then_condense")) == 1.0
    assert value("hit@1", ranked, labels) == 0.0


def test_cut_then_condense_moves_nothing_up_from_below_k() -> None:
    rule = Conventions(unjudged="cut_then_condense")
    assert value("recall@2", [None, 1, 1], [1, 1], rule) == 0.5
    assert math.isnan(value("recall@1", [None, 1], [1], rule))  # no judged document in the top 1: null, never 0
    assert value("recall(judged_only=true)@1", [None, 1], [1], rule) == 1.0  # the metric's parameter wins


def test_judged_and_the_residual_always_see_the_whole_list() -> None:
    rule = Conventions(unjudged="condense")
    assert value("judged@2", [None, 1], [1], rule) == 0.5
    assert value("rbp_residual(p=0.5)", [None, 1], [1], rule) == pytest.approx(0.5 + 0.25)
    with pytest.raises(ConfigurationError, match="unknown parameter 'judged_only'"):
        parse_metrics(["judged(judged_only=true)@5"])


def test_every_other_metric_of_a_list_takes_judged_only() -> None:
    lists = [m for m in METRICS.values() if m.scope == "list" and "decisions" not in m.needs]
    assert {m.name for m in lists if not m.condensable} == {"judged", "rbp_residual", "unseen"}


def test_negative_grades_gain_nothing() -> None:
    assert value("ndcg@3", [-3, 1], [-3, 1]) == value("ndcg@3", [0, 1], [0, 1])
    assert value("err(gmax=3)@3", [-3, 1], [-3, 1]) == value("err(gmax=3)@3", [0, 1], [0, 1])


def test_grades_above_the_top_of_the_scale_count_as_the_top() -> None:
    assert value("err(gmax=2)", [9], [9]) == value("err(gmax=2)", [2], [2])
    assert value("rbp(graded=true,gmax=2)", [9], [9]) == value("rbp(graded=true,gmax=2)", [2], [2])


def test_the_top_of_the_scale_must_come_from_somewhere() -> None:
    with pytest.raises(ConfigurationError, match=r"top of the label scale is not known.*max_grade"):
        value("err@5", [1], [1])
    with pytest.raises(ConfigurationError, match="gmax=0 is not above 0"):
        value("err(gmax=0)@5", [1], [1])
    assert value("rbp", [1], [1]) == pytest.approx(0.2)  # binary: needs no scale
    assert value("err@5", [3], [3], DEFAULT) == pytest.approx(7 / 8)


def test_grades_beyond_60_are_refused_where_the_gain_is_exponential() -> None:
    for metric in ("ndcg@3", "dcg", "err@3"):
        with pytest.raises(DataQualityError, match=r"60"):
            value(metric, [75], [75], Conventions(max_grade=100))
    assert value("ndcg(gain=linear)@3", [75, 100], [75, 100]) == pytest.approx(
        (75 + 100 / np.log2(3)) / (100 + 75 / np.log2(3))
    )
    assert value("ndcg@1", [59, 60], [59, 60]) == pytest.approx(0.5)


def test_rel_is_the_run_s_unless_the_metric_says_otherwise() -> None:
    strict = Conventions(rel=2)
    assert value("mrr", [1, 2], [1, 2], strict) == 0.5
    assert value("mrr(rel=1)", [1, 2], [1, 2], strict) == 1.0
    assert math.isnan(value("mrr", [1], [1], strict))


def test_a_metric_of_documents_says_what_it_needs() -> None:
    with pytest.raises(
        ConfigurationError, match=r"alpha_ndcg needs subtopics.*documents with category, or judgments with subtopics"
    ):
        value("alpha_ndcg@5", [1], [1])
    with pytest.raises(ConfigurationError, match="rbo is not a metric of one ranked list"):
        value("rbo", [1], [1])


def rows(run: dict[str, float], labels: dict[str, float], **conventions: object) -> dict[str, float | None]:
    chosen = Conventions.model_validate(conventions)
    table = evaluate_tables(ranking_table({"s": {"q": run}}), label_table({"q": labels}), ["mrr"], conventions=chosen)
    return per_query(table)["q"]


def test_equal_scores_are_ordered_by_document_id() -> None:
    run, labels = {"a": 1.0, "b": 1.0, "é": 1.0}, {"a": 1.0}
    assert rows(run, labels)["mrr"] == pytest.approx(1 / 3)
    assert rows(run, labels)["tied"] == 2
    assert rows(run, labels, ties="doc_id_asc")["mrr"] == 1.0
    with pytest.raises(DataQualityError, match="1 lists have documents at the same place, for example s, query q"):
        rows(run, labels, ties="error")


def test_the_same_document_twice_keeps_its_best_place() -> None:
    rankings = ranking_table({"s": {"q": {"b": 3.0, "x": 2.0, "a": 1.0}}})
    rankings = rankings.set_column(2, "doc_id", [["b", "b", "a"]])
    labels = label_table({"q": {"a": 1.0}})
    row = per_query(evaluate_tables(rankings, labels, ["mrr"]))["q"]
    assert (row["mrr"], row["duplicates"], row["retrieved"]) == (0.5, 1, 2)
    with pytest.raises(DataQualityError, match="same document"):
        evaluate_tables(rankings, labels, ["mrr"], conventions=Conventions(duplicates="error"))


def test_all_metrics_of_an_empty_block_are_empty() -> None:
    for values in compute_metrics(block_of([], []), parse_metrics(RELEVANCE), DEFAULT).values():
        assert values.shape == (0,) and values.dtype == np.float64


OF_LISTS = [
    name for name, metric in METRICS.items() if metric.scope == "list" and not metric.needs and name != "unseen"
]


@pytest.mark.parametrize("name", OF_LISTS)
def test_a_depth_scores_lists_as_if_they_ended_there(name: str) -> None:
    """As `trec_eval -M`: for metrics without a cut-off, for those with a deeper one, and for their divisors."""
    written = (
        [name, f"{name}@4"]
        if METRICS[name].cutoff == "optional"
        else [name if METRICS[name].cutoff == "none" else f"{name}@4"]
    )
    specs = parse_metrics(written)
    grades = [0, 3, None, 2, 1, 0, 2]
    labels = [3, 2, 2, 1, 0, 0]
    whole, short = block_of([grades], [labels]), block_of([grades[:3]], [labels])
    deep = Conventions(max_grade=3, depth=3)
    for spec in specs:
        expected = compute_metrics(short, [spec], DEFAULT)[spec.key]
        assert compute_metrics(whole, [spec], deep)[spec.key].tolist() == pytest.approx(expected.tolist(), nan_ok=True)
        pools = [compute_pools(*of) for of in ((whole, [spec], deep), (short, [spec], DEFAULT))]
        assert [{key: divisor.tolist() for key, divisor in of.items()} for of in pools] == [
            {key: divisor.tolist() for key, divisor in pools[1].items()}
        ] * 2
