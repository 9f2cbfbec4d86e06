"""Whether every day of the window is there."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, check


@check(
    tables="every input with {date} in path or where",
    severity="warn",
    threshold=0,
    measures="days of the window that may be without a row",
    advice="load the missing days and run again, or shorten inputs.TABLE.days",
)
def missing_day(facts: Facts, threshold: float) -> Iterator[Finding]:
    """A window with a hole has another mix of weekdays than the one before, and less evidence than it seems."""
    for name, known in facts.having("window"):
        rows = known.get("days", {})
        absent = {day for day, count in rows.items() if not count} | set(known["missing_days"])
        yield Finding(
            name,
            len(absent) <= threshold,
            observed=f"{len(absent)} of {len(known['window'])} days have no row",
            allowed=f"at most {threshold:g}",
            column="ts" if rows else None,
            sample=tuple(sorted(absent)[:3]),
        )
