"""Counts of days, added up over windows."""

import json
from typing import Any

from pipelines.inputs.count import CountRequest, CountResult, RowAggregate, RowCount, dump_result, load_result
from pipelines.quality.day_figures import merge_results
from pipelines.quality.row_figures import FigureKey

NEWEST, OUTSIDE = FigureKey("newest"), FigureKey("outside")
TOTAL = ("a count of a suite",)


def of_day(day: str) -> FigureKey:
    return FigureKey("days", day)


def build_request(*days: str) -> CountRequest:
    value: Any = None  # the column, which only Spark reads
    sums = {key: RowAggregate(value) for key in (TOTAL, OUTSIDE, *map(of_day, days))}
    return CountRequest({**sums, NEWEST: RowAggregate(value, "max")})


def build_result(rows: RowCount, systems: str, values: dict[Any, Any]) -> CountResult:
    return CountResult(rows, frozenset(systems), frozenset(), None, 10, values, None)


RESULTS = (
    build_result(
        RowCount(10, 9, {"ts: empty": 1}),
        "ab",
        {TOTAL: 10, OUTSIDE: 1, of_day("1"): 2, of_day("2"): 6, of_day("3"): 1, NEWEST: 5.0},
    ),
    build_result(
        RowCount(7, 5, {"ts: empty": 1, "position: below 1": 1}),
        "b",
        {TOTAL: 7, OUTSIDE: 0, of_day("2"): 1, of_day("3"): 5, of_day("4"): 1, NEWEST: 4.0},
    ),
)


def test_counts_of_days_add_up_to_those_of_the_window() -> None:
    merged = merge_results(RESULTS, build_request("2", "3"))
    assert merged.rows == RowCount(17, 14, {"position: below 1": 1, "ts: empty": 2})
    assert (merged.systems, merged.text_bytes) == (frozenset("ab"), 20)
    assert merged.values == {TOTAL: 17, OUTSIDE: 1 + 2 + 1, of_day("2"): 7, of_day("3"): 6, NEWEST: 5.0}


def test_a_stored_result_is_read_as_it_was_in_any_order_of_the_request() -> None:
    keys = list(RESULTS[0].values)
    for order in (keys, keys[::-1]):
        request = CountRequest(dict.fromkeys(order, RowAggregate(None)))  # type: ignore[arg-type]
        stored = json.loads(json.dumps(dump_result(RESULTS[0])))
        assert load_result(stored, request) == RESULTS[0]
