"""A warehouse on S3: the commit is one conditional put, and its outcome is known before anything is said."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import assay
from pipelines.warehouse import conditional_put
from pipelines.warehouse.attempt import Attempt
from pipelines.warehouse.runs import Manifest, list_committed, manifest_path
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import RunTables
from schemas.errors import PublishError, UnknownOutcomeError
from tests.end_to_end.conftest import Run
from tests.end_to_end.lakehouse.conftest import JARS
from tests.end_to_end.lakehouse.s3_server import KEYS, LosingProxy, borrow_boto, serve_s3

pytestmark = [
    pytest.mark.lakehouse,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),  # boto3
]

DATE = dt.date(2026, 11, 1)
INPUTS = ("rankings", "judgments", "queries")
FACTS: dict[str, Any] = {
    "seconds": {}, "config": {}, "config_hash": "c", "code": "v", "spark": "4", "inputs": {}, "systems": ("a",),
    "conventions": {},
}  # fmt: skip


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("s3")
    sys.path.append(str(borrow_boto(folder / "boto")))  # boto3 keeps modules: it stays for the tests of this file
    with serve_s3(folder / "server.log") as port:
        yield port


@pytest.fixture
def proxy(s3: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[LosingProxy]:
    """The proxy, as the S3 of this process."""
    proxy = LosingProxy(s3)
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(conditional_put, "WAIT", 0.05)
    yield proxy
    proxy.close()


def commit(storage: Storage, key: str) -> Manifest:
    with Attempt(storage, DATE, key) as attempt:
        attempt.write_arrow("segment_metrics", pa.table({"system": ["a", "b"], "macro": [0.25, 0.5]}))
        return attempt.commit(**FACTS)


def test_a_committed_run_is_found_and_read_back(proxy: LosingProxy) -> None:
    storage = Storage("s3a://lake/committed")
    manifest = commit(storage, "aaaaaaaaaaaa")
    assert [m.run for m in list_committed(storage)] == [manifest.run]
    rows = RunTables(storage, manifest).rows("segment_metrics", most=2, first=lambda row: row["system"])
    assert [row["macro"] for row in rows] == [0.25, 0.5]
    assert list(storage.list("_attempts")) == []


def test_a_manifest_is_never_overwritten(proxy: LosingProxy) -> None:
    storage = Storage("s3a://lake/conflict")
    storage.create("runs/x.json", "first")
    storage.create("runs/x.json", "first")  # the same content: this put had been carried out before
    with pytest.raises(PublishError, match="another process has written this file") as raised:
        storage.create("runs/x.json", "second")
    assert not isinstance(raised.value, UnknownOutcomeError)
    assert storage.get("runs/x.json") == "first"


def test_a_put_whose_answer_is_lost_is_looked_up_and_done(proxy: LosingProxy) -> None:
    storage = Storage("s3a://lake/lost")
    proxy.lost = 1
    storage.create("runs/x.json", "ours")
    assert (proxy.lost, proxy.created) == (0, ["/lake/lost/runs/x.json"])  # carried out once, and not repeated
    assert storage.get("runs/x.json") == "ours"


def test_a_store_that_stops_answering_before_the_put_publishes_nothing(proxy: LosingProxy) -> None:
    attempt = Attempt(Storage("s3a://lake/stopped"), DATE, "aaaaaaaaaaaa")
    with pytest.raises(PublishError, match="cannot publish the tables") as raised, attempt:
        attempt.write_arrow("segment_metrics", pa.table({"system": ["a"], "macro": [0.75]}))
        proxy.close()
        attempt.commit(**FACTS)
    assert not isinstance(raised.value, UnknownOutcomeError)


def test_a_store_that_stops_answering_at_the_put_leaves_the_outcome_unknown_and_the_tables(
    proxy: LosingProxy, s3: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage("s3a://lake/silent")
    former = commit(storage, "aaaaaaaaaaaa")
    attempt = Attempt(storage, DATE, "bbbbbbbbbbbb")
    proxy.ends_at_put = True
    with pytest.raises(UnknownOutcomeError, match="not known whether the run is committed") as raised, attempt:
        attempt.write_arrow("segment_metrics", pa.table({"system": ["a"], "macro": [0.75]}))
        attempt.commit(**FACTS)
    assert raised.value.exit_code == 5
    assert manifest_path("2026-11-01", attempt.run) in str(raised.value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{s3}")  # it answers again
    storage = Storage("s3a://lake/silent")
    assert [m.run for m in list_committed(storage)] == [former.run]
    assert storage.exists(attempt.tables["segment_metrics"].path)


def upload(folder: Path, prefix: str) -> None:
    """Copy the files of a folder into the bucket."""
    Storage("s3a://lake").copy(prefix, Storage(str(folder)), "")


def test_an_evaluation_reads_from_s3a_and_commits_there_although_the_answer_is_lost(
    proxy: LosingProxy, s3: int, run: Run, demo: Path, tmp_path: Path
) -> None:
    upload(demo / "data", "data")
    endpoint = f"http://127.0.0.1:{s3}"
    settings = {
        "spark.jars": ",".join(str(jar) for name in ("hadoop-aws-*", "bundle-*") for jar in JARS.glob(name)),
        "spark.hadoop.fs.s3a.endpoint": endpoint, "spark.hadoop.fs.s3a.path.style.access": "true",
    }  # fmt: skip
    values = [f"spark.settings={{{key}: '{value}'}}" for key, value in settings.items()]
    values += [f"inputs.{name}.path=s3a://lake/data/{name}/dt={{date}}" for name in INPUTS]
    options = [word for value in (*values, "warehouse=s3a://lake/warehouse") for word in ("--set", value)]
    command = ["assay", "evaluate", "--config", demo / "demo.yaml", "--date", "2026-11-01", *options]
    proxy.lost = 1
    boto = borrow_boto(tmp_path / "boto")
    done = run(*command, **KEYS, AWS_ENDPOINT_URL=f"http://127.0.0.1:{proxy.port}", PYTHONPATH=str(boto))
    assert done.returncode == 0, done.stderr[-3000:]
    storage = Storage("s3a://lake/warehouse")
    (manifest,) = list_committed(storage)
    commit = f"/lake/warehouse/{manifest_path('2026-11-01', manifest.run)}"
    assert (proxy.lost, proxy.created) == (0, [commit])  # its answer was lost; it was looked up, and not repeated
    means = storage.dataset(manifest.tables["segment_metrics"].path).to_table().to_pylist()
    rankings, judgments, queries = [demo / "data" / name / "dt=2026-11-01" / "part-0.parquet" for name in INPUTS]
    expected = assay.evaluate(rankings, judgments, ["ndcg@10", "recall@10", "recall@20"], queries=queries)
    for row in expected.segment_metrics.to_dict("records"):
        (published,) = [m for m in means if all(m[key] == row[key] for key in ("system", "segment", "value", "metric"))]
        assert published["macro"] == row["macro"]
