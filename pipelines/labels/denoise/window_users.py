"""What a window changes about the users and events of its days: the rules on users, and the pages of events.

The days have marks of users, and their events with a page each. In a window, a user can be dropped for what other days
show, and an event can belong to a click of an earlier day. Both are few; only they are computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from pipelines.labels.denoise.columns import read_flags, read_integers
from pipelines.labels.denoise.hashes import is_among, mix_numbers
from pipelines.labels.denoise.keys import divide_kind
from pipelines.labels.denoise.kinds import DAY_MICROS, EVERY_DAY, LOG_DAY
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.denoise.user_arrays import (
    Flags,
    attribute_events,
    find_candidates,
    find_split_users,
    flag_users,
    look_up_flags,
)
from pipelines.labels.denoise.users import build_acts, count_origins, read_events
from schemas.label_days import Kind
from udfs.ragged import Ints
from udfs.sorting import sort_distinct
from udfs.spark.bundles import BUNDLES, build_bundles, exchange, read_bundles
from udfs.spark.worker import run_in_worker

FILE_DAY = "file_day"  # the day of the files that an event is to be removed from
_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class AffectedUsers:
    """The users whom a window may judge otherwise than their days do: sorted, and the rules by window and by day."""

    suspect: Ints
    of_window: Flags
    of_days: Flags  # by user and day of the files, see `mix_numbers`

    def look_up(self, suspect: Ints, day: Ints, log_day: Ints) -> tuple[Ints, Ints]:
        """The bits of these users on their days in the window, and in the days of their files."""
        in_file = mix_numbers(suspect, log_day)
        return look_up_flags(self.of_window, suspect, day), look_up_flags(self.of_days, in_file, day)


def correct_users(
    bundles: DataFrame, settings: DenoiseSettings, *, window_days: float, buckets: int, tasks: int
) -> DataFrame:
    """Bundles of what a window changes, from visits, events and flags of its days, which have their `LOG_DAY`.

    `TOUCHED` are the pages concerned. Of their users `MARKS` has the rules that hold in the window, also where none is
    left. `MOVED` are the events to remove from their pages, and `ACTS` those to add. `ATTRIBUTIONS` add up with those
    of the days.
    """

    def correct(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = read_bundles(batches, LOG_DAY)
        users = find_affected_users(tables, settings)
        touched = [_NONE]
        if Kind.VISITS in tables:
            marks = correct_marks(tables[Kind.VISITS], users)
            touched.append(read_integers(marks["page"]))
            yield divide_kind(marks, buckets, Kind.MARKS)
        if Kind.EVENTS in tables:
            moved, acts, counts = correct_events(tables[Kind.EVENTS], users, window_days)
            touched += [read_integers(table["page"]) for table in (moved, acts)]
            yield divide_kind(moved, buckets, Kind.MOVED)
            yield divide_kind(acts, buckets, Kind.ACTS)
            yield build_bundles(np.zeros(1, dtype=np.int64), [counts], Kind.ATTRIBUTIONS)
        pages = pa.table({"page": pa.array(sort_distinct(np.concatenate(touched)))})
        yield divide_kind(pages, buckets, Kind.TOUCHED)

    return exchange(bundles, buckets, tasks).mapInArrow(run_in_worker(correct), BUNDLES)


def find_affected_users(tables: Mapping[int, pa.Table], settings: DenoiseSettings) -> AffectedUsers:
    """Users that a day drops as a whole, and those whose visits of one day or page are in the files of several."""
    none = Flags(_NONE, _NONE, _NONE)
    if Kind.VISITS not in tables:
        return AffectedUsers(_NONE, none, none)
    visits = tables[Kind.VISITS]
    suspect, page, ts, log_day = (read_integers(visits[name]) for name in ("suspect", "page", "ts", LOG_DAY))
    affected = find_split_users(suspect, page, ts // DAY_MICROS, log_day)
    if Kind.FLAGS in tables:
        flagged, days = (read_integers(tables[Kind.FLAGS][name]) for name in ("suspect", "day"))
        affected = sort_distinct(np.concatenate([affected, flagged[days == EVERY_DAY]]))
    rows = np.flatnonzero(is_among(suspect, affected))
    suspect, page, ts, log_day = suspect[rows], page[rows], ts[rows], log_day[rows]
    crawler = read_flags(visits["crawler"])[rows]
    of_window = flag_users(suspect, page, ts, crawler, settings)
    of_days = flag_users(mix_numbers(suspect, log_day), page, ts, crawler, settings)
    return AffectedUsers(affected, of_window, of_days)


def correct_marks(visits: pa.Table, users: AffectedUsers) -> pa.Table:
    """The rules that hold in the window, of the users, pages and days for which the day of the files has others."""
    suspect = read_integers(visits["suspect"])
    rows = np.flatnonzero(is_among(suspect, users.suspect))
    suspect, page, ts, log_day = (read_integers(visits[name])[rows] for name in ("suspect", "page", "ts", LOG_DAY))
    day = ts // DAY_MICROS
    bits, before = users.look_up(suspect, day, log_day)
    differs = bits != before
    columns = {"page": page, "suspect": suspect, "day": day, "bits": bits}
    return pa.table({name: pa.array(values[differs]) for name, values in columns.items()})


def correct_events(table: pa.Table, users: AffectedUsers, window_days: float) -> tuple[pa.Table, pa.Table, pa.Table]:
    """The events to remove from pages of their days, the same as the window has them, and changes in attributions."""
    events = read_events(table)
    of_affected = np.flatnonzero(is_among(events.suspect, users.suspect) & ~events.nameless)
    rows = sort_distinct(np.concatenate([find_candidates(events), of_affected]))
    table = table.take(pa.array(rows))
    events, log_day = read_events(table), read_integers(table[LOG_DAY])
    ways = [attribute_events(events, window_days)]
    ways.append(attribute_events(replace(events, suspect=mix_numbers(events.suspect, log_day)), window_days))
    of_affected = np.flatnonzero(is_among(events.suspect, users.suspect) & ~events.nameless)
    bits = [np.zeros(len(rows), dtype=np.int64) for _ in ways]
    day = events.ts // DAY_MICROS
    both = users.look_up(events.suspect[of_affected], day[of_affected], log_day[of_affected])
    for own, by_user in zip(bits, both, strict=True):
        own[of_affected] = by_user
    acts, before = (build_acts(table, events, way, own) for way, own in zip(ways, bits, strict=True))
    differs = np.zeros(len(rows), dtype=np.bool_)
    for name in ("page", "bits", "source"):
        differs |= read_integers(acts[name]) != read_integers(before[name])
    changed = pa.array(differs)
    moved = before.select(["page", "row"]).append_column(FILE_DAY, pa.array(log_day)).filter(changed)
    origins = [way.origin.astype(np.int64) for way in ways]
    counts, counts_before = (count_origins(events.kind, origin) for origin in origins)
    removed = pa.array(-read_integers(counts_before["events"]))
    counts_before = counts_before.set_column(counts_before.schema.get_field_index("events"), "events", removed)
    return moved, acts.filter(changed), pa.concat_tables([counts, counts_before])
