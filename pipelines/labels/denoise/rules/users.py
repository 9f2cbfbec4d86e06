"""Rules on users and on single days of users."""

import numpy as np

from pipelines.labels.denoise.registry import Arrays, rule
from pipelines.labels.denoise.settings import Clockwork, RuleSettings, TooManyQueries
from udfs.ragged import Bools


@rule("known_bot", "user")
def known_bot(settings: RuleSettings, user: Arrays) -> Bools:
    """A user whose user agent names a crawler.

    Source: the list of the package crawler-user-agents. Arrays: `crawler`.
    """
    return np.asarray(user["crawler"], dtype=np.bool_)


@rule("too_many_queries", "user_day")
def too_many_queries(settings: TooManyQueries, day: Arrays) -> Bools:
    """A day of a user with more searches than a person makes.

    Source: Buehrer et al. 2008, volume as the first sign of automated traffic. Arrays: `pages`.
    """
    return day["pages"] >= settings.pages


@rule("clockwork", "user_day")
def clockwork(settings: Clockwork, day: Arrays) -> Bools:
    """A day of a user with evenly spaced pages: standard deviation of the gaps below a tenth of their mean.

    Source: Buehrer et al. 2008, periodicity. Arrays: `pages`, `gap_mean`, `gap_deviation`.
    """
    return (day["pages"] >= settings.pages) & (day["gap_deviation"] < settings.variation * day["gap_mean"])
