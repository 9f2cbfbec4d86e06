"""The statistics of single days of a log, for labels that read each day once (see `schemas.label_days`).

A day is judged by its own files alone, as if they were the whole log. What other days change is found and corrected
when the days of a window are put together (see `window`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.inputs.count import dump_result
from pipelines.inputs.day_files import LOG, describe_sources
from pipelines.inputs.days import LogDay
from pipelines.labels.attribute import attribute_events
from pipelines.labels.build import add_optional_columns
from pipelines.labels.denoise.cells import group_dropped, group_kept
from pipelines.labels.denoise.nameless import SharedUser, find_shared_user, mark_nameless
from pipelines.labels.denoise.pages import apply_page_rules, combine_events, name_context
from pipelines.labels.denoise.users import flag_users, map_suspicion, mark_users, select_visits, suspect_id
from pipelines.labels.propensity.registry import ESTIMATORS
from pipelines.labels.settings import LabelSettings
from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.concurrent import run_concurrently
from pipelines.warehouse.day_records import DayRecord
from pipelines.warehouse.label_days import DayWriter, read_part
from pipelines.warehouse.storage import Storage
from schemas.inputs import IMPRESSIONS, INTERACTIONS
from schemas.label_days import SHOWN

_EPOCH = dt.date(1970, 1, 1)


@dataclass(frozen=True)
class WindowDays:
    """The committed days of a window, the id that stands for many people in it, and how many days were read."""

    spark: SparkSession
    storage: Storage
    records: tuple[DayRecord, ...]
    shared_user: SharedUser | None
    computed: int

    def read(self, part: str) -> DataFrame:
        """One part of all days."""
        return read_part(self.spark, self.storage, self.records, part)


@dataclass(frozen=True)
class _OpenDay:
    """A day that is being computed: its writer, and the parts that come first."""

    day: LogDay
    writer: DayWriter
    shown: DataFrame
    visits: DataFrame


def publish_days(
    attempt: Attempt, days: Sequence[LogDay], settings: LabelSettings, *, inspected_share: float
) -> WindowDays:
    """Compute and commit the days of a window that are not committed yet.

    A day is also computed again where another id stands for many people in this window than in that of its record.
    """
    spark, storage = days[0].spark, attempt.storage
    opened = {day.date: _open_day(attempt, day, settings) for day in days if day.record is None}
    committed = read_part(spark, storage, [day.record for day in days if day.record is not None], "visits")
    visits = reduce(DataFrame.unionByName, [day.visits for day in opened.values()], committed)
    shared_user = find_shared_user(visits, share=inspected_share)
    name = None if shared_user is None else shared_user.user_id
    records = []
    for day in days:
        record = day.record
        if record is None or record.facts["shared_user"] != name:
            record = _finish_day(
                attempt, opened.get(day.date) or _open_day(attempt, day, settings), settings, shared_user
            )
        records.append(record)
    computed = sum(record is not day.record for record, day in zip(records, days, strict=True))
    return WindowDays(spark, storage, tuple(records), shared_user, computed)


def _open_day(attempt: Attempt, day: LogDay, settings: LabelSettings) -> _OpenDay:
    """Write what is known of a day before the users of the whole window are."""
    writer = DayWriter(attempt, day.date.isoformat(), day.key)
    impressions = add_optional_columns(day.tables["impressions"].rows, IMPRESSIONS)
    named = impressions.withColumn("context", name_context(settings.contexts))
    shown = writer.write("shown", named.select(*SHOWN.names))
    return _OpenDay(day, writer, shown, writer.write("visits", select_visits(shown)))


def _finish_day(
    attempt: Attempt, opened: _OpenDay, settings: LabelSettings, shared_user: SharedUser | None
) -> DayRecord:
    """Apply the rules on users, events and pages to one day, and commit it."""
    day, writer = opened.day, opened.writer
    log_day = F.lit((day.date - _EPOCH).days).alias("log_day")
    interactions = add_optional_columns(day.tables["interactions"].rows, INTERACTIONS)
    events = mark_nameless(interactions, shared_user)
    attributed = attribute_events(events, window_days=settings.attribution.window_days)
    flags = flag_users(mark_nameless(opened.visits, shared_user), settings.denoise).select("*", log_day)
    attributed, flags = run_concurrently(
        [lambda: writer.write("events", attributed), lambda: writer.write("suspects", flags)]
    )
    attributed = mark_nameless(attributed, shared_user)
    rows = combine_events(mark_nameless(opened.shown, shared_user), attributed, context=F.col("context"))
    touches = rows.select(log_day, "page", suspect_id().alias("suspect"), "day").distinct()
    marked = mark_users(rows, map_suspicion(flags, "suspect"), settings.denoise)
    history = ESTIMATORS.require(settings.propensity.estimator).history
    impressions = day.results["impressions"].rows.kept
    judged = apply_page_rules(marked, settings.denoise, history=history, impressions=impressions)
    _, outcomes = run_concurrently([lambda: writer.write("touches", touches), lambda: attempt.checkpoint(judged)])
    parts = {"cells": group_kept(outcomes, impressions), "drops": group_dropped(outcomes)}
    rejected = [day.tables[name].rejected_rows for name in LOG if day.results[name].rows.rejected]
    if rejected:
        parts["rejected"] = reduce(DataFrame.unionByName, rejected)
    run_concurrently([partial(writer.write, part, table) for part, table in parts.items()])
    return writer.commit(_describe_day(day, shared_user))


def _describe_day(day: LogDay, shared_user: SharedUser | None) -> dict[str, Any]:
    return {
        "shared_user": None if shared_user is None else shared_user.user_id,
        "sources": describe_sources(day.listings),
        "counts": {name: dump_result(day.results[name]) for name in LOG},
    }
