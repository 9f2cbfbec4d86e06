"""The log is complete up to the date."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check


@check(
    tables="impressions and interactions",
    severity="warn",
    threshold=24,
    measures="most hours between the newest row and the end of the date",
    advice="wait for the load to finish, or find out why it stopped; assay check can run as a sensor before the job",
)
def freshness(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """A log that ends early was read before it was complete."""
    end = dt.datetime.combine(facts.date, dt.time(), dt.UTC) + dt.timedelta(days=1)
    for table, figures in facts.select_tables("newest"):
        newest = dt.datetime.fromtimestamp(figures["newest"], dt.UTC)
        hours = (end - newest).total_seconds() / 3600
        yield Finding(
            table=table,
            passed=hours <= threshold,
            observed=f"the newest row is of {newest:%Y-%m-%d %H:%M}, {max(hours, 0):,.1f} hours before the end of "
            f"{facts.date}",
            allowed=f"at most {threshold:g} hours",
            column="ts",
        )
