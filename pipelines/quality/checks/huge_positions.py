"""Positions are plausible."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check


@check(
    tables="impressions and rankings",
    severity="warn",
    threshold=1000,
    measures="largest position on a page, or largest gap in the ranks of a list",
    advice="look for ids or timestamps in the column; no one scrolls that far",
)
def huge_positions(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """A position of a million is another quantity in the wrong column, and would distort examination."""
    for table, figures in facts.select_tables("deepest"):
        column = "position" if table == "impressions" else "rank"
        beyond = "" if table == "impressions" else " beyond the length of its list"
        yield Finding(
            table=table,
            passed=figures["deepest"] <= threshold,
            observed=f"the largest {column} is {figures['deepest']:,}{beyond}",
            allowed=f"at most {threshold:,.0f}",
            column=column,
            sample=(str(figures["deepest"]),),
        )
