"""Every marked configuration of docs/your-log.md reads the files of the page, and all their rows fit."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import SparkSession

from pipelines.inputs.read import read_input
from pipelines.inputs.settings import InputSource
from schemas.conform import conform
from schemas.inputs import INPUTS

PAGE = (Path(__file__).parents[3] / "docs" / "your-log.md").read_text(encoding="utf-8")
DAY = dt.date(2026, 11, 1)


def find_blocks(mark: str) -> list[tuple[str, str]]:
    """The blocks with a mark: what the mark says, and the text."""
    return re.findall(rf"<!-- {mark} (.*?) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)


def move_paths(value: Any, folder: Path) -> Any:
    """The same configuration with its paths in a folder."""
    if not isinstance(value, dict):
        return value
    return {key: f"{folder}/{inner}" if key == "path" else move_paths(inner, folder) for key, inner in value.items()}


def test_the_configurations_of_the_page_read_its_files(spark: SparkSession, tmp_path: Path) -> None:
    for name, text in find_blocks("file"):
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name, text in re.findall(r"cat > (\S+) <<'END'\n(.*?)END\n", PAGE, re.DOTALL):
        (tmp_path / name).write_text(text, encoding="utf-8")
    configurations = find_blocks("reads")
    assert len(configurations) == 5
    for expected, text in configurations:
        assert len(text.splitlines()) <= 3 or "format: ubi" not in text
        counts = {}
        for name, settings in move_paths(yaml.safe_load(text), tmp_path)["inputs"].items():
            source = InputSource.model_validate(settings)
            table = conform(read_input(spark, name, source, DAY).raw, INPUTS[name], columns=source.columns)
            counts[name] = table.rows.count()
            assert table.rejected_rows.count() == 0, (name, text)
        assert ", ".join(f"{name} {count}" for name, count in counts.items()) == expected
