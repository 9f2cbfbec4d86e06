"""Readings of where a difference comes from."""

from __future__ import annotations

from pipelines.comparison.readings.registry import ComparedPair, format_change, reading

_CARRIED = 0.8  # a segment with this share of the difference carries it
_MINORITY = 0.5  # if it has at most this share of the queries
_FEW = 0.1  # queries up to this share of those that changed are few
_HALF = 0.5  # share of the difference that a few queries may not reach


@reading
def carried_by_one_segment(pair: ComparedPair) -> str | None:
    """Most of the difference comes from one value of one segment that has a minority of the queries."""
    headline = pair.significant_headline()
    if headline is None:
        return None
    spec, whole = headline
    for segment in (columns[0] for columns in pair.config.query_segments if len(columns) == 1):
        for row in (r for r in pair.rows(segment) if r["metric"] == spec.key and r["delta"] is not None):
            share = row["delta"] * row["queries"] / (whole["delta"] * whole["queries"])
            size = row["queries"] / whole["queries"]
            if share >= _CARRIED and size <= _MINORITY:
                return (
                    f"{share:.0%} of the difference in {spec.name} comes from {segment} = {row['value']}, which has "
                    f"{size:.0%} of the queries: {format_change(row)} there."
                )
    return None


@reading
def carried_by_few_queries(pair: ComparedPair) -> str | None:
    """The largest movers, few among the queries that changed, alone make up half of the difference or more."""
    headline = pair.significant_headline()
    if headline is None:
        return None
    spec, row = headline
    direction = "gain" if row["delta"] > 0 else "loss"
    movers = pair.select(pair.context.changes, metric=spec.key, direction=direction)
    share = sum(mover["delta"] for mover in movers) / (row["delta"] * row["queries"])
    if share >= _HALF and len(movers) <= _FEW * (row["wins"] + row["losses"]):
        return (
            f"{len(movers)} of {row['queries']:,} queries make up {share:.0%} of the difference in {spec.name}: look "
            "at them in query_changes before believing it."
        )
    return None


@reading
def weighting_changes_the_answer(pair: ComparedPair) -> str | None:
    """The mean over queries and the mean over traffic point different ways."""
    headline = pair.significant_headline()
    if headline is None:
        return None
    spec, row = headline
    weighted = row["weighted_delta"]
    if weighted is not None and weighted * row["delta"] < 0:
        return (
            f"{spec.name} moves by {row['delta']:+.4f} per query but by {weighted:+.4f} weighted by traffic: frequent "
            "and rare queries disagree. Report by traffic_band."
        )
    return None
