"""Whether rows are of the days that were asked for."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, at_most, check


@check(
    tables="impressions and interactions, where path or where has {date}",
    severity="warn",
    threshold=0.05,
    measures="largest share of rows whose day is not in the window",
    advice="compare the folder's date with the time zone and the column that ts is read from",
)
def outside_window(facts: Facts, threshold: float) -> Iterator[Finding]:
    """Rows of other days count twice when their own day is read, and mix what should be compared."""
    for name, known in facts.having("outside", "window"):
        what = f"rows are not of {known['window'][0]} to {known['window'][-1]}"
        yield at_most(threshold, name, known["outside"], known["read"], what, column="ts")
