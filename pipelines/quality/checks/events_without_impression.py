"""Whether what was done was done to what was shown."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, check, percent, share


@check(
    tables="interactions against impressions",
    severity="error",
    threshold=0.2,
    measures="largest share of events on a page that did not show their document",
    advice="compare serp_id and doc_id of both tables: other days, another spelling, or a join that lost rows; such "
    "events cannot count and go to quarantine",
)
def events_without_impression(facts: Facts, threshold: float) -> Iterator[Finding]:
    """Clicks that find no impression are lost, and documents lose their labels with them."""
    for name, known in facts.having("placed", "unshown"):
        found = share(known["unshown"], known["placed"])
        yield Finding(
            name,
            found <= threshold,
            observed=f"{known['unshown']:,} of {known['placed']:,} events were done to what their page did not show "
            f"({percent(found)})",
            allowed=f"at most {percent(threshold)}",
            column="serp_id",
            rows=known["placed"],
            failed_rows=known["unshown"],
            sample=tuple(known["unshown_sample"]),
        )
