"""Whether people click as much as they did."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Facts, Figures, Finding, check, percent, share


def _rate(known: Figures) -> float | None:
    return share(known["clicks"], known["shown"]) if known.get("shown") else None


@check(
    tables="interactions against impressions",
    severity="warn",
    threshold=2,
    measures="largest factor between the clicks per impression and the usual ones, either way",
    advice="look for a release that changed what is logged, lost click events, or crawlers",
)
def click_rate_change(facts: Facts, threshold: float) -> Iterator[Finding]:
    """People do not change overnight; what is logged of them does."""
    for name, known in facts.having("clicks", "shown"):
        usual, now = facts.usual(name, _rate), _rate(known)
        if not usual or now is None:
            continue
        yield Finding(
            name,
            usual / threshold <= now <= usual * threshold,
            observed=f"{percent(now)} of the impressions were clicked, usually {percent(usual)}",
            allowed=f"{percent(usual / threshold)} to {percent(usual * threshold)}",
            column="kind",
            rows=known["read"],
        )
