"""Every declared check fires on data that breaks just it, and none on clean data; with real Great Expectations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

from pipelines.inputs.validate import validate_inputs
from pipelines.quality.expectations.rules import RULES, USABLE
from pipelines.quality.expectations.suite import ContractSuites
from pipelines.quality.inspect import Inspection
from pipelines.quality.registry import CHECKS
from pipelines.quality.results import build_refusal
from schemas.outputs import LABELS, OUTPUTS
from schemas.table import Column, Table
from tests.helpers.small_data import (
    DATE,
    LISTS,
    LOG,
    NAMES,
    Frames,
    build_clean_tables,
    build_config,
    build_inputs,
    inspect_tables,
    list_failing,
)

TableFigures = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """How clean data is changed, the table whose check fires, and the checks that always fire with it."""

    corrupt: Callable[[Frames], object]
    table: str
    also: tuple[str, ...] = ()
    with_past: bool = True  # compare with clean data of earlier days
    threshold: float | None = None


# A row that breaks its contract cannot be used either.
UNUSABLE = USABLE.name
OF_FILES = {"lost_systems", "skipped_files"}  # silent without files; tests/spark/inputs/test_trec.py has them


@pytest.fixture(scope="module")
def past(spark: SparkSession) -> TableFigures:
    """The figures of clean data, as a later run reads them from a manifest; no check fires on it."""
    past_figures: TableFigures = {}
    for group in (LOG, LISTS):
        inspection, figures = inspect_tables(spark, {name: build_clean_tables()[name] for name in group})
        assert list_failing(inspection.results) == set()
        assert {result.table for result in inspection.results} == set(group)
        past_figures |= figures
    return past_figures


def test_clean_data_compared_with_clean_data_fires_nothing(spark: SparkSession, past: TableFigures) -> None:
    names = set()
    for group in (LOG, LISTS):
        inspection, _ = inspect_tables(spark, {name: build_clean_tables()[name] for name in group}, [past])
        assert list_failing(inspection.results) == set()
        names |= {result.check for result in inspection.results}
    of_results = {"unjudged_documents", "propensity_drift", "propensity_range", "excess_examinations", "pattern"}
    assert names == (set(CHECKS) | {rule.name for rule in (*RULES.values(), USABLE)}) - of_results - OF_FILES


def replace_values(table: str, column: str, rows: slice, value: object) -> Callable[[Frames], None]:
    """Some rows get another value."""

    def corrupt(frames: Frames) -> None:
        values = frames[table][column].to_list()
        values[rows] = [value] * len(values[rows])
        frames[table][column] = values

    return corrupt


def keep_rows(table: str, rows: slice) -> Callable[[Frames], None]:
    def corrupt(frames: Frames) -> None:
        frames[table] = frames[table].iloc[rows]

    return corrupt


def repeat_rows(table: str, rows: slice) -> Callable[[Frames], None]:
    def corrupt(frames: Frames) -> None:
        frames[table] = pd.concat([frames[table], frames[table].iloc[rows]])

    return corrupt


def write_ranks_as_text(frames: Frames) -> None:
    """Ranks come as text, and one of them is none."""
    ranks = frames["rankings"]["rank"].astype(str).to_list()
    frames["rankings"]["rank"] = ["first", *ranks[1:]]


def rank_same_lists(frames: Frames) -> None:
    ranked = frames["rankings"]
    of = ranked.system == "b"
    ranked.loc[of, "doc_id"] = "default-" + ranked.loc[of, "rank"].astype(str)


def drop_lists(frames: Frames) -> None:
    """One system has no list for three queries."""
    ranked = frames["rankings"]
    frames["rankings"] = ranked[(ranked.system == "a") | ~ranked.query_id.isin(NAMES[:3])]


def split_queries(frames: Frames) -> None:
    """Every page is a query of its own; the documents stay."""
    frames["impressions"]["query_id"] = frames["impressions"]["serp_id"] + "-q"


def shift_times(condition: str, by: str) -> Callable[[Frames], None]:
    """Some impressions are shown at another time."""

    def corrupt(frames: Frames) -> None:
        shown = frames["impressions"]
        shown["ts"] = shown["ts"].mask(shown.index.isin(shown.query(condition).index), shown["ts"] + pd.Timedelta(by))

    return corrupt


def cap_grades(frames: Frames) -> None:
    frames["judgments"]["grade"] = frames["judgments"]["grade"].clip(upper=1.0)


def drop_judgments(frames: Frames) -> None:
    frames["judgments"] = frames["judgments"].groupby("query_id").head(2)


def rename_queries(frames: Frames) -> None:
    judged = frames["judgments"]
    judged["query_id"] = judged["query_id"].where(judged.index < 50, "other " + judged["query_id"])


def drop_clicks(frames: Frames) -> None:
    kinds = frames["interactions"]["kind"].to_list()
    frames["interactions"]["kind"] = kinds[:4] + ["cart"] * (len(kinds) - 4)


def click_everything(frames: Frames) -> None:
    shown = frames["impressions"]
    columns = {name: shown[name].to_list() for name in ("doc_id", "user_id", "serp_id", "ts")}
    events = {"event_id": [f"e{n}" for n in range(len(shown))], "kind": "click", "dwell_seconds": 30.0}
    frames["interactions"] = pd.DataFrame(columns | events)


def build_cases() -> dict[str, Case]:
    return {
        "not_null": Case(replace_values("impressions", "doc_id", slice(0, 1), None), "impressions", also=(UNUSABLE,)),
        "range": Case(
            replace_values("interactions", "dwell_seconds", slice(0, 1), -1.0), "interactions", also=(UNUSABLE,)
        ),
        "values": Case(replace_values("interactions", "kind", slice(0, 1), "hover"), "interactions", also=(UNUSABLE,)),
        "usable_rows": Case(write_ranks_as_text, "rankings", with_past=False),
        # A position of 0 is below the smallest that the contract allows.
        "positions_from_zero": Case(
            replace_values("impressions", "position", slice(0, 2), 0), "impressions", also=("range", UNUSABLE)
        ),
        "time_units": Case(
            replace_values("impressions", "ts", slice(-4, None), pd.Timestamp("1970-01-21")), "impressions"
        ),
        "outside_window": Case(shift_times("index % 12 == 0", "-9 days"), "impressions"),
        "missing_day": Case(shift_times("ts < '2026-11-02'", "1 days"), "impressions"),
        "freshness": Case(shift_times("ts >= '2026-11-02 12:00'", "-12 hours"), "impressions", threshold=6),
        "huge_positions": Case(replace_values("impressions", "position", slice(3, 4), 1_000_000), "impressions"),
        "executions_as_queries": Case(split_queries, "impressions"),
        # Compared with past runs, these three would also fire lost_references, which has its own case.
        "events_without_impression": Case(
            replace_values("interactions", "serp_id", slice(0, 15), "s999"), "interactions", with_past=False
        ),
        "lost_references": Case(replace_values("interactions", "doc_id", slice(0, 5), "other"), "interactions"),
        "mixed_pages": Case(replace_values("impressions", "query_id", slice(1, 11, 4), "other"), "impressions"),
        "events_of_strangers": Case(replace_values("interactions", "user_id", slice(0, 5), "u999"), "interactions"),
        "unanswered_queries": Case(drop_lists, "rankings"),
        "click_rate": Case(click_everything, "interactions", with_past=False),
        "click_rate_change": Case(drop_clicks, "interactions"),
        "volume": Case(drop_judgments, "judgments"),
        "schema_change": Case(lambda frames: frames["queries"].pop("weight"), "queries"),
        "emptied_column": Case(replace_values("impressions", "system", slice(0, 40), None), "impressions"),
        "unique_key": Case(repeat_rows("judgments", slice(0, 1)), "judgments"),
        "garbled_text": Case(replace_values("rankings", "doc_id", slice(3, 4), "caf\ufffd"), "rankings"),
        "same_list": Case(rank_same_lists, "rankings"),
        "rankings_without_query": Case(keep_rows("queries", slice(0, 23)), "rankings", with_past=False),
        "rankings_without_label": Case(rename_queries, "rankings", with_past=False),
        "label_drift": Case(cap_grades, "judgments"),
    }


@pytest.mark.parametrize("name", build_cases())
def test_a_check_fires_on_data_that_breaks_just_it(spark: SparkSession, past: TableFigures, name: str) -> None:
    case, frames = build_cases()[name], build_clean_tables()
    case.corrupt(frames)
    group = LOG if case.table in LOG else LISTS
    stricter = {} if case.threshold is None else {"quality": {name: {"threshold": case.threshold}}}
    inspection, _ = inspect_tables(
        spark, {of: frames[of] for of in group}, [past] if case.with_past else [], **stricter
    )
    assert list_failing(inspection.results) == {(case.table, check) for check in (name, *case.also)}
    result = next(r for r in inspection.results if r.check == name and not r.passed)
    declared = CHECKS.get(name)
    if declared is not None:
        assert (result.severity, result.reason) == (declared.severity, declared.reason)
        assert result.advice == declared.advice.replace("TABLE", case.table)
    assert result.observed and result.allowed
    assert "None" not in result.sample, "a null is no example"


def test_judgments_whose_queries_are_no_longer_ranked_are_reported(spark: SparkSession, past: TableFigures) -> None:
    """As when nulls are written as text: a fifth of the judgments is lost, and every list keeps some."""
    frames = build_clean_tables()
    replace_values("judgments", "query_id", slice(0, None, 5), "None")(frames)
    inspection, _ = inspect_tables(spark, {of: frames[of] for of in LISTS}, [past])
    assert list_failing(inspection.results) == {("judgments", "lost_references")}
    (result,) = [r for r in inspection.results if not r.passed]
    assert (result.failed_rows, result.rows, result.sample) == (24, 120, ("None",))


def test_every_check_has_a_case() -> None:
    of_results = {
        "unjudged_documents", "propensity_drift", "propensity_range", "excess_examinations", "column_exists", "type",
        "pattern",
    }  # fmt: skip
    rules = {rule.name for rule in (*RULES.values(), USABLE)}
    assert set(build_cases()) == (set(CHECKS) | rules) - of_results - OF_FILES


def test_a_few_unusable_rows_warn_and_many_stop_the_run(spark: SparkSession) -> None:
    few, many = build_clean_tables(), build_clean_tables()
    replace_values("judgments", "grade", slice(0, 3), float("nan"))(few)
    replace_values("judgments", "grade", slice(0, 40), float("nan"))(many)
    warned, _ = inspect_tables(spark, {of: few[of] for of in ("rankings", "judgments")})
    stopped, _ = inspect_tables(spark, {of: many[of] for of in ("rankings", "judgments")})
    failed = {r.check: r for r in warned.results if not r.passed}
    assert failed["usable_rows"].severity == "warn"
    assert (failed["usable_rows"].rows, failed["usable_rows"].failed_rows) == (120, 3)
    assert len(failed["usable_rows"].sample) == 3
    assert '"query_id":"größe 00"' in failed["usable_rows"].sample[0]
    error = build_refusal(stopped.results, "here")
    assert error is not None and error.exit_code == 4
    assert "judgments fails usable_rows: 40 of 120 rows cannot be used: grade and chance: empty" in str(error)


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
    suites = ContractSuites()
    assert all(
        of.passed
        for of in suites.validate(RESULTS, spark.sql("SELECT 'a' AS metric, 3D AS value"), tolerated=0).results
    )
    failed = [of for of in suites.validate(RESULTS, spark.sql(rows), tolerated=0).results if not of.passed]
    assert (failed[0].check, failed[0].column, failed[0].severity) == (check, column, "error")
    if check == "pattern":
        assert (failed[0].rows, failed[0].failed_rows, failed[0].sample) == (2, 1, ("A<b>",))


def build_outputs(spark: SparkSession, *, judged: int, propensity: float) -> dict[str, DataFrame]:
    """Small results of a run, whole by their contracts."""
    lists = [("a", "q", 1.0, 10, 0, 0, 9, 3, judged, True)]
    curve = [("all", at, propensity ** (at - 1), None, None, 100, 10, "all_pairs", "measured") for at in range(1, 5)]
    return {
        "query_metrics": spark.createDataFrame(lists, OUTPUTS["query_metrics"].struct()),
        "propensities": spark.createDataFrame(curve, OUTPUTS["propensities"].struct()),
    }


def test_results_are_inspected_before_they_are_committed(spark: SparkSession) -> None:
    before = Inspection(build_config(LOG), DATE)
    before.check_outputs(build_outputs(spark, judged=9, propensity=0.5))
    assert list_failing(before.results) == set()
    for judged, propensity, expected in (
        (1, 0.5, ("query_metrics", "unjudged_documents")),
        (9, 0.9, ("propensities", "propensity_drift")),
    ):
        after = Inspection(build_config(LOG), DATE, [before.figures])
        after.check_outputs(build_outputs(spark, judged=judged, propensity=propensity))
        assert list_failing(after.results) == {expected}


@pytest.mark.parametrize(("propensity", "examinations", "expected"), [
    (1.14, 15.0, set()),
    (1.2, 15.0, {("propensities", "propensity_range")}),
    (0.0, 15.0, {("propensities", "propensity_range")}),
    (0.5, 15.1, {("labels", "excess_examinations")}),
])  # fmt: skip
def test_propensities_and_examinations_out_of_range_stop_the_run(
    spark: SparkSession, propensity: float, examinations: float, expected: set[tuple[str, str]]
) -> None:
    """Propensities are 1, p, p², p³; the label has ten impressions."""
    figures = dict.fromkeys(LABELS.names, 1.0) | {"impressions": 10, "examinations": examinations}
    names = {"query_id": "q", "doc_id": "d", "source": "behaviour", "reason": "graded"}
    counts = dict.fromkeys(("grade", "clicks", "carts", "purchases", "users", "positions"), 1)
    outputs = build_outputs(spark, judged=9, propensity=propensity)
    outputs["labels"] = spark.createDataFrame([figures | counts | names], LABELS.struct())
    inspection = Inspection(build_config(LOG), DATE)
    inspection.check_outputs(outputs)
    assert list_failing(inspection.results) == expected
    assert all(result.severity == "error" for result in inspection.results if not result.passed)


def test_fast_checks_look_at_no_relations_and_no_results(spark: SparkSession) -> None:
    frames = build_clean_tables()
    repeat_rows("judgments", slice(0, 1))(frames)
    inspection, _ = inspect_tables(spark, {of: frames[of] for of in LISTS}, checks="fast")
    assert {"unique_key", "same_list"}.isdisjoint(result.check for result in inspection.results)
    assert "not_null" in {result.check for result in inspection.results}
    inspection.check_outputs(build_outputs(spark, judged=0, propensity=0.5))
    assert list_failing(inspection.results) == set()


def test_long_tables_are_sampled_by_whole_queries(spark: SparkSession) -> None:
    frames = build_clean_tables()
    repeat_rows("rankings", slice(0, None))(frames)
    inspection, figures = inspect_tables(spark, {of: frames[of] for of in LISTS}, quality={"sample_rows": 96})
    keyed, repeated = figures["rankings"]["keyed"], figures["rankings"]["repeated"]
    assert 0 < keyed < 384 and keyed % 16 == 0  # two systems, four documents, each twice
    assert repeated == keyed / 2
    observed = next(of.observed for of in inspection.results if (of.table, of.check) == ("rankings", "unique_key"))
    assert observed == f"{repeated} of {keyed} rows repeat a key (50 %), in a sample of 25 % of the rows"
    assert ("rankings", "rankings_without_query") not in list_failing(inspection.results)


def test_a_truncated_sample_reports_no_lost_references(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when one page has more rows than the whole sample should."""
    for module in ("reference_figures", "reference_samples"):
        monkeypatch.setattr(f"pipelines.quality.{module}.max_rows", lambda tables, target: 10)
    inspection, figures = inspect_tables(spark, {of: build_clean_tables()[of] for of in LOG})
    assert figures["impressions"]["keyed"] <= 10
    assert "unshown" not in figures["interactions"]
    assert list_failing(inspection.results) == set()


def test_a_suite_on_counts_gives_the_results_of_a_suite_on_rows(spark: SparkSession) -> None:
    frames = build_clean_tables()
    replace_values("interactions", "kind", slice(0, 3), "hover")(frames)
    replace_values("interactions", "dwell_seconds", slice(2, 9), -1.0)(frames)
    replace_values("interactions", "doc_id", slice(4, 5), None)(frames)
    log = {of: frames[of] for of in LOG}
    inspection, _ = inspect_tables(spark, log)
    table = validate_inputs(build_inputs(spark, log), inspection.config).tables["interactions"]
    alone = ContractSuites().validate(table.table, table.cast_rows, tolerated=inspection.config.max_rejected).results
    assert [(of.check, of.failed_rows) for of in alone if not of.passed] == [
        ("values", 3), ("not_null", 1), ("range", 7),
    ]  # fmt: skip
    ours = {rule.name for rule in RULES.values()}
    assert [of for of in inspection.results if of.table == "interactions" and of.check in ours] == list(alone)


def test_another_spark_datasource_keeps_the_engine_of_great_expectations(spark: SparkSession) -> None:
    ContractSuites().validate(RESULTS, spark.sql("SELECT 'a' AS metric, 3D AS value"), tolerated=0)
    import great_expectations as gx
    from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine

    from pipelines.quality.expectations.engine import CountingEngine

    sources: Any = gx.get_context(mode="ephemeral").data_sources
    assert type(sources.add_spark("other").get_execution_engine()) is SparkDFExecutionEngine
    assert type(sources.add_counting_spark("ours").get_execution_engine()) is CountingEngine
