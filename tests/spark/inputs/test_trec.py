"""TREC files as they really are, read once per row."""

import datetime as dt
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipelines.config.load import build_config
from pipelines.inputs.contracts import resolve_contract
from pipelines.inputs.count import CountRequest, count_rows
from pipelines.inputs.read import read_input
from pipelines.inputs.settings import InputSource
from pipelines.inputs.systems import find_lost_systems
from pipelines.inputs.validate import ValidatedInputs, validate_inputs
from schemas.conform import conform
from schemas.errors import InputError
from schemas.inputs import JUDGMENTS, RANKINGS

DAY = dt.date(2026, 11, 1)


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def read_run(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return read_input(spark, "rankings", InputSource(path=str(path), format="trec_run", options=options), DAY).raw


def validate_runs(spark: SparkSession, path: Path, order: str, **options: str) -> ValidatedInputs:
    qrels = write(path.parent / "qrels.txt", "1 0 a 1\n1 0 b 0\n")
    config = build_config(
        {
            "inputs": {
                "rankings": {"path": str(path), "format": "trec_run", "options": options},
                "judgments": {"path": qrels, "format": "trec_qrels"},
            },
            "metrics": ["map"],
            "conventions": {"order": order},
        },
        "a test",
    )
    inputs = {name: read_input(spark, name, source, DAY) for name, source in config.sources().items()}
    return validate_inputs(inputs, config)


def test_comments_blank_lines_and_what_follows_the_tag_are_ignored(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        "# a comment of six fields here",
        "   # another",
        "401 Q0 FT911-1 0 12.5 bm25",
        "401\tQ0  FT911-2\t1 -3e-2 bm25 \t",
        " 401 Q0 FT911-3 2 -4 bm25 and more fields",
        "\t \t",
        "",
        "401 Q0 FT911-4 3 -5",
        "401 Q0 FT911-#5 4 -6 bm25",
    ]
    write(tmp_path / "run.txt", "\n".join(lines) + "\r\n")
    conformed = conform(read_run(spark, tmp_path / "run.txt"), RANKINGS)
    assert sorted(tuple(row) for row in conformed.rows.collect()) == [
        ("bm25", "401", "FT911-#5", 4, -6.0),
        ("bm25", "401", "FT911-1", 0, 12.5),
        ("bm25", "401", "FT911-2", 1, -0.03),
        ("bm25", "401", "FT911-3", 2, -4.0),
    ]
    rejected = conformed.rejected_rows.collect()
    assert [row["reason"] for row in rejected] == ["line cannot be parsed"]
    assert '"401 Q0 FT911-4 3 -5"' in rejected[0]["row"] and "run.txt" in rejected[0]["row"]


def test_a_line_of_qrels_has_four_fields_exactly(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "qrels.txt", "#topic 0 document grade\n401 0 FT911-1 2 \n401 0 FT911-9 -1\n401 0 a 1 0.5\n")
    source = InputSource(path=str(tmp_path / "qrels.txt"), format="trec_qrels")
    graded = conform(read_input(spark, "judgments", source, DAY).raw, JUDGMENTS)
    grades = graded.rows.select("query_id", "doc_id", "grade").collect()
    assert sorted(tuple(row) for row in grades) == [("401", "FT911-1", 2.0), ("401", "FT911-9", -1.0)]
    assert graded.rejected_rows.count() == 1


def test_diversity_qrels_give_the_best_judgment_and_the_subtopics(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        "# topic subtopic document judgment",
        "1 2 a 1",
        "1 10 a 3",
        "1 1 a 0",
        "1 2 b 0",
        "1 1 b -2",
        "2 1 a 1",
        "2 1 c many",
        "2 1 d",
    ]
    source = InputSource(path=write(tmp_path / "qrels.txt", "\n".join(lines)), format="trec_diversity_qrels")
    conformed = conform(read_input(spark, "judgments", source, DAY).raw, JUDGMENTS)
    rows = conformed.rows.select("query_id", "doc_id", "grade", "subtopics").collect()
    assert sorted(tuple(row) for row in rows) == [
        ("1", "a", 3.0, ["10", "2"]),
        ("1", "b", 0.0, []),
        ("2", "a", 1.0, ["1"]),
    ]
    assert sorted(row["reason"] for row in conformed.rejected_rows.collect()) == [
        "grade: not a double",
        "line cannot be parsed",
    ]
    with pytest.raises(ValueError, match="the format trec_diversity_qrels gives judgments, not rankings"):
        read_input(spark, "rankings", source, DAY)


def test_the_rank_is_not_read_where_the_score_orders(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "runs" / "run.txt", "1 Q0 a - 2.5 s\n1 Q0 b ? 1.5 s\n")
    inputs = validate_runs(spark, tmp_path / "runs", "score")
    assert sorted(tuple(row) for row in inputs.rows("rankings").collect()) == [
        ("s", "1", "a", None, 2.5),
        ("s", "1", "b", None, 1.5),
    ]
    with pytest.raises(InputError, match=r"none of the 2 rows of rankings can be used.*rank: not an int"):
        validate_runs(spark, tmp_path / "runs", "rank")


def test_two_files_with_one_tag_are_refused_unless_the_configuration_says_what_they_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "runs" / "first.run", "1 Q0 a 1 2.0 mine\n1 Q0 b 2 1.0 mine\n")
    write(tmp_path / "runs" / "second %20.txt", "1 Q0 b 1 2.0 mine\n")
    with pytest.raises(InputError, match=r"first\.run and .*second.*have the system 'mine'") as caught:
        validate_runs(spark, tmp_path / "runs", "score")
    assert "options: {system: file}" in caught.value.hint
    assert validate_runs(spark, tmp_path / "runs", "score", system="file").systems == ("first", "second %20")
    joined = validate_runs(spark, tmp_path / "runs", "score", system="tag")
    assert joined.systems == ("mine",)
    assert joined.counts["rankings"].kept == 3


def test_systems_and_files_without_a_usable_row_are_named(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "runs" / "good.txt", "1 Q0 a 1 2.0 good\n1 Q0 b 2 high good\n")
    write(tmp_path / "runs" / "bad.txt", "1 Q0 a 1 high bad\n")
    write(tmp_path / "runs" / "short.txt", "1 Q0 a 1 2.0\n")
    inputs = validate_runs(spark, tmp_path / "runs", "score")
    assert inputs.systems == ("good",)
    lost = find_lost_systems(inputs.tables["rankings"])
    assert [name.rpartition("/")[2] for name in sorted(lost)] == ["bad", "bad.txt", "short.txt"]


def test_a_line_is_parsed_once_however_many_checks_use_its_fields(spark: SparkSession, tmp_path: Path) -> None:
    """A filter on conformed rows is pushed down; without a barrier, the parser is written into each of its uses."""
    write(tmp_path / "run.txt", "1 Q0 a 1 2.0 s\n")
    conformed = conform(read_run(spark, tmp_path / "run.txt"), RANKINGS)
    plan = explain(conformed.rows)
    assert plan.count("split(") == 1
    assert plan.count("try_cast(score") == 1


def test_text_of_csv_and_json_is_cast_once(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "i.csv", "serp_id,query_id,doc_id,position,ts\ns,q,d,1,2026-11-01T00:00:00Z\n")
    write(tmp_path / "i.json", '{"serp_id":"s","query_id":"q","doc_id":"d","position":1,"ts":"2026-11-01T00:00:00Z"}\n')
    from schemas.inputs import IMPRESSIONS

    for kind in ("csv", "json"):
        source = InputSource(path=str(tmp_path / f"i.{kind}"), format=kind)
        conformed = conform(read_input(spark, "impressions", source, DAY).raw, IMPRESSIONS)
        plan = explain(conformed.rows)
        assert plan.count("try_cast(ts#") == 2  # as a time, and as a number of seconds
        assert plan.count("RLIKE(ts#") == 1
        assert count_rows(conformed, CountRequest()).rows.kept == 1


def explain(rows: DataFrame) -> str:
    """The optimised plan."""
    from contextlib import redirect_stdout
    from io import StringIO

    text = StringIO()
    with redirect_stdout(text):
        rows.explain("extended")
    return text.getvalue().partition("== Optimized Logical Plan ==")[2].partition("== Physical Plan ==")[0]


def test_the_contract_of_lists_ordered_by_score_keeps_its_columns() -> None:
    config = build_config(
        {
            "inputs": {"rankings": {"path": "runs"}, "judgments": {"path": "qrels"}},
            "conventions": {"order": "score_float32"},
        },
        "a test",
    )
    contract = resolve_contract("rankings", config)
    assert contract.names == RANKINGS.names
    assert contract.unread == ("rank",)
