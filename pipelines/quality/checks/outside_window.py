"""Rows are from the requested days."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, check_share


@check(
    tables="impressions and interactions, where path or where has {date}",
    severity="warn",
    threshold=0.05,
    measures="largest share of rows whose day is not in the window",
    advice="compare the date of the folder with the time zone and with the column that ts is read from",
)
def outside_window(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """Rows of other days are counted twice when their own day is read."""
    for table, figures in facts.select_tables("outside", "window"):
        yield check_share(
            threshold,
            table,
            part=figures["outside"],
            whole=figures["read"],
            what=f"rows are not of {figures['window'][0]} to {figures['window'][-1]}",
            column="ts",
        )
