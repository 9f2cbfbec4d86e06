"""Readings: each fires on its figures, and is silent otherwise."""

import datetime as dt
from typing import Any

import pytest

from pipelines.config import Config, Span
from pipelines.config_statistics import Compare
from pipelines.readings import Evidence, read_all, said_once

CONFIG = Config.model_validate(
    {
        "inputs": {"rankings": {"path": "r"}, "judgments": {"path": "j"}, "queries": {"path": "q"}},
        "metrics": ["ndcg@10", "recall@10", "judged@10"],
        "segments": ["device"],
        "compare": {"baseline": "old"},
    }
)


def row(metric: str, delta: float, p: float | None, **values: Any) -> dict[str, Any]:
    usual = {"baseline": "old", "candidate": "new", "segment": "all", "value": "all", "metric": metric, "delta": delta}
    bounds = {"delta_low": delta - 0.01, "delta_high": delta + 0.01, "p_value": p, "weighted_delta": delta}
    means = {"baseline_mean": 0.8, "candidate_mean": 0.8 + delta, "queries": 1000, "unjudged": 0, "kept_traffic": 1.0}
    better = {"wins": 500, "ties": 100, "losses": 400} if delta >= 0 else {"wins": 400, "ties": 100, "losses": 500}
    return usual | bounds | means | better | {"detectable_delta": 0.01} | values


def fired(*rows: dict[str, Any], changes: tuple[dict[str, Any], ...] = (), **values: Any) -> dict[str, str]:
    usual: dict[str, Any] = {"relevant": 5.0, "behaviour": False, "config": CONFIG}
    evidence = Evidence(comparisons=rows, changes=changes, **(usual | values))
    return {reading.rule: reading.text for reading in read_all(evidence)}


def test_nothing_is_said_of_a_plain_gain() -> None:
    assert fired(row("ndcg_at_10", 0.02, 0.001), row("recall_at_10", 0.02, 0.001)) == {}


def test_recall_up_while_ndcg_is_flat_names_three_causes() -> None:
    said = fired(row("ndcg_at_10", 0.001, 0.6), row("recall_at_10", 0.03, 0.001))["recall_up_ndcg_flat"]
    assert "recall@10 is up (+0.0300" in said
    assert all(cause in said for cause in ("ranked low", "low grades", "push down"))


@pytest.mark.parametrize(
    ("rule", "rows", "figure"),
    [
        ("ndcg_up_recall_down", [row("ndcg_at_10", 0.02, 0.01), row("recall_at_10", -0.02, 0.01)], "-0.0200"),
        ("low_power", [row("ndcg_at_10", 0.002, 0.6, detectable_delta=0.032)], "4,000 queries"),
        ("weighting_changes_the_answer", [row("ndcg_at_10", 0.02, 0.01, weighted_delta=-0.01)], "-0.0100"),
        ("mean_and_majority_disagree", [row("ndcg_at_10", 0.02, 0.01, wins=300, losses=400)], "300"),
        ("candidate_less_judged", [row("judged_at_10", -0.05, 0.001)], "0.750 for new against 0.800"),
        ("little_is_judged", [row("judged_at_10", -0.2, 0.001)], "0.600"),
        (
            "much_left_out",
            [row("ndcg_at_10", 0.02, 0.01, unjudged=3000, kept_traffic=0.4)],
            "(25%, 40% of the traffic)",
        ),
    ],
)
def test_a_rule_fires_with_its_figures(rule: str, rows: list[dict[str, Any]], figure: str) -> None:
    assert figure in fired(*rows)[rule]


@pytest.mark.parametrize(
    ("rule", "rows"),
    [
        ("recall_up_ndcg_flat", [row("ndcg_at_10", 0.02, 0.01), row("recall_at_10", 0.03, 0.001)]),
        ("recall_up_ndcg_flat", [row("ndcg_at_10", 0.0, 0.9), row("recall_at_10", 0.03, 0.2)]),
        ("ndcg_up_recall_down", [row("ndcg_at_10", 0.02, 0.01), row("recall_at_10", -0.02, 0.3)]),
        ("low_power", [row("ndcg_at_10", 0.002, 0.6, detectable_delta=0.012)]),  # .016 would matter
        ("low_power", [row("ndcg_at_10", 0.02, 0.01, detectable_delta=0.032)]),
        ("weighting_changes_the_answer", [row("ndcg_at_10", 0.02, 0.01, weighted_delta=0.001)]),
        ("weighting_changes_the_answer", [row("ndcg_at_10", 0.02, 0.3, weighted_delta=-0.01)]),
        ("mean_and_majority_disagree", [row("ndcg_at_10", 0.02, 0.01, wins=400, losses=300)]),
        ("candidate_less_judged", [row("judged_at_10", -0.01, 0.001)]),
        ("candidate_less_judged", [row("judged_at_10", 0.05, 0.001)]),
        ("little_is_judged", [row("judged_at_10", -0.05, 0.001)]),
        ("much_left_out", [row("ndcg_at_10", 0.02, 0.01, unjudged=0)]),
    ],
)
def test_a_rule_is_silent_where_its_figures_are_not_there(rule: str, rows: list[dict[str, Any]]) -> None:
    assert rule not in fired(*rows)


def test_a_difference_carried_by_one_segment_is_named() -> None:
    whole = row("ndcg_at_10", 0.02, 0.001)
    ios = row("ndcg_at_10", 0.09, 0.001, segment="device", value="ios", queries=200)
    web = row("ndcg_at_10", 0.0025, 0.5, segment="device", value="web", queries=800)
    assert (
        "90% of the difference in ndcg@10 comes from device = ios, which has 20%"
        in (fired(whole, ios, web)["carried_by_one_segment"])
    )
    most = [
        row("ndcg_at_10", 0.02, 0.001, segment="device", value=v, queries=n) for v, n in (("ios", 200), ("web", 800))
    ]
    assert "carried_by_one_segment" not in fired(whole, *most)  # 80 % of the queries, and of the difference


def test_a_difference_carried_by_few_queries_is_named() -> None:
    mover = {"baseline": "old", "candidate": "new", "metric": "ndcg_at_10", "direction": "gain", "delta": 0.9}
    said = fired(row("ndcg_at_10", 0.012, 0.04), changes=(mover,) * 10)["carried_by_few_queries"]
    assert "10 of 1,000 queries make up 75%" in said
    assert "carried_by_few_queries" not in fired(row("ndcg_at_10", 0.1, 0.04), changes=(mover,) * 10)
    small = row("ndcg_at_10", 0.45, 0.04, queries=20, wins=14, losses=1)  # ten of twenty are not few
    assert "carried_by_few_queries" not in fired(small, changes=(mover,) * 10)


def test_recall_with_one_relevant_document_is_a_hit_rate() -> None:
    assert "1.20 relevant documents" in fired(row("recall_at_10", 0.0, 1.0), relevant=1.2)["recall_is_a_hit_rate"]
    assert "recall_is_a_hit_rate" not in fired(row("recall_at_10", 0.0, 1.0), relevant=2.0)


def test_a_gain_in_clicks_without_one_in_purchases_is_named() -> None:
    clicked, bought = row("ndcg_at_10", 0.02, 0.001), row("ndcg_at_10", 0.001, 0.7)
    config = CONFIG.model_copy(update={"compare": Compare(baseline="old", goal="purchase")})
    said = fired(clicked, goal=(bought,), config=config)["labels_and_goal_differ"]
    assert "not on labels from purchases (+0.0010" in said
    assert fired(clicked, goal=(clicked,), config=config) == {}


def test_labels_from_behaviour_are_said_to_be_taken_as_true() -> None:
    assert "labels_taken_as_true" in fired(row("ndcg_at_10", 0.0, 1.0), behaviour=True)
    assert "labels_taken_as_true" not in fired(row("ndcg_at_10", 0.0, 1.0), behaviour=False)
    drawn = CONFIG.model_copy(update={"statistics": CONFIG.statistics.model_copy(update={"label_draws": 5})})
    assert "labels_taken_as_true" not in fired(row("ndcg_at_10", 0.0, 1.0), behaviour=True, config=drawn)


@pytest.mark.parametrize(("queries", "said"), [(99, True), (100, False), (0, True)])
def test_fewer_than_a_hundred_queries_decide_nothing(queries: int, said: bool) -> None:
    p = None if queries == 0 else 0.001
    few = row("ndcg_at_10", 0.02, p, queries=queries, unjudged=400, kept_traffic=0.25)
    found = fired(few, behaviour=True).get("undecidable_from_this_log", "")
    share = f"{queries} of {queries + 400} queries ({queries / (queries + 400):.0%}, 25% of the traffic)"
    assert (f"undecidable from this log: {share}" in found) == said
    assert "undecidable_from_this_log" not in fired(few), "people's judgments are another matter"


def test_an_answer_that_rests_on_the_unjudged_is_told() -> None:
    def ways(zero: float, condense: float, gates: tuple[str | None, ...] = (None,) * 3) -> list[dict[str, Any]]:
        given = zip(("cut_then_condense", "zero", "condense"), (0.02, zero, condense), gates, strict=True)
        return [row("ndcg_at_10", delta, 0.001, unjudged=way, gate=gate) for way, delta, gate in given]

    ruled = row("ndcg_at_10", 0.02, 0.001)
    assert "rests_on_the_unjudged" not in fired(ruled, sensitivity=ways(0.01, 0.3))
    said = fired(ruled, sensitivity=ways(-0.01, 0.3))["rests_on_the_unjudged"]
    assert "-0.0100" in said and "counted as 0" in said and "+0.3000" not in said
    said = fired(ruled, sensitivity=ways(0.01, 0.3, ("undecidable", "undecidable", "pass")))["rests_on_the_unjudged"]
    assert "(gate: undecidable)" in said and "before the cut, and the gate would say pass" in said
    alone = ways(-0.01, 0.3)
    alone[0] |= {"p_value": None, "delta_low": None, "delta_high": None}  # one query has a difference, and no interval
    assert "differs by an unknown amount, but by -0.0100 [" in fired(ruled, sensitivity=alone)["rests_on_the_unjudged"]


def test_a_pair_without_common_queries_says_nothing() -> None:
    nothing = dict.fromkeys(("delta", "delta_low", "delta_high", "p_value", "baseline_mean", "candidate_mean"))
    assert fired(row("ndcg_at_10", 0.0, 1.0) | nothing) == {}


@pytest.mark.parametrize(
    ("trained", "behaviour", "said"),
    [
        ({}, False, None),
        ({}, True, "which clicks old and new learned from"),
        ({"old": ("2026-10-01", "2026-10-31")}, True, "which clicks new learned from"),
        (
            {"old": ("2026-10-01", "2026-10-31"), "new": ("2026-10-01", "2026-11-02")},
            True,
            "new learned from clicks",
        ),
        (
            {"old": ("2026-10-01", "2026-11-09"), "new": ("2026-10-01", "2026-10-31")},
            True,
            "old learned from clicks",
        ),
        ({"old": ("2026-10-01", "2026-10-31"), "new": ("2026-10-01", "2026-11-01")}, True, None),
    ],
)
def test_a_system_that_learned_from_the_labels_is_told(
    trained: dict[str, tuple[str, str]], behaviour: bool, said: str | None
) -> None:
    spans = {system: Span.model_validate({"first": first, "last": last}) for system, (first, last) in trained.items()}
    days = Span(first=dt.date(2026, 11, 2), last=dt.date(2026, 11, 8))
    config = CONFIG.model_copy(update={"trained": spans})
    found = fired(row("ndcg_at_10", 0.02, 0.01), config=config, behaviour=behaviour, days=days)
    text = found.get("trained_on_the_labels")
    assert (text is None) if said is None else (text is not None and said in text)


def test_what_is_true_of_several_candidates_is_said_once() -> None:
    made = [("old", "a", "x"), ("old", "b", "x"), ("old", "a", "y"), ("a", "b", "x")]
    readings = [{"baseline": b, "candidate": c, "text": text} for b, c, text in made]
    assert said_once(readings) == [(["a", "b"], "old", "x"), (["a"], "old", "y"), (["b"], "a", "x")]
