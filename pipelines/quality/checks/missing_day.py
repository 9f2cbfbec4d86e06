"""Every day of the window has rows."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check


@check(
    tables="every input with {date} in path or where",
    severity="warn",
    threshold=0,
    measures="days of the window that may have no rows",
    advice="load the missing days and run again, or shorten inputs.TABLE.days",
)
def missing_day(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """A window with a missing day has another mix of weekdays than the one before, and less evidence."""
    for table, figures in facts.select_tables("window"):
        rows_by_day = figures.get("days", {})
        missing = {day for day, rows in rows_by_day.items() if not rows} | set(figures["missing_days"])
        yield Finding(
            table=table,
            passed=len(missing) <= threshold,
            observed=f"{len(missing)} of {len(figures['window'])} days have no rows",
            allowed=f"at most {threshold:g}",
            column="ts" if rows_by_day else None,
            sample=tuple(sorted(missing)[:3]),
        )
