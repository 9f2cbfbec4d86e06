"""Every declared check fires on data that breaks just it, and none on clean data: real Spark, real Great Expectations."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipelines.quality.checks import checks
from pipelines.quality.inspect import Inspection
from pipelines.quality.suite import RULES, Suites
from pipelines.read import Input
from schemas.outputs import OUTPUTS
from schemas.table import Column, Table
from tests.spark.small_data import DATE, LISTS, LOG, PAGES, Frames, clean, failing, held, inspect, setting

Known = dict[str, dict[str, Any]]
# A row that breaks its contract is also a row that cannot be used.
UNUSABLE = "usable_rows"


@pytest.fixture(scope="module")
def past(spark: SparkSession) -> Known:
    """What clean data is like, as a later run finds it in a manifest; nothing fires on it."""
    known: Known = {}
    for group in (LOG, LISTS):
        inspection, found = inspect(held(spark, {name: clean()[name] for name in group}))
        assert failing(inspection.results) == set()
        assert {result.table for result in inspection.results} == set(group)
        known |= found
    return known


def test_clean_data_compared_with_clean_data_fires_nothing(spark: SparkSession, past: Known) -> None:
    made = set()
    for group in (LOG, LISTS):
        inspection, _ = inspect(held(spark, {name: clean()[name] for name in group}), [past])
        assert failing(inspection.results) == set()
        made |= {result.check for result in inspection.results}
    of_results = {"unjudged_documents", "propensity_drift", "pattern"}
    assert made == (set(checks()) | {rule.name for rule in RULES.values()}) - of_results


def zero_based(frames: Frames) -> None:
    first = frames["impressions"].index[:2]
    frames["impressions"].loc[first, "position"] = 0


def in_millis(frames: Frames) -> None:
    late = frames["impressions"].index[-4:]
    frames["impressions"].loc[late, "ts"] = dt.datetime(1970, 1, 21)


def short_window(frames: Frames) -> None:
    frames["impressions"] = frames["impressions"][frames["impressions"].ts >= pd.Timestamp("2026-11-02")]
    frames["interactions"] = frames["interactions"][frames["interactions"].ts >= pd.Timestamp("2026-11-02")]


def cut(table: str, rows: slice) -> Callable[[Frames], None]:
    def broken(frames: Frames) -> None:
        frames[table] = frames[table].iloc[rows]

    return broken


def changed(table: str, column: str, rows: slice, value: object) -> Callable[[Frames], None]:
    def broken(frames: Frames) -> None:
        at = frames[table].index[rows]
        frames[table].loc[at, column] = value

    return broken


def doubled(table: str, rows: slice) -> Callable[[Frames], None]:
    def broken(frames: Frames) -> None:
        frames[table] = pd.concat([frames[table], frames[table].iloc[rows]])

    return broken


def same_lists(frames: Frames) -> None:
    ranked = frames["rankings"]
    of = ranked.system == "b"
    ranked.loc[of, "doc_id"] = "default-" + ranked.loc[of, "rank"].astype(str)


def executions(frames: Frames) -> None:
    """Every page is a query of its own; the documents stay."""
    frames["impressions"]["query_id"] = frames["impressions"]["serp_id"] + "-q"


def early_end(frames: Frames) -> None:
    for name in LOG:
        frames[name].ts -= pd.Timedelta(hours=46)
    for name in LOG:
        early = frames[name].ts < pd.Timestamp("2026-11-01")
        frames[name].loc[early, "ts"] += pd.Timedelta(days=1)


def shifted_days(frames: Frames) -> None:
    rows = frames["impressions"].index[::12]
    frames["impressions"].loc[rows, "ts"] -= pd.Timedelta(days=9)


def other_grades(frames: Frames) -> None:
    frames["judgments"]["grade"] = frames["judgments"]["grade"].clip(upper=1.0)


def few_clicks(frames: Frames) -> None:
    kinds = frames["interactions"]["kind"]
    kinds[kinds == "click"] = ["click"] * 4 + ["cart"] * (sum(kinds == "click") - 4)
    frames["interactions"]["kind"] = kinds


def many_clicks(frames: Frames) -> None:
    shown = frames["impressions"].iloc[::1]
    frames["interactions"] = pd.DataFrame(
        {
            "event_id": [f"e{n}" for n in range(len(shown))],
            "kind": "click",
            "doc_id": shown.doc_id.to_list(),
            "user_id": shown.user_id.to_list(),
            "serp_id": shown.serp_id.to_list(),
            "ts": shown.ts.to_list(),
            "dwell_seconds": 30.0,
        }
    )


# check: the group of tables, what is done to them, the table where it fires, and what else must fire with it
CASES: dict[str, tuple[tuple[str, ...], Callable[[Frames], None], str, set[str]]] = {
    "not_null": (LOG, changed("impressions", "doc_id", slice(0, 1), None), "impressions", {UNUSABLE}),
    "range": (LOG, changed("interactions", "dwell_seconds", slice(0, 1), -1.0), "interactions", {UNUSABLE}),
    "values": (LOG, changed("interactions", "kind", slice(0, 1), "hover"), "interactions", {UNUSABLE}),
    "usable_rows": (LISTS, changed("rankings", "rank", slice(0, 1), "first"), "rankings", set()),
    "positions_from_zero": (LOG, zero_based, "impressions", {"range", UNUSABLE}),
    "time_units": (LOG, in_millis, "impressions", set()),
    "outside_window": (LOG, shifted_days, "impressions", set()),
    "missing_day": (LOG, early_end, "impressions", set()),
    "freshness": (LOG, early_end, "impressions", set()),
    "huge_positions": (LOG, changed("impressions", "position", slice(3, 4), 1_000_000), "impressions", set()),
    "executions_as_queries": (LOG, executions, "impressions", set()),
    "events_without_impression": (LOG, changed("interactions", "serp_id", slice(0, 15), "s999"), "interactions", set()),
    "click_rate": (LOG, many_clicks, "interactions", set()),
    "click_rate_change": (LOG, few_clicks, "interactions", set()),
    "volume": (LISTS, cut("queries", slice(0, 9)), "queries", set()),
    "schema_change": (LISTS, lambda frames: frames["queries"].pop("weight"), "queries", set()),
    "unique_key": (LISTS, doubled("judgments", slice(0, 1)), "judgments", set()),
    "garbled_text": (LISTS, changed("rankings", "doc_id", slice(3, 4), "caf\ufffd"), "rankings", set()),
    "same_list": (LISTS, same_lists, "rankings", set()),
    "rankings_without_query": (LISTS, cut("queries", slice(0, 23)), "rankings", set()),
    "rankings_without_label": (LISTS, cut("judgments", slice(0, 56)), "rankings", set()),
    "label_drift": (LISTS, other_grades, "judgments", set()),
}


@pytest.mark.parametrize("name", CASES)
def test_a_check_fires_on_data_that_breaks_just_it(spark: SparkSession, past: Known, name: str) -> None:
    group, broken, table, inherent = CASES[name]
    frames = clean()
    broken(frames)
    inspection, _ = inspect(
        held(
            spark,
            {
                of: frames[of].astype({"rank": str}) if of == "rankings" and name == "usable_rows" else frames[of]
                for of in group
            },
        ),
        [past],
    )
    fired = failing(inspection.results)
    assert fired == {(table, check) for check in {name} | inherent}
    result = next(r for r in inspection.results if r.check == name and not r.passed)
    declared = checks().get(name)
    if declared is not None:
        assert (result.severity, result.reason, result.advice) == (declared.severity, declared.reason, declared.advice)
    assert result.observed and result.allowed
