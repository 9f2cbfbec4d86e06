"""Whether times are in one unit."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, check, percent, share


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
            found = share(known[figure], known["read"])
            yield Finding(
                name,
                found <= threshold,
                observed=f"{known[figure]:,} of {known['read']:,} rows have a {column} that must be in another unit "
                f"({percent(found)})",
                allowed=f"at most {percent(threshold)}",
                column=column,
                rows=known["read"],
                failed_rows=known[figure],
                sample=tuple(known[f"{figure}_sample"]) if known[figure] else (),
            )
