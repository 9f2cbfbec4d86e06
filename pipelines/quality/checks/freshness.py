"""Whether the log reaches the date."""

import datetime as dt
from collections.abc import Iterator

from pipelines.quality.registry import Facts, Finding, check


@check(
    tables="impressions and interactions",
    severity="warn",
    threshold=24,
    measures="most hours between the newest row and the end of the date",
    advice="wait for the load to finish, or look for why it stopped; assay check can stand before the job as a sensor",
)
def freshness(facts: Facts, threshold: float) -> Iterator[Finding]:
    """A log that ends early was copied before it was complete."""
    end = dt.datetime.combine(facts.date, dt.time(), dt.UTC) + dt.timedelta(days=1)
    for name, known in facts.having("newest"):
        newest = dt.datetime.fromtimestamp(known["newest"], dt.UTC)
        hours = (end - newest).total_seconds() / 3600
        yield Finding(
            name,
            hours <= threshold,
            observed=f"the newest row is of {newest:%Y-%m-%d %H:%M}, {max(hours, 0):,.1f} hours before the end of "
            f"{facts.date}",
            allowed=f"at most {threshold:g} hours",
            column="ts",
        )
