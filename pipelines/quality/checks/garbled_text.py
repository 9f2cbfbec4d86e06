"""Whether names survived their encoding."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, at_most, check


@check(
    tables="every input",
    severity="warn",
    threshold=0.0,
    measures="largest share of rows with a name that has lost its encoding",
    advice="read the files in the encoding that they were written in (inputs.TABLE.options.encoding for CSV)",
    drawn=True,
)
def garbled_text(facts: Facts, threshold: float) -> Iterator[Finding]:
    """A name that was read in the wrong encoding equals no other name, and its rows join with nothing."""
    for name, known in facts.having("keyed", "garbled"):
        what, such = "rows have a name with characters that no one typed", known["garbled_sample"]
        yield at_most(threshold, name, known["garbled"], known["keyed"], what, sample=such)
