"""Positions count from 1."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, check_share


@check(
    tables="impressions",
    severity="error",
    threshold=0.001,
    measures="largest share of impressions at position 0",
    advice="add 1 where it is read: inputs.TABLE.columns.position: position + 1 (or the name it has in the data, + 1)",
)
def positions_from_zero(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """A log that counts from 0 loses its first results to quarantine and shifts all others by one position."""
    for table, figures in facts.select_tables("zero_positions"):
        yield check_share(
            threshold,
            table,
            part=figures["zero_positions"],
            whole=figures["read"],
            what="impressions are at position 0",
            column="position",
            sample=("0",),
        )
