"""`assay.evaluate` in memory: numbers, contracts, kinds of tables, the verdict, the report and publishing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import assay
from assay.result import render_html
from pipelines.report.tables import format_p
from pipelines.warehouse.runs import find_run
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import RunTables
from schemas.conform import require_columns
from schemas.errors import ConfigurationError, DataQualityError, InputError, PublishError
from schemas.inputs import INPUTS

QUERIES, DOCS = 60, 8


def simulate(seed: int = 1) -> dict[str, Any]:
    """Two systems on graded documents: `new` sees the grades with less noise than `old`."""
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 4, (QUERIES, DOCS))
    query = np.repeat([f"q{number}" for number in range(QUERIES)], DOCS)
    doc = np.tile([f"d{number}" for number in range(DOCS)], QUERIES)
    lists = [
        pd.DataFrame({"system": system, "query_id": query, "doc_id": doc, "score": (grades + noise).ravel()})
        for system, noise in {
            "old": rng.normal(0, 3, grades.shape),
            "new": rng.normal(0, 1, grades.shape),
        }.items()
    ]
    device = np.where(np.arange(QUERIES) % 3 == 0, "phone", "desktop")
    return {
        "rankings": pd.concat(lists, ignore_index=True),
        "judgments": pd.DataFrame({"query_id": query, "doc_id": doc, "grade": grades.ravel()}),
        "queries": pd.DataFrame(
            {"query_id": [f"q{n}" for n in range(QUERIES)], "weight": np.arange(1.0, QUERIES + 1), "device": device}
        ),
    }


@pytest.fixture(scope="module")
def tables() -> dict[str, Any]:
    return simulate()


@pytest.fixture(scope="module")
def result(tables: dict[str, Any]) -> Any:
    return assay.evaluate(**tables, metrics=["ndcg@5", "recall@5"], baseline="old", segments=["device"])


def test_the_comparison_is_the_paired_t_test_of_the_query_metrics(result: Any) -> None:
    by_system = result.query_metrics.pivot(index="query_id", columns="system", values="ndcg_at_5").dropna()
    delta = by_system["new"] - by_system["old"]
    expected = stats.ttest_1samp(delta, 0.0)
    low, high = expected.confidence_interval(0.95)
    rows = result.comparisons.set_index(["segment", "value", "metric"])
    row = rows.loc[("all", "all", "ndcg_at_5")]
    assert row["delta"] == pytest.approx(delta.mean(), abs=1e-12)
    assert (row["delta_low"], row["delta_high"]) == pytest.approx((low, high), abs=1e-12)
    assert row["p_value"] == pytest.approx(expected.pvalue, rel=1e-9)
    assert row["wins"] + row["ties"] + row["losses"] == row["queries"] == len(delta)
    assert row["delta"] > 0.05


def test_p_values_are_adjusted_by_holm_over_metrics_and_segments(result: Any) -> None:
    rows = result.comparisons
    p = np.sort(rows["p_value"].to_numpy())
    assert len(p) == 6  # two metrics in all, phone and desktop
    holm = np.minimum(np.maximum.accumulate(p * np.arange(6, 0, -1)), 1.0)
    assert np.sort(rows["p_adjusted"].to_numpy()) == pytest.approx(holm, rel=1e-12)


def test_means_by_segment_are_those_of_its_queries(result: Any) -> None:
    queries = result.query_metrics
    phone = queries[(queries["device"] == "phone") & (queries["system"] == "new")]
    rows = result.segment_metrics.set_index(["system", "segment", "value", "metric"])
    row = rows.loc[("new", "device", "phone", "ndcg_at_5")]
    assert row["macro"] == pytest.approx(phone["ndcg_at_5"].mean(), abs=1e-12)
    assert row["weighted"] == pytest.approx(np.average(phone["ndcg_at_5"], weights=phone["weight"]), abs=1e-12)
    assert row["queries"] == len(phone) == 20


def test_metrics_are_those_of_the_evaluator(tables: dict[str, Any], result: Any) -> None:
    scorer = assay.Evaluator(metrics=["ndcg@5"], max_grade=3)
    one = tables["rankings"].query("system == 'old' and query_id == 'q7'").sort_values("score", ascending=False)
    grades = tables["judgments"].query("query_id == 'q7'").set_index("doc_id")["grade"].to_dict()
    got = result.query_metrics.set_index(["system", "query_id"]).loc[("old", "q7"), "ndcg_at_5"]
    assert got == scorer.evaluate_ranking(list(one["doc_id"]), grades)["ndcg@5"]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_results_are_of_the_kind_of_the_rankings(kind: str, tables: dict[str, Any], result: Any) -> None:
    convert = {"pandas": lambda t: t, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}[kind]
    arguments: dict[str, Any] = {name: convert(table) for name, table in tables.items()}
    got = assay.evaluate(**arguments, metrics=["ndcg@5", "recall@5"], baseline="old", segments=["device"])
    for name in ("summary", "query_metrics", "segment_metrics", "comparisons"):
        table = getattr(got, name)
        assert type(table).__module__.partition(".")[0] == kind
        values = table.to_pandas() if kind != "pandas" else table
        pd.testing.assert_frame_equal(values, getattr(result, name), check_exact=True, check_dtype=False)
    assert got.verdict == result.verdict


def test_paths_are_read_without_a_jvm(tmp_path: Path, tables: dict[str, Any], result: Any) -> None:
    tables["rankings"].to_csv(tmp_path / "rankings.csv", index=False)
    pq.write_table(pa.Table.from_pandas(tables["judgments"]), tmp_path / "judgments.parquet")
    tables["queries"].to_json(tmp_path / "queries.jsonl", orient="records", lines=True)
    files = {"rankings": "rankings.csv", "judgments": "judgments.parquet", "queries": "queries.jsonl"}
    arguments: dict[str, Any] = {name: tmp_path / file for name, file in files.items()}
    got = assay.evaluate(
        **arguments,
        metrics=["ndcg@5", "recall@5"],
        baseline="old",
        segments=["device"],
    )
    pd.testing.assert_frame_equal(got.comparisons, result.comparisons, check_exact=True)
    with pytest.raises(InputError, match=r"cannot tell the format of lists\.xlsx"):
        assay.evaluate(tmp_path / "lists.xlsx", tables["judgments"])
    with pytest.raises(InputError, match="no such file"):
        assay.evaluate(tmp_path / "absent.parquet", tables["judgments"])


def test_the_verdict_is_a_sentence_with_the_difference(result: Any, tables: dict[str, Any]) -> None:
    row = result.comparisons.iloc[0]
    assert result.verdict == (
        f"new against old: significantly better, ndcg@5 {row['delta']:+.4f} "
        f"[{row['delta_low']:+.4f}, {row['delta_high']:+.4f}], p {format_p(row['p_adjusted'])}, 60 queries."
    )
    alone = assay.evaluate(tables["rankings"], tables["judgments"])
    assert alone.comparisons is None
    assert alone.verdict == "2 systems evaluated; without a baseline nothing is compared."


def test_a_column_under_another_usual_name_is_suggested(tables: dict[str, Any]) -> None:
    renamed = tables["judgments"].rename(columns={"grade": "relevance"})
    with pytest.raises(InputError, match=r"lacks grade .* columns: \{grade: relevance\}"):
        assay.evaluate(tables["rankings"], renamed)
    renamed = tables["rankings"].rename(columns={"doc_id": "Product ID"})
    with pytest.raises(InputError, match=r"lacks doc_id .* columns: \{doc_id: Product ID\}"):
        assay.evaluate(renamed, tables["judgments"])


def test_a_column_of_the_contract_is_not_suggested_for_another() -> None:
    """`user_id` is spelt nearly like `query_id`."""
    columns = ["serp_id", "doc_id", "user_id", "position", "ts"]
    with pytest.raises(InputError, match=r"lacks query_id .* columns: \{query_id: NAME\}"):
        require_columns(columns, INPUTS["impressions"], columns)
    with pytest.raises(InputError, match=r"lacks query_id .* columns: \{query_id: queryid\}"):
        require_columns([*columns, "queryid"], INPUTS["impressions"], columns)


def test_one_query_and_one_system_are_counted_as_one(tables: dict[str, Any]) -> None:
    rankings, judgments = (tables[name].query("query_id == 'q0'") for name in ("rankings", "judgments"))
    pair = assay.evaluate(rankings, judgments, ["judged@5"], "old")
    assert "compared on 1 query." in pair.verdict
    hopeless = assay.evaluate(tables["rankings"], tables["judgments"].assign(grade=-1.0), ["ndcg@5"], "old")
    assert "on 0 queries; a query without a relevant document counts for few metrics." in hopeless.verdict
    alone = assay.evaluate(tables["rankings"].query("system == 'old'"), tables["judgments"])
    assert alone.verdict.startswith("1 system evaluated")


def test_the_name_of_a_system_controls_no_terminal(tables: dict[str, Any]) -> None:
    name = "new\x1b[31m\nold"
    rankings = tables["rankings"].replace({"system": {"new": name}})
    for gate in ([], [{"metric": "ndcg@5", "drop": 0.1, "min_queries": 10}]):
        got = assay.evaluate(rankings, tables["judgments"], ["ndcg@5"], "old", gate=gate)
        assert "new\\u001b[31m\\u000aold" in got.verdict
        assert not {"\x1b", "\n"} & set(got.verdict)
    pair = assay.compare(got, got, system="old")
    with pytest.raises(ConfigurationError) as caught:
        assay.compare(got, got)
    assert not {"\x1b", "\n"} & {*pair.verdict, *str(caught.value)}


def test_each_sentence_of_a_result_is_a_paragraph() -> None:
    html = render_html("clicks: 3 read\n! 1 < 2", pa.table({"a": [1]}))
    assert html.startswith("<div><p><bdi>clicks: 3 read</bdi></p><p><bdi>! 1 &lt; 2</bdi></p><table>")


def test_the_gate_decides_where_there_is_one(tables: dict[str, Any]) -> None:
    gate = [{"metric": "ndcg@5", "superiority": True, "min_queries": 10}]
    got = assay.evaluate(tables["rankings"], tables["judgments"], ["ndcg@5"], "old", gate=gate)
    assert got.verdict.startswith("The gate passes: ndcg@5 ")
    assert [verdict["verdict"] for verdict in got.gate] == ["pass"]
    assert set(got.comparisons["gate"]) == {"pass"}


def test_rows_that_break_their_contract_are_counted_and_too_many_are_refused(tables: dict[str, Any]) -> None:
    bad = pd.DataFrame({"query_id": ["q1", " ", "q2"], "doc_id": ["d1", "d1", None], "grade": [np.inf, 1.0, 1.0]})
    judgments = pd.concat([tables["judgments"], bad], ignore_index=True)
    got = assay.evaluate(tables["rankings"], judgments, ["ndcg@5"], "old")
    assert got.rejected == {
        "judgments": {"doc_id: empty": 1, "grade: not a finite number": 1, "query_id: empty": 1},
    }
    assert got.verdict.endswith("3 rows could not be used.")
    with pytest.raises(DataQualityError, match=r"3 of 483 rows of judgments cannot be used, more than max_rejected"):
        assay.evaluate(tables["rankings"], judgments, ["ndcg@5"], "old", max_rejected=0.001)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"baseline": "od"}, ConfigurationError, r"the system 'od' has no rankings"),
        ({"metrics": ["ndgc@5"]}, ConfigurationError, r"ndgc"),
        (
            {"segment": ["device"]},
            ConfigurationError,
            r"assay.evaluate has no option 'segment': did you mean",
        ),
        ({"basline": "old"}, ConfigurationError, r"has no option 'basline': did you mean 'baseline'"),
        ({"metrics": 10}, ConfigurationError, r"metrics is 10: give a name, or a list of them"),
        ({"columns": {"rankings": ["doc_id"]}}, ConfigurationError, r"columns is not a mapping of tables to mappings"),
        ({"columns": {"doc_id": "product"}}, ConfigurationError, r'columns=\{"rankings": \{"doc_id": "product"\}\}'),
        ({"date": "yesterday"}, ConfigurationError, r"'yesterday' is not a date; write it as 2026"),
        ({"date": "9999-12-31"}, ConfigurationError, r"9999-12-31 is not in the years 1900 to 2200"),
        ({"date": 20261101}, ConfigurationError, r"20261101 is not a date; write a date"),
        ({"spark": "local"}, ConfigurationError, r"spark is a builtins.str: give a SparkSession"),
        ({"rankings": [{"doc_id": "d"}]}, InputError, r"rankings is a builtins.list: make a DataFrame of it"),
        ({"rankings": {"q1": ["d1"]}}, InputError, r"rankings is a mapping without path, table or view"),
        ({"judgments": np.zeros((2, 3))}, InputError, r"judgments is a numpy.ndarray: give a path, or a table of"),
        ({"judgments": pl.LazyFrame({"grade": [1]})}, InputError, r"LazyFrame: call .collect\(\)"),
        ({"segments": ["traffic_band"]}, ConfigurationError, r"traffic_band cannot be computed in memory"),
        ({"warehouse": "w"}, ConfigurationError, r"publish the result with `.publish"),
        ({"labels_of": "w"}, ConfigurationError, r"labels_of is not an option of assay.evaluate"),
        ({"columns": {"rankings": {"doc_id": "pid"}}}, InputError, r"rankings has no column 'pid'"),
    ],
)
def test_wrong_arguments_are_explained(
    change: dict[str, Any], kind: type[Exception], message: str, tables: dict[str, Any]
) -> None:
    arguments = {"rankings": tables["rankings"], "judgments": tables["judgments"], "baseline": "old"} | change
    with pytest.raises(kind, match=message):
        assay.evaluate(**arguments)


def test_one_segment_needs_no_list(tables: dict[str, Any], result: Any) -> None:
    one = assay.evaluate(**tables, metrics="ndcg@5", baseline="old", segments="device")
    assert set(one.segment_metrics["segment"]) == set(result.segment_metrics["segment"])


def test_ids_of_several_types_are_reported_with_what_makes_them_one(tables: dict[str, Any]) -> None:
    mixed = tables["rankings"].assign(doc_id=lambda table: [1, *table["doc_id"][1:]])
    with pytest.raises(InputError, match=r"rankings.doc_id cannot be read: .*\.astype\(str\)"):
        assay.evaluate(mixed, tables["judgments"])


def test_results_that_cannot_be_written_say_where(tmp_path: Path, result: Any) -> None:
    with pytest.raises(PublishError, match=r"cannot write the report: No such file or directory \(.*x\.html\)"):
        result.report(tmp_path / "nowhere" / "x.html")
    with pytest.raises(ConfigurationError, match="path is of type int: give a path"):
        result.report(3)
    with pytest.raises(ConfigurationError, match="warehouse is of type NoneType: give a path"):
        result.publish(None)


def test_lists_that_share_no_query_with_the_judgments_are_refused(tables: dict[str, Any]) -> None:
    other = tables["rankings"].assign(query_id=lambda t: t["query_id"].str.upper())
    with pytest.raises(DataQualityError, match=r"no query that 'new', 'old' ranked has labels, such as 'Q0'; 'q0' has"):
        assay.evaluate(other, tables["judgments"])


def test_documents_whose_ids_became_floats_are_refused(tables: dict[str, Any]) -> None:
    rankings = tables["rankings"].assign(doc_id=lambda table: table["doc_id"].str[1:].astype(float))
    judgments = tables["judgments"].assign(doc_id=lambda table: table["doc_id"].str[1:].astype(int))
    with pytest.raises(
        DataQualityError, match=r"none of the ranked documents has a label, such as '0\.0'; '0' has one"
    ):
        assay.evaluate(rankings, judgments, ["ndcg@5"], "old")
    assert assay.evaluate(rankings, judgments, ["judged@5"], "old").query_metrics["judged_at_5"].max() == 0.0
    assert assay.evaluate(rankings.astype({"doc_id": int}), judgments, ["ndcg@5"], "old").verdict


def test_an_expression_in_memory_says_that_it_needs_spark(tables: dict[str, Any]) -> None:
    renamed = {"rankings": {"query_id": "lower(query_id)"}}
    with pytest.raises(InputError, match="an expression needs Spark: give spark=, or add the column to the table"):
        assay.evaluate(tables["rankings"], tables["judgments"], ["ndcg@5"], "old", columns=renamed)


def test_ties_are_refused_where_the_conventions_say_so(tables: dict[str, Any]) -> None:
    tied = tables["rankings"].assign(score=1.0)
    with pytest.raises(DataQualityError, match=r"120 lists have tied documents, first system 'new', query 'q0'"):
        assay.evaluate(tied, tables["judgments"], conventions={"ties": "error"})


def test_clusters_widen_the_interval(tables: dict[str, Any]) -> None:
    queries = tables["queries"].assign(intent=lambda t: (t.index // 2).astype(str))
    both: dict[str, Any] = tables | {"queries": queries}
    got = assay.evaluate(**both, metrics=["ndcg@5"], baseline="old", statistics={"cluster": "intent"})
    assert got.comparisons["degrees"].tolist() == [29.0]


def test_the_report_and_a_published_run(tmp_path: Path, result: Any) -> None:
    page = result.report(tmp_path / "report.html")
    assert page.read_text(encoding="utf-8").count("ndcg@5") > 3
    warehouse = tmp_path / "warehouse"
    run = result.publish(warehouse)
    assert result.publish(warehouse) == run  # the same work is not published twice
    storage = Storage(str(warehouse))
    manifest = find_run(storage, run)
    assert json.loads(manifest.model_dump_json())["inputs"]["judgments"]["kept"] == QUERIES * DOCS
    read = pa.Table.from_batches(RunTables(storage, manifest).batches("comparisons")).to_pandas()
    pd.testing.assert_frame_equal(read, result.comparisons, check_exact=True)


def test_a_notebook_shows_the_verdict_and_escapes_names(tables: dict[str, Any]) -> None:
    hostile = tables["rankings"].replace({"system": {"new": "<script>alert(1)</script>"}})
    html = assay.evaluate(hostile, tables["judgments"], baseline="old")._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<table>" in html


def test_no_jvm_is_started() -> None:
    script = """
import assay, pyarrow as pa
rankings = pa.table({"system": ["a", "b"], "query_id": ["q", "q"], "doc_id": ["x", "y"], "rank": [1, 1]})
judgments = pa.table({"query_id": ["q"], "doc_id": ["x"], "grade": [1]})
result = assay.evaluate(rankings, judgments, ["mrr"], baseline="a")
from pyspark import SparkContext
print(result.summary["mrr"].to_pylist(), SparkContext._gateway)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[1.0, 0.0] None\n"


def test_the_micro_average_of_retention_is_the_ratio_over_all_queries() -> None:
    lists = {
        ("first", "q1"): "abcd",
        ("first", "q2"): "ab",
        ("second", "q1"): "axyz",
        ("second", "q2"): "ab",
    }
    rankings = pd.DataFrame(
        [
            {"system": system, "query_id": query, "doc_id": doc, "rank": rank}
            for (system, query), docs in lists.items()
            for rank, doc in enumerate(docs, start=1)
        ]
    )
    judged = [("q1", "a"), ("q1", "b"), ("q1", "c"), ("q2", "a")]
    judgments = pd.DataFrame([{"query_id": query, "doc_id": doc, "grade": 1} for query, doc in judged])
    got = assay.evaluate(rankings, judgments, metrics=["retention(from=4)@2"], earlier="first")
    row = got.segment_metrics.query("system == 'second'").iloc[0]
    assert row["macro"] == pytest.approx((1 / 3 + 1) / 2)
    assert row["micro"] == pytest.approx(2 / 4)  # 1 of 3 and 1 of 1 that were handed over
    assert row["metric_name"] == "retention(from=4)@2"


def test_a_query_counts_where_the_first_metric_is_defined_for_both_systems(tables: dict[str, Any]) -> None:
    judgments = tables["judgments"].assign(grade=lambda t: np.where(t["query_id"] == "q3", 0, t["grade"]))
    judgments = judgments[judgments["query_id"] != "q4"]
    conventions = {"nothing_returned": "skip"}
    rankings = tables["rankings"].query("not (system == 'old' and query_id == 'q5')")
    got = assay.evaluate(rankings, judgments, ["ndcg@5"], "old", conventions=conventions)
    rows = got.query_metrics.set_index(["system", "query_id"])["counted"]
    assert [bool(rows["new", query]) for query in ("q2", "q3", "q4", "q5")] == [True, False, False, False]
    assert rows["new"].sum() == got.comparisons["queries"].iloc[0] == QUERIES - 3
    alone = assay.evaluate(rankings, judgments, ["ndcg@5"], conventions=conventions).query_metrics
    own = alone.set_index(["system", "query_id"])["counted"]
    assert bool(own["new", "q5"])
    assert not bool(own["old", "q5"])


def test_a_query_with_too_little_judged_does_not_count(tables: dict[str, Any]) -> None:
    some = tables["judgments"].query("not (query_id == 'q7' and doc_id in ['d0', 'd1', 'd2', 'd3', 'd4', 'd5'])")
    got = assay.evaluate(tables["rankings"], some, ["ndcg@5"], "old", compare={"min_judged": 0.9})
    counted = got.query_metrics.query("counted and system == 'new'")
    assert len(counted) == got.comparisons.query("metric == 'ndcg_at_5'")["queries"].iloc[0] == QUERIES - 1


def test_the_text_of_a_result_has_no_control_characters(tables: dict[str, Any]) -> None:
    named = tables["rankings"].replace({"system": {"new": "new\x1b[2J\u202e\nx"}})
    result = assay.evaluate(named, tables["judgments"], ["ndcg@5"], "old")
    assert "new\\u001b[2J\\u202e\\u000ax" in repr(result)
    assert not set("\x1b\u202e\n") & set(repr(result))
