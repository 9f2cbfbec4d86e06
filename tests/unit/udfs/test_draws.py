"""Lists scored on drawn labels: each draw as a table of those labels would be, and means and spreads over draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from schemas.errors import InputError
from tests.helpers.drawn import (
    PLAN,
    POSTERIOR,
    Tables,
    collect,
    draw_tables,
    fit_labels,
    pack_evidence,
    unpack_evidence,
)
from udfs.collect import ListCollection
from udfs.compute import compute_draws, compute_metrics, compute_pools
from udfs.draws import NormalDraws, PosteriorDraws
from udfs.posterior.draw import CUTS
from udfs.ragged import Ints
from udfs.registry import METRICS, parse_metrics
from udfs.tables import hash_ids
from udfs.tabulate import average_draws, tabulate_metrics

LIST_METRICS = [
    *["ndcg@5", "ndcg", "ndcg(gain=linear)@3", "ndcg(judged_only=true)@5", "dcg@50", "recall@5", "recall(rel=2)@5"],
    *["recall(rel=0)@5", "precision@5", "precision(rel=1.5)@5", "f1@5", "hit@2", "mrr", "mrr(rel=2)@3", "map", "rprec"],
    *["bpref", "err@5", "rbp", "rbp(graded=true)", "q_measure@5", "kendall_tau", "alpha_ndcg@5", "subtopic_recall@5"],
]
UNCHANGED = ["judged@5", "unseen@5", "rbp_residual@5", "intra_list_diversity@5", "novelty@5"]
NOT_OF_LABELS = {"routing_accuracy", "gate_efficiency"}  # metrics of decisions


def keep_graded(tables: Tables) -> Tables:
    return tables[0], tables[1].filter(pc.is_valid(tables[1]["grade"])), tables[2]


def tabulate(collected: ListCollection, metrics: list[str], *, pooled: bool = False) -> dict[tuple[str, str], Any]:
    """The rows by system and query, with system a as the baseline."""
    baseline = collected.systems.to_pylist().index("a")
    specs = parse_metrics(metrics)
    columns = tabulate_metrics(collected, specs, POSTERIOR, baseline=baseline, pooled=pooled)
    return {(row["system"], row["query_id"]): row for row in pa.table(columns).to_pylist()}


def find_label_rows(collected: ListCollection, labels: pa.Table) -> Ints:
    """Per collected label, its row in the table."""
    ids = zip(labels["query_id"].to_pylist(), hash_ids(labels["doc_id"])[0], strict=True)
    row = {key: at for at, key in enumerate(ids)}
    queries = collected.queries.take(pa.array(collected.labels.queries.owner)).to_pylist()
    return np.array([row[key] for key in zip(queries, collected.labels.doc, strict=True)])


def test_every_list_metric_is_tried() -> None:
    tried = {spec.metric.name for spec in parse_metrics([*LIST_METRICS, *UNCHANGED])}
    assert tried | NOT_OF_LABELS == {name for name, metric in METRICS.items() if metric.scope == "list"}


@pytest.mark.parametrize("shift", [0.0, 0.25, -1.0])  # whole grades, real ones, negative ones
def test_each_draw_scores_as_a_table_of_its_grades_to_the_last_bit(shift: float) -> None:
    tables = keep_graded(draw_tables())
    collected = collect(tables, PosteriorDraws(fit_labels(tables[1]), CUTS))
    grades = np.random.default_rng(1).choice([0.0, 0.0, 1.0, 2.0, 3.0], (4, len(tables[1]))) + shift
    specs = parse_metrics([*LIST_METRICS, *UNCHANGED])
    ((_, block, _),) = collected.blocks()
    values, divisors = compute_draws(block, grades[:, find_label_rows(collected, tables[1])], specs, POSTERIOR)
    for draw in range(len(grades)):
        labels = tables[1].set_column(2, "grade", pa.array(grades[draw]))
        ((_, plain, _),) = collect((tables[0], labels, tables[2]), None).blocks()
        plain = replace(plain, row_data=dict(plain.row_data) | {"shown": block.row_data["shown"]})
        expected = compute_metrics(plain, specs, POSTERIOR)
        for place, spec in enumerate(specs):
            assert np.array_equal(values[place, draw], expected[spec.key], equal_nan=True), spec.name
            assert np.isfinite(values[place, draw]).any(), spec.name
        for key, expected_divisors in compute_pools(plain, specs, POSTERIOR).items():
            assert np.array_equal(divisors[key][draw], expected_divisors), key


def test_a_metric_is_the_mean_over_the_posterior_draws_with_its_spread() -> None:
    tables = draw_tables()
    prior = fit_labels(tables[1])
    assert prior.draw_sets == (("posterior", 6), ("main_effects", 6), ("own_factor_removed", 6))
    rows = tabulate(collect(tables, PosteriorDraws(prior, CUTS)), ["ndcg@5", "judged@5", "recall(rel=3)@5"])
    differ = 0
    for (system, query), row in rows.items():
        draws, base = (np.frombuffer(of["draws"], np.float32).reshape(2, 18)[:, :6] for of in (row, rows["a", query]))
        for key, own, against in zip(["ndcg_at_5", "recall_rel_3_at_5"], draws, base, strict=True):
            defined = own[~np.isnan(own)]
            if len(defined) < 2:
                assert row[f"{key}__sd"] is None
                assert (row[key] is None) == (len(defined) == 0)
                continue
            assert row[key] == pytest.approx(defined.mean(), abs=1e-6)
            assert row[f"{key}__sd"] == pytest.approx(defined.std(ddof=1), abs=1e-6)
            differ += 0 < len(defined) < 6
            difference = (own - against)[~np.isnan(own - against)]
            if system == "a":
                assert row[f"{key}__delta_sd"] is None
            elif len(difference) > 1:
                assert row[f"{key}__delta_sd"] == pytest.approx(difference.std(ddof=1), abs=1e-6)
        assert row["judged_at_5__sd"] == (0 if row["labelled"] else None)
        assert row["judged_at_5__delta_sd"] == (0 if row["labelled"] and system != "a" else None)
    assert differ, "no draw was undefined, so leaving it out was not tried"


def test_neither_the_order_of_rows_nor_the_queries_beside_matter() -> None:
    tables = draw_tables()
    draws, metrics = PosteriorDraws(fit_labels(tables[1]), CUTS), [*LIST_METRICS, *UNCHANGED]
    together = tabulate(collect(tables, draws), metrics, pooled=True)
    random = np.random.default_rng(2)
    apart: dict[tuple[str, str], Any] = {}
    for part in range(3):
        some = [pc.is_in(table["query_id"], pa.array([f"q{n}" for n in range(part, 40, 3)])) for table in tables[:2]]
        chosen = [table.filter(mask) for table, mask in zip(tables[:2], some, strict=True)]
        mixed = [table.take(random.permutation(len(table))) for table in chosen]
        apart |= tabulate(collect((mixed[0], mixed[1], tables[2]), draws), metrics, pooled=True)
    assert together.keys() == apart.keys()
    for key, row in together.items():
        for name, value in row.items():
            assert str(value) == str(apart[key][name]), (key, name)


def test_grades_that_people_fixed_score_as_judgments_do() -> None:
    tables = keep_graded(draw_tables())
    evidence = unpack_evidence(tables[1])
    evidence["fixed"], evidence["shown"] = tables[1]["grade"].to_numpy(), 1
    labels = tables[1].set_column(3, "evidence", pack_evidence(evidence))
    drawn = tabulate(collect((tables[0], labels, tables[2]), PosteriorDraws(fit_labels(tables[1]), CUTS)), LIST_METRICS)
    plain = tabulate(collect(tables, None), LIST_METRICS)
    for key, row in plain.items():
        assert row == {name: drawn[key][name] for name in row}
        assert drawn[key]["ndcg_at_5__sd"] in (0.0, None)


def test_documents_that_nobody_was_shown_are_not_judged_but_unseen() -> None:
    ranked = pa.table({"system": ["a"] * 4, "query_id": ["q"] * 4, "doc_id": list("abcd"), "rank": [1, 2, 3, 4]})
    codes = [0] * len(PLAN.factors)
    seen, hidden = (1, codes, 1.0, 5.0, 0.0, 0.2, 0.0, np.nan), (0, codes, 0.0, 0.0, 0.0, 0.2, 0.0, np.nan)
    evidence = pack_evidence([seen, hidden, hidden])
    labels = pa.table({"query_id": ["q"] * 3, "doc_id": list("abx"), "grade": [2.0, None, 1.0], "evidence": evidence})
    documents = pa.table({"doc_id": ["a"], "category": ["x"], "popularity": [1.0]})
    draws = PosteriorDraws(fit_labels(draw_tables()[1]), CUTS)
    row = tabulate(collect((ranked, labels, documents), draws), ["judged@3", "unseen@3", "ndcg(judged_only=true)@3"])[
        "a", "q"
    ]
    assert (row["judged"], row["labelled"]) == (1, 3)
    assert row["judged_at_3"] == pytest.approx(1 / 3)
    weights = 1 / np.log2(np.arange(1, 4) + 1)
    assert row["unseen_at_3"] == pytest.approx(weights[1:].sum() / weights.sum(), abs=1e-15)
    plain = tabulate(collect((ranked, labels, documents), None), ["judged@3", "unseen@3"])["a", "q"]
    assert (plain["labelled"], plain["judged"]) == (2, 1)


def test_human_grades_are_drawn_around_them_and_metrics_stay() -> None:
    tables = keep_graded(draw_tables(queries=200))
    spread = np.where(np.arange(len(tables[1])) % 3, 0.4, 0.0)
    labels = tables[1].set_column(3, "evidence", pa.array(spread))
    collected = collect((tables[0], labels, tables[2]), NormalDraws(draws=40, seed=1, max_grade=3.0))
    ((part, _, _),) = collected.blocks()
    grades, order = collected.draw_labels(part), find_label_rows(collected, labels)
    point, deviation = labels["grade"].to_numpy()[order], spread[order]
    assert np.array_equal(grades[:, deviation == 0], np.tile(point[deviation == 0], (40, 1)))
    middle = grades[:, (deviation > 0) & (point == 1)]
    assert middle.mean() == pytest.approx(1.0, abs=0.01)
    assert middle.std() == pytest.approx(0.4, abs=0.01)
    assert (grades.min(), grades.max()) == (0.0, 3.0)
    rows, plain = (tabulate(each, ["ndcg@5", "judged@5"]) for each in (collected, collect(tables, None)))
    for key, row in plain.items():
        assert row == {name: rows[key][name] for name in row}
    assert max(row["ndcg_at_5__sd"] or 0.0 for row in rows.values()) > 0.01


def test_the_mean_over_draws_is_the_same_with_and_without_lists_that_have_none() -> None:
    values = np.random.default_rng(1).random((30, 4, 200))
    beside = np.concatenate([values, np.full((30, 4, 1), np.nan)], axis=2)
    for alone, among in zip(average_draws(values), average_draws(beside), strict=True):
        assert np.array_equal(alone, among[:, :-1])


def test_draws_that_are_equal_have_that_mean_exactly() -> None:
    mean, spread = average_draws(np.full((30, 2), 0.1))
    assert (mean.tolist(), spread.tolist()) == ([0.1, 0.1], [0.0, 0.0])
    mean, spread = average_draws(np.array([[np.nan, np.nan, 1.0], [2.0, np.nan, np.nan], [4.0, np.nan, np.nan]]))
    assert mean[:1].tolist() == [3.0]
    assert mean[2] == 1.0
    assert spread[0] == pytest.approx(np.sqrt(2))
    assert np.isnan([mean[1], spread[1], spread[2]]).all()


def test_a_grade_without_evidence_is_an_error() -> None:
    tables = keep_graded(draw_tables())
    evidence = [None, *tables[1]["evidence"].to_pylist()[1:]]
    labels = tables[1].set_column(3, "evidence", pa.array(evidence, pa.binary()))
    with pytest.raises(InputError, match="evidence is empty in 1 rows"):
        collect((tables[0], labels, tables[2]), PosteriorDraws(fit_labels(tables[1]), CUTS))


def test_evidence_for_another_prior_is_an_error() -> None:
    tables = keep_graded(draw_tables())
    with pytest.raises(InputError, match="evidence must have 8 bytes in every row"):
        collect(tables, NormalDraws(draws=2, seed=0))


def test_lists_whose_queries_have_no_labels_are_undefined() -> None:
    rankings, labels, documents = draw_tables(queries=4)
    draws = PosteriorDraws(fit_labels(labels), CUTS)
    rows = tabulate(collect((rankings, labels.slice(0, 0), documents), draws), ["ndcg@5", "unseen@5"])
    assert {(row["ndcg_at_5"], row["ndcg_at_5__sd"], row["unseen_at_5"]) for row in rows.values()} == {
        (None, None, None)
    }
