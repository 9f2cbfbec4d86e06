"""Put the days of a window together: the same tally as from all rows at once, from the statistics of single days.

Three passes over the days: by user, to find what the window changes (see `denoise.window_users`); by page, to judge the
pages again that this touches (see `denoise.window_pages`); by pair, to add up the cells of the days (see
`denoise.pairs`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.labels.build import TalliedLog
from pipelines.labels.denoise.days import change_buckets, choose_window_buckets, choose_window_tasks
from pipelines.labels.denoise.kinds import LOG_DAY
from pipelines.labels.denoise.pages import read_names, select_last_pages
from pipelines.labels.denoise.pairs import Origin, tally_pairs
from pipelines.labels.denoise.users import count_attributions
from pipelines.labels.denoise.window_pages import read_corrected, rejudge_pages
from pipelines.labels.denoise.window_users import correct_users
from pipelines.labels.log_days import WindowDays
from pipelines.labels.propensity.registry import ESTIMATORS
from pipelines.labels.settings import LabelSettings
from pipelines.warehouse.checkpoint import Checkpointer
from schemas.label_days import BY_PAGE, BY_PAIR, BY_USER, Kind

_OF_PAGES = (Kind.PLACES, Kind.ACTS, Kind.MARKS)


def tally_days(
    days: WindowDays,
    settings: LabelSettings,
    *,
    checkpoint: Checkpointer,
    inspected_share: float,
    impressions_read: int,
    learned_days: Sequence[tuple[dt.date, dt.date]] = (),
) -> TalliedLog:
    """Tally the log of a window from its days; see `tally_log` for the parameters."""
    buckets = choose_window_buckets(impressions_read)
    tasks = choose_window_tasks(impressions_read, buckets)

    def read(part: str, *kinds: Kind) -> DataFrame:
        return change_buckets(days.read_bundles(part, *kinds), buckets, days.buckets)

    of_users = read(BY_USER.name, Kind.VISITS, Kind.EVENTS, Kind.FLAGS)
    window_days = settings.attribution.window_days
    changes = checkpoint(
        correct_users(of_users, settings.denoise, window_days=window_days, buckets=buckets, tasks=tasks),
        partition_by="kind",
    )
    attributions = read(BY_USER.name, Kind.ATTRIBUTIONS).unionByName(_label(changes))
    of_pages = changes.where(F.col("kind") != int(Kind.ATTRIBUTIONS))
    pages = read(BY_PAGE.name, *_OF_PAGES, Kind.PAGES, Kind.DROPS).unionByName(_label(of_pages))
    history = ESTIMATORS.require(settings.propensity.estimator).history
    rejudged = rejudge_pages(pages, settings.denoise, history=history, buckets=buckets, tasks=tasks)
    pairs = read(BY_PAIR.name, Kind.CELLS, Kind.NAMES).unionByName(_label(rejudged))
    origin = Origin(settings.propensity.shuffled_systems, inspected_share, learned_days)
    shown = read(BY_PAGE.name, *_OF_PAGES).unionByName(_label(of_pages))
    names = read_names(read(BY_PAIR.name, Kind.NAMES))
    return TalliedLog(
        tallied=checkpoint(tally_pairs(pairs, settings.denoise, origin, buckets=buckets)),
        interactions=days.read_rows("doubtful"),
        attributions=count_attributions(attributions),
        logged_rankings=select_last_pages(shown, names, settings.denoise, buckets=buckets, read=read_corrected),
        shared_user=days.shared_user,
    )


def _label(bundles: DataFrame) -> DataFrame:
    """Bundles of the window beside those of its days."""
    return bundles.select("bucket", "kind", "data", F.lit(None).cast("int").alias(LOG_DAY))
