"""Whether people act on their own pages."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, at_most, check


@check(
    tables="interactions against impressions",
    severity="warn",
    threshold=0.05,
    measures="largest share of events on a page by someone whom it was not shown to",
    advice="compare user_id of both tables: two kinds of names for people, or a join that mixed them",
    drawn=True,
)
def events_of_strangers(facts: Facts, threshold: float) -> Iterator[Finding]:
    """Carts and purchases find their page by the person, and people are counted; neither works across two names."""
    for name, known in facts.having("met", "strange"):
        what, such = "events on known pages are by someone else", known["strange_sample"]
        yield at_most(threshold, name, known["strange"], known["met"], what, column="user_id", sample=such)
