"""Whether tables still fit together as they did."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from pipelines.quality.registry import Facts, Figures, Finding, check, percent, share

# Which part of which whole leads nowhere, and where it should lead.
REFERENCES = {
    "unshown": ("placed", "events", "impressions"),
    "unlisted": ("lists", "lists", "queries"),
    "unlabelled": ("lists", "lists", "judgments"),
    "unranked": ("keyed", "judgments", "rankings"),
}


@check(
    tables="interactions against impressions, rankings against queries, judgments against rankings and back",
    severity="warn",
    threshold=0.05,
    measures="largest rise of the share of rows that find nothing in the other table, over the usual one",
    advice="compare the names of documents, pages and queries in both tables with those of the day before",
    drawn=True,
)
def lost_references(facts: Facts, threshold: float) -> Iterator[Finding]:
    """Some references always lead nowhere; when more of them do than usual, one of the tables has changed."""
    for part, (whole, what, other) in REFERENCES.items():
        for name, known in facts.having(part, whole):
            usual = facts.usual(name, partial(_lost, part, whole))
            if usual is None:
                continue
            found = share(known[part], known[whole])
            yield Finding(
                name,
                found - usual <= threshold,
                observed=f"{percent(found)} of the {what} find nothing in {other}, usually {percent(usual)}",
                allowed=f"at most {percent(threshold)} more than usual",
                rows=known[whole],
                failed_rows=known[part],
                sample=tuple(known[f"{part}_sample"]),
            )


def _lost(part: str, whole: str, known: Figures) -> float | None:
    return share(known[part], known[whole]) if part in known and whole in known else None
