"""The click rate is plausible."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, format_percent, share_of


@check(
    tables="interactions against impressions",
    severity="error",
    threshold=0.5,
    measures="largest number of clicks per impression; no click at all fails too",
    advice="check the event kinds (inputs.interactions.columns.kind), and whether all impressions are logged",
)
def click_rate(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """Without clicks, or with one on every other result, labels from clicks mean nothing."""
    for table, figures in facts.select_tables("clicks", "shown"):
        rate = share_of(figures["clicks"], figures["shown"])
        yield Finding(
            table=table,
            passed=0 < rate <= threshold,
            observed=f"{figures['clicks']:,} clicks on {figures['shown']:,} impressions ({format_percent(rate)})",
            allowed=f"more than none, at most {format_percent(threshold)}",
            column="kind",
            rows=figures["read"],
        )
