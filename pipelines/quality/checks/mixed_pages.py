"""Whether a page is one answer."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, at_most, check


@check(
    tables="impressions",
    severity="warn",
    threshold=0.01,
    measures="largest share of pages whose rows name different queries, people or systems",
    advice="look for a serp_id that is used again, or a join that mixed the rows of pages",
    drawn=True,
)
def mixed_pages(facts: Facts, threshold: float) -> Iterator[Finding]:
    """A page is one answer of one system to one search; where its rows disagree, some of them are wrong."""
    for name, known in facts.having("mixed", "whole_pages"):
        what, such = "pages have rows of different queries, people or systems", known["mixed_sample"]
        yield at_most(threshold, name, known["mixed"], known["whole_pages"], what, column="serp_id", sample=such)
