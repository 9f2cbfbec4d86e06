"""Readings of the sheet of judged queries."""

from __future__ import annotations

from pipelines.comparison.judging.apply import MIN_COMPLETE
from pipelines.comparison.judging.correction import use_correction
from pipelines.comparison.judging.difference import FEWEST
from pipelines.comparison.readings.registry import ComparedPair, format_change, reading


@reading
def judged_queries(pair: ComparedPair) -> str | None:
    """What the judged queries change, or why they do not count."""
    headline = pair.headline
    if headline is None:
        return None
    spec, row = headline
    of_metric = [count for count in pair.context.sheet_counts if count.metric == spec.key]
    count = next((c for c in of_metric if (c.baseline, c.candidate) == (pair.baseline, pair.candidate)), None)
    if count is None or (not count.usable and any(other.usable for other in of_metric)):  # a sheet of another pair
        return None
    queries, graded, complete = count.queries, count.graded, count.complete
    rest = f"{queries - complete:,} are incomplete and left out" if complete < queries else "none is incomplete"
    if row["delta_corrected"] is not None:
        return (
            f"{complete:,} of {queries:,} drawn queries are judged: they correct {spec.name} from {format_change(row)} "
            f"to {format_change(use_correction(row))}, which the gate uses; {rest}."
        )
    return (
        f"The judged queries do not correct {spec.name}: of {queries:,} drawn queries {graded:,} have grades, and "
        f"{complete:,} have the top of both lists fully graded; {FEWEST} and {MIN_COMPLETE:.0%} of those with "
        "grades are needed. Was the sheet drawn for this candidate?"
    )
