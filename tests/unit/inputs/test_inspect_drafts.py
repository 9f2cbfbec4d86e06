"""`assay inspect` writes a draft that loads, with what is missing marked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from jobs.cli import assay, invoke
from pipelines.inputs.guess import draft_input, write_draft
from pipelines.inputs.sample import sample_file
from schemas.errors import InputError
from tests.helpers.lines import write_lines


def test_what_is_missing_is_marked_in_the_draft(tmp_path: Path) -> None:
    sample = sample_file(write_lines(tmp_path / "i.csv", "serp_id,query_id,doc_id,ts", "s,q,d,2026-11-01"))
    (only,) = draft_input(sample)
    text = write_draft([(sample, only)])
    assert "      # position: ???  # missing: the position on the page, counted from 1\n" in text
    columns = {"system": "'production'"}
    assert yaml.safe_load(text) == {
        "inputs": {"impressions": {"path": sample.path, "format": "csv", "columns": columns}}
    }


def test_paths_of_a_draft_are_relative_to_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipelines.config.load import load_config

    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf").mkdir()
    write_lines(tmp_path / "pages.json", {"page_id": "s1", "q": "red", "t": 1793520000, "results": ["d1", "d2"]})
    assert invoke(assay, ["inspect", "pages.json", "--draft", "conf/draft.yaml"]) == 0
    assert "path: ../pages.json" in (tmp_path / "conf" / "draft.yaml").read_text()
    inputs = load_config("conf/draft.yaml", ["inputs.interactions.path=events"]).config.inputs
    assert inputs.impressions is not None and inputs.impressions.path == "pages.json"


def test_the_command_writes_a_draft_that_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from pipelines.config.load import load_config

    page = {"page_id": "s1", "q": "\x1b[31mRed", "t": 1793520000, "results": ["d1", "d2"]}
    event = {"action": "select_item", "page_id": "s1", "sku": "d1", "t": 1793520000}
    files = [write_lines(tmp_path / "pages.json", page), write_lines(tmp_path / "events.json", event)]
    place = tmp_path / "draft.yaml"
    assert invoke(assay, ["inspect", *files, "--draft", str(place)]) == 0
    printed = capsys.readouterr().out
    assert "It looks like impressions." in printed
    assert "It looks like interactions." in printed
    assert "\x1b" not in printed
    inputs = load_config(place).config.inputs
    assert inputs.impressions is not None
    assert inputs.impressions.columns["doc_id"] == "item"
    assert invoke(assay, ["inspect", *files, "--draft", str(place)]) == 2
    assert invoke(assay, ["inspect", files[0], "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["columns"][0]["path"] == "page_id"
    with pytest.raises(InputError, match="no such file"):
        sample_file(str(tmp_path / "nowhere"))
