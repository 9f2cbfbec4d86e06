"""The DuckDB views show whole runs only, whatever else is in the warehouse."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.warehouse.views import READERS, render_duckdb_views
from schemas.errors import InputError
from tests.helpers.published_runs import QUERIES, publish
from tests.unit.warehouse.test_damaged import BAD, GOOD, SEEN_BY_VIEWS, damage, publish_two


def count_by_run(views: str) -> list[tuple[str, int]]:
    with duckdb.connect() as connection:
        connection.execute(views)
        return connection.execute("SELECT run, count(*) FROM query_metrics GROUP BY run").fetchall()


ROWS = 2 * len(QUERIES)


def test_unfinished_files_of_a_running_or_killed_run_are_not_read(tmp_path: Path) -> None:
    storage, _ = publish(tmp_path, run=GOOD)
    views = render_duckdb_views(storage)
    unfinished = "_temporary/0/_temporary/attempt_1/part-0.parquet"
    for folder in (f"query_metrics/dt=2026-11-01/run={BAD}", f"_attempts/{BAD}/tables/query_metrics"):
        storage.put(f"{folder}/{unfinished}", "")
    storage.put(f"runs/2026-11-01/{BAD}.json.0.part", "{")
    assert count_by_run(views) == [(GOOD, ROWS)]


@pytest.mark.parametrize("how", SEEN_BY_VIEWS)
def test_a_damaged_manifest_hides_its_run_only(tmp_path: Path, how: str) -> None:
    storage, file = publish_two(tmp_path)
    views = render_duckdb_views(storage)
    assert count_by_run(views) == [(BAD, ROWS)]
    damage(file, how)
    assert count_by_run(views) == [(GOOD, ROWS)]


def test_a_manifest_of_no_date_does_not_fail_the_views(tmp_path: Path) -> None:
    publish(tmp_path, run=GOOD)
    storage, _ = publish(tmp_path, run=BAD)
    (tmp_path / "runs" / "zzzz").mkdir()
    manifest = tmp_path / "runs" / "2026-11-01" / f"{BAD}.json"
    (tmp_path / "runs" / "zzzz" / manifest.name).write_text(manifest.read_text().replace("2026-11-01", "zzzz"))
    manifest.unlink()
    with duckdb.connect() as connection:
        connection.execute(render_duckdb_views(storage))
        assert connection.execute("SELECT run FROM runs").fetchall() == [(GOOD,)]
        assert connection.execute("SELECT DISTINCT run FROM query_metrics").fetchall() == [(GOOD,)]


@pytest.mark.parametrize("how", SEEN_BY_VIEWS)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_damaged_manifest_hides_its_run_only_from_python(tmp_path: Path, library: str, how: str) -> None:
    pytest.importorskip(library)
    storage, file = publish_two(tmp_path)
    names: dict[str, Any] = {}
    exec(READERS[library](storage), names)
    assert set(names["read_table"]("query_metrics")["run"]) == {BAD}
    damage(file, how)
    assert set(names["read_table"]("query_metrics")["run"]) == {GOOD}
    assert list(names["read_runs"]()["run"]) == [GOOD]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_reader_in_python_reads_nothing_outside_the_warehouse(tmp_path: Path, library: str) -> None:
    pytest.importorskip(library)
    storage, file = publish_two(tmp_path / "w")
    publish(tmp_path / "outside", systems=["forged", "forged too"])
    manifest = json.loads(file.read_text(encoding="utf-8"))
    manifest["tables"]["query_metrics"]["path"] = f"../outside/query_metrics/dt=2026-11-01/run={GOOD}"
    file.write_text(json.dumps(manifest), encoding="utf-8")
    names: dict[str, Any] = {}
    exec(READERS[library](storage), names)
    assert set(names["read_table"]("query_metrics")["system"]) == {"old", "new"}


@pytest.mark.parametrize("name", ["a b", "it's", "[ab]", "x*y?", 'say "hi"', "{a,b}", "100%"])
def test_a_warehouse_can_have_any_name(tmp_path: Path, name: str) -> None:
    storage, _ = publish(tmp_path / name, run=GOOD)
    assert count_by_run(render_duckdb_views(storage)) == [(GOOD, ROWS)]


def test_a_backslash_that_duckdb_cannot_read_is_refused(tmp_path: Path) -> None:
    storage, _ = publish(tmp_path / "back\\slash", run=GOOD)
    with pytest.raises(InputError, match="a backslash in its name"):
        render_duckdb_views(storage)
