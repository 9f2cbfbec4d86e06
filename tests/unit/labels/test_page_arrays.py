"""The rules on pages as arrays: small pages by hand, and the same answer in any order of the rows."""

from typing import Any

import numpy as np
import pytest

from pipelines.labels.denoise.kinds import CART, CLICK, IMPRESSION, PURCHASE
from pipelines.labels.denoise.page_arrays import (
    PageMark,
    PageOutcomes,
    PageRows,
    apply_rules,
    sort_rows,
)
from pipelines.labels.denoise.pair_arrays import apply_pair_rules, group_rows
from pipelines.labels.denoise.registry import rule_bit
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.history import History, Read

SECOND = 1_000_000


def build_row(page: int, doc: int, kind: int = IMPRESSION, **values: Any) -> dict[str, Any]:
    row = {
        "page": page, "result": 100 * page + doc, "kind": kind, "ts": 0, "position": doc if kind == IMPRESSION else 0,
        "tie": 0, "bits": 0, "nameless": False, "event": 0, "dwell": np.nan, "unplaced": False,
    }  # fmt: skip
    return row | values


def click(page: int, doc: int, at: float, event: int, dwell: float = 60.0, kind: int = CLICK) -> dict[str, Any]:
    return build_row(page, doc, kind, ts=int(at * SECOND), event=event, dwell=dwell)


def apply_to_rows(
    rows: list[dict[str, Any]], history: History | None = None, settings: DenoiseSettings | None = None
) -> tuple[PageRows, PageOutcomes]:
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    page, result, kind, position, ts = (columns[name] for name in ("page", "result", "kind", "position", "ts"))
    order = sort_rows(page, result, kind, position, ts, (columns["tie"],))
    table = PageRows(**{name: column[order] for name, column in columns.items() if name != "tie"})
    return table, apply_rules(table, settings or DenoiseSettings(), history)


def test_a_page_with_a_purchase_after_a_short_click_a_double_click_and_a_stray_event() -> None:
    rows = [build_row(1, doc) for doc in (1, 2, 3)]
    rows += [click(1, 1, 10, 7, dwell=2), click(1, 1, 90, 8, kind=PURCHASE)]  # short, but it was bought
    rows += [click(1, 2, 20, 9), click(1, 2, 20, 9), click(1, 2, 21, 10), click(1, 2, 99, 11)]
    rows += [click(1, 3, 31 * 60, 12), click(1, 9, 5, 13), build_row(1, 3, CART, ts=5, unplaced=True)]
    table, outcomes = apply_to_rows(rows)
    by_result = {int(table.result[row]) % 100: row for row in np.flatnonzero(table.is_place)}
    assert {doc: int(outcomes.clicks[row]) for doc, row in by_result.items()} == {1: 1, 2: 1, 3: 0}
    assert {doc: int(outcomes.purchases[row]) for doc, row in by_result.items()} == {1: 1, 2: 0, 3: 0}
    reasons = {
        int(table.event[row]): int(outcomes.bits[row])
        for row in np.flatnonzero(table.is_event & (outcomes.bits != 0))
        if table.event[row]
    }
    assert reasons == {
        9: rule_bit("duplicate_event") | rule_bit("repeat_click"),
        10: rule_bit("duplicate_event") | rule_bit("repeat_click"),
        11: rule_bit("repeat_click"),
        12: rule_bit("late_event"),
        13: rule_bit("no_impression"),
    }
    marks = outcomes.page_mark[outcomes.page_mark > 0]
    assert marks.tolist() == [PageMark.PAGE | PageMark.CLICKED]


def test_a_repeated_document_counts_at_its_highest_place_and_positions_may_be_shared() -> None:
    rows = [build_row(1, 1), build_row(1, 1, position=4), build_row(1, 2), build_row(1, 3, position=2)]
    table, outcomes = apply_to_rows([*rows, click(1, 1, 5, 3)])
    places = {int(table.position[row]): int(outcomes.bits[row]) for row in np.flatnonzero(~table.is_event)}
    assert places == {1: 0, 4: rule_bit("repeated_result"), 2: 0}
    assert outcomes.page_mark.max() == PageMark.PAGE | PageMark.CLICKED | PageMark.STACKED


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_the_rows_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [build_row(page, doc, tie=doc) for page in range(30) for doc in range(1, 11) if rng.random() < 0.9]
    shown = len(rows)
    for event in range(200):
        at, kind = float(rng.integers(0, 3_000)), int(rng.integers(1, 4))
        rows.append(click(int(rng.integers(30)), int(rng.integers(1, 12)), at, event, float(rng.integers(0, 20)), kind))
    sums = set()
    for order in (np.arange(len(rows)), rng.permutation(len(rows))):
        table, outcomes = apply_to_rows([rows[place] for place in order])
        key = np.lexsort((table.event, table.kind, table.position, table.result))
        sums.add(tuple(tuple(getattr(outcomes, name)[key]) for name in ("bits", "clicks", "page_mark", "history")))
        assert (~table.is_event).sum() == shown
    assert len(sums) == 1


def find_states(history: History) -> dict[str, int]:
    """One page with clicks at 2 and 3, where two results stand, and a click at 5 that a rule drops."""
    places = {"a": 1, "b": 2, "c": 3, "d": 3, "e": 4, "f": 5}
    rows = [build_row(1, place, position=position, result=place) for place, position in enumerate(places.values(), 1)]
    for place, dwell in ((2, 60.0), (3, 60.0), (6, 1.0)):
        rows.append(click(1, place, 10, place, dwell) | {"result": place})
    table, outcomes = apply_to_rows(rows, history)
    names = dict(enumerate(places, 1))
    return {names[int(table.result[row])]: int(outcomes.history[row]) for row in np.flatnonzero(table.is_place)}


def test_the_history_of_a_result() -> None:
    assert find_states("read") == {
        "a": Read.ABOVE, "b": Read.ABOVE, "c": Read.LAST, "d": Read.ABOVE, "e": Read.BELOW, "f": Read.BELOW
    }  # fmt: skip
    assert find_states("last_click") == {"a": 0, "b": 0, "c": 2, "d": 2, "e": 3, "f": 3}


def test_one_user_is_capped_and_users_are_counted_once() -> None:
    person = np.array([1] * 20 + list(range(2, 12)))
    clicks = np.array([1] * 20 + [1] * 4 + [0] * 6)
    one = np.zeros(30, dtype=np.int64)
    of_pair = np.full(30, clicks.sum())
    outcomes = apply_pair_rules(one, person, np.arange(30), one, clicks, of_pair, DenoiseSettings())
    # Others have 4 clicks, so a fifth of all is 1 of the user's 20.
    assert (outcomes.bits[person == 1] == 0).sum() == 1
    assert outcomes.users.sum() == 11


def test_groups_of_equal_keys() -> None:
    keys = [np.array([3, 1, 3, 3]), np.array(["a", "b", "a", "b"])]
    groups, example = group_rows(keys)
    assert groups.tolist() == [0, 1, 0, 2]
    assert example.tolist() == [0, 1, 3]
