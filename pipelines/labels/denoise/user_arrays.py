"""The rules on users, and the attribution of events to clicks, over many users at once, as NumPy arrays.

Runs inside Spark workers, on all visits and events of a set of users.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipelines.labels.denoise.apply import combine_arrays
from pipelines.labels.denoise.hashes import find_repeated, is_among, mix_numbers
from pipelines.labels.denoise.kinds import CLICK, DAY_MICROS, EVERY_DAY
from pipelines.labels.denoise.pair_arrays import group_rows
from pipelines.labels.denoise.settings import DenoiseSettings
from udfs.ragged import Bools, Floats, Ints, Ragged
from udfs.sorting import sort_distinct, sort_in_groups

GIVEN, BY_CLICK, AMBIGUOUS, NO_CLICK, NO_USER = range(5)
ATTRIBUTIONS = ("given", "click", "ambiguous", "none", "no_user")  # where the page of an event comes from


@dataclass(frozen=True)
class Flags:
    """Users that a rule drops: the rules per user and day, or for `EVERY_DAY`; sorted, each user and day once."""

    suspect: Ints
    day: Ints
    bits: Ints


def flag_users(suspect: Ints, page: Ints, ts: Ints, crawler: Bools, settings: DenoiseSettings) -> Flags:
    """Apply the rules on users and on their days to visits, several of which may be of the same user and page."""
    order = np.lexsort((ts, page, suspect))
    pages = Ragged.of_sorted(suspect[order], page[order])
    first = order[pages.offsets[:-1]]
    is_crawler = pages.reduce(np.logical_or, crawler[order])
    suspect, ts = suspect[first], ts[first]
    day = ts // DAY_MICROS
    order = np.lexsort((ts, day, suspect))
    days = Ragged.of_sorted(suspect[order], day[order])
    in_order = ts[order]
    gap = np.where(days.place > 1, np.diff(in_order, prepend=0) / 1e6, np.nan)
    mean, deviation = _describe_gaps(gap, days)
    features = {
        "pages": days.lengths,
        "gap_mean": mean,
        "gap_deviation": deviation,
        "crawler": days.reduce(np.logical_or, is_crawler[order]),
    }
    heads = order[days.offsets[:-1]]
    by_day = combine_arrays("user_day", settings, features, days.size)
    by_user = combine_arrays("user", settings, features, days.size)
    users = np.concatenate([suspect[heads], suspect[heads]])
    on_day = np.concatenate([day[heads], np.full(days.size, EVERY_DAY)])
    return combine_flags(users, on_day, np.concatenate([by_day, by_user]))


def combine_flags(suspect: Ints, day: Ints, bits: Ints) -> Flags:
    """The rules of each user and day together."""
    rows = np.flatnonzero(bits)
    order = rows[np.lexsort((day[rows], suspect[rows]))]
    flags = Ragged.of_sorted(suspect[order], day[order])
    first = order[flags.offsets[:-1]]
    return Flags(suspect[first], day[first], flags.reduce(np.bitwise_or, bits[order]))


def _describe_gaps(gap: Floats, days: Ragged) -> tuple[Floats, Floats]:
    """The mean of the gaps of each day, and their standard deviation as a sample."""
    count = np.maximum(days.lengths - 1, 0).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = days.sums(np.nan_to_num(gap)) / count
        squares = days.sums(np.nan_to_num((gap - mean[days.owner]) ** 2))
        return mean, np.where(count > 1, np.sqrt(squares / (count - 1)), np.nan)


def look_up_flags(flags: Flags, suspect: Ints, day: Ints) -> Ints:
    """Per row of a user the bits of the rules that drop it on its day."""
    bits = np.zeros(len(suspect), dtype=np.int64)
    flagged = np.flatnonzero(is_among(suspect, flags.suspect))
    for days in (day[flagged], np.full(len(flagged), EVERY_DAY)):
        bits[flagged] |= _look_up(flags, suspect[flagged], days)
    return bits


def _look_up(flags: Flags, suspect: Ints, day: Ints) -> Ints:
    """The bits of exactly this user and day, 0 where there are none."""
    size = len(flags.suspect)
    users = np.concatenate([flags.suspect, suspect])
    days = np.concatenate([flags.day, day])
    order = np.lexsort((np.arange(len(users)), days, users))  # a flag before the rows that it is for
    same = Ragged.of_sorted(users[order], days[order])
    head = order[same.offsets[:-1]]
    bits = np.where(head < size, flags.bits[np.minimum(head, size - 1)], 0)[same.owner]
    by_row = np.empty(len(users), dtype=np.int64)
    by_row[order] = bits
    return by_row[size:]


def find_split_users(suspect: Ints, page: Ints, day: Ints, log_day: Ints) -> Ints:
    """The users whose visits of one day, or of one page, may be in the files of several days (`log_day`).

    The files of two days can only share a day if it is not the own day of one of them.
    """
    repeated = find_repeated(mix_numbers(suspect, page))
    order = repeated[np.lexsort((page[repeated], suspect[repeated]))]
    pages = Ragged.of_sorted(suspect[order], page[order])
    files = log_day[order]
    several = pages.reduce(np.minimum, files) != pages.reduce(np.maximum, files)
    of_pages = suspect[order][pages.offsets[:-1][several]]
    return sort_distinct(np.concatenate([of_pages, suspect[day != log_day]]))


@dataclass(frozen=True)
class Events:
    """Events in any order."""

    suspect: Ints
    document: Ints
    page: Ints
    placed: Bools  # whether the log names the page
    kind: Ints
    ts: Ints
    nameless: Bools
    event: Ints


@dataclass(frozen=True)
class Attribution:
    """Per event where its page comes from, and the event that has the page: itself, or the click that led to it."""

    origin: npt.NDArray[np.int8]
    source: Ints


def attribute_events(events: Events, window_days: float) -> Attribution:
    """Give events without a page that of the same user's latest click on the same document within the window.

    Last-click attribution in one pass over the events of each user and document in order of time, so that the cost is
    linear in the events of a hot user or product. `ambiguous` is an event whose user clicked the document on several
    pages within the window (the latest is taken).
    """
    size = len(events.suspect)
    origin = np.full(size, GIVEN, dtype=np.int8)
    source = np.arange(size)
    origin[~events.placed] = np.where(events.nameless[~events.placed], NO_USER, NO_CLICK)
    rows = find_candidates(events)
    if not len(rows):
        return Attribution(origin, source)
    order = rows[_sort_by_time(events, rows)]
    acts = Ragged.of_sorted(events.suspect[order], events.document[order])
    start = acts.offsets[:-1][acts.owner]
    is_click = (events.kind[order] == CLICK) & events.placed[order]
    last = _find_last(is_click, start)
    page, ts = events.page[order], events.ts[order]
    changed = is_click & (last >= 0) & (page[np.maximum(last, 0)] != page)
    other = _find_last(changed, start)  # the click after the latest one on another page
    other_at = ts[np.maximum(last[np.maximum(other, 0)], 0)]
    span = int(window_days * DAY_MICROS)
    in_time = (last >= 0) & (ts - ts[np.maximum(last, 0)] <= span)
    several = (other >= 0) & (ts - other_at <= span)
    sought = ~events.placed[order]
    by_click = np.flatnonzero(sought & in_time)
    origin[order[by_click]] = np.where(several[by_click], AMBIGUOUS, BY_CLICK)
    source[order[by_click]] = order[last[by_click]]
    return Attribution(origin, source)


def find_candidates(events: Events) -> Ints:
    """The events without a page, and clicks of the same users and documents."""
    sought = ~events.placed & ~events.nameless
    key = mix_numbers(events.suspect, events.document)
    clicks = events.placed & (events.kind == CLICK) & ~events.nameless
    return np.flatnonzero(sought | (clicks & is_among(key, key[sought])))


def _sort_by_time(events: Events, rows: Ints) -> Ints:
    """The rows of a user and document together, by time, clicks before other events; by event where all is equal."""
    group, _ = group_rows([events.suspect[rows], events.document[rows]])
    return sort_in_groups(group, events.ts[rows], (events.event[rows], events.kind[rows] != CLICK))


def _find_last(mask: Bools, start: Ints) -> Ints:
    """Per row the last row before it in the mask, of those from `start` on; −1 for none."""
    latest = np.maximum.accumulate(np.where(mask, np.arange(len(mask)), -1))
    before = np.concatenate([[-1], latest[:-1]])
    return np.where(before >= start, before, -1)
