"""Relative paths of a configuration are relative to the file that has them."""

import logging
from pathlib import Path

import pytest

from pipelines.config.load import load_config

CONFIG = """
extends: shared/base.yaml
inputs:
  rankings: {path: [data/a.parquet, "data/{date}/b.parquet", /data/c, "s3a://bucket/d"], columns: {path: url}}
  judgments: {view: "SELECT * FROM {votes}", sources: {votes: {path: ../votes}}}
tracking: {uri: "sqlite:///mlflow.db"}
prometheus: {textfile: assay.prom}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "conf" / "shared").mkdir(parents=True)
    (tmp_path / "conf" / "shared" / "base.yaml").write_text("warehouse: ../results\n")
    (tmp_path / "conf" / "c.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_paths_of_a_file_are_relative_to_its_folder(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = load_config("conf/c.yaml").config
    assert config.warehouse == "conf/results", "of the file that is extended"
    assert config.inputs.rankings is not None and config.inputs.judgments is not None
    expected = ("conf/data/a.parquet", "conf/data/{date}/b.parquet", "/data/c", "s3a://bucket/d")
    assert config.inputs.rankings.paths == expected
    assert config.inputs.rankings.columns == {"path": "url"}
    assert config.inputs.judgments.sources["votes"].path == "votes"
    assert config.tracking.uri == "sqlite:///conf/mlflow.db"
    assert config.prometheus.textfile == "conf/assay.prom"
    assert not caplog.records


def test_paths_are_the_same_files_from_every_working_directory(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = load_config("conf/c.yaml").config
    monkeypatch.chdir(project / "conf")
    after = load_config("c.yaml").config
    assert Path(after.warehouse).resolve() == project / "conf" / "results"
    assert after.dump_settings() == before.dump_settings(), "a run is found again from there"


def test_options_and_defaults_are_relative_to_the_working_directory(project: Path) -> None:
    (project / "conf" / "shared" / "base.yaml").write_text("")
    config = load_config("conf/c.yaml", ["prometheus.textfile=assay.prom", "inputs.rankings.path=data"]).config
    assert config.inputs.rankings is not None
    assert (config.warehouse, config.prometheus.textfile) == ("warehouse", "assay.prom")
    assert config.inputs.rankings.path == "data"


@pytest.mark.parametrize(
    ("path", "folder", "advice"), [("data/r", "data/r", "../data/r"), ("days/{date}/*", "days", "../days/{date}/*")]
)
def test_a_path_that_only_the_working_directory_has_is_read_with_a_warning(
    project: Path, caplog: pytest.LogCaptureFixture, path: str, folder: str, advice: str
) -> None:
    (project / folder).mkdir(parents=True)
    file = project / "conf" / "old.yaml"
    file.write_text(f"inputs:\n  rankings: {{path: '{path}'}}\n  judgments: {{path: j}}\n")
    config = load_config("conf/old.yaml").config
    assert config.inputs.rankings is not None and config.inputs.rankings.path == path
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        f"conf/old.yaml at inputs.rankings.path: {path} is relative to the working directory. This still works, but "
        f"paths of a configuration are relative to its file: write {advice}"
    )
    file.write_text(file.read_text().replace(path, advice))
    caplog.clear()
    config = load_config("conf/old.yaml").config
    assert config.inputs.rankings is not None and config.inputs.rankings.path == path
    assert not caplog.records
