"""Whether positions count from 1."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, at_most, check


@check(
    tables="impressions",
    severity="error",
    threshold=0.001,
    measures="largest share of impressions at position 0",
    advice="add 1 to position where the log is written, or read it through a view that does",
)
def positions_from_zero(facts: Facts, threshold: float) -> Iterator[Finding]:
    """A log that counts from 0 loses its first results to quarantine and shifts all others by one place."""
    for name, known in facts.having("zero_positions"):
        what, such = "impressions stand at position 0", ("0",)
        yield at_most(threshold, name, known["zero_positions"], known["read"], what, column="position", sample=such)
