"""Agreement with the libraries that people trust: trec_eval, ranx, cwl_eval, gdeval, scipy."""

from __future__ import annotations

import math

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from tests.helpers.cases import Case, block_of, random_case
from udfs.compute import compute_metrics
from udfs.conventions import Conventions
from udfs.registry import parse_metric, parse_metrics

TREC = Conventions(order="score_float32", no_relevant="zero", nothing_returned="skip", rel=1)
SHARED = {
    "ndcg(gain=linear)": "ndcg",
    "ndcg(gain=linear)@5": "ndcg_cut_5",
    "ndcg(gain=linear)@100": "ndcg_cut_100",
    "map": "map",
    "map@5": "map_cut_5",
    "map@30": "map_cut_30",
    "precision@5": "P_5",
    "precision@30": "P_30",
    "recall@5": "recall_5",
    "recall@100": "recall_100",
    "hit@1": "success_1",
    "hit@10": "success_10",
    "mrr": "recip_rank",
    "rprec": "Rprec",
    "bpref": "bpref",
    "precision": "set_P",
    "recall": "set_recall",
    "f1": "set_F",
}
seeds = st.integers(0, 2**32 - 1)


def check_against_trec_eval(case: Case) -> None:
    # trec_eval crashes on a query all of whose grades are negative, and on an empty list.
    case.labels = {query: grades for query, grades in case.labels.items() if max(grades.values()) >= 0}
    assert case.labels, "nothing would be compared"
    measures = {"ndcg", "ndcg_cut", "map", "map_cut", "P", "recall", "success", "recip_rank", "Rprec", "bpref"}
    judge = pytrec_eval.RelevanceEvaluator(case.labels, measures | {"set_P", "set_recall", "set_F"})
    theirs = judge.evaluate({query: docs for query, docs in case.run.items() if docs})
    ours = case.evaluate(list(SHARED), TREC)
    for query, expected in theirs.items():
        got = {name: ours[query][parse_metric(name).key] for name in SHARED}
        assert got == pytest.approx({name: expected[theirs] for name, theirs in SHARED.items()}, abs=1e-9)
    answered = {query for query, row in ours.items() if row["map"] is not None}
    assert answered == set(theirs)


@given(seeds)
def test_trec_eval_agrees_with_ties_and_negative_grades(seed: int) -> None:
    case = random_case(seed, lowest=-2)
    assume(any(max(grades.values()) >= 0 for grades in case.labels.values()))
    check_against_trec_eval(case)


def test_trec_eval_agrees_on_lists_of_thousands() -> None:
    check_against_trec_eval(random_case(7, queries=4, longest=5000))


def test_trec_eval_compares_scores_as_32_bit_floats() -> None:
    near = {"a": 1.0, "b": 1.0 + 1e-12, "c": 1.0 - 1e-12}
    check_against_trec_eval(Case({"q": near}, {"q": {"a": 1, "b": 0, "c": 2}}))


@pytest.mark.filterwarnings("ignore:.*unsafe cast from uint64 to int64")  # from the code of ranx
def test_ranx_agrees_on_exp2_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # to compile it takes a minute, to interpret it for this a second
    import ranx

    case = untied(random_case(17, queries=60, lowest=0, ids="d"))
    # ranx wants the same queries on both sides, and each with a relevant document.
    both = sorted(q for q in case.run if case.run[q] and any(case.labels.get(q, {}).values()))
    assert len(both) > 20
    run, qrels = ranx.Run({q: case.run[q] for q in both}), ranx.Qrels({q: case.labels[q] for q in both})
    theirs = ranx.evaluate(qrels, run, ["ndcg_burges@10"], return_mean=False)
    ours = case.evaluate(["ndcg@10"], Conventions())
    expected = dict(zip(run.keys(), np.ravel(theirs), strict=True))
    assert {q: ours[q]["ndcg_at_10"] for q in both} == pytest.approx(expected, abs=1e-9)


def measured(case: Case, measure: ir_measures.Measure) -> dict[str, float]:
    qrels = [ir_measures.Qrel(q, d, g) for q, docs in case.labels.items() for d, g in docs.items()]
    run = [ir_measures.ScoredDoc(q, d, s) for q, docs in case.run.items() for d, s in docs.items()]
    return {result.query_id: result.value for result in ir_measures.iter_calc([measure], qrels, run)}


def untied(case: Case) -> Case:
    for docs in case.run.values():
        for place, doc in enumerate(sorted(docs, key=lambda doc: (-docs[doc], doc))):
            docs[doc] = float(len(docs) - place)
    return case


@pytest.mark.parametrize("p", [0.5, 0.8, 0.95])
def test_cwl_eval_agrees_on_rank_biased_precision(p: float) -> None:
    case = untied(random_case(11, lowest=0, ids="d"))
    theirs = measured(case, ir_measures.RBP(p=p, rel=1))
    ours = case.evaluate([f"rbp(p={p})"], Conventions(no_relevant="zero"))
    answered = {query: expected for query, expected in theirs.items() if case.run.get(query)}
    assert len(answered) > 10
    assert {q: ours[q][parse_metric(f"rbp(p={p})").key] for q in answered} == pytest.approx(answered, abs=1e-9)


@pytest.mark.parametrize("k", [3, 10])
def test_ir_measures_agrees_on_the_mean_share_of_judged_documents(k: int) -> None:
    case = untied(random_case(19, lowest=0, ids="d"))
    case.run |= {f"unlabelled{n}": {"d1": 1.0} for n in range(200)}  # they must not lower the mean
    qrels = [ir_measures.Qrel(q, d, g) for q, docs in case.labels.items() for d, g in docs.items()]
    run = [ir_measures.ScoredDoc(q, d, s) for q, docs in case.run.items() for d, s in docs.items()]
    expected = ir_measures.calc_aggregate([ir_measures.Judged @ k], qrels, run)[ir_measures.Judged @ k]
    rows = case.evaluate([f"judged@{k}", "ndcg@10", "rbp_residual"], Conventions(no_relevant="zero")).values()
    shares = [row[f"judged_at_{k}"] for row in rows]
    assert np.mean([share for share in shares if share is not None]) == pytest.approx(expected, abs=1e-12)
    for name in (f"judged_at_{k}", "rbp_residual"):
        assert [row[name] is None for row in rows] == [row["ndcg_at_10"] is None for row in rows]


def test_gdeval_agrees_on_expected_reciprocal_rank() -> None:
    case = untied(random_case(13, lowest=0, ids="d"))
    case.run = {query[1:]: docs for query, docs in case.run.items()}  # it takes numbers for queries
    case.labels = {query[1:]: docs for query, docs in case.labels.items()}
    theirs = {q: v for q, v in measured(case, ir_measures.ERR @ 10).items() if case.run.get(q)}
    ours = case.evaluate(["err(gmax=4)@10"], Conventions(no_relevant="zero"))
    assert len(theirs) > 10
    assert {q: ours[q]["err_gmax_4_at_10"] for q in theirs} == pytest.approx(theirs, abs=1e-5)


@given(st.lists(st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 2.0]), max_size=40), min_size=1, max_size=8))
def test_scipy_agrees_on_kendall_tau(lists: list[list[float]]) -> None:
    ours = compute_metrics(block_of(lists, lists), parse_metrics(["kendall_tau"]), Conventions())["kendall_tau"]
    for grades, got in zip(lists, ours, strict=True):
        if len(set(grades)) < 2:
            assert math.isnan(got)
        else:
            expected = stats.kendalltau(-np.arange(len(grades)), grades).statistic
            assert got == pytest.approx(expected, abs=1e-9)
