"""The Python API over Spark Connect, in a process of its own: equal bits, and rows that are quarantined."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.end_to_end.conftest import ROOT

SCRIPT = """
import json, sys
from pathlib import Path
import pandas as pd
from pyspark.sql import SparkSession
import assay
from tests.unit.assay.test_evaluate import simulate

spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert type(spark).__module__.startswith("pyspark.sql.connect")
spark.conf.set("spark.sql.shuffle.partitions", "2")
tables = simulate()
settings = {"metrics": ["ndcg@5", "map"], "baseline": "old", "segments": ["device"]}
memory = assay.evaluate(**tables, **settings)
frames = {name: spark.createDataFrame(table) for name, table in tables.items()}
result = assay.evaluate(**frames, **settings, checks="off", date="2026-11-01")
for name, keys in {
    "query_metrics": ["system", "query_id"],
    "segment_metrics": ["system", "segment", "value", "metric"],
    "comparisons": ["candidate", "segment", "value", "metric"],
}.items():
    table = getattr(result, name)
    assert type(table).__module__.startswith("pyspark.sql.connect"), type(table)
    mine, theirs = (t.sort_values(keys, ignore_index=True) for t in (getattr(memory, name), table.toPandas()))
    pd.testing.assert_frame_equal(mine, theirs, check_exact=True, check_dtype=False)
assert result.verdict == memory.verdict

folder = Path(sys.argv[1])
judged = tables["judgments"].assign(grade=lambda t: t["grade"].astype(str))
judged.loc[3, "grade"] = "three"
judged.rename(columns={"grade": "mark"}).to_json(folder / "judgments.jsonl", orient="records", lines=True)
source = {"path": str(folder / "judgments.jsonl"), "format": "json", "columns": {"grade": "cast(mark AS double) + 0"}}
shaped = assay.evaluate(
    frames["rankings"], source, ["ndcg@5"], "old", checks="off", warehouse=folder / "warehouse", spark=spark
)
print(json.dumps({"rejected": shaped.rejected, "views": [t.name for t in spark.catalog.listTables()]}))
"""


def test_the_api_over_spark_connect(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    # Of the server: its workers, and one compiler, since its code runs a few times only.
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    # A value that an expression cannot convert is null, and its row is quarantined; nothing is left in the session.
    reasons = {"judgments": {"grade and chance: empty": 1}}
    assert json.loads(done.stdout.splitlines()[-1]) == {"rejected": reasons, "views": []}
