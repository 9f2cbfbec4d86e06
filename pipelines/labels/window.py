"""Put the days of a window together: the same tally as from all rows at once, from the statistics of single days.

The outcome of a page depends on its own rows and on the users in them. It is the same in the window and in its day
unless the page has rows in the files of several days, one of its events is attributed to another page in the window,
or the window drops one of its users for another reason. These pages are few: their outcomes are withdrawn, and
computed again from all rows of the window.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.labels.build import TalliedLog
from pipelines.labels.denoise.days import (
    change_buckets,
    choose_window_buckets,
    collect_touched,
    select_touched,
    tally_untouched,
)
from pipelines.labels.denoise.pages import judge_pages, read_names, select_last_pages
from pipelines.labels.denoise.pairs import Origin, tally_pairs
from pipelines.labels.denoise.users import count_attributions, judge_users
from pipelines.labels.log_days import WindowDays
from pipelines.labels.propensity.registry import ESTIMATORS
from pipelines.labels.settings import LabelSettings
from pipelines.warehouse.checkpoint import Checkpointer
from schemas.label_days import Kind


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
    denoise = settings.denoise
    buckets = choose_window_buckets(impressions_read)
    packed, outcomes = (change_buckets(days.read(part), buckets, days.buckets) for part in ("packed", "outcomes"))
    judged = checkpoint(
        judge_users(packed, denoise, window_days=settings.attribution.window_days, buckets=buckets, by_day=True),
        partition_by="kind",
    )
    touched = checkpoint(collect_touched(judged, _select(outcomes, Kind.PAGES), buckets=buckets))
    again = select_touched(_select(packed, Kind.PLACES), touched)
    of_users = select_touched(_select(judged, Kind.MARKS, Kind.ACTS), touched)
    history = ESTIMATORS.require(settings.propensity.estimator).history
    pages = judge_pages(again.unionByName(of_users), denoise, history=history, buckets=buckets, purpose="window")
    pairs = pages.unionByName(_select(outcomes, Kind.KEPT)).unionByName(_select(packed, Kind.NAMES))
    origin = Origin(settings.propensity.shuffled_systems, inspected_share, learned_days)
    tallied = tally_pairs(pairs, denoise, origin, buckets=buckets)
    shown = _select(packed, Kind.PLACES).unionByName(_select(judged, Kind.MARKS, Kind.ACTS))
    return TalliedLog(
        tallied=checkpoint(tallied.unionByName(tally_untouched(_select(outcomes, Kind.DROPS), touched))),
        interactions=days.read("doubtful"),
        attributions=count_attributions(judged),
        logged_rankings=select_last_pages(shown, read_names(packed), denoise, buckets=buckets),
        shared_user=days.shared_user,
    )


def _select(bundles: DataFrame, *kinds: Kind) -> DataFrame:
    """The bundles of these kinds."""
    return bundles.where(F.col("kind").isin(*map(int, kinds))).select("bucket", "kind", "data")
