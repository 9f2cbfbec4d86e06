"""Optional columns still have their values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from pipelines.quality.registry import Figures, Finding, QualityFacts, check, format_percent, share_of


@check(
    tables="every input with optional columns",
    severity="warn",
    threshold=0.05,
    measures="largest rise of the share of nulls in an optional column over the usual share",
    advice="ask the owner of the table; results that use the column now rest on fewer rows",
)
def emptied_column(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """An optional column may be null, but one that suddenly is loses weights, pages or systems."""
    for table, figures in facts.select_tables("empty", "read"):
        for column, empty in figures["empty"].items():
            usual = facts.compute_usual(table, partial(_compute_share, column))
            if usual is None:
                continue
            share = share_of(empty, figures["read"])
            yield Finding(
                table=table,
                passed=share - usual <= threshold,
                observed=f"{format_percent(share)} of the rows have no {column}, usually {format_percent(usual)}",
                allowed=f"at most {format_percent(threshold)} more than usual",
                column=column,
                rows=figures["read"],
                failed_rows=empty,
            )


def _compute_share(column: str, figures: Figures) -> float | None:
    empty = figures.get("empty", {}).get(column)
    return None if empty is None else share_of(empty, figures["read"])
