"""The click rate is as usual."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Figures, Finding, QualityFacts, check, format_percent, share_of


@check(
    tables="interactions against impressions",
    severity="warn",
    threshold=2,
    measures="largest factor between the click rate and the usual one, in either direction",
    advice="look for a release that changed the logging, lost click events, or crawlers",
)
def click_rate_change(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """User behaviour changes slowly; a sudden change of the click rate is usually a logging error."""
    for table, figures in facts.select_tables("clicks", "shown"):
        usual, rate = facts.compute_usual(table, _compute_rate), _compute_rate(figures)
        if not usual or rate is None:
            continue
        yield Finding(
            table=table,
            passed=usual / threshold <= rate <= usual * threshold,
            observed=f"{format_percent(rate)} of the impressions were clicked, usually {format_percent(usual)}",
            allowed=f"{format_percent(usual / threshold)} to {format_percent(usual * threshold)}",
            column="kind",
            rows=figures["read"],
        )


def _compute_rate(figures: Figures) -> float | None:
    return share_of(figures["clicks"], figures["shown"]) if figures.get("shown") else None
