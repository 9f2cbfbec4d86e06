"""Every declared check fires on data that breaks just it, and none on clean data; with real Great Expectations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.check import check
from pipelines.quality.checks import checks
from pipelines.quality.inspect import Inspection
from pipelines.quality.results import refusal
from pipelines.quality.suite import RULES, USABLE, Suites
from schemas.outputs import OUTPUTS
from schemas.table import Column, Table
from tests.spark.small_data import DATE, LISTS, LOG, NAMES, Frames, clean, failing, held, inspect, setting

Known = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """What is done to clean data, the table whose check fires, and what cannot but fire with it."""

    broken: Callable[[Frames], object]
    table: str
    also: tuple[str, ...] = ()
    compared: bool = True  # with clean data of the days before
    threshold: float | None = None


# A row that breaks its contract is also a row that cannot be used.
UNUSABLE = USABLE.name


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
    assert made == (set(checks()) | {rule.name for rule in (*RULES.values(), USABLE)}) - of_results


def changed(table: str, column: str, rows: slice, value: object) -> Callable[[Frames], None]:
    """Some rows get another value."""

    def broken(frames: Frames) -> None:
        values = frames[table][column].to_list()
        values[rows] = [value] * len(values[rows])
        frames[table][column] = values

    return broken


def cut(table: str, rows: slice) -> Callable[[Frames], None]:
    def broken(frames: Frames) -> None:
        frames[table] = frames[table].iloc[rows]

    return broken


def doubled(table: str, rows: slice) -> Callable[[Frames], None]:
    def broken(frames: Frames) -> None:
        frames[table] = pd.concat([frames[table], frames[table].iloc[rows]])

    return broken


def texts(frames: Frames) -> None:
    """Ranks come as text, and one of them is none."""
    ranks = frames["rankings"]["rank"].astype(str).to_list()
    frames["rankings"]["rank"] = ["first", *ranks[1:]]


def same_lists(frames: Frames) -> None:
    ranked = frames["rankings"]
    of = ranked.system == "b"
    ranked.loc[of, "doc_id"] = "default-" + ranked.loc[of, "rank"].astype(str)


def unanswered(frames: Frames) -> None:
    """One system has no list for three queries."""
    ranked = frames["rankings"]
    frames["rankings"] = ranked[(ranked.system == "a") | ~ranked.query_id.isin(NAMES[:3])]


def executions(frames: Frames) -> None:
    """Every page is a query of its own; the documents stay."""
    frames["impressions"]["query_id"] = frames["impressions"]["serp_id"] + "-q"


def moved(condition: str, by: str) -> Callable[[Frames], None]:
    """Some impressions are shown at another time."""

    def broken(frames: Frames) -> None:
        shown = frames["impressions"]
        shown["ts"] = shown["ts"].mask(shown.index.isin(shown.query(condition).index), shown["ts"] + pd.Timedelta(by))

    return broken


def capped_grades(frames: Frames) -> None:
    frames["judgments"]["grade"] = frames["judgments"]["grade"].clip(upper=1.0)


def fewer_judgments(frames: Frames) -> None:
    frames["judgments"] = frames["judgments"].groupby("query_id").head(2)


def other_queries(frames: Frames) -> None:
    judged = frames["judgments"]
    judged["query_id"] = judged["query_id"].where(judged.index < 50, "other " + judged["query_id"])


def few_clicks(frames: Frames) -> None:
    kinds = frames["interactions"]["kind"].to_list()
    frames["interactions"]["kind"] = kinds[:4] + ["cart"] * (len(kinds) - 4)


def everything_clicked(frames: Frames) -> None:
    shown = frames["impressions"]
    columns = {name: shown[name].to_list() for name in ("doc_id", "user_id", "serp_id", "ts")}
    events = {"event_id": [f"e{n}" for n in range(len(shown))], "kind": "click", "dwell_seconds": 30.0}
    frames["interactions"] = pd.DataFrame(columns | events)


def cases() -> dict[str, Case]:
    return {
        "not_null": Case(changed("impressions", "doc_id", slice(0, 1), None), "impressions", also=(UNUSABLE,)),
        "range": Case(changed("interactions", "dwell_seconds", slice(0, 1), -1.0), "interactions", also=(UNUSABLE,)),
        "values": Case(changed("interactions", "kind", slice(0, 1), "hover"), "interactions", also=(UNUSABLE,)),
        "usable_rows": Case(texts, "rankings", compared=False),
        # A position of 0 is below the smallest that the contract allows.
        "positions_from_zero": Case(
            changed("impressions", "position", slice(0, 2), 0), "impressions", also=("range", UNUSABLE)
        ),
        "time_units": Case(changed("impressions", "ts", slice(-4, None), pd.Timestamp("1970-01-21")), "impressions"),
        "outside_window": Case(moved("index % 12 == 0", "-9 days"), "impressions"),
        "missing_day": Case(moved("ts < '2026-11-02'", "1 days"), "impressions"),
        "freshness": Case(moved("ts >= '2026-11-02 12:00'", "-12 hours"), "impressions", threshold=6),
        "huge_positions": Case(changed("impressions", "position", slice(3, 4), 1_000_000), "impressions"),
        "executions_as_queries": Case(executions, "impressions"),
        # Those three are also seen beside what is usual, for which there is a case of its own.
        "events_without_impression": Case(
            changed("interactions", "serp_id", slice(0, 15), "s999"), "interactions", compared=False
        ),
        "lost_references": Case(changed("interactions", "doc_id", slice(0, 5), "other"), "interactions"),
        "mixed_pages": Case(changed("impressions", "query_id", slice(1, 11, 4), "other"), "impressions"),
        "events_of_strangers": Case(changed("interactions", "user_id", slice(0, 5), "u999"), "interactions"),
        "unanswered_queries": Case(unanswered, "rankings"),
        "click_rate": Case(everything_clicked, "interactions", compared=False),
        "click_rate_change": Case(few_clicks, "interactions"),
        "volume": Case(fewer_judgments, "judgments"),
        "schema_change": Case(lambda frames: frames["queries"].pop("weight"), "queries"),
        "emptied_column": Case(changed("impressions", "system", slice(0, 40), None), "impressions"),
        "unique_key": Case(doubled("judgments", slice(0, 1)), "judgments"),
        "garbled_text": Case(changed("rankings", "doc_id", slice(3, 4), "caf\ufffd"), "rankings"),
        "same_list": Case(same_lists, "rankings"),
        "rankings_without_query": Case(cut("queries", slice(0, 23)), "rankings", compared=False),
        "rankings_without_label": Case(other_queries, "rankings", compared=False),
        "label_drift": Case(capped_grades, "judgments"),
    }


@pytest.mark.parametrize("name", cases())
def test_a_check_fires_on_data_that_breaks_just_it(spark: SparkSession, past: Known, name: str) -> None:
    case, frames = cases()[name], clean()
    case.broken(frames)
    group = LOG if case.table in LOG else LISTS
    stricter = {} if case.threshold is None else {"quality": {name: {"threshold": case.threshold}}}
    inspection, _ = inspect(held(spark, {of: frames[of] for of in group}), [past] if case.compared else [], **stricter)
    assert failing(inspection.results) == {(case.table, check) for check in (name, *case.also)}
    result = next(r for r in inspection.results if r.check == name and not r.passed)
    declared = checks().get(name)
    if declared is not None:
        assert (result.severity, result.reason) == (declared.severity, declared.reason)
        assert result.advice == declared.advice.replace("TABLE", case.table)
    assert result.observed and result.allowed
    assert "None" not in result.sample, "that nothing is there needs no example"


def test_judgments_that_no_list_asks_for_any_more_are_told(spark: SparkSession, past: Known) -> None:
    """As where empty names were written as a word: a fifth of the judgments is lost, and every list keeps some."""
    frames = clean()
    changed("judgments", "query_id", slice(0, None, 5), "None")(frames)
    inspection, _ = inspect(held(spark, {of: frames[of] for of in LISTS}), [past])
    assert failing(inspection.results) == {("judgments", "lost_references")}
    (result,) = [r for r in inspection.results if not r.passed]
    assert (result.failed_rows, result.rows, result.sample) == (24, 120, ("None",))


def test_every_check_has_a_case() -> None:
    of_results = {"unjudged_documents", "propensity_drift", "column_exists", "type", "pattern"}
    assert set(cases()) == (set(checks()) | {rule.name for rule in (*RULES.values(), USABLE)}) - of_results


def test_a_few_unusable_rows_warn_and_many_stop_the_run(spark: SparkSession) -> None:
    few, many = clean(), clean()
    changed("judgments", "grade", slice(0, 3), float("nan"))(few)
    changed("judgments", "grade", slice(0, 40), float("nan"))(many)
    warned, _ = inspect(held(spark, {of: few[of] for of in ("rankings", "judgments")}))
    stopped, _ = inspect(held(spark, {of: many[of] for of in ("rankings", "judgments")}))
    told = {r.check: r for r in warned.results if not r.passed}
    assert told["usable_rows"].severity == "warn"
    assert (told["usable_rows"].rows, told["usable_rows"].failed_rows) == (120, 3)
    assert len(told["usable_rows"].sample) == 3
    assert '"query_id":"größe 00"' in told["usable_rows"].sample[0]
    error = refusal(stopped.results, "here")
    assert error is not None and error.exit_code == 4
    assert "judgments fails usable_rows" in str(error) and "40 of 120 rows cannot be used: grade: " in str(error)


RESULTS = Table(
    "results",
    "one thing",
    (
        Column("metric", "string", "its name", pattern="[a-z_]+"),
        Column("value", "double", "what it is", nullable=True),
    ),
)


@pytest.mark.parametrize(
    ("check", "column", "rows"),
    [
        ("column_exists", "value", "SELECT 'a' AS metric"),
        ("type", "value", "SELECT 'a' AS metric, '3' AS value"),
        ("pattern", "metric", "SELECT 'A<b>' AS metric, 3D AS value UNION ALL SELECT 'ok', 2D"),
    ],
)
def test_a_contract_breaks_in_a_result(spark: SparkSession, check: str, column: str, rows: str) -> None:
    suites = Suites()
    assert all(
        of.passed
        for of in suites.validate(RESULTS, spark.sql("SELECT 'a' AS metric, 3D AS value"), tolerated=0).results
    )
    failed = [of for of in suites.validate(RESULTS, spark.sql(rows), tolerated=0).results if not of.passed]
    assert (failed[0].check, failed[0].column, failed[0].severity) == (check, column, "error")
    if check == "pattern":
        assert (failed[0].rows, failed[0].failed_rows, failed[0].sample) == (2, 1, ("A<b>",))


def results(spark: SparkSession, *, judged: int, propensity: float) -> dict[str, DataFrame]:
    """Small results of a run, whole by their contracts."""
    lists = [("a", "q", 1.0, 10, 0, 0, 9, 3, judged)]
    curve = [("all", at, propensity ** (at - 1), None, None, 100, 10, "all_pairs") for at in range(1, 5)]
    return {
        "query_metrics": spark.createDataFrame(lists, OUTPUTS["query_metrics"].struct()),
        "propensities": spark.createDataFrame(curve, OUTPUTS["propensities"].struct()),
    }


def test_results_are_inspected_before_they_are_committed(spark: SparkSession) -> None:
    before = Inspection(setting(LOG), DATE)
    before.outputs(results(spark, judged=9, propensity=0.5))
    assert failing(before.results) == set()
    for judged, propensity, expected in (
        (1, 0.5, ("query_metrics", "unjudged_documents")),
        (9, 0.9, ("propensities", "propensity_drift")),
    ):
        after = Inspection(setting(LOG), DATE, [before.figures])
        after.outputs(results(spark, judged=judged, propensity=propensity))
        assert failing(after.results) == {expected}


def test_fast_checks_look_at_no_relations_and_no_results(spark: SparkSession) -> None:
    frames = clean()
    doubled("judgments", slice(0, 1))(frames)
    inspection, _ = inspect(held(spark, {of: frames[of] for of in LISTS}), checks="fast")
    assert {"unique_key", "same_list"}.isdisjoint(result.check for result in inspection.results)
    assert "not_null" in {result.check for result in inspection.results}
    inspection.outputs(results(spark, judged=0, propensity=0.5))
    assert failing(inspection.results) == set()


def test_of_long_tables_whole_queries_are_drawn(spark: SparkSession) -> None:
    frames = clean()
    doubled("rankings", slice(0, None))(frames)
    inspection, known = inspect(held(spark, {of: frames[of] for of in LISTS}), quality={"sample_rows": 96})
    keyed, repeated = known["rankings"]["keyed"], known["rankings"]["repeated"]
    assert 0 < keyed < 384 and keyed % 16 == 0  # two systems, four documents, each twice
    assert repeated == keyed / 2
    told = next(of.observed for of in inspection.results if (of.table, of.check) == ("rankings", "unique_key"))
    assert told == f"{repeated} of {keyed} rows repeat a key (50 %), in 25 % of the rows, drawn at random"
    assert ("rankings", "rankings_without_query") not in failing(inspection.results)


def test_where_drawn_rows_are_cut_off_no_reference_is_said_to_be_lost(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when one page has more rows than all that should be drawn."""
    monkeypatch.setattr("pipelines.quality.relations._bound", lambda rows, most: 10)
    inspection, known = inspect(held(spark, {of: clean()[of] for of in LOG}))
    assert known["impressions"]["keyed"] <= 10
    assert "unshown" not in known["interactions"]
    assert failing(inspection.results) == set()


def test_a_suite_that_is_told_its_counts_says_what_it_would_find_itself(spark: SparkSession) -> None:
    frames = clean()
    changed("interactions", "kind", slice(0, 3), "hover")(frames)
    changed("interactions", "dwell_seconds", slice(2, 9), -1.0)(frames)
    changed("interactions", "user_id", slice(4, 5), None)(frames)
    inputs = held(spark, {of: frames[of] for of in LOG})
    inspection, _ = inspect(inputs)
    table = check(inputs, inspection.config).tables["interactions"]
    alone = Suites().validate(table.table, table.cast, tolerated=inspection.config.max_rejected).results
    assert [(of.check, of.failed_rows) for of in alone if not of.passed] == [
        ("values", 3), ("not_null", 1), ("range", 7),
    ]  # fmt: skip
    ours = {rule.name for rule in RULES.values()}
    assert [of for of in inspection.results if of.table == "interactions" and of.check in ours] == list(alone)


def test_where_queries_are_too_long_to_be_drawn_the_rows_are_counted_all_the_same(spark: SparkSession) -> None:
    """Here one query has all rows, so that it is drawn whole where only a few rows should be."""
    frames = {of: clean()[of] for of in ("rankings", "judgments")}
    frames["rankings"] = pd.DataFrame(
        {"system": "a", "query_id": "größe 00", "doc_id": [f"d{n}" for n in range(1200)], "rank": range(1, 1201)}
    )
    inputs = held(spark, frames)
    config = setting(list(inputs), quality={"sample_rows": 10})
    inspection = Inspection(config, DATE)
    everything = {name: {"query_id": F.col("query_id"), "doc_id": F.col("doc_id")} for name in inputs}
    checked = check(inputs, config, lambda tables: {
        name: replace(asked, drawn=everything[name]) for name, asked in inspection.ask(tables).items()
    })  # fmt: skip
    assert {name: (count.read, count.kept) for name, count in checked.counts.items()} == {
        "rankings": (1200, 1200), "judgments": (120, 120),
    }  # fmt: skip
    assert "query_id" not in checked.drawn["rankings"].column_names
    assert checked.drawn["judgments"].num_rows == 120
