"""Commands that read a run whose tables or manifest are damaged: exit code 3 and the place, never a stack trace."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.cli import assay, invoke
from tests.helpers.published_runs import publish

DATE, RUN = "2026-11-01", "aaaaaaaaaaaa-000001"


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def put_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def change(file: Path, convert: Callable[[pa.ChunkedArray], Any]) -> None:
    table = pq.read_table(file)
    pq.write_table(pa.table([convert(column) for column in table.columns], names=table.column_names), file)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "removed": lambda file: shutil.rmtree(file.parent),
    "empty": lambda file: file.write_bytes(b""),
    "truncated": truncate,
    "text": lambda file: file.write_text("no table"),
    "folder": put_folder,
    "foreign": lambda file: pq.write_table(pa.table({"x": [1]}), file),
    "texts for numbers": lambda file: change(file, lambda c: c if pa.types.is_list(c.type) else c.cast(pa.string())),
}
# Each command with a table that it reads.
COMMANDS = {
    "segment_metrics": [["report", "--to", "{folder}/r.html"], ["trend", "--metric", "ndcg@10"]],
    "comparisons": [["report", "--to", "{folder}/r.html"], ["power", "--metric", "ndcg@10", "--delta", "0.01"]],
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("table", COMMANDS)
def test_a_damaged_table_ends_with_3_and_its_place(
    table: str, damage: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path / "w")
    (file,) = (tmp_path / "w" / table).rglob("*.parquet")
    DAMAGES[damage](file)
    for command in COMMANDS[table]:
        words = [word.format(folder=tmp_path) for word in command]
        code = invoke(assay, [*words, "--warehouse", str(tmp_path / "w")])
        err = capfd.readouterr().err
        assert (code, "unexpected" in err) == (3, False), err
        if command[0] != "power":  # which reads two columns, so it may not meet the damage
            assert str(tmp_path / "w") in err and "`assay fsck` checks its files" in err
    assert invoke(assay, ["fsck", "--warehouse", str(tmp_path / "w")]) == 4


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gate", [{}]),
        ("gate", [{"verdict": None}]),
        ("readings", [{}]),
        ("config", {"metrics": 5}),
        ("config", {"metrics": ["ndcg@10"], "statistics": {"confidence": -1}}),
        ("checks", {"tables": {"a": 1}, "failing": []}),
    ],
    ids=str,
)
def test_the_report_of_a_run_with_a_foreign_manifest_ends_with_3_and_its_place(
    field: str, value: object, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path)
    manifest = tmp_path / "runs" / DATE / f"{RUN}.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {field: value}))
    code = invoke(assay, ["report", "--warehouse", str(tmp_path), "--to", str(tmp_path / "r.html")])
    err = capfd.readouterr().err
    assert (code, str(manifest) in err, "unexpected" in err) == (3, True, False), err


def test_a_system_with_a_line_break_forges_no_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    publish(tmp_path, systems=["old", "new\n✓ gate pass"])
    assert invoke(assay, ["trend", "--metric", "ndcg@10", "--warehouse", str(tmp_path)]) == 0
    out = capfd.readouterr().out
    assert "new\\u000a✓ gate pass" in out
    assert not [line for line in out.splitlines() if line.startswith("✓")]
