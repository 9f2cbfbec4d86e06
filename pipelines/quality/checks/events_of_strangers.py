"""Users act on their own pages."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, check_share


@check(
    tables="interactions against impressions",
    severity="warn",
    threshold=0.05,
    measures="largest share of events on a page by a user to whom it was not shown",
    advice="compare user_id of both tables: two kinds of ids, or a join that mixed them up",
    sampled=True,
)
def events_of_strangers(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """Carts and purchases are attributed to a page by user; this needs the same user ids in both tables."""
    for table, figures in facts.select_tables("met", "strange"):
        yield check_share(
            threshold,
            table,
            part=figures["strange"],
            whole=figures["met"],
            what="events on logged pages are by another user",
            column="user_id",
            sample=figures["strange_sample"],
        )
