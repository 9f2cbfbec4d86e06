"""Whether positions can be positions."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, check


@check(
    tables="impressions and rankings",
    severity="warn",
    threshold=1000,
    measures="largest position on a page, or largest hole in the ranks of a list",
    advice="look for identifiers or timestamps in the column; nobody scrolls so far",
)
def huge_positions(facts: Facts, threshold: float) -> Iterator[Finding]:
    """A position of a million is another number in the wrong column, and would decide what was looked at."""
    for name, known in facts.having("deepest"):
        column = "position" if name == "impressions" else "rank"
        beyond = "" if name == "impressions" else " beyond the length of its list"
        yield Finding(
            name,
            known["deepest"] <= threshold,
            observed=f"the largest {column} is {known['deepest']:,}{beyond}",
            allowed=f"at most {threshold:,.0f}",
            column=column,
            sample=(str(known["deepest"]),),
        )
