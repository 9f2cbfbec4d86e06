"""The arithmetic that `explain` shows is the arithmetic of the kernels."""

import numpy as np
import pytest

from jobs.explain import explain
from pipelines.explain import figures, ranking
from udfs.conventions import Conventions
from udfs.registry import parse, parse_all

LABELS = {"a": 3.0, "b": 1.0, "c": 0.0, "d": 2.0}


def test_a_list_stands_beside_its_ideal() -> None:
    lines = ranking(["c", "x", "a"], LABELS, Conventions(), parse("ndcg@3"))
    assert [(line.rank, line.doc_id, line.grade, line.gain) for line in lines] == [
        (1, "c", 0.0, 0.0),
        (2, "x", None, 0.0),
        (3, "a", 3.0, 7.0),
    ]
    assert [(line.ideal_doc, line.ideal_gain) for line in lines] == [("a", 7.0), ("d", 3.0), ("b", 1.0)]
    assert lines[2].earned == 3.5  # 7 / log2(4)


def test_figures_are_spelt_out() -> None:
    specs = parse_all(["ndcg@3", "recall@3", "precision@3", "mrr", "hit@1", "rbp"])
    found = {f.metric: f for f in figures(["c", "x", "a"], LABELS, Conventions(max_grade=3), specs)}
    assert found["ndcg@3"].how == "DCG = 7×0.5000 = 3.5000; / IDCG 9.3928"
    assert found["ndcg@3"].value == pytest.approx(3.5 / 9.3928, abs=1e-5)
    assert found["recall@3"].how == "1 relevant found / 3 relevant in all"
    assert found["precision@3"].how == "1 relevant / 3 places"
    assert found["mrr"].how == "1 / rank 3 of the first relevant"
    assert found["hit@1"].how == "no relevant document"
    assert "Σ" in found["rbp"].how  # too many terms to write down: its formula


@pytest.mark.parametrize("unjudged", ["zero", "condense", "cut_then_condense"])
@pytest.mark.parametrize("metric", ["ndcg@4", "ndcg(gain=linear)@4", "dcg@4", "ndcg"])
def test_the_terms_add_up_to_what_the_kernel_says(unjudged: str, metric: str) -> None:
    random = np.random.default_rng(3)
    conventions, spec = Conventions.model_validate({"unjudged": unjudged}), parse(metric)
    for _ in range(60):
        documents = [str(doc) for doc in random.permutation(9)]
        labels = {str(doc): float(random.integers(0, 4)) for doc in random.permutation(9)[:5]}
        docs = documents[: random.integers(1, 8)]
        lines = ranking(docs, labels, conventions, spec)
        (figure,) = figures(docs, labels, conventions, [spec])
        ideal = sum(line.ideal_earned for line in lines)
        if figure.value is not None:
            total = sum(line.earned for line in lines)
            assert figure.value == pytest.approx(total / ideal if spec.metric.name == "ndcg" else total)


@pytest.mark.parametrize(
    ("grade", "reason", "told"),
    [
        (0, "graded", "grade 0, its lift is below the first cut"),
        (3, "graded", "grade 3, its lift reaches the third cut"),
        (None, "too_little_evidence", "no grade, too few examinations or people; unjudged is not irrelevant"),
    ],
)
def test_a_label_says_how_it_came_about(grade: int | None, reason: str, told: str) -> None:
    counts = {"impressions": 16, "users": 15, "positions": 1, "examinations": 5.6, "clicks": 3, "carts": 0}
    rates = {"purchases": 0, "relevance": 0.4, "relevance_low": 0.1, "relevance_high": 0.8, "ctr": 0.1875}
    lifts = {"lift_click": 2.0, "lift_cart": None, "lift_purchase": 0.9}
    lines = explain({"query_id": "q", "doc_id": "d", "grade": grade, "reason": reason, **counts, **rates, **lifts})
    assert lines[0] == f"q / d: {told}"
    assert "to 15 people at 1 position; looked at about 5.6 times" in lines[1]
    assert lines[-1] == "  the query's own rate is 0.2000, so lift 2.00 by clicks, none by carts, 0.90 by purchases"
