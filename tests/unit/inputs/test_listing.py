"""Files are listed without Spark where a path leads to a local disk."""

import datetime as dt
import os
from pathlib import Path

import pytest

from pipelines.inputs.listing import HADOOP_VARIABLES, FileListing, list_locally
from pipelines.inputs.settings import InputSource
from schemas.errors import ConfigurationError, InputError
from tests.helpers.users import become_nobody, open_public_folder

DAY = dt.date(2026, 11, 1)


@pytest.fixture(autouse=True)
def _no_hadoop(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in HADOOP_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def list_files(path: Path | str, **settings: int) -> FileListing:
    listing = list_locally("judgments", InputSource(path=str(path), **settings), DAY)
    assert listing is not None
    return listing


def write(path: Path, size: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


def test_data_files_are_counted_and_what_spark_ignores_is_not(tmp_path: Path) -> None:
    for name in ("a.csv", "sub/b.csv", "_k=1/c.csv", "_metadata"):
        write(tmp_path / "d" / name, 10)
    for name in ("_SUCCESS", ".a.csv.crc", "_temporary/0/e.csv", ".hidden/f.csv", "g.csv._COPYING_"):
        write(tmp_path / "d" / name, 10)
    listing = list_files(tmp_path / "d")
    assert (listing.files, listing.bytes) == (4, 40)


def test_files_and_folders_that_are_skipped_are_listed_without_the_marks_of_writers(tmp_path: Path) -> None:
    names = ("a.run", ".b.run", "_c.run", "old/d.run", "k=1/e.run", "k=1/.f.run", "_SUCCESS", ".a.run.crc", ".DS_Store")
    for name in names:
        write(tmp_path / "d" / name)
    skipped = [place.removeprefix(f"{tmp_path}/d/") for place in list_files(tmp_path / "d").skipped]
    assert skipped == [".b.run", "_c.run", "old/", "k=1/.f.run"]
    assert list_files(tmp_path / "d" / "a.run").skipped == ()
    source = InputSource(path=str(tmp_path / "d"), options={"recursiveFileLookup": "true"})
    recursive = list_locally("judgments", source, DAY)
    assert recursive is not None and len(recursive.skipped) == 3
    write(tmp_path / "hidden" / ".g.run")
    with pytest.raises(InputError, match=r"has no files .*: check inputs.judgments.path; Spark ignores .*/.g.run"):
        list_files(tmp_path / "hidden")


@pytest.mark.parametrize("closed", ["d/a.parquet", "d"])
def test_a_file_that_may_not_be_read_is_named_before_spark_starts(closed: str) -> None:
    with open_public_folder() as folder:
        path = write(folder / "d" / "a.parquet")
        (folder / closed).chmod(0)
        with become_nobody():
            place = path.parent if closed == "d/a.parquet" else path
            with pytest.raises(InputError, match=f"^{path} cannot be read: permission denied .inputs.judgments.: let"):
                list_files(place)
            if closed == "d":
                with pytest.raises(InputError, match=f"^{path.parent} cannot be read: permission denied"):
                    list_files(path.parent)


def test_the_digest_depends_on_name_size_and_time_and_not_on_how_the_path_is_written(tmp_path: Path) -> None:
    path = write(tmp_path / "j.csv")
    first = list_files(path).digest
    assert list_files(f"file://{path}").digest == list_files(f"{tmp_path}/./x/..//j.csv").digest == first
    os.utime(path, ns=(0, 1_700_000_000_001_000_000))
    later = list_files(path).digest
    write(path, 2)
    larger = list_files(path).digest
    renamed = list_files(path.rename(tmp_path / "k.csv")).digest
    assert len({first, later, larger, renamed}) == 4


def test_a_window_lists_the_days_that_exist(tmp_path: Path) -> None:
    for day in ("2026-10-30", "2026-11-01"):
        write(tmp_path / f"dt={day}" / "j.csv", 5)
    listing = list_files(f"{tmp_path}/dt={{date}}", days=3)
    assert listing.places == (f"{tmp_path}/dt=2026-10-30", f"{tmp_path}/dt=2026-11-01")
    assert (listing.missing_days, listing.files, listing.bytes) == (("2026-10-31",), 2, 10)


@pytest.mark.parametrize(
    ("path", "message"),
    [("nowhere", "judgments does not exist"), ("dt={date}", "judgments has no data for 2026-11-01")],
)
def test_a_path_without_files_is_an_error_that_names_it(tmp_path: Path, path: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        list_files(tmp_path / path)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("path", ["s3a://bucket/j", "hdfs://cluster/j", "/data/*.csv", "/data/{a,b}.csv"])
def test_other_file_systems_and_patterns_are_left_to_spark(path: str) -> None:
    assert list_locally("judgments", InputSource(path=path), DAY) is None


@pytest.mark.parametrize("name", HADOOP_VARIABLES)
def test_a_path_without_a_scheme_is_left_to_spark_where_hadoop_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = write(tmp_path / "j.csv")
    monkeypatch.setenv(name, "/etc/hadoop")
    assert list_locally("judgments", InputSource(path=str(path)), DAY) is None
    assert list_files(f"file:{path}").files == 1


def test_a_file_name_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.csv")).write_text("x")
    with pytest.raises(InputError, match=r"is not UTF-8, so that Java cannot open it: '.*caf\\udce9\.csv'"):
        list_files(tmp_path)


def test_a_window_that_begins_before_the_calendar_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "2026-11-01" / "a.csv")
    with pytest.raises(ConfigurationError, match="the calendar has no 1,000,000 days that end with 2026-11-01"):
        list_files(tmp_path / "{date}", days=1_000_000)
