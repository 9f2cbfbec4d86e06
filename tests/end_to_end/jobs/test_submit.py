"""The same numbers, to the last bit, however the job is started, partitioned or fed."""

import hashlib
import json
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from tests.end_to_end.conftest import ROOT, InTurn, Run

DATE = ("--date", "2026-11-01")


def hash_table(folder: Path, key: str, rows: int | None) -> str:
    """Hash all values of the table in a folder, exactly as they are stored; it must have so many rows, if stated."""
    with duckdb.connect() as duck:
        files = f"read_parquet('{folder}/**/*.parquet', hive_partitioning = true)"
        values = duck.sql(f"SELECT * EXCLUDE (dt, run) FROM {files} ORDER BY {key}").fetchall()
    assert len(values) == rows if rows is not None else values
    return hashlib.sha256(repr(values).encode()).hexdigest()


def test_every_way_to_start_it_gives_the_same_bits(run: Run, in_turn: InTurn, demo: Path, tmp_path: Path) -> None:
    rankings = pq.read_table(demo / "data" / "rankings" / "dt=2026-11-01" / "part-0.parquet")
    shuffled = tmp_path / "rankings" / "dt=2026-11-01"
    shuffled.mkdir(parents=True)
    pq.write_table(rankings.sort_by([("rank", "descending"), ("doc_id", "ascending")]), shuffled / "part-0.parquet")
    job = ROOT / "jobs" / "evaluate.py"
    ways: dict[str, tuple[str | Path, ...]] = {
        "assay": ("assay", "evaluate", "--set", "spark.settings={spark.sql.shuffle.partitions: 1}"),
        "python": (
            "python",
            job,
            "--set",
            "spark.settings={spark.sql.shuffle.partitions: 23}",
            "--set",
            f"inputs.rankings.path={tmp_path}/rankings/dt={{date}}",
        ),
        "submit": (
            *("spark-submit", "--master", "local[2]", "--driver-java-options", "-XX:TieredStopAtLevel=1"),
            *("--conf", "spark.sql.shuffle.partitions=7", job),
        ),
    }
    fingerprints = {}
    for name, command in ways.items():
        warehouse = tmp_path / name
        words = (*command, "--config", demo / "demo.yaml", *DATE, "--set", f"warehouse={warehouse}")
        (done,) = in_turn([words]) if name == "assay" else [run(*words)]
        assert done.returncode == 0, done.stderr
        assert "neural" in done.stdout
        fingerprints[name] = hash_table(warehouse / "query_metrics", "system, query_id", 9_000)
    assert len(set(fingerprints.values())) == 1, fingerprints


def test_posteriors_have_the_same_bits_for_any_partitions(in_turn: InTurn, tmp_path: Path) -> None:
    tables = ("impressions", "interactions", "rankings")
    paths = "".join(f"  {name}: {{path: '{tmp_path}/logs/{name}'}}\n" for name in tables)
    (tmp_path / "logs.yaml").write_text(
        f"inputs:\n{paths}metrics: [ndcg@10]\n"
        "compare: {baseline: production, sensitivity: false, movers: 0}\n"
        "trained: {older: none, trial: none, equal: none, worse: none}\n"
        "checks: off\nreport: false\ntracking: {enabled: false}\n"
        "spark: {master: 'local[2]'}\n",
        encoding="utf-8",
    )
    common = ("--config", tmp_path / "logs.yaml", "--date", "2026-01-11", "--set")
    sizes = ("--pages", "1000", "--set", "queries=5", "--set", "documents=15", "--master", "local[2]")
    # Of 7 partitions some have no query. With 3, Spark plans as it does for much data.
    ways: dict[int, dict[str, str]] = {1: {}, 3: {"spark.sql.adaptive.enabled": "true"}, 7: {}}
    settings = {parts: json.dumps({"spark.sql.shuffle.partitions": str(parts)} | more) for parts, more in ways.items()}
    done = in_turn(
        [
            ("assay", "simulate", "--to", tmp_path / "logs", *sizes),
            *(
                ("assay", "evaluate", *common, f"warehouse={tmp_path}/of_{parts}", "--set", f"spark.settings={values}")
                for parts, values in settings.items()
            ),
        ]
    )
    assert [result.returncode for result in done] == [0] * 4, done[-1].stderr
    rows = {"labels": 70, "label_posteriors": 73, "query_metrics": 6 * 5, "comparisons": 5 * 4}
    published = {folder.parent.parent.name for folder in (tmp_path / "of_1").glob("*/dt=*/run=*")} - {"runs"}
    assert published > rows.keys()
    for name in published:
        hashes = {parts: hash_table(tmp_path / f"of_{parts}" / name, "ALL", rows.get(name)) for parts in ways}
        assert len(set(hashes.values())) == 1, (name, hashes)
