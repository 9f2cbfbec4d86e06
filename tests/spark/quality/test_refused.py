"""A run whose data fails its checks: what is published of it, and what stays as it was."""

import re
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from pipelines.config.model import Config
from pipelines.evaluate import evaluate
from pipelines.plan import list_inputs
from pipelines.quality.inspect import DOCS
from pipelines.quality.results import format_results
from pipelines.run import inspect_inputs
from pipelines.warehouse.runs import list_committed, list_recorded, select_live
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import read_table
from pipelines.warehouse.views import render_duckdb_views
from schemas.errors import DataQualityError
from schemas.outputs import VALIDATION_RESULTS
from tests.helpers.small_data import DATE, LISTS, Frames, build_clean_tables

HOSTILE = "<script>alert(1)</script>\x1b[31m"


def write_inputs(folder: Path, frames: Frames) -> Config:
    """Write the tables as Parquet files; returns a configuration that reads them."""
    for name in LISTS:
        (folder / name).mkdir(exist_ok=True)
        frames[name].to_parquet(folder / name / "part.parquet", index=False)
    inputs = {name: {"path": str(folder / name)} for name in LISTS}
    return Config.model_validate({"inputs": inputs, "metrics": ["ndcg@3"], "warehouse": str(folder / "warehouse")})


def test_a_run_that_fails_validation_leaves_the_live_run_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    frames = build_clean_tables()
    config = write_inputs(tmp_path, frames)
    good = evaluate(spark, config, DATE).manifest
    assert good.checks["failing"] == []
    assert good.checks["tables"]["rankings"]["failed"] == 0
    assert {"rankings", "judgments", "queries", "query_metrics", "segment_metrics"} <= set(good.checks["tables"])
    assert [line[0] for line in format_results(good.checks)] == ["✓"] * len(good.checks["tables"])
    before = sorted(p for p in Path(config.warehouse).rglob("*") if p.is_file())

    frames["rankings"]["system"] = frames["rankings"]["system"].replace("b", HOSTILE)
    hostile = frames["rankings"].system == HOSTILE
    frames["rankings"].loc[hostile, "doc_id"] = "default-" + frames["rankings"].loc[hostile, "rank"].astype(str)
    write_inputs(tmp_path, frames)
    message = r"rankings fails same_list.*24 of 24 queries.*lower quality\.same_list\.severity"
    with pytest.raises(DataQualityError, match=message) as caught:
        evaluate(spark, config, DATE)
    assert "\x1b" not in str(caught.value)
    assert re.fullmatch(r"Data Docs: file:.*/data_docs/dt=2026-11-02/run=.*/index.html", caught.value.details[-1])

    storage = Storage(config.warehouse)
    assert (
        [m.run for m in list_committed(storage)] == [m.run for m in select_live(list_committed(storage))] == [good.run]
    )
    refused = next(m for m in list_recorded(storage) if m.status == "refused")
    assert set(refused.tables) == {VALIDATION_RESULTS.name}
    assert {p for p in before if not p.exists()} == set()
    added = {str(p.relative_to(config.warehouse)) for p in Path(config.warehouse).rglob("*") if p.is_file()}
    folders = {path.split("/")[0] for path in added - {str(p.relative_to(config.warehouse)) for p in before}}
    assert folders == {VALIDATION_RESULTS.name, DOCS, "runs"}
    printed = "\n".join(format_results(refused.checks))
    assert (
        "✗ rankings: " in printed
        and "✗ same_list: 24 of 24 queries get the same documents from <script>alert(1)</script>\\u001b[31m" in printed
    )

    with duckdb.connect() as duck:  # the numbers are those of the live run, the verdict is the newest
        duck.execute(render_duckdb_views(storage))
        assert duck.sql("SELECT DISTINCT run FROM query_metrics").fetchall() == [(good.run,)]
        failed = duck.sql('SELECT "check", severity, failed_rows, rows FROM validation_results WHERE NOT passed')
        assert ("same_list", "error", 24, 24) in failed.fetchall()
    results = read_table(spark, config.warehouse, "validation_results")
    assert {row["run"] for row in results.select("run").distinct().collect()} == {refused.run}

    pages = Path(config.warehouse, refused.checks["docs"])
    assert {p.stem for p in pages.glob("*.html")} == {"index", *LISTS}
    page = (pages / "rankings.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in page and "same_list" in page
    assert not re.search(r"<script|<link|<img|src=", page), "no script, and nothing from elsewhere"


def test_checks_alone_name_files_that_spark_skips(spark: SparkSession, tmp_path: Path) -> None:
    config = write_inputs(tmp_path, build_clean_tables())
    assert config.inputs.rankings is not None
    hidden = Path(config.inputs.rankings.paths[0], ".part")
    hidden.write_text("x", encoding="utf-8")
    inspection = inspect_inputs(spark, config, DATE, list_inputs(config, DATE))
    skipped = [result for result in inspection.results if result.check == "skipped_files"]
    assert [(result.table, result.passed, result.sample) for result in skipped] == [("rankings", False, (str(hidden),))]


def test_checks_can_be_made_alone_and_write_nothing(spark: SparkSession, tmp_path: Path) -> None:
    config = write_inputs(tmp_path, build_clean_tables())
    inspection = inspect_inputs(spark, config, DATE)
    assert all(result.passed for result in inspection.results)
    assert not Path(config.warehouse).exists()
