"""Times have one unit."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, check_share


@check(
    tables="impressions and interactions",
    severity="error",
    threshold=0.001,
    measures="largest share of times before 2000 or over a year after the date, or of dwell times over a day",
    advice="look for seconds read as milliseconds or the reverse; convert them where the log is written",
)
def time_units(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """A time in the wrong unit is decades off, and breaks every rule about minutes and days."""
    for figure, column in {"strange_times": "ts", "strange_dwells": "dwell_seconds"}.items():
        for table, figures in facts.select_tables(figure):
            yield check_share(
                threshold,
                table,
                part=figures[figure],
                whole=figures["read"],
                what=f"rows have a {column} that must be in another unit",
                column=column,
                sample=figures[f"{figure}_sample"],
            )
