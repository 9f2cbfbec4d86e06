"""Rules on users and on single days of users."""

from pyspark.sql import Column

from pipelines.labels.denoise.registry import Columns, rule
from pipelines.labels.denoise.settings import Clockwork, RuleSettings, TooManyQueries


@rule("known_bot", "user")
def known_bot(settings: RuleSettings, user: Columns) -> Column:
    """A user whose user agent names a crawler.

    Source: the list of the package crawler-user-agents. Columns: `crawler`.
    """
    return user["crawler"]


@rule("too_many_queries", "user_day")
def too_many_queries(settings: TooManyQueries, day: Columns) -> Column:
    """A day of a user with more searches than a person makes.

    Source: Buehrer et al. 2008, volume as the first sign of automated traffic. Columns: `pages`.
    """
    return day["pages"] >= settings.pages


@rule("clockwork", "user_day")
def clockwork(settings: Clockwork, day: Columns) -> Column:
    """A day of a user with evenly spaced pages: standard deviation of the gaps below a tenth of their mean.

    Source: Buehrer et al. 2008, periodicity. Columns: `pages`, `gap_mean`, `gap_deviation`.
    """
    return (day["pages"] >= settings.pages) & (day["gap_deviation"] < settings.variation * day["gap_mean"])
