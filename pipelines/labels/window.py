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

from pipelines.labels.attribute import attribute_events, count_attributions
from pipelines.labels.build import TalliedLog
from pipelines.labels.denoise.cells import group_dropped, tally_cells
from pipelines.labels.denoise.nameless import mark_nameless
from pipelines.labels.denoise.pages import LAST_PAGE, apply_page_rules, combine_events, select_last_pages
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.denoise.users import flag_users, look_up_bits, map_suspicion, mark_users, suspect_id
from pipelines.labels.log_days import WindowDays
from pipelines.labels.propensity.registry import ESTIMATORS
from pipelines.labels.settings import LabelSettings
from pipelines.warehouse.checkpoint import Checkpointer
from pipelines.warehouse.concurrent import run_concurrently

GIVEN = "given"
_FLAG = ("suspect", "day", "bits")


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
    denoise, shared = settings.denoise, days.shared_user
    visits, events = (mark_nameless(days.read(part), shared) for part in ("visits", "events"))
    split, moved = run_concurrently(
        [
            lambda: checkpoint(_find_split_pages(days.read("touches"))),
            lambda: checkpoint(_attribute_again(events, settings.attribution.window_days)),
        ]
    )
    suspects = checkpoint(_find_suspects(days, visits, checkpoint(_find_split_suspects(days, split)), denoise))
    pages = checkpoint(find_touched_pages(days, suspects, split, moved))
    shown = mark_nameless(days.read("shown"), shared)
    attributed = events.where(F.col("attribution") == GIVEN).unionByName(moved.drop("day_page"))
    touched_shown = checkpoint(_select_pages(shown, pages))
    rows = combine_events(touched_shown, _select_pages(attributed, pages), context=F.col("context"))
    history = ESTIMATORS.require(settings.propensity.estimator).history
    outcomes = checkpoint(apply_page_rules(mark_users(rows, suspects, denoise), denoise, history=history))
    drops = days.read("drops").join(pages, on="page", how="left_anti")
    tallied = checkpoint(
        tally_cells(
            days.read("cells"),
            drops.unionByName(group_dropped(outcomes)),
            denoise,
            withdrawn=touched_shown.select("query_id", "doc_id", F.xxhash64("serp_id").alias("page")),
            added=outcomes,
            shuffled_systems=settings.propensity.shuffled_systems,
            inspected_share=inspected_share,
            learned_days=learned_days,
            impressions=impressions_read,
        )
    )
    every = mark_users(combine_events(shown, attributed, context=F.col("context")), suspects, denoise)
    last = apply_page_rules(every, denoise, impressions=impressions_read, also=LAST_PAGE)
    return TalliedLog(
        tallied=tallied,
        attributions=count_attributions(attributed),
        logged_rankings=select_last_pages(last),
        shared_user=shared,
    )


def _attribute_again(events: DataFrame, window_days: float) -> DataFrame:
    """Events without a page, attributed to the clicks of all days; `day_page` is what their own day gave them."""
    is_given = F.col("attribution") == GIVEN
    pageless = events.where(~is_given).withColumns(
        {"day_page": F.xxhash64("serp_id"), "serp_id": F.lit(None).cast("string")}
    )
    keys = ("user_id", "doc_id")
    sought = pageless.where(~F.col("nameless")).select(*keys).distinct()
    clicks = events.where(is_given & (F.col("kind") == "click")).join(sought, on=list(keys), how="left_semi")
    rows = pageless.unionByName(clicks, allowMissingColumns=True).drop("attribution")
    return attribute_events(rows, window_days=window_days).where(F.col("attribution") != GIVEN)


def _find_split_pages(touches: DataFrame) -> DataFrame:
    """The pages with rows in the files of several days."""
    days = touches.groupBy("page").agg(F.min("log_day").alias("first"), F.max("log_day").alias("last"))
    return days.where("first != last").select("page")


def _find_split_suspects(days: WindowDays, split: DataFrame) -> DataFrame:
    """The suspects whose visits of one day, or of one page, may be in the files of several days.

    The files of two days can only share a day if it is not the own day of one of them.
    """
    touches = days.read("touches")
    of_pages = touches.join(split, on="page", how="left_semi")
    return touches.where("day != log_day").unionByName(of_pages).select("suspect").distinct()


def _find_suspects(
    days: WindowDays, visits: DataFrame, split_suspects: DataFrame, settings: DenoiseSettings
) -> DataFrame:
    """The suspects of `find_suspect_users`: as their own days have them, but for those that are split."""
    in_days = days.read("suspects").join(split_suspects, on="suspect", how="left_anti").select(*_FLAG)
    theirs = visits.join(split_suspects, on=suspect_id() == F.col("suspect"), how="left_semi")
    flags = in_days.unionByName(flag_users(theirs, settings).select(*_FLAG))
    return map_suspicion(flags.groupBy("suspect", "day").agg(F.bit_or("bits").alias("bits")), "suspect")


def find_touched_pages(days: WindowDays, suspects: DataFrame, split: DataFrame, moved: DataFrame) -> DataFrame:
    """The pages (`page`) whose outcome in the window may differ from that in their own day."""
    touches = days.read("touches")
    in_days = map_suspicion(days.read("suspects"), "log_day", "suspect").withColumnRenamed("suspicion", "in_day")
    otherwise_dropped = (
        touches.join(F.broadcast(suspects), on="suspect", how="left")
        .join(F.broadcast(in_days), on=["log_day", "suspect"], how="left")
        .where(look_up_bits("suspicion") != look_up_bits("in_day"))
    )
    here = F.xxhash64("serp_id")
    pages = moved.where(here != F.col("day_page")).select(F.explode(F.array(here, "day_page")).alias("page"))
    return split.unionByName(otherwise_dropped.select("page")).unionByName(pages).distinct()


def _select_pages(rows: DataFrame, pages: DataFrame) -> DataFrame:
    """The rows of these pages."""
    return rows.join(pages, on=F.xxhash64("serp_id") == F.col("page"), how="left_semi")
