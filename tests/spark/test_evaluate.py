"""The whole evaluation in one session: what is published, reused, queried and refused."""

import datetime as dt
import json
import math
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from pipelines.config.model import Config
from pipelines.evaluate import evaluate
from pipelines.plan import Outcome
from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.runs import list_committed
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import read_table
from pipelines.warehouse.views import (
    render_duckdb_views,
    render_pandas_reader,
    render_polars_reader,
    render_spark_views,
)
from schemas.errors import DataQualityError, InputError

DAY = dt.date(2026, 11, 1)
FACTS = {"seconds", "config", "config_hash", "code", "spark", "inputs", "systems", "conventions"}


def build_config(folder: Path, **changes: object) -> Config:
    """Build a configuration on CSV files in `folder`, and write the files that are missing."""
    files = {
        "rankings": "system,query_id,doc_id,rank\n"
        + "".join(f"{s},q{q},d{(q * 3 + r) % 11},{r}\n" for s in "ab" for q in range(9) for r in range(1, 6)),
        "judgments": "query_id,doc_id,grade\n"
        + "".join(f"q{q},d{d},{(q + d) % 4}\n" for q in range(9) for d in range(6)),
        "queries": "query_id,weight,device\n" + "".join(f"q{q},{q + 1},{'ios' if q % 2 else ''}\n" for q in range(9)),
    }
    for name, text in files.items():
        if not (folder / f"{name}.csv").exists():
            (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    inputs = {name: {"path": str(folder / f"{name}.csv"), "format": "csv"} for name in files}
    values: dict[str, object] = {
        "inputs": inputs,
        "metrics": ["ndcg@5", "recall@3"],
        "segments": ["device"],
        "checks": "off",
        "warehouse": str(folder / "warehouse of o'brien"),
    }
    return Config.model_validate(values | changes)


@dataclass(frozen=True)
class Runs:
    """Three runs of one configuration, for tests that only read them: first, again, and forced."""

    config: Config
    first: Outcome
    again: Outcome
    forced: Outcome


@pytest.fixture(scope="module")
def runs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    config = build_config(tmp_path_factory.mktemp("runs"))
    return Runs(config, *[evaluate(spark, config, DAY, force=force) for force in (False, False, True)])


def test_a_run_is_published_then_reused_and_repeated_by_force(spark: SparkSession, runs: Runs) -> None:
    config, first, again, forced = runs.config, runs.first, runs.again, runs.forced
    assert (first.reused, again.reused, forced.reused) == (False, True, False)
    assert again.manifest.run == first.manifest.run
    assert forced.manifest.key == first.manifest.key != forced.manifest.run
    assert [m.run for m in list_committed(Storage(config.warehouse))] == [forced.manifest.run, first.manifest.run]
    live = read_table(spark, config.warehouse, "query_metrics")
    assert {row["run"] for row in live.select("run").distinct().collect()} == {forced.manifest.run}
    old = read_table(spark, config.warehouse, "query_metrics", run=first.manifest.run)
    same = ["system", "query_id", "device", "ndcg_at_5", "recall_at_3"]
    assert sorted(map(str, live.select(same).collect())) == sorted(map(str, old.select(same).collect()))


def test_changed_data_is_other_work_by_the_same_settings(spark: SparkSession, runs: Runs, tmp_path: Path) -> None:
    first = runs.first.manifest
    config = runs.config.model_copy(
        update={"warehouse": str(tmp_path)}
    )  # where results go does not decide what is done
    judgments = Path(runs.config.warehouse).parent / "judgments.csv"
    before = judgments.read_text(encoding="utf-8")
    judgments.write_text(f"{before.rstrip()}\nq1,d999,1\n", encoding="utf-8")
    changed = evaluate(spark, config, DAY)
    judgments.write_text(before, encoding="utf-8")
    assert not changed.reused
    assert changed.manifest.key != first.key
    assert changed.manifest.config_hash == first.config_hash


def test_the_manifest_records_inputs_and_conventions(runs: Runs) -> None:
    manifest = runs.first.manifest
    stored = json.loads((Path(runs.config.warehouse) / "runs" / "2026-11-01" / f"{manifest.run}.json").read_text())
    assert stored == manifest.model_dump(mode="json")
    assert stored["inputs"]["rankings"]["read"] == stored["inputs"]["rankings"]["kept"] == 90
    assert stored["tables"]["query_metrics"]["rows"] == 18
    assert stored["systems"] == ["a", "b"]
    assert stored["conventions"]["unjudged"] == "zero"
    assert stored["conventions"]["max_grade"] == 3.0


def test_broken_rows_are_in_quarantine_and_the_counts_add_up(spark: SparkSession, tmp_path: Path) -> None:
    lines = ["system,query_id,doc_id,rank"]
    broken = {7: "a,q1,d7,seventh", 307: "a,,d9,3", 607: "a,q2,d9,-4", 907: "a,q1"}
    lines += [broken.get(n, f"a,q{n % 9},d{n},{n}") for n in range(1, 1201)]
    (tmp_path / "rankings.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = build_config(tmp_path)
    counts = evaluate(spark, config, DAY).manifest.inputs["rankings"]
    reasons = {
        "line cannot be parsed": 1,
        "query_id: empty": 1,
        "rank: below 0": 1,
        "rank: not an int": 1,
    }
    assert counts["rejected"] == reasons
    assert (counts["read"], counts["kept"]) == (1200, 1196)
    kept = read_table(spark, config.warehouse, "quarantine").collect()
    assert sorted((row["table"], row["reason"]) for row in kept) == [
        ("rankings", reason) for reason in sorted(counts["rejected"])
    ]
    retrieved = read_table(spark, config.warehouse, "query_metrics").agg({"retrieved": "sum"}).first()
    assert retrieved is not None and retrieved[0] == 1196


def test_too_many_broken_rows_stop_the_run_and_publish_nothing(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rankings.csv").write_text("system,query_id,doc_id,rank\na,q1,d1,1\na,q1,d2,x\n", encoding="utf-8")
    config = build_config(tmp_path)
    with pytest.raises(DataQualityError, match=r"1 of 2 rows of rankings.*max_rejected = 0\.05.*rank: not an int"):
        evaluate(spark, config, DAY)
    assert list_committed(Storage(config.warehouse)) == []
    assert evaluate(spark, build_config(tmp_path, max_rejected=0.5), DAY).manifest.systems == ("a",)


def test_an_empty_input_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "judgments.csv").write_text("query_id,doc_id,grade\n", encoding="utf-8")
    with pytest.raises(InputError, match="judgments is empty"):
        evaluate(spark, build_config(tmp_path), DAY)


@pytest.mark.parametrize(("convention", "line"), [("ties", "a,q1,d99,1\n"), ("duplicates", "a,q1,d4,77\n")])
def test_ties_or_duplicates_stop_the_run_where_they_are_errors(
    spark: SparkSession, tmp_path: Path, convention: str, line: str
) -> None:
    config = build_config(tmp_path, conventions={convention: "error"})
    with (tmp_path / "rankings.csv").open("a", encoding="utf-8") as file:
        file.write(line)
    with pytest.raises(DataQualityError, match=r"1 lists have .* first system 'a', query 'q1'"):
        evaluate(spark, config, DAY)
    warehouse = Path(config.warehouse)
    assert not list(warehouse.rglob("*.parquet")), "an attempt that is not committed cleans up"
    assert not list((warehouse / "runs").rglob("*.json"))


def test_the_printed_views_return_what_read_table_does(spark: SparkSession, runs: Runs, tmp_path: Path) -> None:
    shutil.copytree(runs.config.warehouse, tmp_path / "warehouse of o'brien")  # two runs: only the newest is seen
    config = build_config(tmp_path, metrics=["recall@1"])
    evaluate(spark, config, dt.date(2026, 11, 2))
    storage = Storage(config.warehouse)
    with Attempt(storage, DAY, "labels") as newer:  # a run without metrics does not hide those of others
        newer.write("quarantine", read_table(spark, config.warehouse, "quarantine").drop("dt", "run"))
        last = list_committed(storage)[0].model_dump(include=FACTS)
        newer.commit(**last)
    with duckdb.connect() as duck:
        duck.execute(render_duckdb_views(storage))
        for statement in render_spark_views(storage).split(";\n"):
            spark.sql(statement.rstrip(";"))
        for name in ("query_metrics", "segment_metrics"):
            expected = read_table(spark, config.warehouse, name)
            columns = sorted(expected.columns)
            rows = sorted(map(str, map(tuple, expected.select(columns).collect())))
            assert sorted(map(str, map(tuple, spark.table(name).select(columns).collect()))) == rows
            quoted = ", ".join(f'"{column}"' for column in columns)
            assert sorted(map(str, duck.sql(f"SELECT {quoted} FROM {name}").fetchall())) == rows
        listed = "SELECT CAST(dt AS STRING) AS dt, run, status, configuration, gate, live FROM runs"
        of_spark = sorted(map(tuple, spark.sql(listed).collect()), key=str)
        assert sorted(duck.sql(listed).fetchall(), key=str) == of_spark
    for render in (render_pandas_reader, render_polars_reader):
        functions: dict[str, Any] = {}
        exec(render(storage), functions)
        metrics = functions["read_table"]("query_metrics")
        assert len(metrics) == read_table(spark, config.warehouse, "query_metrics").count()
        assert set(metrics["dt"]) == {"2026-11-01", "2026-11-02"}
        runs_read = functions["read_runs"]()
        names = ("dt", "run", "status", "configuration", "gate", "live")
        values = [[None if value != value else value for value in runs_read[name]] for name in names]
        assert sorted(zip(*values, strict=True), key=str) == of_spark
    assert [row[0] for row in of_spark if row[-1]] == ["2026-11-01", "2026-11-02"]
    assert len(of_spark) == 4
    both = read_table(spark, config.warehouse, "query_metrics").select("dt", "recall_at_1", "ndcg_at_5").collect()
    assert {(str(row["dt"]), row["recall_at_1"] is None) for row in both} == {
        ("2026-11-01", True),
        ("2026-11-02", False),
    }


@pytest.mark.parametrize("partitions", ["1", "3", "11"])
def test_numbers_do_not_depend_on_partitions_or_order(spark: SparkSession, tmp_path: Path, partitions: str) -> None:
    config = build_config(tmp_path)
    lines = (tmp_path / "rankings.csv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "rankings.csv").write_text("\n".join([lines[0], *sorted(lines[1:], key=hash)]) + "\n", encoding="utf-8")
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    evaluate(spark, config, DAY)
    rows = read_table(spark, config.warehouse, "query_metrics").collect()
    for row in rows:
        q = int(row["query_id"][1:])
        ranked = [f"d{(q * 3 + r) % 11}" for r in range(1, 6)]
        grade = {f"d{d}": (q + d) % 4 for d in range(6)}
        gains = [2.0 ** grade.get(doc, 0) - 1 for doc in ranked]
        best = sorted((2.0**g - 1 for g in grade.values()), reverse=True)[:5]
        dcg, ideal = (sum(g / math.log2(i + 2) for i, g in enumerate(of)) for of in (gains, best))
        assert row["ndcg_at_5"] == pytest.approx(dcg / ideal, abs=1e-14)
    assert len(rows) == 18
