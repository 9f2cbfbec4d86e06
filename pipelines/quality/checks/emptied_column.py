"""Whether optional columns still have their values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from pipelines.quality.registry import Facts, Figures, Finding, check, percent, share


@check(
    tables="every input with optional columns",
    severity="warn",
    threshold=0.05,
    measures="largest rise of the share of rows without a value in an optional column, over the usual one",
    advice="ask whoever writes the table; what is built on the column rests on the other rows now",
)
def emptied_column(facts: Facts, threshold: float) -> Iterator[Finding]:
    """An optional column may be empty, but one that becomes so takes weights, pages or systems along."""
    for name, known in facts.having("empty", "read"):
        for column, empty in known["empty"].items():
            usual = facts.usual(name, partial(_share, column))
            if usual is None:
                continue
            found = share(empty, known["read"])
            yield Finding(
                name,
                found - usual <= threshold,
                observed=f"{percent(found)} of the rows have no {column}, usually {percent(usual)}",
                allowed=f"at most {percent(threshold)} more than usual",
                column=column,
                rows=known["read"],
                failed_rows=empty,
            )


def _share(column: str, known: Figures) -> float | None:
    empty = known.get("empty", {}).get(column)
    return None if empty is None else share(empty, known["read"])
