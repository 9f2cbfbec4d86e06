"""The rules on impressions, events and pages over many pages at once, as NumPy arrays.

Runs inside Spark workers, on all rows of a set of pages. Rows are sorted by page, result and place; every feature is
then a reduction over runs of equal rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pipelines.labels.denoise.apply import combine_arrays
from pipelines.labels.denoise.kinds import CART, CLICK, IMPRESSION, PURCHASE
from pipelines.labels.denoise.registry import UNATTRIBUTED, rule_bit
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.history import History, Read
from udfs.ragged import Bools, Floats, Ints, Ragged
from udfs.sorting import sort_in_groups

KINDS = {"clicks": CLICK, "carts": CART, "purchases": PURCHASE}
_COMPARED = 64  # positions of a page that are compared with each other, the bits of a word
_NEVER = np.iinfo(np.int64).min
_MICROS = 1e6


class PageMark(IntFlag):
    """What one impression of each page says about the page, so that pages can be counted without a shuffle."""

    PAGE = 1  # set on one kept impression of each page; 0 on all others
    CLICKED = 2  # a result was clicked, whether or not the click counts
    STACKED = 4  # several documents have the same position
    NAMELESS = 8  # the user is unknown


@dataclass(frozen=True)
class PageRows:
    """Impressions and events of whole pages, sorted by `sort_rows`."""

    page: Ints  # its number
    result: Ints  # a hash of the document
    kind: Ints
    ts: Ints  # microseconds
    position: Ints  # 0 for events
    bits: Ints  # of the rules on users and results
    nameless: Bools
    event: Ints  # a hash of the event id
    dwell: Floats  # NaN where unknown
    unplaced: Bools  # an event that belongs to no page

    @cached_property
    def results(self) -> Ragged:
        return Ragged.of_sorted(self.page, self.result)

    @cached_property
    def pages(self) -> Ragged:
        return Ragged.of_sorted(self.page)

    @cached_property
    def is_event(self) -> Bools:
        return np.not_equal(self.kind, IMPRESSION)

    @cached_property
    def is_place(self) -> Bools:
        """Whether a row is the highest place of a result on its page: impressions come first in each result."""
        return ~self.is_event & np.equal(self.results.place, 1)


@dataclass(frozen=True)
class PageOutcomes:
    """Per row of `PageRows`: the rules that drop it, and the events it counts."""

    bits: Ints
    page_mark: Ints
    history: Ints
    clicks: Ints
    carts: Ints
    purchases: Ints


def sort_rows(page: Ints, document: Ints, kind: Ints, position: Ints, ts: Ints, ties: tuple[Ints, ...]) -> Ints:
    """The order of `PageRows`: by page and document, impressions before events, the highest place first."""
    return sort_in_groups(page, document, (*ties, ts, position, kind != IMPRESSION))


def apply_rules(rows: PageRows, settings: DenoiseSettings, history: History | None) -> PageOutcomes:
    """Apply the rules on impressions, events and pages.

    A rule on a single event does not drop its impression; a rule on a user, a result or a page drops both. A rule on an
    impression drops only that: of a document that a page shows twice, all events belong to the highest place.
    """
    first = rows.results.offsets[:-1]
    shown_bits = np.where(rows.is_event[first], 0, rows.bits[first])[rows.results.owner]
    clicked = rows.results.counts(rows.kind == CLICK)[rows.results.owner] > 0
    results, results_clicked = (rows.pages.counts(mask) for mask in (rows.is_place, rows.is_place & clicked))
    of_page = {"results": results, "results_clicked": results_clicked}
    page_bits = combine_arrays("page", settings, of_page, rows.pages.size)[rows.pages.owner]
    impression_bits = combine_arrays("impression", settings, {"nth_place": rows.results.place}, rows.results.rows)
    bits = rows.bits | np.where(rows.is_event, 0, impression_bits) | shown_bits | page_bits
    events = np.flatnonzero(rows.is_event)
    bits[events] |= _apply_event_rules(rows, events, settings)
    counted = rows.is_place & (bits == 0)
    counts = {name: _count_events(rows, kind, bits, counted) for name, kind in KINDS.items()}
    return PageOutcomes(
        bits=bits,
        page_mark=_mark_pages(rows, counted, results_clicked > 0),
        history=_find_history(rows, counted & (counts["clicks"] > 0), history),
        **counts,
    )


def _count_events(rows: PageRows, kind: int, bits: Ints, counted: Bools) -> Ints:
    """Per impression the kept events of a kind, all at the highest place of their result; per event itself."""
    of_kind = rows.kind == kind
    kept = rows.results.counts(of_kind & (bits == 0))[rows.results.owner]
    return np.where(rows.is_event, of_kind, np.where(counted, kept, 0))


def _apply_event_rules(rows: PageRows, events: Ints, settings: DenoiseSettings) -> Ints:
    """The bits of the rules on events, for the rows `events`."""
    owner, is_click = rows.results.owner[events], rows.kind[events] == CLICK
    ts, unplaced = rows.ts[events], rows.unplaced[events]
    # Of the results with events only, which are few: a reduction takes long where most lists have one row.
    acted = np.flatnonzero(np.bincount(owner, minlength=rows.results.size))
    near = Ragged.of_lengths(rows.results.lengths[acted])
    at = np.repeat(rows.results.offsets[acted], near.lengths) + near.place - 1
    own = np.searchsorted(acted, owner)
    kind, near_ts, near_dwell = rows.kind[at], rows.ts[at], rows.dwell[at]
    page_at = near.reduce(np.maximum, np.where(kind == IMPRESSION, near_ts, _NEVER))[own]
    is_dwell = (kind == CLICK) & ~np.isnan(near_dwell)
    dwell = near.reduce(np.maximum, np.where(is_dwell, near_dwell, -np.inf))[own]
    converted_at = near.reduce(np.maximum, np.where(kind > CLICK, near_ts, _NEVER))[own]
    shown = page_at != _NEVER
    features = {
        "is_click": is_click,
        "shown": shown,
        "unplaced": unplaced,
        "longest_dwell": np.where(np.isneginf(dwell), np.nan, dwell),
        "converted": converted_at >= ts,
        "seconds_after_page": np.where(shown, (ts - np.where(shown, page_at, 0)) / _MICROS, np.nan),
        **_number_events(owner, rows.kind[events], ts, rows.event[events]),
    }
    bits = combine_arrays("event", settings, features, len(events))
    return bits | np.where(unplaced, rule_bit(UNATTRIBUTED), 0)


def _number_events(owner: Ints, kind: Ints, ts: Ints, event: Ints) -> dict[str, npt.NDArray[np.generic]]:
    """Per event: its number among those of its kind on its result, and what it has in common with the one before."""
    order = np.lexsort((event, ts, kind, owner))
    acts = Ragged.of_sorted(owner[order], kind[order])
    again = acts.place > 1
    since = np.where(again, np.diff(ts[order], prepend=0) / _MICROS, np.nan)
    redelivered = again & (np.diff(event[order], prepend=0) == 0)
    columns: dict[str, npt.NDArray[np.generic]] = {
        "nth": acts.place, "seconds_since_previous": since, "redelivered": redelivered
    }  # fmt: skip
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return {name: column[place] for name, column in columns.items()}


def _mark_pages(rows: PageRows, counted: Bools, clicked: Bools) -> Ints:
    """Per row its `PageMark`: that of the page on its first kept impression, 0 on all others."""
    compared = counted & (rows.position <= _COMPARED)
    places = rows.pages.counts(compared)
    shift = np.clip(rows.position - 1, 0, _COMPARED - 1).astype(np.uint64)
    taken = rows.pages.reduce(np.bitwise_or, np.where(compared, np.uint64(1) << shift, np.uint64(0)))
    flags = (
        int(PageMark.PAGE)
        + int(PageMark.CLICKED) * clicked
        + int(PageMark.STACKED) * (places > np.bitwise_count(taken))
    )
    stands_for_page = counted & (rows.pages.running_counts(counted) == 1)
    marks = flags[rows.pages.owner] + int(PageMark.NAMELESS) * rows.nameless
    return np.where(stands_for_page, marks, 0)


def _find_history(rows: PageRows, clicked: Bools, history: History | None) -> Ints:
    """Per row, the state that an estimator conditions on (see `pipelines.labels.history`)."""
    none = np.zeros(len(rows.page), dtype=np.int64)
    if history is None:
        return none
    owner, position = rows.pages.owner, rows.position
    if history == "last_click":
        width = int(position.max(initial=0)) + 1
        places = np.sort(owner[clicked] * width + position[clicked])
        nearest = np.searchsorted(places, owner * width + position) - 1
        place = places[np.maximum(nearest, 0)] if len(places) else none
        return np.where((nearest >= 0) & (place // width == owner), place % width, 0)
    last = rows.pages.reduce(np.maximum, np.where(clicked, position, 0))[owner]
    states = [last == 0, clicked & (position == last), position <= last]
    return np.select(states, [int(Read.NO_CLICK), int(Read.LAST), int(Read.ABOVE)], int(Read.BELOW))
