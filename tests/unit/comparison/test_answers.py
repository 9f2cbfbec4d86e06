"""The verdict in one sentence: effect, interval, coverage and the largest risk, then what to do."""

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from jobs.evaluate import require_comparison, require_gate
from jobs.support.verdict_formats import render_junit, render_markdown
from pipelines.comparison.answers import CandidateAnswer, answer_comparisons, sort_readings
from pipelines.warehouse.runs import Manifest
from schemas.errors import GateError, InputError


def build_manifest(**values: Any) -> Manifest:
    text = dict.fromkeys(("run", "key", "status", "committed_at", "config_hash", "code", "spark"), "x")
    config = {"metrics": ["ndcg@10", "recall@10"], "compare": {"baseline": "bm25"}}
    usual: dict[str, Any] = {"dt": "2026-11-01", "seconds": {}, "config": config, "inputs": {}}
    return Manifest(**text | usual | {"systems": ("bm25", "neural"), "conventions": {}, "tables": {}} | values)


def row(**values: Any) -> dict[str, Any]:
    usual = {"baseline": "bm25", "candidate": "neural", "segment": "all", "value": "all", "metric": "ndcg_at_10"}
    numbers = {"delta": 0.09, "delta_low": 0.038, "delta_high": 0.141, "significant": True, "detectable_delta": 0.07}
    counts = {"queries": 109, "unjudged": 91, "kept_traffic": 0.67, "wins": 60, "ties": 20, "losses": 29}
    return usual | numbers | counts | values


def reading(rule: str, text: str = "…") -> dict[str, str]:
    return {"rule": rule, "baseline": "bm25", "candidate": "neural", "text": text}


def condition(verdict: str, **values: Any) -> dict[str, Any]:
    usual = {"condition": "ndcg@10 better than baseline", "candidate": "neural", "segment": "all", "value": "all"}
    return usual | {"verdict": verdict, "reason": "the reason", "warning": ""} | values


def answer(*rows: dict[str, Any], **values: Any) -> CandidateAnswer:
    (only,) = answer_comparisons(build_manifest(**values), rows or [row()])
    return only


def test_the_sentence_has_effect_interval_coverage_and_the_largest_risk() -> None:
    readings = (reading("labels_taken_as_true"), reading("much_is_unseen"), reading("recall_is_a_hit_rate"))
    verdict = answer(row(unseen_weight=0.48), readings=readings)
    assert verdict.sentence == (
        "neural beats bm25: ndcg@10 +0.0900 (95 % CI +0.0380 to +0.1410) on 109 of 200 queries, 67 % of traffic; "
        "48 % of the weight of its top results is on documents that nobody was shown."
    )
    assert verdict.advice == "29 queries got worse: look at the largest losses in query_changes, then try it online."
    assert (verdict.outcome, verdict.queries, verdict.every, verdict.traffic) == ("better", 109, 200, 0.67)


@pytest.mark.parametrize(
    ("values", "beginning"),
    [
        ({"delta": -0.09, "delta_low": -0.141, "delta_high": -0.038}, "neural is worse than bm25: ndcg@10 -0.0900 ("),
        ({"delta_low": -0.01}, "neural is not clearly different from bm25: ndcg@10 +0.0900 (95 % CI -0.0100 to"),
        ({"delta_low": -0.01, "hull": True}, "Undecidable whether neural beats bm25: ndcg@10 +0.0900"),
        (
            {"significant": False, "unjudged": 0},
            "neural is not clearly different from bm25: ndcg@10 +0.0900 (95 % CI +0.0380 to +0.1410), not significant "
            "after adjusting for several tests, on 109 queries.",
        ),
        (
            {"delta_corrected": -0.02, "corrected_low": -0.03, "corrected_high": -0.01},
            "neural is worse than bm25: ndcg@10 -0.0200 (95 % CI -0.0300 to -0.0100)",
        ),
        (
            {"queries": 0, "delta": None, "delta_low": None, "delta_high": None},
            "neural cannot be compared with bm25 by ndcg@10: no query counts for both; 91 queries have too little",
        ),
    ],
)
def test_every_outcome_has_its_sentence(values: dict[str, Any], beginning: str) -> None:
    assert answer(row(**values)).sentence.startswith(beginning)


def test_a_comparison_of_no_query_says_what_counts() -> None:
    advice = answer(row(queries=0, delta=None, delta_low=None, delta_high=None)).advice
    assert advice.endswith("labels for what they return: a query without a relevant document counts for few metrics.")


def test_the_gate_says_what_to_do_and_undecidable_is_a_headline_of_its_own() -> None:
    assert answer(gate=(condition("pass"),)).advice == "Release it: every condition of the gate is met."
    failed = answer(gate=(condition("pass"), condition("fail", segment="device", value="ios")))
    assert failed.outcome == "better"
    assert failed.advice == "Do not release it: ndcg@10 better than baseline [device = ios]: the reason."
    open_ = answer(gate=(condition("undecidable"), condition("pass")))
    assert open_.sentence.startswith("Undecidable whether neural beats bm25: ")
    assert open_.advice.startswith("Collect more evidence before a release: ndcg@10 better than baseline: the reason")
    assert answer(readings=(reading("undecidable_from_this_log"),)).outcome == "undecidable"


def test_candidates_are_sorted_by_their_effect_and_the_gate_names_the_metric() -> None:
    rows = [
        row(candidate=name, delta=delta, metric=metric)
        for name, delta in (("a", 0.01), ("b", None), ("c", 0.2))
        for metric in ("ndcg_at_10", "recall_at_10")
    ]
    config = {"metrics": ["ndcg@10", "recall@10"], "gate": [{"metric": "recall@10", "drop": 0.01}]}
    answers = answer_comparisons(build_manifest(config=config), rows)
    assert [(a.candidate, a.metric) for a in answers] == [("c", "recall@10"), ("a", "recall@10"), ("b", "recall@10")]


def test_readings_come_with_the_largest_risk_first() -> None:
    rules = ["recall_is_a_hit_rate", "labels_taken_as_true", "two_answers", "opinions_narrow_labels"]
    ranked = [entry["rule"] for entry in sort_readings([reading(rule) for rule in rules])]
    assert ranked == ["two_answers", "labels_taken_as_true", "recall_is_a_hit_rate", "opinions_narrow_labels"]


def test_nothing_to_compare_is_an_error_with_its_reason() -> None:
    empty = row(queries=0, delta=None, delta_low=None, delta_high=None)
    manifest = build_manifest()
    with pytest.raises(InputError, match=r"cannot be compared with bm25 .*91 queries have too little judged \(run x\)"):
        require_comparison(manifest, answer_comparisons(manifest, [empty]))
    require_comparison(manifest, answer_comparisons(manifest, [empty, row(candidate="other")]))
    require_comparison(manifest, ())


def test_a_gate_that_cannot_decide_is_not_said_to_fail() -> None:
    with pytest.raises(GateError, match=r"the gate is undecidable, 1 of 2 conditions: .*"):
        require_gate(build_manifest(gate=(condition("pass"), condition("undecidable"))))
    with pytest.raises(GateError, match=r"the gate fails, 1 of 2 conditions: .*: the reason"):
        require_gate(build_manifest(gate=(condition("undecidable"), condition("fail"))))


HOSTILE = "<script>|*evil* @all #1\n# heading\x1b[2J"


def test_markdown_has_the_sentences_and_no_markup_from_the_data() -> None:
    manifest = build_manifest(gate=(condition("fail", candidate=HOSTILE),))
    rows = [row(), row(candidate=HOSTILE, delta=0.01), row(metric="recall_at_10", delta=0.02, queries=150)]
    text = render_markdown(manifest, answer_comparisons(manifest, rows), rows, ["ndcg@10", "recall@10"])
    lines = text.splitlines()
    assert lines[2].startswith("✅ **neural beats bm25: ndcg&#64;10 +0.0900 (95 % CI +0.0380 to +0.1410) on 109 of 200")
    assert "| neural | recall&#64;10 | +0.0200 | +0.0380 to +0.1410 | 150 |" in lines
    escaped = "❌ **&#60;script&#62;&#124;&#42;evil&#42; &#64;all &#35;1&#92;u000a"
    assert sum(line.startswith(escaped) for line in lines) == 1
    assert not [part for part in ("<script>", "@all", "*evil*", "\x1b") if part in text]
    table = [line for line in lines if line.startswith("|")]
    assert {line.count("|") for line in table} == {6}


def test_junit_fails_what_failed_and_reports_the_undecidable_as_an_error() -> None:
    gate = (condition("pass"), condition("fail", segment="device", value="ios"), condition("undecidable"))
    manifest = build_manifest(gate=(*gate, condition("pass", candidate=HOSTILE)))
    whole = ElementTree.fromstring(render_junit(manifest, answer_comparisons(manifest, [row()])))
    (suite,) = whole
    assert {key: suite.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": "5", "failures": "1", "errors": "1"
    }  # fmt: skip
    verdict, *conditions = suite
    assert (verdict.get("classname"), verdict.get("name")) == ("neural", "against bm25")
    assert (verdict.findtext("system-out") or "").startswith("neural beats bm25: ndcg@10 +0.0900 (95 % CI")
    assert [[(part.tag, part.get("type")) for part in case] for case in conditions] == [
        [], [("failure", "fail")], [("error", "undecidable")], []
    ]  # fmt: skip
    assert conditions[1].get("name") == "ndcg@10 better than baseline [device = ios] for neural"
    assert json.dumps(conditions[3].get("classname")).count("\\\\u001b") == 1
