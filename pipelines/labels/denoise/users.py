"""Judge users and attribute events, in one shuffle: from visits and events of users to marks and events of pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.labels.denoise.kinds import CART, CLICK, DAY_MICROS, PURCHASE
from pipelines.labels.denoise.pack import read_flags, read_integers
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.denoise.user_arrays import (
    ATTRIBUTIONS,
    NO_CLICK,
    Attribution,
    Events,
    Flags,
    attribute_events,
    find_split_users,
    flag_users,
    look_up_flags,
    mix_numbers,
)
from schemas.label_days import Kind
from udfs.ragged import Ints
from udfs.spark.bundles import BUNDLES, build_bundles, divide_rows, exchange, read_bundles, unpack_rows
from udfs.spark.worker import run_in_worker

EVENT_KINDS = {CLICK: "click", CART: "cart", PURCHASE: "purchase"}
PASSED = ("suspect", "document", "ts", "event", "kind", "dwell", "nameless", "row")  # of an event, to its page


def judge_users(
    bundles: DataFrame,
    settings: DenoiseSettings,
    *,
    window_days: float,
    buckets: int,
    partitions: int | None = None,
    by_day: bool = False,
) -> DataFrame:
    """Bundles of marks, acts and attributions from those of visits and events.

    The work is done in so many `partitions`, by default one for each bucket. With `by_day`, bundles have the day of
    their files in `log_day`, and pages for which the other days make a difference are returned too, as `TOUCHED`.
    """
    label = "log_day" if by_day else None

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = read_bundles(batches, label)
        flags = _flag_visits(tables, settings)
        if Kind.VISITS in tables:
            yield from _mark_pages(tables[Kind.VISITS], flags, buckets)
        if Kind.EVENTS in tables:
            yield from _place_events(tables[Kind.EVENTS], flags, window_days, buckets)
        if by_day:
            touched = find_touched_pages(tables, flags, settings, window_days)
            yield divide_rows(pa.table({"page": pa.array(touched)}), touched, buckets, Kind.TOUCHED)

    chosen = bundles.where(F.col("kind").isin(int(Kind.VISITS), int(Kind.EVENTS)))
    return exchange(chosen, buckets, partitions).mapInArrow(run_in_worker(judge), BUNDLES)


def find_touched_pages(
    tables: Mapping[int, pa.Table], flags: Flags, settings: DenoiseSettings, window_days: float
) -> Ints:
    """The pages that users or attributions make different in a window and in the day of their files."""
    touched = [np.zeros(0, dtype=np.int64)]
    of_days = Flags(*[np.zeros(0, dtype=np.int64)] * 3)
    affected = flags.suspect
    if Kind.VISITS in tables:
        visits = tables[Kind.VISITS]
        suspect, page, ts, log_day = (read_integers(visits[name]) for name in ("suspect", "page", "ts", "log_day"))
        day = ts // DAY_MICROS
        affected = np.union1d(affected, find_split_users(suspect, page, day, log_day))
        rows = np.flatnonzero(np.isin(suspect, affected))
        suspect, page, day, log_day = (values[rows] for values in (suspect, page, day, log_day))
        in_file = mix_numbers(suspect, log_day)
        of_days = flag_users(in_file, page, ts[rows], read_flags(visits["crawler"])[rows], settings)
        differs = look_up_flags(flags, suspect, day) != look_up_flags(of_days, in_file, day)
        touched.append(page[differs])
    if Kind.EVENTS in tables:
        table = tables[Kind.EVENTS]
        events, log_day = read_events(table), read_integers(table["log_day"])
        own_page = read_integers(table["own_page"])
        in_file = mix_numbers(events.suspect, log_day)
        pages = [
            find_pages(given, attribute_events(given, window_days), own_page)
            for given in (events, replace(events, suspect=in_file))
        ]
        rows = np.flatnonzero(np.isin(events.suspect, affected) & ~events.nameless)
        day = events.ts[rows] // DAY_MICROS
        differs = pages[0] != pages[1]
        differs[rows] |= look_up_flags(flags, events.suspect[rows], day) != look_up_flags(of_days, in_file[rows], day)
        touched += [page[differs] for page in pages]
    return np.unique(np.concatenate(touched))


def find_pages(events: Events, attribution: Attribution, own_page: Ints) -> Ints:
    """The page of each event; those without one are on a page of their own."""
    return np.where(attribution.origin >= NO_CLICK, own_page, events.page[attribution.source])


def _flag_visits(tables: Mapping[int, pa.Table], settings: DenoiseSettings) -> Flags:
    if Kind.VISITS not in tables:
        none = np.zeros(0, dtype=np.int64)
        return Flags(none, none, none)
    visits = tables[Kind.VISITS]
    suspect, page, ts = (read_integers(visits[name]) for name in ("suspect", "page", "ts"))
    return flag_users(suspect, page, ts, read_flags(visits["crawler"]), settings)


def _mark_pages(visits: pa.Table, flags: Flags, buckets: int) -> Iterator[pa.RecordBatch]:
    """The pages of users that a rule drops, with the rules per day of the impressions."""
    suspect, page, ts = (read_integers(visits[name]) for name in ("suspect", "page", "ts"))
    rows = np.flatnonzero(np.isin(suspect, flags.suspect))
    suspect, page, day = suspect[rows], page[rows], ts[rows] // DAY_MICROS
    bits = look_up_flags(flags, suspect, day)
    marks = pd.DataFrame({"page": page, "suspect": suspect, "day": day, "bits": bits})
    distinct = marks[marks["bits"] != 0].drop_duplicates()
    if len(distinct):
        yield divide_rows(
            pa.Table.from_pandas(distinct, preserve_index=False), distinct["page"].to_numpy(), buckets, Kind.MARKS
        )


def _place_events(table: pa.Table, flags: Flags, window_days: float, buckets: int) -> Iterator[pa.RecordBatch]:
    """The events with their pages, those without in one of their own, and the counts of attributions."""
    events = read_events(table)
    attribution = attribute_events(events, window_days)
    unplaced = attribution.origin >= NO_CLICK
    by_user = np.where(events.nameless, 0, look_up_flags(flags, events.suspect, events.ts // DAY_MICROS))
    page = find_pages(events, attribution, read_integers(table["own_page"]))
    acts = {
        "page": pa.array(page),
        **{name: table[name] for name in PASSED},
        "bits": pa.array((read_integers(table["bits"]) | by_user).astype(np.int32)),
        "unplaced": pa.array(unplaced),
        "source": table["row"].take(pa.array(attribution.source)),
    }
    yield divide_rows(pa.table(acts), page, buckets, Kind.ACTS)
    counts = _count_attributions(events.kind, attribution.origin.astype(np.int64))
    yield build_bundles(np.zeros(1, dtype=np.int64), [counts], Kind.ATTRIBUTIONS)


def read_events(table: pa.Table) -> Events:
    """The events of a bundle."""
    numbers = {name: read_integers(table[name]) for name in ("suspect", "document", "page", "kind", "ts", "event")}
    return Events(**numbers, placed=read_flags(table["placed"]), nameless=read_flags(table["nameless"]))


def _count_attributions(kind: Ints, origin: Ints) -> pa.Table:
    counts = pd.DataFrame({"kind": kind, "origin": origin}).value_counts().reset_index()
    return pa.table(
        {
            "kind": [EVENT_KINDS[code] for code in counts["kind"]],
            "attribution": [ATTRIBUTIONS[code] for code in counts["origin"]],
            "events": counts["count"].to_list(),
        },
        schema=pa.schema({"kind": pa.string(), "attribution": pa.string(), "events": pa.int64()}),
    )


def count_attributions(judged: DataFrame) -> DataFrame:
    """Events by kind and by where their page comes from."""
    chosen = judged.where(F.col("kind") == int(Kind.ATTRIBUTIONS))
    counts = unpack_rows(chosen, "kind string, attribution string, events bigint")
    return counts.groupBy("kind", "attribution").agg(F.sum("events").alias("events"))
