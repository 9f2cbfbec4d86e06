"""How metrics are written."""

import pytest

from schemas.errors import ConfigurationError
from udfs.registry import parse_metric, parse_metrics


@pytest.mark.parametrize(
    ("written", "name", "key"),
    [
        ("ndcg@10", "ndcg@10", "ndcg_at_10"),
        (" nDCG @ 10 ", "ndcg@10", "ndcg_at_10"),
        ("ndcg(gain=exp2)@10", "ndcg@10", "ndcg_at_10"),
        ("ndcg( gain = linear )@10", "ndcg(gain=linear)@10", "ndcg_gain_linear_at_10"),
        ("recall(rel=2)@100", "recall(rel=2)@100", "recall_rel_2_at_100"),
        ("recall(rel=0.5,cap=true)@5", "recall(rel=0.5,cap=true)@5", "recall_rel_0_5_cap_true_at_5"),
        ("recall(cap=true,rel=0.5)@5", "recall(rel=0.5,cap=true)@5", "recall_rel_0_5_cap_true_at_5"),
        ("ndcg(judged_only=true)", "ndcg(judged_only=true)", "ndcg_judged_only_true"),
    ],
)
def test_a_metric_has_one_canonical_name_and_key(written: str, name: str, key: str) -> None:
    spec = parse_metric(written)
    assert (spec.name, spec.key) == (name, key)
    assert parse_metric(spec.name) == spec


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("ndgc@10", "unknown metric 'ndgc@10': did you mean 'ndcg@10'? Known: "),
        ("ndcg(gian=linear)@10", "unknown parameter 'gian' in 'ndcg(gian=linear)@10': did you mean 'gain'?"),
        ("ndcg(gain=lineal)", "'lineal' is not a value of gain"),
        ("recall(cap=maybe)@3", "use true or false"),
        ("recall(rel=high)", "use a number"),
        ("ndcg(linear)", "write parameter=value"),
        ("ndcg@0", "cut-offs start at 1"),
        ("ndcg at ten", "cannot read the metric"),
        ("", "cannot read the metric"),
    ],
)
def test_what_cannot_be_read_is_answered_with_what_could(written: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_metric(written)
    assert message in str(caught.value)


def test_a_metric_asked_for_twice_is_computed_once() -> None:
    assert [spec.name for spec in parse_metrics(["ndcg@5", "ndcg(gain=exp2)@5", "recall@5"])] == ["ndcg@5", "recall@5"]
