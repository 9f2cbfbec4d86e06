"""The gate: every verdict with its reason, and what is refused before a run begins."""

import math
from typing import Any

import pytest
from scipy import stats

from jobs.evaluate import require_gate
from pipelines.comparison.deciding import LogExposure
from pipelines.comparison.gate import judge_conditions
from pipelines.comparison.verdicts import Verdict
from pipelines.config.model import Config
from pipelines.warehouse.runs import Manifest
from schemas.errors import GateError

INPUTS = {"rankings": {"path": "r"}, "judgments": {"path": "j"}, "queries": {"path": "q"}}


def config(*gate: dict[str, Any], **changes: Any) -> Config:
    values = {
        "inputs": INPUTS,
        "metrics": ["ndcg@10", "judged@10"],
        "segments": ["device"],
        "compare": {"baseline": "old"},
        "gate": list(gate),
    }
    return Config.model_validate(values | changes)


def row(**values: Any) -> dict[str, Any]:
    """The comparison of `new` with `old`: delta −.002 ± .001 over 400 queries, on a baseline of .5."""
    usual = {"baseline": "old", "candidate": "new", "segment": "all", "value": "all", "metric": "ndcg_at_10"}
    numbers = {"delta": -0.002, "stderr": 0.001, "degrees": 399.0, "queries": 400}
    return usual | numbers | {"relative": -0.004, "relative_stderr": 0.002, "macro": 0.498} | values


def one(condition: dict[str, Any], *rows: dict[str, Any], behaviour: bool = False) -> Verdict:
    (verdict,) = judge_conditions(rows, config(condition), ("new", "old"), behaviour=behaviour)
    return verdict


@pytest.mark.parametrize(
    ("demand", "verdict"),
    [
        ({"drop": 0.0037}, "pass"),  # the bound is −.002 − 1.6487 · .001 = −.00365
        ({"drop": 0.0036}, "fail"),
        ({"relative_drop": 0.0074}, "pass"),  # −.004 − 1.6487 · .002 = −.0073
        ({"relative_drop": 0.0072}, "fail"),
        ({"superiority": True}, "fail"),
        ({"drop": 0.0}, "fail"),
    ],
)
def test_the_whole_interval_must_lie_above_the_tolerated_drop(demand: dict[str, Any], verdict: str) -> None:
    assert one({"metric": "ndcg@10", **demand}, row()).verdict == verdict


def test_a_better_candidate_passes_superiority_and_the_reason_has_the_figures() -> None:
    verdict = one({"metric": "ndcg@10", "superiority": True}, row(delta=0.01))
    bound = 0.01 - stats.t.ppf(0.95, 399) * 0.001
    assert verdict.verdict == "pass"
    assert verdict.reason == f"delta +0.0100, its 95 % lower bound {bound:+.4f} is above 0, 400 queries"


def test_too_few_queries_are_undecidable() -> None:
    verdict = one({"metric": "ndcg@10", "drop": 0.1}, row(queries=99))
    assert (verdict.verdict, verdict.reason) == ("undecidable", "99 queries, fewer than min_queries = 100")
    assert one({"metric": "ndcg@10", "drop": 0.1}).reason == "0 queries, fewer than min_queries = 100"


def test_a_gate_without_a_candidate_does_not_pass() -> None:
    (verdict,) = judge_conditions([], config({"metric": "ndcg@10", "drop": 0.1}), ("old",), behaviour=False)
    assert (verdict.verdict, verdict.candidate) == ("undecidable", "(any)")
    assert verdict.reason == "0 queries, fewer than min_queries = 100"


def test_too_little_judged_is_undecidable() -> None:
    judged = row(baseline=None, metric="judged_at_10", macro=0.55)
    verdict = one({"metric": "ndcg@10", "drop": 0.1, "min_judged": 0.7}, row(), judged)
    assert (verdict.verdict, verdict.reason) == ("undecidable", "mean judged is 0.550, below min_judged = 0.7")


@pytest.mark.parametrize(("target", "verdict"), [(0.49, "pass"), (0.4975, "fail")])
@pytest.mark.parametrize("behaviour", [False, True])
def test_an_absolute_target_is_warned_of_on_behaviour_labels(target: float, verdict: str, behaviour: bool) -> None:
    verdict_on_target = one({"metric": "ndcg@10", "at_least": target}, row(baseline=None), behaviour=behaviour)
    assert verdict_on_target.verdict == verdict
    assert ("misleads" in verdict_on_target.warning) == behaviour


def test_a_segment_is_judged_value_by_value() -> None:
    rows = [row(segment="device", value=value, delta=delta) for value, delta in (("ios", -0.1), ("web", 0.1))]
    verdicts = judge_conditions(
        rows, config({"metric": "ndcg@10", "segment": "device", "drop": 0.01}), ("new", "old"), behaviour=False
    )
    assert [(v.value, v.verdict) for v in verdicts] == [("ios", "fail"), ("web", "pass")]
    named = config({"metric": "ndcg@10", "segment": "device", "value": "web", "drop": 0.01})
    assert [v.verdict for v in judge_conditions(rows, named, ("new", "old"), behaviour=False)] == ["pass"]


@pytest.mark.parametrize(
    ("condition", "changes", "message"),
    [
        (
            {"metric": "mrr@10", "drop": 0.1},
            {},
            r"gate\[0\] is about 'mrr@10', which is not computed: add it to metrics",
        ),
        ({"metric": "ndcg@10", "drop": 0.1, "segment": "devise"}, {}, "did you mean 'device'"),
        ({"metric": "ndcg@10", "drop": 0.1}, {"compare": {}}, "set compare.baseline"),
        ({"metric": "ndcg@10"}, {}, "exactly one of drop"),
        ({"metric": "ndcg@10", "drop": 0.1, "superiority": True}, {}, "exactly one of drop"),
        ({"metric": "ndcg@10", "drop": 0.1, "value": "ios"}, {}, "needs the segment"),
        (
            {"metric": "mrr", "drop": 0.1, "min_judged": 0.7},
            {"metrics": ["mrr"]},
            r"gate\[0\] has min_judged, but 'mrr' has no cutoff",
        ),
        ({"metric": "ndcg@10", "drop": 0.1, "candidate": "old"}, {}, "compares 'old' with itself"),
    ],
)
def test_a_gate_that_cannot_be_judged_is_a_configuration_error(
    condition: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        config(condition, **changes)


def test_a_gate_that_is_not_met_has_exit_code_6() -> None:
    failed = one({"metric": "ndcg@10", "superiority": True}, row())
    empty: Any = {"seconds": {}, "config": {}, "inputs": {}, "systems": (), "conventions": {}, "tables": {}}
    text = dict.fromkeys(("run", "key", "dt", "status", "committed_at", "config_hash", "code", "spark"), "x")
    require_gate(Manifest(**text, **empty))
    with pytest.raises(GateError, match=r"the gate fails, 1 of 1 conditions: .*better than baseline") as caught:
        require_gate(Manifest(**text, **empty, gate=(failed.model_dump(),)))
    assert caught.value.exit_code == 6


def hull_row(**values: Any) -> dict[str, Any]:
    """Two answers, +.04 and −.06, each ± .01, over 1,000 queries; half of the variance is from labels."""
    other = {"other": -0.06, "other_stderr": 0.01, "other_degrees": 999.0}
    relative = {"relative": 0.08, "relative_stderr": 0.02, "other_relative": -0.12, "other_relative_stderr": 0.02}
    rest = {"hull": True, "label_share": 0.5, "query_variance": 0.04, "queries": 1000}
    return row(delta=0.04, stderr=0.01, degrees=999.0, **other, **relative, **rest) | values


@pytest.mark.parametrize(
    ("demand", "verdict"),
    [
        ({"superiority": True}, "undecidable"),
        ({"drop": 0.05}, "undecidable"),
        ({"drop": 0.077}, "pass"),  # −.06 − 1.6464 · .01 = −.0765: the lower answer too
        ({"drop": 0.076}, "undecidable"),
        ({"relative_drop": 0.1}, "undecidable"),
        ({"relative_drop": 0.16}, "pass"),
    ],
)
def test_a_hull_that_contains_the_limit_decides_nothing(demand: dict[str, Any], verdict: str) -> None:
    assert one({"metric": "ndcg@10", **demand}, hull_row()).verdict == verdict


def test_a_hull_below_the_limit_fails() -> None:
    below = hull_row(delta=-0.04)
    assert one({"metric": "ndcg@10", "superiority": True}, below).verdict == "fail"
    assert one({"metric": "ndcg@10", "superiority": True}, below | {"hull": False}).verdict == "fail"


def test_without_a_hull_the_bound_alone_decides() -> None:
    assert one({"metric": "ndcg@10", "superiority": True}, hull_row(hull=None)).verdict == "pass"
    assert one({"metric": "ndcg@10", "superiority": True}, hull_row(hull=False, delta=0.01)).verdict == "fail"


def test_an_undecidable_condition_says_what_would_decide() -> None:
    condition = {"metric": "ndcg@10", "superiority": True}
    exposure = LogExposure(examinations=20.0, halving=40.0)
    (verdict,) = judge_conditions([hull_row()], config(condition), ("new", "old"), behaviour=True, exposure=exposure)
    assert "delta is +0.0400, or -0.0600 if the ranks of new say nothing" in verdict.reason
    # distance .04, z = 1.645 + .842, W = .00005; per query .04 + .1²: m = .05 / (.04²/z² − W + .05/1000)
    allowed = (0.04 / (stats.norm.ppf(0.95) + stats.norm.ppf(0.8))) ** 2 - 0.00005
    assert math.ceil(0.05 / (allowed + 0.05 / 1000) / 10) * 10 == 200
    # labels .00005 + .1²/4: the variance must fall by their ratio, at 10 % of 20 examinations over 10 documents a day
    days = 40 * ((0.00005 + 0.0025) / allowed - 1) / (0.1 * 20 / 10)
    assert math.ceil(days / 100) * 100 > 365
    assert verdict.reason.endswith("1,000 queries; about 200 judged queries would decide it")
    busy = judge_conditions(
        [hull_row()], config(condition), ("new", "old"), behaviour=True, exposure=LogExposure(2000.0, 40.0)
    )
    assert busy[0].reason.endswith(f"or about {math.ceil(days / 100)} days with 10% of the traffic would decide it")


def test_a_limit_that_not_even_judging_all_queries_could_tell_is_said() -> None:
    near = hull_row(other=0.03, delta=0.05, query_variance=0.5, stderr=0.2)
    text = one({"metric": "ndcg@10", "drop": 0.0}, near | {"other_stderr": 0.2}).reason
    assert text.endswith("even 1,000 judged queries might not decide it: the limit is too close to the answer")


def test_a_posterior_needs_two_queries_unless_more_are_set() -> None:
    log = {"rankings": {"path": "r"}, "impressions": {"path": "i"}, "interactions": {"path": "c"}}
    changes = {"inputs": log | {"queries": {"path": "q"}}, "conventions": {"unjudged": "posterior"}}
    for least, verdict in ((None, "pass"), (100, "undecidable")):
        condition = {"metric": "ndcg@10", "drop": 0.1} | ({} if least is None else {"min_queries": least})
        judged = judge_conditions([row(queries=50)], config(condition, **changes), ("new", "old"), behaviour=True)
        assert [each.verdict for each in judged] == [verdict]
