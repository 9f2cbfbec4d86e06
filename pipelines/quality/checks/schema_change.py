"""Whether the columns are those of the last run."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, check


@check(
    tables="every input",
    severity="warn",
    threshold=0,
    measures="columns that may have gone or changed their type since the last run",
    advice="ask whoever writes the table; a new name goes into inputs.TABLE.columns",
)
def schema_change(facts: Facts, threshold: float) -> Iterator[Finding]:
    """An optional column that is gone takes its weights, systems or segments along without an error."""
    for name, known in facts.having("columns"):
        before = facts.previous(name, "columns")
        if before is None:
            continue
        now = known["columns"]
        changed = [
            f"{column} is gone" if column not in now else f"{column} was {kind}, is {now[column]}"
            for column, kind in before.items()
            if now.get(column) != kind
        ]
        yield Finding(
            name,
            len(changed) <= threshold,
            observed=f"{len(changed)} columns are gone or of another type",
            allowed=f"at most {threshold:g}",
            sample=tuple(changed[:3]),
        )
