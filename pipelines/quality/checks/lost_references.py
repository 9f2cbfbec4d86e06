"""References between tables resolve as usual."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from pipelines.quality.registry import Figures, Finding, QualityFacts, check, format_percent, share_of

# Figure of the unresolved part -> figure of the whole, what is counted, and the table it refers to.
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
    measures="largest rise of the share of rows without a match in the other table over the usual share",
    advice="compare the ids of documents, pages and queries in both tables with those of the day before",
    sampled=True,
)
def lost_references(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """Some references never resolve; if more fail than usual, one of the tables has changed."""
    for part, (whole, what, other) in REFERENCES.items():
        for table, figures in facts.select_tables(part, whole):
            usual = facts.compute_usual(table, partial(_compute_share, part, whole))
            if usual is None:
                continue
            share = share_of(figures[part], figures[whole])
            yield Finding(
                table=table,
                passed=share - usual <= threshold,
                observed=f"{format_percent(share)} of the {what} have no match in {other}, "
                f"usually {format_percent(usual)}",
                allowed=f"at most {format_percent(threshold)} more than usual",
                rows=figures[whole],
                failed_rows=figures[part],
                sample=tuple(figures[f"{part}_sample"]),
            )


def _compute_share(part: str, whole: str, figures: Figures) -> float | None:
    return share_of(figures[part], figures[whole]) if part in figures and whole in figures else None
