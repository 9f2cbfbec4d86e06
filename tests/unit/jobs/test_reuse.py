"""A run that is already committed is printed without Java, and without importing Spark."""

import datetime as dt
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipelines.config.load import load_config
from pipelines.inputs.listing import HADOOP_VARIABLES
from pipelines.plan import define_evaluation, define_labelling, look_ahead
from pipelines.report.settings import ReportSettings
from pipelines.sharing.share import share_run
from pipelines.sharing.tracking.outbox import find_sent, record_sent
from schemas.errors import ConfigurationError, InputError
from tests.helpers.published_runs import publish

DATE = dt.date(2026, 11, 1)
CONFIG = """
inputs:
  rankings: {{path: {folder}/rankings.csv, format: csv}}
  judgments: {{path: {folder}/judgments.csv, format: csv}}
warehouse: {folder}/warehouse
metrics: [ndcg@10]
"""
SCRIPT = """
import json, sys
from jobs import cli
code = cli.invoke(cli.assay, sys.argv[1:])
print(json.dumps({"code": code, "heavy": sorted({"pyspark", "mlflow", "great_expectations"} & set(sys.modules))}))
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in HADOOP_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "rankings.csv").write_text("system,query_id,doc_id,rank\nold,q,d,1\n")
    (tmp_path / "judgments.csv").write_text("query_id,doc_id,grade\nq,d,1\n")
    path = tmp_path / "assay.yaml"
    path.write_text(CONFIG.format(folder=tmp_path))
    return path


def publish_same_work(path: Path, date: dt.date = DATE) -> str:
    """Publish a run with the key of the configured evaluation, and record that it was shared."""
    config = load_config(path).config
    work = define_evaluation(config)
    local = look_ahead(work, date)
    assert local is not None and local.committed is None
    key = work.build_key(date, {name: listing.digest for name, listing in local.listings.items()})
    storage, manifest = publish(path.parent / "warehouse", date=str(date), run=f"{key}-000001")
    record_sent(storage, manifest.run, config.tracking, "sqlite:///somewhere")
    storage.put(f"reports/{date}/{manifest.run}.html", "a report")
    return manifest.run


def test_a_committed_run_is_printed_without_java(config: Path) -> None:
    run = publish_same_work(config)
    command = [sys.executable, "-c", SCRIPT, "evaluate", "--config", str(config), "--date", "2026-11-01"]
    environment = os.environ | {"JAVA_HOME": "/nowhere", "PATH": "/nowhere"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    *lines, last = done.stdout.splitlines()
    assert json.loads(last) == {"code": 0, "heavy": []}, done.stderr
    assert f"Run {run} was already committed; --force repeats it" in lines
    assert "MLflow: sqlite:///somewhere" in lines
    (row,) = [line for line in lines if line.startswith(" new ")]
    values = np.random.default_rng(5).random(200) * 0.8 + 0.1 * (np.arange(200) % 4 > 0)
    assert row.split()[1] == f"{np.delete(values, 7).mean():.4f}", "as it was published; query 7 has none"


def test_a_range_of_committed_dates_needs_no_java(config: Path) -> None:
    runs = [publish_same_work(config, DATE + dt.timedelta(days=days)) for days in (0, 1)]
    command = [sys.executable, "-c", SCRIPT, "evaluate", "--config", str(config), "--output", "json"]
    command += ["--from", "2026-11-01", "--to", "2026-11-02"]
    environment = os.environ | {"JAVA_HOME": "/nowhere", "PATH": "/nowhere"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    table, last = map(json.loads, done.stdout.splitlines())
    assert last == {"code": 0, "heavy": []}, done.stderr
    assert [(row["outcome"], row["run"]) for row in table["dates"]] == [("already committed", run) for run in runs]


@pytest.mark.parametrize("command", ["check", "evaluate"])
def test_a_path_without_files_is_named_with_its_line_before_java_starts(config: Path, command: str) -> None:
    (config.parent / "judgments.csv").unlink()
    arguments = [sys.executable, "-c", SCRIPT, command, "--config", str(config), "--date", "2026-11-01"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout.splitlines()[-1]) == {"code": 3, "heavy": []}, done.stderr
    assert "judgments does not exist or has no files" in done.stderr
    assert f"{config}, line 4, at inputs.judgments" in done.stderr


def test_force_and_changed_data_are_not_reused(config: Path) -> None:
    run = publish_same_work(config)
    work = define_evaluation(load_config(config).config)
    local = look_ahead(work, DATE)
    assert local is not None and local.committed is not None
    assert (local.committed.manifest.run, local.committed.reused) == (run, True)
    assert local.bytes == len("system,query_id,doc_id,rank\nold,q,d,1\n") + len("query_id,doc_id,grade\nq,d,1\n")
    (config.parent / "judgments.csv").write_text("query_id,doc_id,grade\nq,d,2\nq,e,1\n")
    changed = look_ahead(work, DATE)
    assert changed is not None and changed.committed is None


@pytest.mark.parametrize(
    "override",
    [
        "inputs.judgments.path=s3a://bucket/judgments.csv",
        "spark.master=yarn",
        "spark.settings={spark.hadoop.fs.defaultFS: 'hdfs://cluster'}",
        "inputs.judgments={table: search.judgments, path: null}",
    ],
)
def test_inputs_elsewhere_are_left_to_spark(config: Path, override: str) -> None:
    work = define_evaluation(load_config(config, [override]).config)
    assert look_ahead(work, DATE) is None


def test_a_missing_input_and_a_missing_log_are_errors_before_java(config: Path) -> None:
    (config.parent / "judgments.csv").unlink()
    loaded = load_config(config).config
    with pytest.raises(InputError, match="judgments does not exist or has no files"):
        look_ahead(define_evaluation(loaded), DATE)
    with pytest.raises(ConfigurationError, match="there is no log"):
        define_labelling(loaded)


def test_a_run_is_logged_again_where_the_tracker_is_another(config: Path) -> None:
    storage, manifest = publish(config.parent / "warehouse")
    first = load_config(config).config
    other = load_config(config, ["tracking.experiment=another"]).config
    record_sent(storage, manifest.run, first.tracking, "there")
    assert find_sent(storage, manifest.run, first.tracking) == "there"
    assert find_sent(storage, manifest.run, other.tracking) is None
    assert find_sent(storage, "another-run", first.tracking) is None
    shared = share_run(first.model_copy(update={"report": ReportSettings()}), manifest, reused=True)
    assert shared.places["mlflow"] == "there"
    assert Path(shared.places["report"].removeprefix("file://")).stat().st_size > 10_000, "there was no report yet"
    titled = first.model_copy(update={"report": ReportSettings(title="Shop search")})
    place = Path(share_run(titled, manifest, reused=True).places["report"].removeprefix("file://"))
    assert "<title>Shop search 2026-11-01" in place.read_text(encoding="utf-8"), "its settings changed"
