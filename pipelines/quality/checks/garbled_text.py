"""Whether names survived their encoding."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, check, percent, share


@check(
    tables="every input",
    severity="warn",
    threshold=0.0,
    measures="largest share of rows with a name that has lost its encoding",
    advice="read the files in the encoding that they were written in (inputs.TABLE.options.encoding for CSV)",
)
def garbled_text(facts: Facts, threshold: float) -> Iterator[Finding]:
    """A name that was read in the wrong encoding equals no other name, and its rows join with nothing."""
    for name, known in facts.having("keyed", "garbled"):
        found = share(known["garbled"], known["keyed"])
        yield Finding(
            name,
            found <= threshold,
            observed=f"{known['garbled']:,} of {known['keyed']:,} rows have a name with characters that no one typed "
            f"({percent(found)})",
            allowed=f"at most {percent(threshold)}",
            rows=known["keyed"],
            failed_rows=known["garbled"],
            sample=tuple(known["garbled_sample"]),
        )
