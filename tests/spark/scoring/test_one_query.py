"""The lists of one query are read again as they were scored."""

import datetime as dt
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipelines.config.model import Config
from pipelines.inputs.read import read_input
from pipelines.scoring.one_query import read_query
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.storage import Storage

DATE = dt.date(2026, 11, 1)


@pytest.mark.parametrize("order", ["score", "score_float32"])
def test_lists_ordered_by_score_are_read_without_a_rank(spark: SparkSession, tmp_path: Path, order: str) -> None:
    (tmp_path / "rankings.csv").write_text(
        "system,query_id,doc_id,score\nnew,q,a,0.5\nnew,q,b,2.5\nnew,q,c,2.5\nold,q,a,1\nnew,p,z,9\n"
    )
    (tmp_path / "judgments.csv").write_text("query_id,doc_id,grade\nq,a,1\nq,b,0\np,z,3\n")
    (tmp_path / "queries.csv").write_text("query_id,query\nq,red shoes\np,other\n")
    (tmp_path / "documents.csv").write_text("doc_id,title\na,A shoe\nz,other\n")
    names = ("rankings", "judgments", "queries", "documents")
    inputs = {name: {"path": str(tmp_path / f"{name}.csv"), "format": "csv"} for name in names}
    config = Config.model_validate({"inputs": inputs, "metrics": ["mrr"], "conventions": {"order": order}})
    tables = {name: read_input(spark, name, source, DATE) for name, source in config.sources().items()}
    digests = {
        name: {"digest": table.digest, "columns": dict.fromkeys(table.raw.columns, "string")}
        for name, table in tables.items()
    }
    texts = dict.fromkeys(("run", "key", "status", "committed_at", "config_hash", "code", "spark"), "x")
    manifest = Manifest(
        **texts,
        dt=DATE.isoformat(),
        seconds={},
        config=config.model_dump(mode="json"),
        inputs=digests,
        systems=("new", "old"),
        conventions=config.conventions.model_dump(),
        tables={},
    )
    details = read_query(spark, Storage(str(tmp_path)), manifest, "q", ["new", "old"])
    assert details.lists == {"new": ["c", "b", "a"], "old": ["a"]}
    assert (details.labels, details.changed) == ({"a": 1.0, "b": 0.0}, ())
    assert (details.text, details.titles) == ("red shoes", {"a": "A shoe"})
