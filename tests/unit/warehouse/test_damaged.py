"""A warehouse with damaged or foreign files: they are reported and skipped, and nothing outside it is deleted."""

import json
import logging
from pathlib import Path

import pytest

from pipelines.warehouse.runs import list_committed, read_manifests
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.vacuum import find_removable, remove_runs
from pipelines.warehouse.views import READERS, VIEWS
from schemas.errors import PublishError
from tests.helpers.published_runs import publish

GOOD, BAD = "aaaaaaaaaaaa-000001", "bbbbbbbbbbbb-000001"


def publish_two(folder: Path) -> tuple[Storage, Path]:
    """Two runs of one date; returns the manifest of the newer one."""
    publish(folder, run=GOOD, committed_at="2026-11-02T04:00:00.000000+00:00")
    storage, _ = publish(folder, run=BAD, committed_at="2026-11-02T05:00:00.000000+00:00")
    return storage, folder / "runs" / "2026-11-01" / f"{BAD}.json"


def damage(file: Path, how: str) -> None:
    content = file.read_text(encoding="utf-8")
    manifest = json.loads(content)
    if how == "foreign table":
        manifest["tables"]["query_metrics"]["path"] = "../outside"
    elif how == "foreign time":  # which would be the newest run for ever
        manifest["committed_at"] = "zzzz https://me:hunter2hunter2@host.example/"
    elif how == "hostile table":  # which would be part of SQL and of Python
        name = "x AS SELECT 1; DROP VIEW labels; --\nimport os"
        manifest["tables"][name] = {"path": f"{name}/dt={manifest['dt']}/run={manifest['run']}", "rows": 1}
    elif how in ("negative rows", "too many rows"):
        manifest["tables"]["query_metrics"]["rows"] = -1 if how == "negative rows" else 10**30
    damaged = {
        "empty": b"",
        "truncated": content[: len(content) * 4 // 5].encode(),
        "binary": b"\xff\xfe\x00",
        "list": b"[1, 2]",
        "other json": b'{\n  "run": 5\n}',
        "other run": content.replace(BAD, "cccccccccccc-000001").encode(),
    }
    file.write_bytes(damaged.get(how, json.dumps(manifest).encode()))


KINDS = (
    *("empty", "truncated", "binary", "list", "other json", "other run", "foreign time"),
    # What readers in other languages do not look at: they find a table by the names of date and run.
    *("foreign table", "hostile table", "negative rows", "too many rows"),
)
SEEN_BY_VIEWS = KINDS[:7]


@pytest.mark.parametrize("how", KINDS)
def test_a_damaged_manifest_is_reported_once_and_skipped(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    storage, file = publish_two(tmp_path)
    damage(file, how)
    with caplog.at_level(logging.WARNING):
        assert [m.run for m in list_committed(storage)] == [GOOD]
        assert [m.run for m in list_committed(storage, date="2026-11-01")] == [GOOD]
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"skipped file://{file}: ") and line.endswith("`assay fsck` says what to do")
    assert [damaged.path for damaged in read_manifests(storage)[1]] == [f"runs/2026-11-01/{BAD}.json"]


def test_a_manifest_of_no_date_is_damaged(tmp_path: Path) -> None:
    publish(tmp_path, run=GOOD)
    storage, _ = publish(tmp_path, run=BAD, date="zzzz")  # the latest date there can be
    assert [m.run for m in list_committed(storage)] == [GOOD]
    assert [damaged.problem for damaged in read_manifests(storage)[1]] == ["its dt is 'zzzz'"]


def test_the_name_of_a_table_in_a_manifest_is_never_code(tmp_path: Path) -> None:
    storage, file = publish_two(tmp_path)
    damage(file, "hostile table")
    for render in (*VIEWS.values(), *READERS.values()):
        assert "DROP" not in render(storage) and "import os" not in render(storage)


@pytest.mark.parametrize("how", KINDS)
def test_vacuum_keeps_the_tables_of_a_damaged_manifest(tmp_path: Path, how: str) -> None:
    storage, file = publish_two(tmp_path)
    damage(file, how)
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    removable = find_removable(storage, keep=1, hours=0)
    assert (removable.runs, removable.orphans) == ((), ())
    remove_runs(storage, removable)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


def test_vacuum_deletes_nothing_outside_the_warehouse(tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "keep.txt"
    outside.parent.mkdir()
    outside.write_text("keep")
    warehouse = tmp_path / "w"
    storage, _ = publish(warehouse, run=GOOD, checks={"docs": "../outside"})
    publish(warehouse, run=BAD, committed_at="2026-11-02T05:00:00.000000+00:00")
    link = warehouse / "labels" / "dt=2026-11-01" / f"run={GOOD}"
    link.parent.mkdir(parents=True)
    link.symlink_to(outside.parent)
    removable = find_removable(storage, keep=1, hours=0)
    assert [m.run for m in removable.runs] == [GOOD]
    remove_runs(storage, removable)
    assert outside.read_text() == "keep"
    assert not link.is_symlink()
    assert not (warehouse / "query_metrics" / "dt=2026-11-01" / f"run={GOOD}").exists()


@pytest.mark.parametrize("name", ["", "/", "/etc", "..", "../x", "a/../../x", "a/..", "./a", "a//b"])
def test_a_name_outside_the_folder_is_not_deleted(tmp_path: Path, name: str) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "x").write_text("")
    with pytest.raises(PublishError, match="refused to delete"):
        Storage(str(tmp_path / "w")).delete(name)
    assert (tmp_path / "x").exists() and (tmp_path / "w").exists()


def test_a_file_is_on_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    synced = []
    fsync = os.fsync

    def record(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    Storage(str(tmp_path)).put("runs/x.json", "{}")
    assert len(synced) == 2
    assert synced[0].startswith("x.json.") and synced[0].endswith(".part")
    assert synced[1] == "runs"
