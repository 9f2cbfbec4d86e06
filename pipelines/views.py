"""Views of the published tables for other readers: each shows the newest run of every date that has the table.

A view asks the manifests anew whenever it is queried, so it stays right as runs come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipelines.runs import RUNS, recorded
from pipelines.storage import Storage
from schemas.errors import InputError


def spark_views(storage: Storage) -> str:
    """Temporary views for a Spark SQL session."""
    manifests = _text(storage.path(RUNS, "*", "*.json"))
    live = (
        "SELECT get_json_object(value, '$.dt') AS dt, max_by(get_json_object(value, '$.run'), "
        "struct(get_json_object(value, '$.committed_at'), get_json_object(value, '$.run'))) AS run "
        "FROM assay_manifests WHERE get_json_object(value, '$.tables.{name}') IS NOT NULL GROUP BY 1"
    )
    views = [f"CREATE OR REPLACE TEMPORARY VIEW assay_manifests USING text OPTIONS (path {manifests});"]
    for name in _names(storage):
        place = _text(storage.path(name))
        views.append(
            f"CREATE OR REPLACE TEMPORARY VIEW {name}_of_all_runs USING parquet "
            f"OPTIONS (path {place}, mergeSchema 'true');\n"
            f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT t.* FROM {name}_of_all_runs t "
            f"JOIN ({live.format(name=name)}) live ON live.dt = CAST(t.dt AS STRING) AND live.run = t.run;"
        )
    return "\n".join(views)


def duckdb_views(storage: Storage) -> str:
    """Views for DuckDB."""
    manifests = _text(_plain(storage.path(RUNS, "*", "*.json")))
    columns = "{dt: 'VARCHAR', run: 'VARCHAR', committed_at: 'VARCHAR', tables: 'MAP(VARCHAR, JSON)'}"
    live = f"SELECT dt, arg_max(run, committed_at || run) AS run FROM read_json({manifests}, columns = {columns})"
    places = {name: _text(_plain(storage.path(name, "**", "*.parquet"))) for name in _names(storage)}
    return "\n".join(
        f"CREATE OR REPLACE VIEW {name} AS SELECT t.* FROM read_parquet({place}, "
        f"hive_partitioning = true, union_by_name = true, hive_types = {{dt: 'DATE', run: 'VARCHAR'}}) t "
        f"JOIN ({live} WHERE map_contains(tables, '{name}') GROUP BY dt) live "
        "ON live.dt = CAST(t.dt AS VARCHAR) AND live.run = t.run;"
        for name, place in places.items()
    )


VIEWS: Mapping[str, Callable[[Storage], str]] = {"spark": spark_views, "duckdb": duckdb_views}


def _names(storage: Storage) -> list[str]:
    """Every table that some run has."""
    names = sorted({name for manifest in recorded(storage) for name in manifest.tables})
    if not names:
        raise InputError("there are no committed runs", where=storage.uri, hint="run `assay evaluate` first")
    return names


def _plain(uri: str) -> str:
    return uri.removeprefix("file://")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
