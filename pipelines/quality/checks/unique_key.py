"""A key identifies one row."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check, check_share


@check(
    tables="every input with a key",
    severity="warn",
    threshold=0.0,
    measures="largest share of rows that repeat the key of another row",
    advice="look for a file that was loaded twice, or a join that multiplies rows",
    sampled=True,
)
def unique_key(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """A duplicate row counts twice, or one of two conflicting rows is kept arbitrarily."""
    for table, figures in facts.select_tables("keyed", "repeated"):
        yield check_share(
            threshold,
            table,
            part=figures["repeated"],
            whole=figures["keyed"],
            what="rows repeat a key",
            sample=figures["repeated_sample"],
        )
