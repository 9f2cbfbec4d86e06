"""Rules on users and on single days of users."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipelines.labels.denoise.registry import rule
from pipelines.labels.denoise.settings import Clockwork, RuleSettings, TooManyQueries


@rule("known_bot", "user")
def known_bot(settings: RuleSettings) -> Column:
    """A user whose user agent names a crawler.

    Source: the list of the package crawler-user-agents. Features: `crawler`.
    """
    return F.col("crawler")


@rule("too_many_queries", "user_day")
def too_many_queries(settings: TooManyQueries) -> Column:
    """A day of a user with more searches than a person makes.

    Source: Buehrer et al. 2008, volume as the first sign of automated traffic. Features: `pages`.
    """
    return F.col("pages") >= settings.pages


@rule("clockwork", "user_day")
def clockwork(settings: Clockwork) -> Column:
    """A day of a user with evenly spaced pages: standard deviation of the gaps below a tenth of their mean.

    Source: Buehrer et al. 2008, periodicity. Features: `pages`, `gap_mean`, `gap_deviation`.
    """
    return (F.col("pages") >= settings.pages) & (F.col("gap_deviation") < settings.variation * F.col("gap_mean"))
