"""Readings: each fires on its figures, and is silent otherwise."""

import datetime as dt
from typing import Any

import pytest

from pipelines.comparison.judging.apply import SheetCount
from pipelines.comparison.readings.registry import ReadingContext, collect_readings
from pipelines.comparison.settings import CompareSettings
from pipelines.config.model import Config, DateRange

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
    rest = dict.fromkeys(("label_share", "unseen_weight", "untrafficked", "hull", "curve_shift"))
    return usual | bounds | means | better | rest | {"detectable_delta": 0.01, "stderr": 0.005} | values


def fired(*rows: dict[str, Any], changes: tuple[dict[str, Any], ...] = (), **values: Any) -> dict[str, str]:
    usual: dict[str, Any] = {"relevant": 5.0, "behaviour": False, "config": CONFIG}
    evidence = ReadingContext(comparisons=rows, changes=changes, **(usual | values))
    return {reading.rule: reading.text for reading in collect_readings(evidence)}


def test_nothing_is_said_of_a_plain_gain() -> None:
    assert fired(row("ndcg_at_10", 0.02, 0.001), row("recall_at_10", 0.02, 0.001)) == {}


def test_recall_up_while_ndcg_is_flat_names_three_causes() -> None:
    text = fired(row("ndcg_at_10", 0.001, 0.6), row("recall_at_10", 0.03, 0.001))["recall_up_ndcg_flat"]
    assert "recall@10 is up (+0.0300" in text
    assert all(cause in text for cause in ("ranked low", "low grades", "push down"))


@pytest.mark.parametrize(
    ("rule", "rows", "figure"),
    [
        ("ndcg_up_recall_down", [row("ndcg_at_10", 0.02, 0.01), row("recall_at_10", -0.02, 0.01)], "-0.0200"),
        ("low_power", [row("ndcg_at_10", 0.002, 0.6, detectable_delta=0.032)], "4,000 queries"),
        ("weighting_changes_the_answer", [row("ndcg_at_10", 0.02, 0.01, weighted_delta=-0.01)], "-0.0100"),
        ("mean_and_majority_disagree", [row("ndcg_at_10", 0.02, 0.01, wins=300, losses=400)], "300"),
        ("candidate_less_judged", [row("judged_at_10", -0.05, 0.001)], "0.750 for new against 0.800"),
        ("candidate_less_judged", [row("judged_at_10", -0.05, 0.001)], "have no label, because nobody judged them."),
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


def test_a_candidate_that_serves_traffic_is_not_said_to_be_never_shown() -> None:
    text = fired(row("judged_at_10", -0.05, 0.001), behaviour=True)["candidate_less_judged"]
    assert text.endswith("more of its results have no label, because they were never shown, or too seldom for a grade.")


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
    text = fired(row("ndcg_at_10", 0.012, 0.04), changes=(mover,) * 10)["carried_by_few_queries"]
    assert "10 of 1,000 queries make up 75%" in text
    assert "carried_by_few_queries" not in fired(row("ndcg_at_10", 0.1, 0.04), changes=(mover,) * 10)
    small = row("ndcg_at_10", 0.45, 0.04, queries=20, wins=14, losses=1)  # ten of twenty are not few
    assert "carried_by_few_queries" not in fired(small, changes=(mover,) * 10)


def test_recall_with_one_relevant_document_is_a_hit_rate() -> None:
    assert "1.20 relevant documents" in fired(row("recall_at_10", 0.0, 1.0), relevant=1.2)["recall_is_a_hit_rate"]
    assert "recall_is_a_hit_rate" not in fired(row("recall_at_10", 0.0, 1.0), relevant=2.0)


def test_a_gain_in_clicks_without_one_in_purchases_is_named() -> None:
    clicked, bought = row("ndcg_at_10", 0.02, 0.001), row("ndcg_at_10", 0.001, 0.7)
    config = CONFIG.model_copy(update={"compare": CompareSettings(baseline="old", goal="purchase")})
    text = fired(clicked, goal=(bought,), config=config)["labels_and_goal_differ"]
    assert "not on labels from purchases (+0.0010" in text
    assert fired(clicked, goal=(clicked,), config=config) == {}


def test_labels_from_behaviour_are_said_to_be_taken_as_true() -> None:
    assert "labels_taken_as_true" in fired(row("ndcg_at_10", 0.0, 1.0), behaviour=True)
    assert "labels_taken_as_true" not in fired(row("ndcg_at_10", 0.0, 1.0), behaviour=False)


@pytest.mark.parametrize(("queries", "fires"), [(99, True), (100, False), (0, True)])
def test_fewer_than_a_hundred_queries_decide_nothing(queries: int, fires: bool) -> None:
    p = None if queries == 0 else 0.001
    few = row("ndcg_at_10", 0.02, p, queries=queries, unjudged=400, kept_traffic=0.25)
    text = fired(few, behaviour=True).get("undecidable_from_this_log", "")
    share = f"{queries} of {queries + 400} queries ({queries / (queries + 400):.0%}, 25% of the traffic)"
    assert (f"Undecidable from this log: {share}" in text) == fires
    assert "undecidable_from_this_log" not in fired(few), "people's judgments are another matter"


def test_an_answer_that_rests_on_the_unjudged_is_told() -> None:
    def ways(zero: float, condense: float, gates: tuple[str | None, ...] = (None,) * 3) -> list[dict[str, Any]]:
        variants = zip(("cut_then_condense", "zero", "condense"), (0.02, zero, condense), gates, strict=True)
        return [row("ndcg_at_10", delta, 0.001, unjudged=way, gate=gate) for way, delta, gate in variants]

    ruled = row("ndcg_at_10", 0.02, 0.001)
    assert "rests_on_the_unjudged" not in fired(ruled, sensitivity=ways(0.01, 0.3))
    text = fired(ruled, sensitivity=ways(-0.01, 0.3))["rests_on_the_unjudged"]
    assert "-0.0100" in text and "counted as 0" in text and "+0.3000" not in text
    text = fired(ruled, sensitivity=ways(0.01, 0.3, ("undecidable", "undecidable", "pass")))["rests_on_the_unjudged"]
    assert "(gate: undecidable)" in text and "before the cut, and the gate would say pass" in text
    alone = ways(-0.01, 0.3)
    alone[0] |= {"p_value": None, "delta_low": None, "delta_high": None}  # one query has a difference, and no interval
    assert "differs by an unknown amount, but by -0.0100 [" in fired(ruled, sensitivity=alone)["rests_on_the_unjudged"]


def test_a_pair_without_common_queries_says_nothing() -> None:
    nothing = dict.fromkeys(("delta", "delta_low", "delta_high", "p_value", "baseline_mean", "candidate_mean"))
    assert fired(row("ndcg_at_10", 0.0, 1.0) | nothing) == {}


@pytest.mark.parametrize(
    ("trained", "behaviour", "expected"),
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
    trained: dict[str, tuple[str, str]], behaviour: bool, expected: str | None
) -> None:
    spans = {
        system: DateRange.model_validate({"first": first, "last": last}) for system, (first, last) in trained.items()
    }
    days = DateRange(first=dt.date(2026, 11, 2), last=dt.date(2026, 11, 8))
    config = CONFIG.model_copy(update={"trained": spans})
    texts = fired(row("ndcg_at_10", 0.02, 0.01), config=config, behaviour=behaviour, days=days)
    text = texts.get("trained_on_the_labels")
    assert (text is None) if expected is None else (text is not None and expected in text)


def configure(**changes: Any) -> Config:
    """A configuration of a log with a posterior."""
    inputs = {name: {"path": name} for name in ("rankings", "impressions", "interactions", "queries")}
    return Config.model_validate(
        {
            "inputs": inputs,
            "metrics": ["ndcg@10"],
            "segments": ["device"],
            "compare": {"baseline": "old"},
        }
        | changes
    )


def test_a_posterior_has_draws_and_shares_and_no_least_share() -> None:
    config = configure()
    assert (config.label_draws, config.min_judged, config.min_queries()) == (30, None, 2)
    assert [spec.name for spec in config.specs] == ["ndcg@10", "dcg@10", "judged@10", "unseen@10"]
    assert (CONFIG.label_draws, CONFIG.min_queries()) == (0, 100)
    assert [spec.name for spec in CONFIG.specs] == list(CONFIG.metrics)


def test_a_system_that_learned_from_no_clicks_is_vouched_for() -> None:
    config = configure(trained={"old": "none", "new": {"first": "2026-10-01", "last": "2026-10-31"}})
    assert [config.vouches_for(name) for name in ("old", "new", "other")] == [True, False, False]
    days = DateRange(first=dt.date(2026, 10, 20), last=dt.date(2026, 10, 27))
    by_grades = configure(trained=config.trained, conventions={"unjudged": "zero"})
    texts = fired(row("ndcg_at_10", 0.02, 0.01), config=by_grades, behaviour=True, days=days)
    assert "new learned from clicks of 2026-10-01 to 2026-10-31" in texts["trained_on_the_labels"]
    none = configure(trained={"old": "none", "new": "none"})
    assert "trained_on_the_labels" not in fired(row("ndcg_at_10", 0.02, 0.01), config=none, behaviour=True, days=days)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, None),
        (0.43, "43% of the log's impressions are of days whose clicks compared systems learned from; the evidence for"),
        (1.0, "new learned from the clicks that the labels come from"),
    ],
)
def test_what_became_of_the_days_that_a_system_learned_from_is_said(share: float, text: str | None) -> None:
    config = configure(trained={"old": "none", "new": {"first": "2026-10-01", "last": "2026-10-31"}})
    assert config.list_learned_days(["old", "new"]) == ((dt.date(2026, 10, 1), dt.date(2026, 10, 31)),)
    texts = fired(row("ndcg_at_10", 0.02, 0.01), config=config, behaviour=True, learned_share=share)
    reading = texts.get("trained_on_the_labels")
    assert (reading is None) if text is None else (reading is not None and text in reading)
    none = configure(trained={"old": "none", "new": "none"})  # another system of the run learned from these days
    assert "trained_on_the_labels" not in fired(
        row("ndcg_at_10", 0.02, 0.01), config=none, behaviour=True, learned_share=share
    )


def test_labels_with_draws_are_not_said_to_be_taken_as_true() -> None:
    texts = fired(row("ndcg_at_10", 0.0, 1.0, label_share=0.4), behaviour=True, config=configure())
    assert "labels_taken_as_true" not in texts


@pytest.mark.parametrize(
    ("rule", "values", "figure"),
    [
        ("two_answers", {"hull": True, "other": 0.015}, "trained: {new: none}"),
        ("two_answers", {"hull": True, "other": 0.015}, "+0.0200 with and +0.0150 without"),
        ("two_answers", {"hull": False}, None),
        (
            "two_answers",
            {"hull": True, "delta_corrected": 0.01, "corrected_low": 0.005, "corrected_high": 0.015},
            None,
        ),
        ("much_is_unseen", {"unseen_weight": 0.3, "label_share": 0.61}, "30% of the weight of new's top"),
        ("much_is_unseen", {"unseen_weight": 0.3, "label_share": 0.61}, "61% of the variance"),
        ("much_is_unseen", {"unseen_weight": 0.1, "untrafficked": 0.25}, "25% of the queries"),
        ("much_is_unseen", {"unseen_weight": 0.1, "untrafficked": 0.1}, None),
        ("rests_on_the_curve", {"stderr": 0.005, "curve_shift": -0.004}, "-0.0040 more or less"),
        ("rests_on_the_curve", {"stderr": 0.005, "curve_shift": -0.004}, "±0.0030"),
        ("rests_on_the_curve", {"stderr": 0.005, "curve_shift": 0.003}, None),
        ("low_power", {"p_value": 0.5, "detectable_delta": 0.05, "label_share": 0.7}, "better labels"),
        ("low_power", {"p_value": 0.5, "detectable_delta": 0.05, "label_share": 0.2}, "9,766 queries"),
    ],
)
def test_what_an_answer_on_drawn_labels_rests_on_is_said(rule: str, values: dict[str, Any], figure: str | None) -> None:
    text = fired(row("ndcg_at_10", 0.02, 0.01) | values, behaviour=True, config=configure()).get(rule)
    assert (text is None) if figure is None else (text is not None and figure in text)


def test_judged_queries_are_read_for_the_pair_that_they_were_drawn_for() -> None:
    corrected = {"delta_corrected": 0.03, "corrected_low": 0.01, "corrected_high": 0.05}
    counts = [SheetCount("old", name, "ndcg_at_10", 100, 90, complete) for name, complete in (("new", 86), ("far", 5))]
    of_new, of_far = row("ndcg_at_10", 0.02, 0.01) | corrected, row("ndcg_at_10", 0.02, 0.01, candidate="far")
    text = fired(of_new, sheet_counts=counts)["judged_queries"]
    assert text.startswith(
        "86 of 100 drawn queries are judged: they correct ndcg@10 from +0.0200 [+0.0100, +0.0300] to "
    )
    assert "+0.0300 [+0.0100, +0.0500]" in text and "14 are incomplete" in text
    assert "judged_queries" not in fired(of_far | {"delta_corrected": None}, sheet_counts=counts)
    alone = fired(of_far | {"delta_corrected": None}, sheet_counts=counts[1:])["judged_queries"]
    assert "of 100 drawn queries 90 have grades, and 5 have the top of both lists fully graded" in alone
    assert "judged_queries" not in fired(of_new)


@pytest.mark.parametrize(("low", "says"), [(-0.08, True), (0.001, False)])
def test_two_answers_around_zero_name_what_would_decide(low: float, says: bool) -> None:
    # One answer is .04, the other −.06: distance .04 and z = 1.960 + .842 at 95 %, two-sided. With W = .00005 and a
    # variance of .04 + .1² per query, m = .05 / (.04²/z² − W + .05/1000) = 246 queries, rounded up to two digits.
    hull = {"hull": True, "other": -0.06, "delta_low": low, "label_share": 0.5, "query_variance": 0.04, "stderr": 0.01}
    text = fired(row("ndcg_at_10", 0.04, 1.0) | hull, behaviour=True, config=configure())["two_answers"]
    assert ("Whether it is better or worse: about 250 judged queries would decide it." in text) == says


@pytest.mark.parametrize(("dcg", "fires"), [(-0.5, True), (0.5, False)])
def test_dcg_and_ndcg_that_point_different_ways_are_named(dcg: float, fires: bool) -> None:
    """With a posterior dcg@10 is computed beside ndcg@10, configured or not."""
    rows = row("ndcg_at_10", 0.02, 0.01), row("dcg_at_10", dcg, 0.3)
    assert ("dcg_and_ndcg_disagree" in fired(*rows, config=configure())) == fires


def test_an_answer_of_the_posterior_is_compared_with_the_other_rules() -> None:
    rules = {"posterior": 0.02, "cut_then_condense": 0.05, "zero": -0.01, "condense": 0.3}
    ways = [row("ndcg_at_10", delta, 0.001, unjudged=rule, gate=None) for rule, delta in rules.items()]
    text = fired(row("ndcg_at_10", 0.02, 0.001), sensitivity=ways, config=configure())["rests_on_the_unjudged"]
    assert "differs by +0.0200" in text and "-0.0100" in text and "+0.0500" not in text
    assert "A posterior does none of these" in text
