"""The arithmetic that `assay explain` shows is the arithmetic of the kernels."""

import numpy as np
import pytest

from jobs.explain import explain_label
from pipelines.scoring.explain import (
    DrawnLabel,
    explain_drawn_metrics,
    explain_drawn_ranking,
    explain_metrics,
    explain_ranking,
)
from udfs.conventions import Conventions
from udfs.registry import parse_metric, parse_metrics

LABELS = {"a": 3.0, "b": 1.0, "c": 0.0, "d": 2.0}


def test_a_list_stands_beside_its_ideal() -> None:
    lines = explain_ranking(["c", "x", "a"], LABELS, Conventions(), parse_metric("ndcg@3"), depth=9).lines
    listed = [line.document for line in lines if line.document]
    assert [(doc.doc_id, doc.grade, doc.gain) for doc in listed] == [("c", 0.0, 0.0), ("x", None, 0.0), ("a", 3.0, 7.0)]
    assert [(line.rank, line.ideal.doc_id, line.ideal.gain) for line in lines if line.ideal] == [
        (1, "a", 7.0),
        (2, "d", 3.0),
        (3, "b", 1.0),
    ]
    assert listed[2].discount == 0.5
    assert listed[2].adds == pytest.approx(3.5 / 9.3928, abs=1e-5)  # 7 / log2(4) / IDCG


def test_the_longer_of_list_and_ideal_is_shown_down_to_the_depth() -> None:
    docs = [f"d{n}" for n in range(1000)]
    ranking = explain_ranking(docs, LABELS, Conventions(), parse_metric("map"), depth=20)
    assert (len(ranking.lines), ranking.more) == (20, 980)
    assert [line.ideal is None for line in ranking.lines] == [False] * 4 + [True] * 16
    short = explain_ranking(["a"], LABELS, Conventions(), parse_metric("map@3"), depth=20)
    assert [line.document is None for line in short.lines] == [False, True, True]
    assert short.more == 0


@pytest.mark.parametrize(
    ("metric", "discounts"),
    [
        ("dcg", [1, 1 / np.log2(3), 1 / 2]),
        ("rbp(p=0.5)", [1 / 2, 1 / 4, 1 / 8]),
        ("mrr", [1, 1 / 2, 1 / 3]),
        ("map", [1 / 3, 1 / 6, 2 / 9]),  # precision at each rank, over 3 relevant documents
        ("err(gmax=3)", [1, 1 / 16, 1 / 24]),  # the reader goes on after "a" one time in eight
    ],
)
def test_each_metric_shows_its_own_discounts(metric: str, discounts: list[float]) -> None:
    lines = explain_ranking(["a", "x", "b"], LABELS, Conventions(), parse_metric(metric), depth=9).lines
    assert [line.document.discount for line in lines if line.document] == pytest.approx(discounts)


def test_figures_are_spelt_out() -> None:
    specs = parse_metrics(["ndcg@3", "recall@3", "precision@3", "mrr", "hit@1", "rbp"])
    figures = {f.metric: f for f in explain_metrics(["c", "x", "a"], LABELS, Conventions(max_grade=3), specs)}
    assert figures["ndcg@3"].how == "DCG = 7×0.5000 = 3.5000; / IDCG 9.3928"
    assert figures["ndcg@3"].value == pytest.approx(3.5 / 9.3928, abs=1e-5)
    assert figures["recall@3"].how == "1 relevant in the top k / 3 relevant documents"
    assert figures["precision@3"].how == "1 relevant in the top k / 3 places"
    assert figures["mrr"].how == "1 / rank 3 of the first relevant"
    assert figures["hit@1"].how == "no relevant document"
    assert "Σ" in figures["rbp"].how  # too many terms to write down: its formula


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("recall(cap=true)@2", "2 relevant in the top k / 2 relevant documents"),
        ("recall@2", "2 relevant in the top k / 3 relevant documents"),
        ("recall(rel=0)@2", "2 relevant in the top k / 4 relevant documents"),
        ("precision(over=retrieved)@10", "2 relevant in the top k / 3 places"),
        ("precision@10", "2 relevant in the top k / 10 places"),
        ("precision(judged_only=true,over=retrieved)@10", "2 relevant in the top k / 2 places"),
        ("rprec", "2 relevant in the top R / 3 relevant documents"),
        ("judged@3", "2 labelled in the top k / 3 documents in the top k"),
    ],
)
def test_the_printed_ratio_makes_the_printed_value(metric: str, expected: str) -> None:
    (figure,) = explain_metrics(["a", "b", "b", "x"], LABELS, Conventions(), [parse_metric(metric)])
    assert figure.how == expected
    numerator, divisor = (float(side.split()[0]) for side in figure.how.split(" / "))
    assert figure.value == pytest.approx(numerator / divisor)


def test_an_undefined_metric_has_no_numerator() -> None:
    (figure,) = explain_metrics(["x"], {}, Conventions(), [parse_metric("recall@3")])
    assert (figure.value, figure.how) == (None, "0 relevant in the top k / 0 relevant documents")


EVERY = [
    "ndcg@4",
    "ndcg(gain=linear)@4",
    "dcg@4",
    "ndcg",
    "rbp",
    "rbp(graded=true)@4",
    "err@4",
    "map",
    "map(norm=cut)@3",
]
EVERY += ["mrr@3", "precision@4", "recall@4", "hit@3", "f1@4", "rprec", "bpref", "q_measure@5", "judged@4"]


@pytest.mark.parametrize("unjudged", ["zero", "condense", "cut_then_condense"])
@pytest.mark.parametrize("metric", EVERY)
def test_what_ranks_add_and_their_terms_sum_to_the_value(unjudged: str, metric: str) -> None:
    random = np.random.default_rng(3)
    conventions, spec = Conventions.model_validate({"unjudged": unjudged, "max_grade": 3}), parse_metric(metric)
    defined = 0
    for _ in range(60):
        documents = [str(doc) for doc in random.permutation(9)]
        labels = {str(doc): float(random.integers(0, 4)) for doc in random.permutation(9)[:5]}
        docs = documents[: random.integers(1, 8)]
        lines = explain_ranking(docs, labels, conventions, spec, depth=9).lines
        (figure,) = explain_metrics(docs, labels, conventions, [spec])
        if figure.value is None:
            continue
        defined += 1
        listed = [line.document for line in lines if line.document]
        assert sum(document.adds or 0 for document in listed) == pytest.approx(figure.value)
        if spec.metric.terms is not None:
            total = sum((document.gain or 0) * (document.discount or 0) for document in listed)
            ideal = sum((line.ideal.gain or 0) * (line.ideal.discount or 0) for line in lines if line.ideal)
            assert total / (ideal if spec.metric.name == "ndcg" else 1) == pytest.approx(figure.value)
    assert defined > 30


def test_drawn_labels_are_explained_by_means_over_draws() -> None:
    """Against the kernel in every draw; a document without a label stays without one."""
    random = np.random.default_rng(5)
    conventions, specs = Conventions(unjudged="posterior"), parse_metrics(["ndcg@4", "dcg@4", "judged@4", "unseen@4"])
    docs = ["a", "x", "c", "b"]
    drawn = {doc: DrawnLabel(tuple(map(float, random.integers(0, 4, 8))), "behaviour") for doc in "abd"}
    drawn["c"] = DrawnLabel((0.0, 1.0) * 4, "prior")
    by_draw = [{doc: label.grades[draw] for doc, label in drawn.items()} for draw in range(8)]
    figures = {figure.metric: figure for figure in explain_drawn_metrics(docs, drawn, conventions, specs)}
    for spec in specs[:2]:
        values = [explain_metrics(docs, labels, conventions, [spec])[0].value or 0.0 for labels in by_draw]
        assert figures[spec.name].value == pytest.approx(np.mean(values), rel=1e-12)
        spread = np.std(values, ddof=1)
        assert figures[spec.name].how == f"mean over 8 draws of the grades, ± {spread:.4f}"
        ranking = explain_drawn_ranking(docs, drawn, conventions, spec, depth=9)
        listed = [line.document for line in ranking.lines if line.document is not None]
        assert sum(document.adds or 0.0 for document in listed) == pytest.approx(np.mean(values))
    assert figures["judged@4"].value == 0.5, "c and x were shown to nobody"
    discounts = 1 / np.log2(np.arange(2, 6))
    assert figures["unseen@4"].value == pytest.approx((discounts[1] + discounts[2]) / discounts.sum())
    assert [(document.grade, document.source) for document in listed[1:3]] == [(None, None), (0.5, "prior")]
    assert listed[2].spread == pytest.approx(np.std([0, 1] * 4, ddof=1))
    assert listed[2].gain == pytest.approx(0.5), "the mean of 2^grade − 1, not that of the mean grade"


def test_the_posterior_of_a_label_is_explained() -> None:
    posterior = {"query_id": "q", "doc_id": "d", "grade_mean": 0.5, "grade_sd": 0.6, "grade_draws": "0101", "lift": 0.8}
    rates = {"relevance": 0.1, "relevance_sd": 0.05, "source": "prior"}
    lines = explain_label({"query_id": "q", "doc_id": "d", "posterior": posterior | rates})
    assert lines == [
        "q / d: nobody was shown it; its posterior is the prior",
        "  posterior, from its ranks: grade 0.50 ± 0.60 over 4 draws; relevance 0.1000 ± 0.0500, lift 0.80 over the "
        "pool",
    ]


@pytest.mark.parametrize(
    ("grade", "reason", "text"),
    [
        (0, "graded", "grade 0, its lift is below the first cut"),
        (3, "graded", "grade 3, its lift reaches the third cut"),
        (None, "too_little_evidence", "no grade, too few examinations or people; unjudged is not irrelevant"),
    ],
)
def test_a_label_says_how_it_came_about(grade: int | None, reason: str, text: str) -> None:
    counts = {"impressions": 16, "users": 15, "positions": 1, "examinations": 5.6, "clicks": 3, "carts": 0}
    rates = {"purchases": 0, "relevance": 0.4, "relevance_low": 0.1, "relevance_high": 0.8, "ctr": 0.1875}
    lifts = {"lift_click": 2.0, "lift_cart": None, "lift_purchase": 0.9}
    lines = explain_label(
        {"query_id": "q", "doc_id": "d", "grade": grade, "reason": reason, **counts, **rates, **lifts}
    )
    assert lines[0] == f"q / d: {text}"
    assert "to 15 people at 1 position; examined about 5.6 times" in lines[1]
    assert (
        lines[-1] == "  the query's average is 0.2000, so the lift is 2.00 by clicks, none by carts, 0.90 by purchases"
    )
    chances = {f"p_grade_{grade}": chance for grade, chance in enumerate((0.5, 0.25, 0.15, 0.1))}
    row = {"query_id": "q", "doc_id": "d", "grade": grade, "reason": reason, **counts, **rates, **lifts, **chances}
    assert explain_label(row) == [*lines, "  probability of each grade: 0: 50%, 1: 25%, 2: 15%, 3: 10%"]
