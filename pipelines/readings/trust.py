"""Readings of how far the numbers can be trusted."""

from __future__ import annotations

from pipelines.config_statistics import MIN_QUERIES
from pipelines.readings.rules import Pair, change, reading
from pipelines.sensitivity import CONDENSE, RULE, ZERO
from udfs.conventions import UNJUDGED
from udfs.registry import Spec

_RELATIVE = 0.02  # without a gate, a difference of this share of the baseline is taken to matter
_LEAST_JUDGED = 0.7
_GAP = 0.02  # judged@k of two systems that differ by more are not equally well known


@reading
def low_power(pair: Pair) -> str | None:
    """No difference was found, and one that matters could have been missed."""
    found = pair.headline
    if found is None:
        return None
    spec, row = found
    drops = [c.drop for c in pair.config.gate if c.drop and c.metric == spec.name]
    matters = min(drops) if drops else _RELATIVE * row["baseline_mean"]
    if pair.moved(row) == 0 and row["detectable_delta"] > matters > 0:
        needed = row["queries"] * (row["detectable_delta"] / matters) ** 2
        return (
            f"no difference in {spec.name} is certain, and {row['queries']:,} queries could only have shown one of "
            f"{row['detectable_delta']:.4f}: for {matters:.4f} it takes about {needed:,.0f} queries."
        )
    return None


@reading
def candidate_less_judged(pair: Pair) -> str | None:
    """The candidate brings documents that nobody has seen, so that its numbers rest on less."""
    for spec, row in pair.named("judged"):
        if row["delta"] < -_GAP and pair.moved(row) == -1:
            rest = next((r for r in pair.rows() if r["unjudged"]), None)
            kept = (
                "" if rest is None else f" The comparison rests on {rest['queries']:,} queries where enough was judged."
            )
            return (
                f"{spec.name} is {row['candidate_mean']:.3f} for {pair.candidate} against {row['baseline_mean']:.3f}: "
                f"its new documents were never shown or labelled.{kept}"
            )
    return None


@reading
def little_is_judged(pair: Pair) -> str | None:
    """Little of either list has a label."""
    for spec, row in pair.named("judged"):
        lower = min(row["baseline_mean"], row["candidate_mean"])
        if lower < _LEAST_JUDGED:
            return f"{spec.name} is only {lower:.3f}: differences may say more about the labels than about the systems."
    return None


@reading
def much_left_out(pair: Pair) -> str | None:
    """Queries with too little judged were left out, and with them much of the traffic."""
    found = pair.headline
    if found is None or not found[1]["unjudged"]:
        return None
    spec, row = found
    share = row["queries"] / (row["queries"] + row["unjudged"])
    return (
        f"{spec.name} is compared on {row['queries']:,} queries ({share:.0%}, {row['kept_traffic']:.0%} of the "
        f"traffic); {row['unjudged']:,} have too little judged."
    )


@reading
def undecidable_from_this_log(pair: Pair) -> str | None:
    """Too few queries have enough judged for the log to say which system is better."""
    spec = pair.leading
    row = next((r for r in pair.rows() if r["metric"] == spec.key), None)
    least = [c.min_queries for c in pair.config.gate if c.metric == spec.name and c.segment == "all"] or [MIN_QUERIES]
    if not pair.evidence.behaviour or row is None or row["queries"] >= max(least):
        return None
    every = row["queries"] + row["unjudged"]
    share = row["queries"] / every if every else 0.0
    return (
        f"undecidable from this log: {row['queries']:,} of {every:,} queries ({share:.0%}, "
        f"{row['kept_traffic'] or 0:.0%} of the traffic) can be compared by {spec.name}, fewer than {max(least):,}. "
        "Take more days, or let the candidate serve a share of the traffic."
    )


@reading
def rests_on_the_unjudged(pair: Pair) -> str | None:
    """Another way to count unjudged documents would give another answer."""
    return next((said for spec in pair.config.specs if (said := _rests(pair, spec)) is not None), None)


def _rests(pair: Pair, spec: Spec) -> str | None:
    ways = pair.ways(spec)
    if RULE not in ways:
        return None
    ruled, changed = ways[RULE], []
    for unjudged in (ZERO, CONDENSE):
        row = ways[unjudged]
        if row["p_value"] is None or (pair.moved(row), row["gate"]) == (pair.moved(ruled), ruled["gate"]):
            continue
        gate = f", and the gate would say {row['gate']}" if row["gate"] != ruled["gate"] else ""
        changed.append(f"{change(row)} with them {UNJUDGED[unjudged]}{gate}")
    if not changed:
        return None
    mine = "an unknown amount" if ruled["p_value"] is None else change(ruled)
    gate = f" (gate: {ruled['gate']})" if ruled["gate"] else ""
    return (
        f"the answer rests on how unjudged documents are counted: {spec.name} differs by {mine}{gate}, but by "
        f"{'; by '.join(changed)}. Counting them as 0 favours who served the log, taking them out first a newcomer."
    )


@reading
def labels_taken_as_true(pair: Pair) -> str | None:
    """Labels made from behaviour are estimates, and the intervals do not know that."""
    if pair.evidence.behaviour and not pair.config.statistics.label_draws:
        return "the labels were made from behaviour; p-values and intervals treat them as true."
    return None


@reading
def trained_on_the_labels(pair: Pair) -> str | None:
    """A system that learned from the clicks that it is judged by gains what it does not deserve."""
    if not pair.evidence.behaviour:
        return None
    days, spans = pair.evidence.days, pair.config.trained
    unknown = [system for system in (pair.baseline, pair.candidate) if system not in spans]
    if days is not None:
        for system in (pair.baseline, pair.candidate):
            span = spans.get(system)
            if span is not None and span.first <= days.last and days.first <= span.last:
                return (
                    f"{system} learned from clicks of {span.first} to {span.last}, and the labels come from those of "
                    f"{days.first} to {days.last}: part of its value is its own echo."
                )
    if unknown:
        return (
            f"it is not known which clicks {' and '.join(unknown)} learned from: a system trained on the days that the "
            "labels come from seems better than it is. Name the days in `trained`."
        )
    return None
