"""Judge users and attribute events, in one shuffle: from visits and events of users to marks and events of pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.labels.denoise.columns import read_flags, read_integers
from pipelines.labels.denoise.hashes import is_among
from pipelines.labels.denoise.keys import divide_kind
from pipelines.labels.denoise.kinds import CART, CLICK, DAY_MICROS, PURCHASE
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.denoise.user_arrays import (
    ATTRIBUTIONS,
    NO_CLICK,
    Attribution,
    Events,
    Flags,
    attribute_events,
    flag_users,
    look_up_flags,
)
from schemas.label_days import Kind
from udfs.ragged import Ints, Ragged
from udfs.spark.bundles import BUNDLES, build_bundles, exchange, read_bundles, unpack_rows
from udfs.spark.references import store_bundles
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
    of_day: bool = False,
    folder: str | None = None,
) -> DataFrame:
    """Bundles of marks, acts and attributions from those of visits and events.

    The work is done in so many `partitions`, by default one for each bucket. Of a day, what windows judge its users by
    is returned too. Workers put bundles into files of the `folder`, where one is given.
    """

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = read_bundles(batches)
        flags = flag_visits(tables, settings)
        if Kind.VISITS in tables:
            yield from _mark_pages(tables[Kind.VISITS], flags, buckets)
        if Kind.EVENTS in tables:
            yield from _place_events(tables[Kind.EVENTS], flags, window_days, buckets)
        if of_day:
            yield from _keep_rows(tables, flags, buckets)

    kinds = (Kind.VISITS, Kind.EVENTS, *((Kind.FREQUENT,) if of_day else ()))
    chosen = bundles.where(F.col("kind").isin(*map(int, kinds)))
    return exchange(chosen, buckets, partitions).mapInArrow(run_in_worker(store_bundles(judge, folder)), BUNDLES)


def _keep_rows(tables: Mapping[int, pa.Table], flags: Flags, buckets: int) -> Iterator[pa.RecordBatch]:
    """The rows of a day in one bundle for each bucket: visits once per user, page and day of the clock."""
    if Kind.VISITS in tables:
        yield divide_kind(_merge_visits(tables[Kind.VISITS]), buckets, Kind.VISITS)
    if Kind.EVENTS in tables:
        yield divide_kind(tables[Kind.EVENTS], buckets, Kind.EVENTS)
    if len(flags.suspect):
        columns = {name: pa.array(getattr(flags, name)) for name in ("suspect", "day", "bits")}
        yield divide_kind(pa.table(columns), buckets, Kind.FLAGS)
    if Kind.FREQUENT in tables:
        yield build_bundles(np.zeros(1, dtype=np.int64), [tables[Kind.FREQUENT]], Kind.FREQUENT)


def _merge_visits(visits: pa.Table) -> pa.Table:
    suspect, page, ts = (read_integers(visits[name]) for name in ("suspect", "page", "ts"))
    day = ts // DAY_MICROS
    order = np.lexsort((ts, day, page, suspect))
    same = Ragged.of_sorted(suspect[order], page[order], day[order])
    first = order[same.offsets[:-1]]
    crawler = same.reduce(np.logical_or, read_flags(visits["crawler"])[order])
    columns = {"suspect": suspect[first], "page": page[first], "ts": ts[first], "crawler": crawler}
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def find_pages(events: Events, attribution: Attribution, own_page: Ints) -> Ints:
    """The page of each event; those without one are on a page of their own."""
    return np.where(attribution.origin >= NO_CLICK, own_page, events.page[attribution.source])


def flag_visits(tables: Mapping[int, pa.Table], settings: DenoiseSettings) -> Flags:
    if Kind.VISITS not in tables:
        none = np.zeros(0, dtype=np.int64)
        return Flags(none, none, none)
    visits = tables[Kind.VISITS]
    suspect, page, ts = (read_integers(visits[name]) for name in ("suspect", "page", "ts"))
    return flag_users(suspect, page, ts, read_flags(visits["crawler"]), settings)


def _mark_pages(visits: pa.Table, flags: Flags, buckets: int) -> Iterator[pa.RecordBatch]:
    """The pages of users that a rule drops, with the rules per day of the impressions."""
    suspect, page, ts = (read_integers(visits[name]) for name in ("suspect", "page", "ts"))
    rows = np.flatnonzero(is_among(suspect, flags.suspect))
    suspect, page, day = suspect[rows], page[rows], ts[rows] // DAY_MICROS
    bits = look_up_flags(flags, suspect, day)
    marks = pd.DataFrame({"page": page, "suspect": suspect, "day": day, "bits": bits})
    distinct = marks[marks["bits"] != 0].drop_duplicates()
    if len(distinct):
        yield divide_kind(pa.Table.from_pandas(distinct, preserve_index=False), buckets, Kind.MARKS)


def _place_events(table: pa.Table, flags: Flags, window_days: float, buckets: int) -> Iterator[pa.RecordBatch]:
    """The events with their pages, those without in one of their own, and the counts of attributions."""
    events = read_events(table)
    attribution = attribute_events(events, window_days)
    by_user = np.where(events.nameless, 0, look_up_flags(flags, events.suspect, events.ts // DAY_MICROS))
    yield divide_kind(build_acts(table, events, attribution, by_user), buckets, Kind.ACTS)
    counts = count_origins(events.kind, attribution.origin.astype(np.int64))
    yield build_bundles(np.zeros(1, dtype=np.int64), [counts], Kind.ATTRIBUTIONS)


def build_acts(table: pa.Table, events: Events, attribution: Attribution, by_user: Ints) -> pa.Table:
    """The events of a bundle on the pages that they are attributed to."""
    acts = {
        "page": pa.array(find_pages(events, attribution, read_integers(table["own_page"]))),
        **{name: table[name] for name in PASSED},
        "bits": pa.array((read_integers(table["bits"]) | by_user).astype(np.int32)),
        "unplaced": pa.array(attribution.origin >= NO_CLICK),
        "source": table["row"].take(pa.array(attribution.source)),
    }
    return pa.table(acts)


def read_events(table: pa.Table) -> Events:
    """The events of a bundle."""
    numbers = {name: read_integers(table[name]) for name in ("suspect", "document", "page", "kind", "ts", "event")}
    return Events(**numbers, placed=read_flags(table["placed"]), nameless=read_flags(table["nameless"]))


def count_origins(kind: Ints, origin: Ints) -> pa.Table:
    """Events by kind and by where their page comes from."""
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
    return counts.groupBy("kind", "attribution").agg(F.sum("events").alias("events")).where("events != 0")
