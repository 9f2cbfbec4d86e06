"""Documents with several subtopics: against ndeval, which reads diversity qrels, and examples worked by hand."""

from __future__ import annotations

import itertools
import math
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from udfs.evaluator import evaluate_tables
from udfs.metrics import intra_list_diversity as diversity

LETTERS = [f"d{n}" for n in range(14)]
MEASURES = {"alpha_ndcg": "alpha-nDCG", "subtopic_recall": "strec"}


def draw_worlds(worlds: int, topics: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Lists and judgments of many queries; each document has up to `topics` subtopics, or none."""
    random = np.random.default_rng(topics)
    lists, judged = [], []
    for query in map(str, range(worlds)):
        shown = random.permutation(LETTERS)[: random.integers(1, 15)]
        lists += [{"query_id": query, "doc_id": doc, "rank": at} for at, doc in enumerate(shown, start=1)]
        for doc in random.permutation(LETTERS)[: random.integers(3, 15)]:
            subtopics = random.permutation(topics)[: random.integers(0, topics + 1)].astype(str).tolist()
            judged.append({"query_id": query, "doc_id": doc, "grade": float(bool(subtopics)), "subtopics": subtopics})
    return pd.DataFrame(lists), pd.DataFrame(judged)


def ask_ndeval(rankings: pd.DataFrame, judgments: pd.DataFrame, measures: list[str]) -> dict[str, dict[str, float]]:
    import pyndeval

    judged = judgments.explode("subtopics").dropna(subset=["subtopics"])
    qrels = [pyndeval.SubtopicQrel(row.query_id, row.subtopics, row.doc_id, 1) for row in judged.itertuples()]
    lists = rankings.assign(score=-rankings["rank"])
    ranked = [pyndeval.ScoredDoc(row.query_id, row.doc_id, row.score) for row in lists.itertuples()]
    answers: dict[str, dict[str, float]] = pyndeval.ndeval(qrels, ranked, measures=measures)
    return answers


@pytest.mark.skipif(sys.platform != "linux", reason="pyndeval is built for Linux alone")
@pytest.mark.parametrize("topics", [1, 2, 4, 9])
def test_metrics_of_judged_subtopics_are_those_of_ndeval(topics: int) -> None:
    rankings, judgments = draw_worlds(200, topics)
    names = {f"{name}@{k}": f"{theirs}@{k}" for name, theirs in MEASURES.items() for k in (5, 10, 20)}
    expected = ask_ndeval(rankings, judgments, list(names.values()))
    ours = evaluate_tables(rankings, judgments, list(names)).set_index("query_id")
    compared = 0
    for query, values in expected.items():
        for name, theirs in names.items():
            key = name.replace("@", "_at_")
            if judgments[judgments["query_id"] == query]["grade"].any():
                assert ours.loc[query, key] == pytest.approx(values[theirs], abs=1e-9), (query, name)
                compared += 1
    assert compared > 1000


def test_categories_of_documents_are_subtopics_where_judges_gave_none() -> None:
    rankings, judgments = draw_worlds(1, 4)
    documents = judgments[["doc_id", "subtopics"]].rename(columns={"subtopics": "category"})
    metrics = [*(f"{name}@{k}" for name in MEASURES for k in (3, 10)), "alpha_ndcg(alpha=0.3)"]
    by_judges = evaluate_tables(rankings, judgments, metrics)
    by_catalogue = evaluate_tables(rankings, judgments.drop(columns="subtopics"), metrics, documents=documents)
    pd.testing.assert_frame_equal(by_judges, by_catalogue, check_exact=True)
    other = pa.table({"doc_id": documents["doc_id"].tolist(), "category": [["z"]] * len(documents)})
    both = evaluate_tables(rankings, judgments, metrics, documents=other)
    pd.testing.assert_frame_equal(by_judges, both, check_exact=True)  # what judges say goes first
    assert 0 < by_judges["subtopic_recall_at_3"][0] < 1


def test_the_ideal_of_several_subtopics_by_hand() -> None:
    # Greedy: c (a, b, c), then the largest id among equals, b (b), then a (a). Shown: a, c.
    labels = pd.DataFrame(
        {
            "query_id": ["q"] * 3,
            "doc_id": ["a", "b", "c"],
            "grade": [1.0] * 3,
            "subtopics": [["a", "a"], ["b", None], ["c", "b", "a"]],
        }
    )
    lists = pd.DataFrame({"query_id": ["q"] * 2, "doc_id": ["a", "c"], "rank": [1, 2]})
    got = evaluate_tables(lists, labels, ["alpha_ndcg", "subtopic_recall@1"])
    ideal = 3 + 0.5 / math.log2(3) + 0.5 / 2
    assert got["alpha_ndcg"][0] == pytest.approx((1 + 2.5 / math.log2(3)) / ideal, abs=1e-12)
    assert got["subtopic_recall_at_1"][0] == pytest.approx(1 / 3)


@pytest.mark.parametrize("limit", [diversity.PAIRS_AT_ONCE, 3])
def test_pairs_are_alike_where_they_share_a_category(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diversity, "PAIRS_AT_ONCE", limit)
    rankings, _ = draw_worlds(30, 1)
    random = np.random.default_rng(5)
    category = {doc: random.permutation(list("uvwxyz"))[: random.integers(0, 4)].tolist() for doc in LETTERS}
    documents = pa.table({"doc_id": LETTERS, "category": [category[doc] for doc in LETTERS]})
    labels = pd.DataFrame({"query_id": ["0"], "doc_id": ["d1"], "grade": [1.0]})
    got = evaluate_tables(rankings, labels, ["intra_list_diversity@6"], documents=documents)
    expected = []
    for query in got["query_id"]:
        shown = rankings[(rankings["query_id"] == query) & (rankings["rank"] <= 6)]["doc_id"]
        pairs = list(itertools.combinations([set(category[doc]) for doc in shown if category[doc]], 2))
        expected.append(sum(one.isdisjoint(two) for one, two in pairs) / len(pairs) if pairs else math.nan)
    np.testing.assert_allclose(got["intra_list_diversity_at_6"], expected, atol=1e-12)
    assert len(set(expected)) > 10


def test_one_category_in_an_array_is_the_same_as_text() -> None:
    rankings, judgments = draw_worlds(20, 1)
    random = np.random.default_rng(2)
    text = random.choice(np.array(["x", "y", "z"]), len(LETTERS))
    metrics = ["alpha_ndcg@5", "subtopic_recall@5", "intra_list_diversity@5"]
    single, arrays = (
        evaluate_tables(
            rankings,
            judgments[["query_id", "doc_id", "grade"]],
            metrics,
            documents=pa.table({"doc_id": LETTERS, "category": each}),
        )
        for each in (text.tolist(), [[value] for value in text])
    )
    pd.testing.assert_frame_equal(single, arrays, check_exact=True)
