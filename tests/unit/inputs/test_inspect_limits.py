"""`assay inspect` on files that cannot be read, odd JSON, odd folders and narrow terminals; all without Spark."""

from __future__ import annotations

import errno
import gzip
import os
from pathlib import Path

import pytest

import pipelines.inputs.sample
from jobs.cli import assay, invoke
from jobs.inspect import fit_widths
from pipelines.inputs.sample import profile_columns, sample_file
from schemas.errors import InputError
from tests.helpers.lines import write_lines


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "query,product\n".encode("utf-16"), r"it is UTF-16 \(.*\): convert it to UTF-8: iconv -f UTF-16"),
        ("a.csv", "größe,x\n".encode("latin-1"), r"it is not UTF-8: .*: convert it to UTF-8, as with iconv"),
        (
            "a.csv.gz",
            gzip.compress(b"query,product\n" * 99, mtime=0)[:40],
            r"end-of-stream.*: it is damaged or was cut off",
        ),
        ("a.parquet", b"PAR1 and no footer", r"it is damaged or was cut off: copy it again"),
        ("a.parquet", b"query,product\n", r"is it Parquet, CSV or JSON\?"),
        ("a.parquet", b"", r"the file is empty"),
        ("a.json", b'[\n  {"q": 1},\n  {"q": 2}\n]\n', r"JSON array over several lines .*: jq -c '\.\[\]' a\.json"),
        ("a.json", b'[{"q": 1},\n {"q": 2}]\n', r"JSON array over several lines .*: jq -c '\.\[\]' a\.json"),
    ],
)
def test_a_file_that_cannot_be_read_is_reported_with_the_fix(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        sample_file(str(tmp_path / name))


def test_what_may_not_be_read_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    path = write_lines(tmp_path / "a.csv", "query_id,doc_id,grade", "q,d,1")
    monkeypatch.setattr(pipelines.inputs.sample, "_read_start", refuse)
    with pytest.raises(
        InputError, match=r"permission denied \(.*a\.csv\): let the user that runs this command read it"
    ):
        sample_file(path)
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match=r"cannot read the folder: Permission denied .*: let the user"):
        sample_file(str(tmp_path))


@pytest.mark.parametrize(
    ("file", "folder", "rest"),
    [
        ("data/qrels/test.csv", "data/qrels", "test.csv"),
        ("data/clicks/dt=2026-11-01/hour=3/a.csv", "data/clicks", "dt=2026-11-01/hour=3/a.csv"),
        ("data/dt=2026-11-01/a.csv", "data", "dt=2026-11-01/a.csv"),
    ],
)
def test_the_folder_that_a_run_reads_is_drafted(tmp_path: Path, file: str, folder: str, rest: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    write_lines(tmp_path / file, "query_id,doc_id,grade", "q,d,1")
    sample = sample_file(str(tmp_path / "data"))
    assert (sample.path, sample.file) == (str(tmp_path / folder), rest)


def test_an_array_on_one_line_is_its_objects(tmp_path: Path) -> None:
    entries = [{"query_id": "q", "doc_id": "d", "grade": 1}, None, 2, {"query_id": "q", "doc_id": "e", "grade": 0}]
    sample = sample_file(write_lines(tmp_path / "a.json", entries))
    assert (sample.format, sample.rows.num_rows) == ("json", 2)


@pytest.mark.parametrize("name", ["absent/draft.yaml", "nul\0.yaml"])
def test_a_draft_that_cannot_be_written_is_reported(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_lines(tmp_path / "a.csv", "query_id,doc_id,grade", "q,d,1")
    assert invoke(assay, ["inspect", path, "--draft", str(tmp_path / name)]) == 5
    assert "give --draft a file in a folder that exists" in capsys.readouterr().err


def test_text_without_a_character_is_empty(tmp_path: Path) -> None:
    sample = sample_file(write_lines(tmp_path / "log.csv", "a,b", "x,1", ",2", "  ,3"))
    (profile, _) = profile_columns(sample.rows)
    assert (profile.empty, profile.distinct, profile.smallest, profile.values) == (2, 1, "x", ("x",))


@pytest.mark.parametrize(("width", "headings"), [(200, 7), (80, 5)])
def test_the_names_of_columns_are_whole_on_a_narrow_terminal(width: int, headings: int) -> None:
    longest = {"column": 40, "type": 6, "empty": 5, "distinct": 8, "smallest": 13, "largest": 24, "such as": 40}
    widths = fit_widths(longest, width)
    assert len(widths) == headings and widths["type"] == 6 and widths["column"] >= 24
    assert sum(widths.values()) + 3 * len(widths) + 1 <= width
