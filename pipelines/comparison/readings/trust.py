"""Readings of how far the numbers can be trusted."""

from __future__ import annotations

import math

from pipelines.comparison.deciding import describe_remedy, describe_undecided
from pipelines.comparison.judging.correction import use_correction
from pipelines.comparison.readings.registry import ComparedPair, format_change, reading
from pipelines.comparison.sensitivity import POSTERIOR
from udfs.conventions import UNJUDGED
from udfs.registry import MetricSpec
from udfs.statistics.counting import MIN_JUDGED
from udfs.statistics.plan import EVERYTHING

_RELATIVE = 0.02  # without a gate, a difference of this share of the baseline is taken to matter
_MOSTLY = 0.5  # a larger share of the variance from labels: more queries would not narrow the interval by much
_UNSEEN = 0.2  # share of weight or queries from which on an answer is said to rest on a prior
_GAP = 0.02  # two systems whose judged@k differ by more rest on unequal labels


@reading
def low_power(pair: ComparedPair) -> str | None:
    """No difference was found, and one that matters could have been missed."""
    if pair.headline is None:
        return None
    spec, row = pair.headline
    drops = [c.limit for c in pair.config.gate if c.kind.key == "drop" and c.limit and c.metric == spec.name]
    matters = min(drops) if drops else _RELATIVE * row["baseline_mean"]
    if pair.direction(row) == 0 and row["detectable_delta"] > matters > 0:
        if row["hull"] or (row["label_share"] or 0.0) > _MOSTLY:
            return (
                f"the difference in {spec.name} is not significant, and only one of {row['detectable_delta']:.4f} or "
                f"more would have been detected. To detect {matters:.4f}, get better labels (judged queries, or a "
                "longer log) rather than more queries."
            )
        needed = row["queries"] * (row["detectable_delta"] / matters) ** 2
        return (
            f"the difference in {spec.name} is not significant, and {row['queries']:,} queries detect only one of "
            f"{row['detectable_delta']:.4f} or more. To detect {matters:.4f} takes about {needed:,.0f} queries."
        )
    return None


@reading
def candidate_less_judged(pair: ComparedPair) -> str | None:
    """The candidate returns documents without a label, so that its numbers rest on fewer labels."""
    for spec, row in pair.by_name("judged"):
        if row["delta"] < -_GAP and pair.direction(row) == -1:
            rest = next((r for r in pair.rows() if r["unjudged"]), None)
            basis = (
                "" if rest is None else f" The comparison rests on {rest['queries']:,} queries where enough was judged."
            )
            why = "they were never shown, or too seldom for a grade" if pair.context.behaviour else "nobody judged them"
            return (
                f"{spec.name} is {row['candidate_mean']:.3f} for {pair.candidate} against {row['baseline_mean']:.3f}: "
                f"more of its results have no label, because {why}.{basis}"
            )
    return None


@reading
def little_is_judged(pair: ComparedPair) -> str | None:
    """Little of either list has a label."""
    for spec, row in pair.by_name("judged"):
        lower = min(row["baseline_mean"], row["candidate_mean"])
        if lower < MIN_JUDGED and not pair.config.posterior:  # a posterior's interval includes what is not judged
            return f"{spec.name} is only {lower:.3f}: differences may say more about the labels than about the systems."
    return None


@reading
def much_left_out(pair: ComparedPair) -> str | None:
    """Queries with too little judged were left out, and with them much of the traffic."""
    if pair.headline is None or not pair.headline[1]["unjudged"]:
        return None
    spec, row = pair.headline
    share = row["queries"] / (row["queries"] + row["unjudged"])
    return (
        f"{spec.name} is compared on {row['queries']:,} queries ({share:.0%}, {row['kept_traffic']:.0%} of the "
        f"traffic); {row['unjudged']:,} have too little judged."
    )


@reading
def undecidable_from_this_log(pair: ComparedPair) -> str | None:
    """Too few queries have enough judged for the log to show which system is better."""
    spec = pair.headline_metric
    row = next((r for r in pair.rows() if r["metric"] == spec.key), None)
    conditions = [c for c in pair.config.gate if c.metric == spec.name and c.segment == EVERYTHING]
    minimum = [pair.config.min_queries(condition) for condition in conditions] or [pair.config.min_queries()]
    if not pair.context.behaviour or row is None or row["queries"] >= max(minimum):
        return None
    every = row["queries"] + row["unjudged"]
    share = row["queries"] / every if every else 0.0
    return (
        f"undecidable from this log: {row['queries']:,} of {every:,} queries ({share:.0%}, "
        f"{row['kept_traffic'] or 0:.0%} of the traffic) can be compared by {spec.name}, fewer than {max(minimum):,}. "
        "Take more days, or let the candidate serve a share of the traffic."
    )


@reading
def rests_on_the_unjudged(pair: ComparedPair) -> str | None:
    """Another way to count unjudged documents would give another answer."""
    texts = (_compare_unjudged_rules(pair, spec) for spec in pair.config.specs)
    return next((text for text in texts if text is not None), None)


def _compare_unjudged_rules(pair: ComparedPair, spec: MetricSpec) -> str | None:
    ways = pair.by_unjudged(spec)
    rules = [rule for rule in UNJUDGED if rule in ways]
    if not rules:
        return None
    ruled, changed = ways[rules[0]], []
    for unjudged in rules[1:]:
        row = ways[unjudged]
        if row["p_value"] is None or (pair.direction(row), row["gate"]) == (pair.direction(ruled), ruled["gate"]):
            continue
        gate = f", and the gate would say {row['gate']}" if row["gate"] != ruled["gate"] else ""
        changed.append(f"{format_change(row)} with them {UNJUDGED[unjudged]}{gate}")
    if not changed:
        return None
    change = "an unknown amount" if ruled["p_value"] is None else format_change(ruled)
    gate = f" (gate: {ruled['gate']})" if ruled["gate"] else ""
    junk = "; taking them out after it favours one that ranks junk. A posterior does none of these."
    return (
        f"the answer rests on how unjudged documents are counted: {spec.name} differs by {change}{gate}, but by "
        f"{'; by '.join(changed)}. Counting them as 0 favours the system that served the log; taking them out before "
        f"the cut favours a new one{junk if POSTERIOR in ways else '.'}"
    )


@reading
def labels_taken_as_true(pair: ComparedPair) -> str | None:
    """Labels made from behaviour are estimates, and the intervals do not include their error."""
    if pair.context.behaviour and not pair.config.posterior:
        return "the labels were made from behaviour; p-values and intervals treat them as true."
    return None


@reading
def two_answers(pair: ComparedPair) -> str | None:
    """A system that may have learned from clicks has two answers, and the log cannot tell which is right."""
    if pair.headline is None or not use_correction(pair.headline[1])["hull"]:
        return None
    spec, row = pair.headline
    doubted = [name for name in (pair.candidate, pair.baseline) if not pair.config.vouches_for(name)]
    remedy = ""
    if row["delta_low"] <= 0 <= row["delta_high"]:
        confidence = (1 + pair.config.statistics.confidence) / 2  # of each side
        ways = describe_remedy(describe_undecided(row, 0.0), confidence, spec.k, pair.context.exposure)
        remedy = f" Whether it is better or worse: {ways}."
    return (
        f"the interval of {spec.name}, {format_change(row)}, is the hull of two answers, {row['delta']:+.4f} with and "
        f"{row['other']:+.4f} without what the ranks of systems that never served say: if they learned from "
        f"clicks, these ranks mislead.{remedy} Set `trained: {{{doubted[0]}: none}}` "
        "if it learned from no clicks."
    )


@reading
def much_is_unseen(pair: ComparedPair) -> str | None:
    """Much of the candidate's list was shown to nobody, or many queries have no traffic: a prior decides there."""
    if pair.headline is None:
        return None
    spec, row = pair.headline
    unseen, idle = row["unseen_weight"] or 0.0, row["untrafficked"] or 0.0
    if unseen < _UNSEEN and idle < _UNSEEN:
        return None
    parts = [f"{unseen:.0%} of the weight of {pair.candidate}'s top results is on documents that nobody was shown"]
    if idle >= _UNSEEN:
        parts.append(f"{idle:.0%} of the queries have no shown document in either list")
    return (
        f"{spec.name} rests on a prior in part: {', and '.join(parts)}. {row['label_share'] or 0.0:.0%} of the "
        "variance comes from labels."
    )


@reading
def rests_on_the_curve(pair: ComparedPair) -> str | None:
    """Another examination curve, as likely as the run's, changes the answer by more than everything else does."""
    if pair.headline is None or pair.headline[1]["curve_shift"] is None:
        return None
    spec, row = pair.headline
    shift = row["curve_shift"]
    rest = math.sqrt(max(row["stderr"] ** 2 - shift**2, 0.0))
    if abs(shift) <= rest:
        return None
    return (
        f"the answer rests on the examination curve: {spec.name} differs by {format_change(row)}, and by "
        f"{shift:+.4f} more or less if the curve's exponent is off by one standard deviation; all other errors "
        f"together are ±{rest:.4f}. Shuffle some results (randomised positions), or take a longer log, to measure it."
    )


@reading
def trained_on_the_labels(pair: ComparedPair) -> str | None:
    """A system that learned from the clicks that it is judged by gains what it does not deserve."""
    if not pair.context.behaviour:
        return None
    overlap = _describe_learned_days(pair) if pair.config.posterior else _describe_overlap(pair)
    if overlap is not None:
        return overlap
    undeclared = [system for system in (pair.baseline, pair.candidate) if system not in pair.config.trained]
    if undeclared:
        return (
            f"it is not known which clicks {' and '.join(undeclared)} learned from: a system trained on the days that "
            "the labels come from seems better than it is. Name the days in `trained`, or `none` if it learned from no "
            "clicks."
        )
    return None


def _describe_learned_days(pair: ComparedPair) -> str | None:
    """What became of the days that compared systems learned from; None where the log has none of them."""
    share = pair.context.learned_share
    learned = [system for system in (pair.baseline, pair.candidate) if pair.config.list_learned_days([system])]
    if not share or not learned:
        return None
    if share < 1:
        return (
            f"{share:.0%} of the log's impressions are of days whose clicks compared systems learned from; the "
            "evidence for all systems is from the other days."
        )
    return (
        f"{' and '.join(learned)} learned from the clicks that the labels come from, and compared systems learned from "
        "every day of the log, so that none could be left out: part of its score only reflects what it was trained on. "
        "Take days that nobody learned from."
    )


def _describe_overlap(pair: ComparedPair) -> str | None:
    """The days of the labels that a system learned from."""
    days = pair.context.days
    if days is None:
        return None
    for system in (pair.baseline, pair.candidate):
        for first, last in pair.config.list_learned_days([system]):
            if first <= days.last and days.first <= last:
                return (
                    f"{system} learned from clicks of {first} to {last}, and the labels come from those of "
                    f"{days.first} to {days.last}: part of its score only reflects what it was trained on."
                )
    return None
