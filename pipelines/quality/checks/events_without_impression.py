"""Events refer to shown documents."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, check_share


@check(
    tables="interactions against impressions",
    severity="error",
    threshold=0.2,
    measures="largest share of events on a page that did not show their document",
    advice="compare serp_id and doc_id of both tables: other days, another spelling, or a join that lost rows; "
    "these events are not counted and go to quarantine",
    sampled=True,
)
def events_without_impression(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """Clicks without an impression are lost, and with them the labels of their documents."""
    for table, figures in facts.select_tables("placed", "unshown"):
        yield check_share(
            threshold,
            table,
            part=figures["unshown"],
            whole=figures["placed"],
            what="events refer to a document that their page did not show",
            column="serp_id",
            sample=figures["unshown_sample"],
        )
