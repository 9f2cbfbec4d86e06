"""Users are judged and events attributed as a slow version does it, whatever the order of the rows."""

from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest

from pipelines.labels.denoise.kinds import CART, CLICK, DAY_MICROS, EVERY_DAY, PURCHASE
from pipelines.labels.denoise.registry import rule_bit
from pipelines.labels.denoise.settings import Clockwork, DenoiseSettings, TooManyQueries
from pipelines.labels.denoise.user_arrays import (
    ATTRIBUTIONS,
    Attribution,
    Events,
    Flags,
    attribute_events,
    find_split_users,
    flag_users,
    look_up_flags,
)

SETTINGS = DenoiseSettings(too_many_queries=TooManyQueries(pages=6), clockwork=Clockwork(pages=4))
SECOND = 1_000_000


def flag_slowly(visits: list[tuple[int, int, int, bool]]) -> dict[tuple[int, int], int]:
    """The rules by user and day, by loops over (user, page, ts, crawler)."""
    pages: dict[tuple[int, int], tuple[int, bool]] = {}
    for user, page, ts, crawler in visits:
        first, seen = pages.get((user, page), (ts, False))
        pages[user, page] = (min(first, ts), seen or crawler)
    flags: dict[tuple[int, int], int] = {}
    for user, day in {(user, ts // DAY_MICROS) for (user, _), (ts, _) in pages.items()}:
        times = sorted(ts for (one, _), (ts, _) in pages.items() if one == user and ts // DAY_MICROS == day)
        gaps = np.diff(times) / 1e6
        bits = rule_bit("too_many_queries") if len(times) >= 6 else 0
        if len(times) >= 4 and np.std(gaps, ddof=1) < 0.1 * np.mean(gaps):
            bits |= rule_bit("clockwork")
        if bits:
            flags[user, day] = bits
    for (user, _), (_, crawler) in pages.items():
        if crawler:
            flags[user, EVERY_DAY] = rule_bit("known_bot")
    return flags


@pytest.mark.parametrize("seed", range(4))
def test_users_are_flagged_by_the_rules(seed: int) -> None:
    random = np.random.default_rng(seed)
    visits = []
    for user in range(40):
        steady = user % 5 == 0
        for number in range(int(random.integers(1, 9))):
            at = number * 60 if steady else int(random.integers(0, 2 * 86_400))
            visit = (user - 20, 100 * user + number, (86_400 + at) * SECOND, bool(random.random() < 0.02))
            visits += [visit] * int(random.integers(1, 3))  # several rows of a page
    random.shuffle(visits)
    suspect, page, ts, crawler = [np.array([visit[place] for visit in visits]) for place in range(4)]
    flags = flag_users(suspect, page, ts, crawler, SETTINGS)
    keys = zip(flags.suspect.tolist(), flags.day.tolist(), strict=True)
    expected = flag_slowly(visits)
    assert dict(zip(keys, flags.bits.tolist(), strict=True)) == expected
    for rule in ("clockwork", "too_many_queries"):
        assert any(bits & rule_bit(rule) for bits in expected.values())


def test_flags_hold_on_their_day_or_on_every_day() -> None:
    flags = Flags(*(np.array(column) for column in ([3, 3, 5], [EVERY_DAY, 7, 2], [1, 4, 8])))
    suspect, day = np.array([3, 3, 5, 5, 4]), np.array([7, 8, 2, 3, 2])
    assert look_up_flags(flags, suspect, day).tolist() == [5, 1, 8, 0, 0]
    none = Flags(*[np.zeros(0, dtype=np.int64)] * 3)
    assert look_up_flags(none, suspect, day).tolist() == [0] * 5


def test_users_with_a_page_or_a_day_in_several_files_are_split() -> None:
    suspect, page = np.array([1, 1, 2, 2, 3, 4]), np.array([10, 10, 20, 21, 30, 40])
    day, log_day = np.array([5, 5, 5, 6, 5, 5]), np.array([5, 6, 5, 6, 5, 6])
    assert find_split_users(suspect, page, day, log_day).tolist() == [1, 4]


def build_events(rows: list[dict[str, object]]) -> Events:
    defaults = {"suspect": 1, "document": 1, "page": 0, "placed": True, "kind": CLICK, "ts": 0, "nameless": False}
    columns = {
        f.name: np.array([{**defaults, "event": n, **row}[f.name] for n, row in enumerate(rows)])
        for f in fields(Events)
    }
    return Events(**columns)


def describe(attribution: Attribution) -> list[tuple[str, int]]:
    return [(ATTRIBUTIONS[o], int(s)) for o, s in zip(attribution.origin, attribution.source, strict=True)]


def test_the_latest_click_within_the_window_gets_the_event() -> None:
    day = DAY_MICROS
    rows: list[dict[str, object]] = [
        {"page": 11, "ts": 0},
        {"page": 12, "ts": day},
        {"placed": False, "kind": PURCHASE, "ts": 2 * day},  # two pages within the window
        {"placed": False, "kind": CART, "ts": day + 7 * day},  # at its end
        {"placed": False, "kind": CART, "ts": day + 7 * day + 1},
        {"placed": False, "kind": CART, "ts": 2 * day, "document": 2},
        {"placed": False, "kind": CART, "ts": 2 * day, "nameless": True},
        {"page": 11, "ts": 3 * day, "kind": CART},  # on a page, and no click
        {"placed": False, "kind": CLICK, "ts": 0, "suspect": 9},
    ]
    assert describe(attribute_events(build_events(rows), 7)) == [
        ("given", 0),
        ("given", 1),
        ("ambiguous", 1),
        ("click", 1),
        ("none", 4),
        ("none", 5),
        ("no_user", 6),
        ("given", 7),
        ("none", 8),
    ]


def attribute_slowly(events: Events, window: int) -> list[tuple[str, int]]:
    results = []
    rows = range(len(events.suspect))
    for row in rows:
        if events.placed[row]:
            results.append(("given", row))
            continue
        if events.nameless[row]:
            results.append(("no_user", row))
            continue
        clicks = [
            one for one in rows
            if events.placed[one] and events.kind[one] == CLICK and not events.nameless[one]
            and events.suspect[one] == events.suspect[row] and events.document[one] == events.document[row]
            and events.ts[one] <= events.ts[row] and (one != row)
            and (events.ts[one] < events.ts[row] or events.kind[row] != CLICK or events.event[one] < events.event[row])
        ]  # fmt: skip
        clicks.sort(key=lambda one: (events.ts[one], events.event[one]))
        if not clicks or events.ts[row] - events.ts[clicks[-1]] > window:
            results.append(("none", row))
            continue
        # The click before the latest one on another page, as far as the page changed.
        last = clicks[-1]
        other = None
        for before, after in pairwise(clicks):
            if events.page[before] != events.page[after]:
                other = before
        several = other is not None and events.ts[row] - events.ts[other] <= window
        results.append(("ambiguous" if several else "click", last))
    return results


@pytest.mark.parametrize("seed", range(6))
def test_events_are_attributed_as_by_loops(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows: list[dict[str, object]] = [
        {
            "suspect": int(random.integers(4)),
            "document": int(random.integers(3)),
            "page": int(random.integers(5)),
            "placed": bool(random.random() < 0.6),
            "kind": int(random.choice([CLICK, CLICK, CART, PURCHASE])),
            "ts": int(random.integers(40)) * 1_000,
            "nameless": bool(random.random() < 0.1),
        }
        for _ in range(150)
    ]
    events = build_events(rows)
    attribution = attribute_events(events, 15_000 / DAY_MICROS)
    assert describe(attribution) == attribute_slowly(events, 15_000)
