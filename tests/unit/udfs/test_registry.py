"""The metrics that there are, and how those with parameters of their own are written."""

from __future__ import annotations

import pytest

from schemas.errors import ConfigurationError
from udfs.registry import METRICS, parse_metric


@pytest.mark.parametrize(
    ("written", "name", "key"),
    [
        (" NDCG ( gain = linear ) @ 10 ", "ndcg(gain=linear)@10", "ndcg_gain_linear_at_10"),
        ("recall(cap=TRUE, rel=2.0)@5", "recall(rel=2,cap=true)@5", "recall_rel_2_cap_true_at_5"),
        ("rbp(p=0.8)", "rbp", "rbp"),
        ("rbp(p=0.95)", "rbp(p=0.95)", "rbp_p_0_95"),
        ("rbp(p=0.1234567)", "rbp(p=0.1234567)", "rbp_p_0_1234567"),
        ("retention(from=100)@50", "retention(from=100)@50", "retention_from_100_at_50"),
        ("map(judged_only=true)", "map(judged_only=true)", "map_judged_only_true"),
        ("kendall_tau(variant=a)", "kendall_tau(variant=a)", "kendall_tau_variant_a"),
        ("mrr", "mrr", "mrr"),
    ],
)
def test_a_metric_has_one_name_and_one_key(written: str, name: str, key: str) -> None:
    spec = parse_metric(written)
    assert (spec.name, spec.key) == (name, key)
    assert parse_metric(spec.name) == spec


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("ndcg(gain=cubic)@10", r"'cubic' is not a value of gain in .* choose from exp2, linear"),
        ("rbp(p=2)", r"2 is out of range for p in .*: use 0 to 1"),
        ("rprec@10", r"it takes no cut-off"),
        ("retention", r"needs a cut-off: write retention@10"),
        ("ndcg@ten", r"cannot read the metric 'ndcg@ten'"),
    ],
)
def test_a_mistake_is_answered_with_what_would_be_right(written: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_metric(written)


def test_the_family_is_complete() -> None:
    expected = (
        "alpha_ndcg bpref catalog_coverage dcg err f1 gate_efficiency hit intra_list_diversity judged kendall_tau "
    )
    expected += "map mrr ndcg novelty precision q_measure rank_tau rbo rbp rbp_residual recall retention "
    assert list(METRICS) == [*expected.split(), "routing_accuracy", "rprec", "subtopic_recall", "unseen"]
