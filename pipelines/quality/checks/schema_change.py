"""The columns are those of the previous run."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check


@check(
    tables="every input",
    severity="warn",
    threshold=0,
    measures="columns that may be missing or have another type since the previous run",
    advice="ask the owner of the table; set a renamed column in inputs.TABLE.columns",
)
def schema_change(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """A missing optional column loses weights, systems or segments without an error."""
    for table, figures in facts.select_tables("columns"):
        before = facts.find_previous(table, "columns")
        if before is None:
            continue
        columns = figures["columns"]
        changes = [
            f"{column} is missing" if column not in columns else f"{column} was {kind}, is {columns[column]}"
            for column, kind in before.items()
            if columns.get(column) != kind
        ]
        yield Finding(
            table=table,
            passed=len(changes) <= threshold,
            observed=f"{len(changes)} columns are missing or have another type",
            allowed=f"at most {threshold:g}",
            sample=tuple(changes[:3]),
        )
