"""Times have one unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipelines.quality.registry import Finding, QualityFacts, check, check_share


@check(
    tables="impressions and interactions",
    severity="error",
    threshold=0.001,
    measures="largest share of times before 2000 or over a year after the date, or of dwell times over a day",
    advice="give the unit: inputs.TABLE.columns.ts: timestamp_millis(bigint(NAME)), timestamp_micros or "
    "timestamp_seconds, with the name in the data; for a dwell time, columns.dwell_seconds: NAME / 1000",
)
def time_units(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """A time in the wrong unit is decades off, and breaks every rule about minutes and days."""
    for figure, column in {"strange_times": "ts", "strange_dwells": "dwell_seconds"}.items():
        for table, figures in facts.select_tables(figure):
            yield check_share(
                threshold,
                table,
                part=figures[figure],
                whole=figures["read"],
                what=f"rows have a {column} that must be in another unit{_guess_unit(figures[f'{figure}_sample'])}",
                column=column,
                sample=figures[f"{figure}_sample"],
            )


def _guess_unit(sample: Sequence[str]) -> str:
    """The unit that would make the times recent; empty where none does."""
    sizes = [abs(float(value.removesuffix(" s").replace(",", ""))) for value in sample]
    for unit, factor in {"milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}.items():
        if sizes and all(9e8 < size / factor < 4e9 for size in sizes):  # between 1998 and 2096
            return f": they look like {unit} read as seconds"
        if sizes and all(9e8 < size * factor < 4e9 for size in sizes):
            return f": they look like seconds read as {unit}"
    return ""
