"""Whether a key names one row."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, at_most, check


@check(
    tables="every input with a key",
    severity="warn",
    threshold=0.0,
    measures="largest share of rows that repeat the key of another one",
    advice="look for a file that was loaded twice, or a join that multiplies rows",
    drawn=True,
)
def unique_key(facts: Facts, threshold: float) -> Iterator[Finding]:
    """A row that stands twice counts twice, or one of two that disagree wins by chance."""
    for name, known in facts.having("keyed", "repeated"):
        what, such = "rows repeat a key", known["repeated_sample"]
        yield at_most(threshold, name, known["repeated"], known["keyed"], what, sample=such)
