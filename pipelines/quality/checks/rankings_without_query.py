"""Whether the ranked queries are known."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, check, percent, share


@check(
    tables="rankings against queries",
    severity="warn",
    threshold=0.01,
    measures="largest share of lists whose query is not in queries",
    advice="compare query_id of both tables; a list without a query has weight 1 and belongs to no segment",
)
def rankings_without_query(facts: Facts, threshold: float) -> Iterator[Finding]:
    """A list whose query is unknown has no segment and no traffic, and falls out of what is reported by them."""
    for name, known in facts.having("lists", "unlisted"):
        found = share(known["unlisted"], known["lists"])
        yield Finding(
            name,
            found <= threshold,
            observed=f"{known['unlisted']:,} of {known['lists']:,} lists answer a query that is not in queries "
            f"({percent(found)})",
            allowed=f"at most {percent(threshold)}",
            column="query_id",
            rows=known["lists"],
            failed_rows=known["unlisted"],
            sample=tuple(known["unlisted_sample"]),
        )
