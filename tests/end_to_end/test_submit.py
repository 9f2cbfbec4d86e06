"""The same numbers, to the last bit, however the job is started, partitioned or fed."""

import hashlib
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from tests.end_to_end.conftest import ROOT, Run

DATE = ("--date", "2026-11-01")


def fingerprint(warehouse: Path) -> str:
    """All values of query_metrics, exactly as they are stored, in one number."""
    with duckdb.connect() as duck:
        rows = duck.sql(
            f"SELECT * EXCLUDE (dt, run) FROM read_parquet('{warehouse}/query_metrics/**/*.parquet') "
            "ORDER BY system, query_id"
        ).fetchall()
    assert len(rows) == 9_000
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def test_every_way_to_start_it_gives_the_same_bits(run: Run, demo: Path, tmp_path: Path) -> None:
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
            "spark.settings={spark.sql.shuffle.partitions: 200}",
            "--set",
            f"inputs.rankings.path={tmp_path}/rankings/dt={{date}}",
        ),
        "submit": ("spark-submit", "--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=7", job),
    }
    found = {}
    for name, command in ways.items():
        warehouse = tmp_path / name
        done = run(*command, "--config", demo / "demo.yaml", *DATE, "--set", f"warehouse={warehouse}")
        assert done.returncode == 0, done.stderr
        assert "neural" in done.stdout
        found[name] = fingerprint(warehouse)
    assert len(set(found.values())) == 1, found
