"""Whether people click as people do."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, check, percent, share


@check(
    tables="interactions against impressions",
    severity="error",
    threshold=0.5,
    measures="largest number of clicks per impression; none at all fails too",
    advice="look for the kinds of events (inputs.interactions.columns.kind), and for impressions that were not logged",
)
def click_rate(facts: Facts, threshold: float) -> Iterator[Finding]:
    """Without clicks, or with one on every other result, no label made from clicks means anything."""
    for name, known in facts.having("clicks", "shown"):
        found = share(known["clicks"], known["shown"])
        yield Finding(
            name,
            0 < found <= threshold,
            observed=f"{known['clicks']:,} clicks on {known['shown']:,} impressions ({percent(found)})",
            allowed=f"more than none, at most {percent(threshold)}",
            column="kind",
            rows=known["read"],
        )
