"""Whether what was done was done to what was shown."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, at_most, check


@check(
    tables="interactions against impressions",
    severity="error",
    threshold=0.2,
    measures="largest share of events on a page that did not show their document",
    advice="compare serp_id and doc_id of both tables: other days, another spelling, or a join that lost rows; such "
    "events cannot count and go to quarantine",
    drawn=True,
)
def events_without_impression(facts: Facts, threshold: float) -> Iterator[Finding]:
    """Clicks that find no impression are lost, and documents lose their labels with them."""
    for name, known in facts.having("placed", "unshown"):
        what, such = "events were done to what their page did not show", known["unshown_sample"]
        yield at_most(threshold, name, known["unshown"], known["placed"], what, column="serp_id", sample=such)
