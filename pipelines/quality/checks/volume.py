"""Whether there is as much data as usual."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, check, percent, share


@check(
    tables="every input",
    severity="warn",
    threshold=0.5,
    measures="smallest share of the usual rows (the median of the last runs); its inverse is the largest",
    advice="compare the number of files and the hours they cover with the day before",
)
def volume(facts: Facts, threshold: float) -> Iterator[Finding]:
    """Half a day of data looks like any other day, and so do its numbers."""
    for name, known in facts.having("kept"):
        usual = facts.usual(name, lambda past: past.get("kept"))
        if not usual:
            continue
        found = share(known["kept"], usual)
        yield Finding(
            name,
            threshold <= found <= (1 / threshold if threshold else float("inf")),
            observed=f"{known['kept']:,} rows, {percent(found)} of the usual {usual:,.0f}",
            allowed=f"{percent(threshold)} to {percent(1 / threshold) if threshold else 'any'} of the usual",
            rows=known["kept"],
        )
