"""Ids have the right encoding."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, check_share


@check(
    tables="every input",
    severity="warn",
    threshold=0.0,
    measures="largest share of rows with a wrongly encoded id",
    advice="read the files in the encoding they were written in (inputs.TABLE.options.encoding for CSV)",
    sampled=True,
)
def garbled_text(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """An id that was read in the wrong encoding equals no other id, so its rows join with nothing."""
    for table, figures in facts.select_tables("keyed", "garbled"):
        yield check_share(
            threshold,
            table,
            part=figures["garbled"],
            whole=figures["keyed"],
            what="rows have an id with wrongly encoded characters",
            sample=figures["garbled_sample"],
        )
