"""Whether times are in one unit."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, at_most, check


@check(
    tables="impressions and interactions",
    severity="error",
    threshold=0.001,
    measures="largest share of times before the year 2000 or over a year after the date, or of visits over a day",
    advice="look for seconds read as milliseconds or the other way round; convert them where the log is written",
)
def time_units(facts: Facts, threshold: float) -> Iterator[Finding]:
    """A time in the wrong unit lies decades away, and every rule about minutes and days takes it at its word."""
    for figure, column in {"strange_times": "ts", "strange_dwells": "dwell_seconds"}.items():
        for name, known in facts.having(figure):
            what, such = f"rows have a {column} that must be in another unit", known[f"{figure}_sample"]
            yield at_most(threshold, name, known[figure], known["read"], what, column=column, sample=such)
