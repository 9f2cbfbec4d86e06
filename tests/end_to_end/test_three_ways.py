"""The same judged files by the command, by `assay.evaluate` in memory and by `assay.evaluate` on Spark: equal bits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import assay
from tests.end_to_end.conftest import InTurn, Run
from tests.unit.assay.test_evaluate import simulate

METRICS = ["ndcg@5", "map", "alpha_ndcg(alpha=0.3)@5", "subtopic_recall@3", "intra_list_diversity@5", "novelty@5"]
SETTINGS: dict[str, Any] = {
    "metrics": METRICS,
    "segments": ["device"],
    "statistics": {"tests": ["randomisation"], "replicates": 100},
    "gate": [{"metric": "ndcg@5", "candidate": "new", "drop": 0.05, "min_queries": 10}],
    "checks": "off",
}
KEYS = {
    "query_metrics": ["system", "query_id"],
    "segment_metrics": ["system", "segment", "value", "metric"],
    "comparisons": ["baseline", "candidate", "segment", "value", "metric"],
}
ON_SPARK = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
import assay
folder, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
spark = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "3").getOrCreate()
paths = {name: str(folder / f"{name}.parquet") for name in ("rankings", "judgments", "queries", "documents")}
result = assay.evaluate(**paths, **settings, baseline="old", date="2026-11-01", spark=spark)
for name in ("query_metrics", "segment_metrics", "comparisons"):
    getattr(result, name).to_parquet(folder / f"{name}.api.parquet")
print(result.verdict)
"""


def write_files(folder: Path) -> dict[str, Path]:
    """Judged files in which documents have several categories, and some pairs are judged twice."""
    random = np.random.default_rng(3)
    tables = simulate()
    judged = tables["judgments"]
    sizes = random.integers(0, 4, len(judged))
    judged["subtopics"] = [random.permutation(["a", "b", "c", "ü"])[:size].tolist() for size in sizes]
    again = judged.iloc[:40].assign(grade=random.integers(0, 4, 40), subtopics=[["d"]] * 40)
    tables["judgments"] = pd.concat([judged, again], ignore_index=True)
    docs = sorted(set(judged["doc_id"]))
    tables["documents"] = pd.DataFrame(
        {
            "doc_id": [*docs, docs[0]],
            "category": [random.permutation(["x", "y", "z"])[: 1 + at % 3].tolist() for at in range(len(docs))]
            + [["w"]],
            "popularity": random.integers(1, 50, len(docs) + 1).astype(float),
        }
    )
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet")
    return {name: folder / f"{name}.parquet" for name in tables}


def test_the_command_and_the_api_give_equal_bits(run: Run, in_turn: InTurn, tmp_path: Path) -> None:
    paths = write_files(tmp_path)
    config = SETTINGS | {
        "inputs": {name: {"path": str(path)} for name, path in paths.items()},
        "compare": {"baseline": "old"},
        "warehouse": str(tmp_path / "warehouse"),
        "tracking": {"enabled": False},
        "report": False,
    }
    (tmp_path / "assay.yaml").write_text(json.dumps(config), encoding="utf-8")
    (command,) = in_turn([("assay", "evaluate", "--config", tmp_path / "assay.yaml", "--date", "2026-11-01")])
    assert command.returncode == 0, command.stderr[-3000:]
    one_compiler = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
    on_spark = run("python", "-c", ON_SPARK, tmp_path, json.dumps(SETTINGS), **one_compiler)
    assert on_spark.returncode == 0, on_spark.stderr[-3000:]
    memory = assay.evaluate(**paths, **SETTINGS, baseline="old", date="2026-11-01")  # type: ignore[arg-type]

    for name, keys in KEYS.items():
        (folder,) = (tmp_path / "warehouse" / name / "dt=2026-11-01").iterdir()
        published, of_memory = pd.read_parquet(folder), getattr(memory, name)
        of_spark = pd.read_parquet(tmp_path / f"{name}.api.parquet")
        expected = of_memory.sort_values(keys, ignore_index=True)
        for other in (published, of_spark):
            got = other.sort_values(keys, ignore_index=True)[list(expected.columns)]
            pd.testing.assert_frame_equal(expected, got, check_exact=True, check_dtype=False)
        assert len(expected) == {"query_metrics": 120, "segment_metrics": 36, "comparisons": 18}[name]
    numbers = memory.query_metrics
    assert all(
        numbers[key].nunique() > 3 for key in ("subtopic_recall_at_3", "intra_list_diversity_at_5", "novelty_at_5")
    )
    assert on_spark.stdout.splitlines()[-1] == str(memory.verdict)
