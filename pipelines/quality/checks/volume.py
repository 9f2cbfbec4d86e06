"""The number of rows is as usual."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, format_percent, share_of


@check(
    tables="every input",
    severity="warn",
    threshold=0.5,
    measures="smallest share of the usual rows (the median of the last runs); its inverse is the largest",
    advice="compare the number of files and the hours they cover with the day before",
)
def volume(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """Metrics of half a day of data look plausible but are not comparable."""
    for table, figures in facts.select_tables("kept"):
        usual = facts.compute_usual(table, lambda past: past.get("kept"))
        if not usual:
            continue
        share = share_of(figures["kept"], usual)
        largest = 1 / threshold if threshold else float("inf")
        yield Finding(
            table=table,
            passed=threshold <= share <= largest,
            observed=f"{figures['kept']:,} rows, {format_percent(share)} of the usual {usual:,.0f}",
            allowed=f"{format_percent(threshold)} to {format_percent(largest) if threshold else 'any'} of the usual",
            rows=figures["kept"],
        )
