"""The gate: every verdict with its reason, and what is refused before a run begins."""

from typing import Any

import pytest
from scipy import stats

from jobs.evaluate import refuse
from pipelines.config import Config
from pipelines.gate import Verdict, judge
from pipelines.runs import Manifest
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
    (verdict,) = judge(rows, config(condition), ("new", "old"), behaviour=behaviour)
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
    assert verdict.reason == f"delta +0.0100, its 0.95 lower bound {bound:+.4f} lies above +0.0000, 400 queries"


def test_too_few_queries_are_undecidable() -> None:
    verdict = one({"metric": "ndcg@10", "drop": 0.1}, row(queries=99))
    assert (verdict.verdict, verdict.reason) == ("undecidable", "99 queries, fewer than min_queries = 100")
    assert one({"metric": "ndcg@10", "drop": 0.1}).reason == "0 queries, fewer than min_queries = 100"


def test_a_gate_without_a_candidate_does_not_pass() -> None:
    (verdict,) = judge([], config({"metric": "ndcg@10", "drop": 0.1}), ("old",), behaviour=False)
    assert (verdict.verdict, verdict.candidate) == ("undecidable", "(any)")
    assert verdict.reason == "0 queries, fewer than min_queries = 100"


def test_too_little_judged_is_undecidable() -> None:
    judged = row(baseline=None, metric="judged_at_10", macro=0.55)
    verdict = one({"metric": "ndcg@10", "drop": 0.1, "min_judged": 0.7}, row(), judged)
    assert (verdict.verdict, verdict.reason) == ("undecidable", "mean judged is 0.550, below min_judged = 0.7")


@pytest.mark.parametrize(("target", "verdict"), [(0.49, "pass"), (0.4975, "fail")])
@pytest.mark.parametrize("behaviour", [False, True])
def test_an_absolute_target_is_warned_of_on_behaviour_labels(target: float, verdict: str, behaviour: bool) -> None:
    found = one({"metric": "ndcg@10", "at_least": target}, row(baseline=None), behaviour=behaviour)
    assert found.verdict == verdict
    assert ("misleads" in found.warning) == behaviour


def test_a_segment_is_judged_value_by_value() -> None:
    rows = [row(segment="device", value=value, delta=delta) for value, delta in (("ios", -0.1), ("web", 0.1))]
    found = judge(
        rows, config({"metric": "ndcg@10", "segment": "device", "drop": 0.01}), ("new", "old"), behaviour=False
    )
    assert [(v.value, v.verdict) for v in found] == [("ios", "fail"), ("web", "pass")]
    named = config({"metric": "ndcg@10", "segment": "device", "value": "web", "drop": 0.01})
    assert [v.verdict for v in judge(rows, named, ("new", "old"), behaviour=False)] == ["pass"]


@pytest.mark.parametrize(
    ("condition", "changes", "message"),
    [
        (
            {"metric": "mrr@10", "drop": 0.1},
            {},
            r"gate\[0\] is about 'mrr@10', which is not computed: add it to metrics",
        ),
        ({"metric": "ndcg@10", "drop": 0.1, "segment": "devise"}, {}, "did you mean 'device'"),
        ({"metric": "ndcg@10", "drop": 0.1}, {"compare": {}}, "name it in compare.baseline"),
        ({"metric": "ndcg@10"}, {}, "exactly one of drop"),
        ({"metric": "ndcg@10", "drop": 0.1, "superiority": True}, {}, "exactly one of drop"),
        ({"metric": "ndcg@10", "drop": 0.1, "value": "ios"}, {}, "needs the segment"),
        (
            {"metric": "mrr", "drop": 0.1, "min_judged": 0.7},
            {"metrics": ["mrr"]},
            r"gate\[0\] has min_judged, but 'mrr' has no cut-off to count judged documents within: write mrr@10",
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
    refuse(Manifest(**text, **empty))
    with pytest.raises(GateError, match=r"1 of 1 conditions of the gate are not met.*better than baseline") as caught:
        refuse(Manifest(**text, **empty, gate=(failed.model_dump(),)))
    assert caught.value.exit_code == 6
