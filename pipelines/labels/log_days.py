"""The statistics of single days of a log, for labels that read each day once (see `schemas.label_days`).

A day is judged by its own files alone, as if they were the whole log. What other days change is found and corrected
when the days of a window are put together (see `window`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import ceil
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.inputs.count import dump_result
from pipelines.inputs.day_files import LOG, describe_sources
from pipelines.inputs.days import LogDay
from pipelines.labels.build import pack_log
from pipelines.labels.denoise.cells import count_cells
from pipelines.labels.denoise.days import change_buckets, choose_day_buckets, choose_window_buckets
from pipelines.labels.denoise.kinds import LOG_DAY
from pipelines.labels.denoise.nameless import SharedUser, find_shared_user
from pipelines.labels.denoise.pages import DROPPED, judge_pages
from pipelines.labels.denoise.pairs import EPOCH
from pipelines.labels.denoise.row_hash import hash_row
from pipelines.labels.denoise.users import judge_users
from pipelines.labels.propensity.registry import ESTIMATORS
from pipelines.labels.settings import LabelSettings
from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.concurrent import run_concurrently
from pipelines.warehouse.day_records import DayRecord
from pipelines.warehouse.label_days import DayWriter, read_bundles_of_days, read_rows_of_days
from pipelines.warehouse.storage import Storage
from schemas.label_days import BY_PAGE, BY_PAIR, BY_USER, DOUBTFUL, REJECTED, Kind
from udfs.spark.bundles import unpack_rows

_TASK_ROWS = 1_000_000  # of a day: each task writes a file for each kind of rows


@dataclass(frozen=True)
class WindowDays:
    """The committed days of a window, the id that stands for many people in it, and how many days were read."""

    spark: SparkSession
    storage: Storage
    records: tuple[DayRecord, ...]
    shared_user: SharedUser | None
    computed: int

    @property
    def buckets(self) -> int:
        """The least number of buckets that a day has."""
        return min(int(record.facts["buckets"]) for record in self.records)

    def read_bundles(self, part: str, *kinds: Kind) -> DataFrame:
        """The bundles of these kinds of all days."""
        return read_bundles_of_days(self.spark, self.storage, self.records, part, *kinds)

    def read_rows(self, part: str) -> DataFrame:
        """One part of all days that has rows of the log as they are."""
        return read_rows_of_days(self.spark, self.storage, self.records, part)


def publish_days(
    attempt: Attempt, days: Sequence[LogDay], settings: LabelSettings, *, inspected_share: float
) -> WindowDays:
    """Compute and commit the days of a window that are not committed yet.

    A day is also computed again where another id stands for many people in this window than in that of its record.
    """
    spark, storage = days[0].spark, attempt.storage
    opened = {day.date: _pack_day(attempt, day, settings, None) for day in days if day.record is None}
    committed = [day.record for day in days if day.record is not None]

    def read_all(part: str, kind: Kind) -> DataFrame:
        new = [table.where(F.col("kind") == int(kind)) for table in opened.values()]
        return reduce(DataFrame.unionByName, new, read_bundles_of_days(spark, storage, committed, part, kind))

    packed = read_all(BY_USER.name, Kind.FREQUENT).unionByName(read_all(BY_PAGE.name, Kind.PLACES))
    shared_user = _find_shared_user(packed, days, inspected_share)
    name = None if shared_user is None else shared_user.user_id
    records = []
    for day in days:
        record = day.record
        if record is None or record.facts["shared_user"] != name:
            rows = opened.get(day.date)
            if rows is None or shared_user is not None:
                rows = _pack_day(attempt, day, settings, shared_user)
            record = _publish_day(attempt, day, rows, settings, shared_user)
        records.append(record)
    computed = sum(record is not day.record for record, day in zip(records, days, strict=True))
    return WindowDays(spark, storage, tuple(records), shared_user, computed)


def _find_shared_user(packed: DataFrame, days: Sequence[LogDay], inspected_share: float) -> SharedUser | None:
    of_days = [_choose_buckets(day) if day.record is None else int(day.record.facts["buckets"]) for day in days]
    buckets = min(choose_window_buckets(_count_impressions(days)), *of_days)
    return find_shared_user(change_buckets(packed, buckets, buckets), buckets=buckets, share=inspected_share)


def _count_impressions(days: Sequence[LogDay]) -> int:
    return sum(day.results["impressions"].rows.kept for day in days)


def _choose_buckets(day: LogDay) -> int:
    return choose_day_buckets(day.results["impressions"].rows.kept)


def _pack_day(attempt: Attempt, day: LogDay, settings: LabelSettings, shared_user: SharedUser | None) -> DataFrame:
    """Pack the rows of a day, which needs no other day unless an id stands for many people."""
    shown, done = (day.log_rows(name) for name in LOG)
    packed = pack_log(shown, done, settings, shared_user, buckets=_choose_buckets(day), folder=attempt.bundle_folder)
    return attempt.checkpoint(_add_columns(packed, day), partition_by="kind")


def _add_columns(bundles: DataFrame, day: LogDay) -> DataFrame:
    return bundles.withColumns({"buckets": F.lit(_choose_buckets(day)), LOG_DAY: F.lit((day.date - EPOCH).days)})


def _publish_day(
    attempt: Attempt, day: LogDay, packed: DataFrame, settings: LabelSettings, shared_user: SharedUser | None
) -> DayRecord:
    """Apply the rules on users, events and pages to one day, count what they keep, and commit the day."""
    writer = DayWriter(attempt, day.spark, day.date.isoformat(), day.key)
    buckets = _choose_buckets(day)
    partitions = ceil(day.results["impressions"].rows.kept / _TASK_ROWS) or 1
    columns = ["bucket", "kind", "data"]
    rows = packed.select(*columns)
    users = judge_users(
        rows,
        settings.denoise,
        window_days=settings.attribution.window_days,
        buckets=buckets,
        partitions=partitions,
        of_day=True,
    )
    writer.write(BY_USER.name, _add_columns(users, day))
    of_users = writer.read(BY_USER.name, Kind.MARKS, Kind.ACTS).select(*columns)
    pages = judge_pages(
        rows.where(F.col("kind") == int(Kind.PLACES)).unionByName(of_users),
        settings.denoise,
        history=ESTIMATORS.require(settings.propensity.estimator).history,
        buckets=buckets,
        partitions=partitions,
        of_day=True,
    )
    writer.write(BY_PAGE.name, _add_columns(pages, day))
    kept = writer.read(BY_PAGE.name, Kind.KEPT).select(*columns).unionByName(rows)
    doubtful = _select_doubtful(day.tables["interactions"].rows, writer.read(BY_PAGE.name, Kind.DROPS))
    parts = {
        BY_PAIR.name: _add_columns(count_cells(kept, buckets=buckets, partitions=partitions), day),
        DOUBTFUL.name: doubtful,
    }
    rejected = [day.tables[name].rejected_rows for name in LOG if day.results[name].rows.rejected]
    if rejected:
        parts[REJECTED.name] = reduce(DataFrame.unionByName, rejected)
    run_concurrently([partial(writer.write, part, table) for part, table in parts.items()])
    writer.discard(BY_USER.name, Kind.MARKS, Kind.ACTS)
    writer.discard(BY_PAGE.name, Kind.KEPT)
    return writer.commit(_describe_day(day, shared_user))


def _select_doubtful(interactions: DataFrame, drops: DataFrame) -> DataFrame:
    """The events that a window may put into the quarantine.

    A page has all of its impressions of this day in a window too, so an event that names its page can only be there if
    it is in the quarantine of this day.
    """
    keys = unpack_rows(drops, DROPPED).where("row IS NOT NULL").select(F.col("row").alias("key")).distinct()
    hashed = interactions.withColumn("key", hash_row())
    without_page = hashed.where("serp_id IS NULL")
    unshown = hashed.where("serp_id IS NOT NULL").join(keys, on="key", how="left_semi")
    return without_page.unionByName(unshown).drop("key")


def _describe_day(day: LogDay, shared_user: SharedUser | None) -> dict[str, Any]:
    return {
        "shared_user": None if shared_user is None else shared_user.user_id,
        "buckets": _choose_buckets(day),
        "sources": describe_sources(day.listings),
        "counts": {name: dump_result(day.results[name]) for name in LOG},
    }
