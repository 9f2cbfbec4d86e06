"""Values that were worked out by hand; several are printed wrongly in widely read tutorials."""

import pytest

from tests.helpers.cases import block_of, value
from udfs.compute import compute_metrics
from udfs.conventions import Conventions
from udfs.registry import parse_metrics

LINEAR = "ndcg(gain=linear)"


@pytest.mark.parametrize(
    ("ranked", "labels", "metric", "expected"),
    [
        *[([1, 0.5, 0], [1, 0.5, 0], f"{LINEAR}@{k}", 1.0) for k in (1, 3, 5, 10)],
        ([0.5, 1, 0], [1, 0.5, 0], f"{LINEAR}@1", 0.5),
        ([0.5, 1, 0], [1, 0.5, 0], f"{LINEAR}@3", 0.8597),
        ([2, 0, 3, 2, 1], [3, 2, 2, 1], f"{LINEAR}@5", 0.8341),
        ([2, 0, 3, 2, 1], [3, 2, 2, 1], "ndcg@5", 0.7557),
        ([3, 0, 0, 2, 0, 2, 0, 1], [3, 2, 2, 1, 1], f"{LINEAR}@5", 0.6352),
        ([3, 0, 0, 2, 0, 2, 0, 1], [3, 2, 2, 1, 1], f"{LINEAR}@10", 0.8042),
        ([3, 0, 0, 2, 0, 2, 0, 1], [3, 2, 2, 1, 1], "precision@5", 0.4),
        ([3, 0, 0, 2, 0, 2, 0, 1], [3, 2, 2, 1, 1], "recall@5", 0.4),
        ([3, 0, 0, 2, 0, 2, 0, 1], [3, 2, 2, 1, 1], "precision@10", 0.4),
        ([3, 0, 0, 2, 0, 2, 0, 1], [3, 2, 2, 1, 1], "recall@10", 0.8),
        ([3, 0, 2, 1], [3, 2, 1, 0], f"{LINEAR}@4", 0.9305),
        ([3, 0, 2, 1], [3, 2, 1, 0], "ndcg@4", 0.9508),
        ([0, 1, 0, 1], [1, 1, 1], "ndcg@4", 0.4982),
        ([0, 1, 0, 1], [1, 1, 1], "mrr", 0.5),
        ([0, 1, 0, 1], [1, 1, 1], "hit@1", 0.0),
        ([0, 1, 0, 1], [1, 1, 1], "hit@2", 1.0),
        ([1, 0, 1, 0, 1], [1, 1, 1], "map@5", 0.7556),
    ],
)
def test_the_known_value(ranked: list[float], labels: list[float], metric: str, expected: float) -> None:
    assert value(metric, ranked, labels) == pytest.approx(expected, abs=5e-5)


def test_the_mean_reciprocal_rank_of_three_queries() -> None:
    block = block_of([[1, 0, 0], [0, 0, 1], [0, 0, 0]], [[1, 0, 0], [1, 0, 0], [1, 0, 0]])
    values = compute_metrics(block, parse_metrics(["mrr"]), Conventions())["mrr"]
    assert values.mean() == pytest.approx(0.4444, abs=5e-5)


@pytest.mark.parametrize(
    ("metric", "ranked", "labels", "expected"),
    [
        ("recall(cap=true)@2", [1, 1, 0], [1, 1, 1], 1.0),
        ("precision(over=retrieved)@10", [1, 0], [1], 0.5),
        ("precision", [1, 0, 1, 0], [1, 1], 0.5),
        ("f1@2", [1, 0], [1, 1, 1], 0.4),  # P = 1/2, R = 1/3
        ("f1", [0, 0], [1], 0.0),
        ("rprec", [1, 0, 1], [1, 1], 0.5),
        ("map(norm=cut)@2", [1, 1], [1, 1, 1], 1.0),
        ("map@2", [1, 1], [1, 1, 1], 2 / 3),
        ("mrr@2", [0, 0, 1], [1], 0.0),
        ("recall(rel=2)@3", [1, 2, 0], [2, 3, 1], 0.5),
        ("rbp(p=0.5)", [1, 0, 1], [1, 1], 0.5 + 0.125),
        ("rbp(p=0.5,graded=true,gmax=4)", [2, 0, 4], [2, 4], 0.25 + 0.125),
        ("rbp_residual(p=0.5)", [1, None, 0], [1, 0], 0.25 + 0.125),
        ("rbp_residual(p=0.5)@1", [1, None, 0], [1, 0], 0.5),
        ("judged@3", [1, None], [1, 0], 0.5),
        ("kendall_tau", [3, 2, 1], [3, 2, 1], 1.0),
        ("kendall_tau", [1, 2, 3], [3, 2, 1], -1.0),
        ("kendall_tau(variant=a)", [2, 1, 1], [2, 1, 1], 2 / 3),
        ("kendall_tau", [2, 1, 1], [2, 1, 1], 2 / 6**0.5),
        ("dcg@2", [3, 3], [3, 3], 7 + 7 / 1.584962500721156),
        # Relevant at ranks 1 and 4 of R = 2, N = 3 judged not relevant, two of them above rank 4.
        ("bpref", [1, 0, 0, 1], [1, 1, 0, 0, 0], 0.5),
        ("bpref", [1, None, 0, 1], [1, 1, 0, 0], 0.75),
    ],
)
def test_a_value_by_hand(metric: str, ranked: list[float], labels: list[float], expected: float) -> None:
    assert value(metric, ranked, labels) == pytest.approx(expected, abs=1e-12)
