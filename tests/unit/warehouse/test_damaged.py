"""A warehouse with damaged or foreign files: they are reported and skipped, and nothing outside it is deleted."""

import json
import logging
from pathlib import Path

import pytest

from pipelines.warehouse.runs import list_committed, read_manifests
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.vacuum import find_removable, remove_runs
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
    damaged = {
        "empty": b"",
        "truncated": content[: len(content) * 4 // 5].encode(),
        "binary": b"\xff\xfe\x00",
        "list": b"[1, 2]",
        "other json": b'{\n  "run": 5\n}',
        "other run": content.replace(BAD, "cccccccccccc-000001").encode(),
        "foreign table": json.dumps(manifest).encode(),
    }
    file.write_bytes(damaged[how])


KINDS = ("empty", "truncated", "binary", "list", "other json", "other run", "foreign table")


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
