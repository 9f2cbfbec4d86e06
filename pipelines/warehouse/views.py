"""SQL views of the published tables: each shows the newest run of every date that has the table.

A view reads the manifests at each query, so it stays current as runs are added and removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pipelines.warehouse.literal_paths import NO_PATTERN, escape_pattern, quote_sql
from pipelines.warehouse.runs import RUNS, list_recorded
from pipelines.warehouse.storage import Storage
from schemas.errors import InputError


def render_spark_views(storage: Storage) -> str:
    """Render temporary views for a Spark SQL session."""
    manifests = quote_sql(f"{escape_pattern(storage.path(RUNS))}/*/*.json")
    options = ", ".join(f"{name} {quote_sql(value)}" for name, value in {**NO_PATTERN, "mergeSchema": "true"}.items())
    live = (
        "SELECT dt, max_by(run, struct(committed_at, run)) AS run FROM assay_manifests "
        "WHERE map_contains_key(tables, '{name}') GROUP BY dt"
    )
    columns = "STRUCT<dt: STRING, run: STRING, committed_at: STRING, tables: MAP<STRING, STRING>>"
    views = [
        "CREATE OR REPLACE TEMPORARY VIEW assay_manifest_files USING text "
        f"OPTIONS (path {manifests}, wholetext 'true');",
        # What is truncated or no manifest gives nulls; a manifest under another name is not one.
        "CREATE OR REPLACE TEMPORARY VIEW assay_manifests AS SELECT m.* FROM (SELECT input_file_name() AS file, "
        f"from_json(value, '{columns}') AS m FROM assay_manifest_files) "
        "WHERE endswith(file, concat('/', m.dt, '/', m.run, '.json'));",
    ]
    for name in _list_tables(storage):
        place = quote_sql(storage.path(name))
        views.append(
            f"CREATE OR REPLACE TEMPORARY VIEW {name}_of_all_runs USING parquet "
            f"OPTIONS (path {place}, {options});\n"
            f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT t.* FROM {name}_of_all_runs t "
            f"JOIN ({live.format(name=name)}) live ON live.dt = CAST(t.dt AS STRING) AND live.run = t.run;"
        )
    return "\n".join(views)


def render_duckdb_views(storage: Storage) -> str:
    """Render views for DuckDB.

    The pattern of files has the exact depth of a run's files: deeper ones are unfinished files of a task.
    """
    folder = _escape_glob(_strip_scheme(storage.uri.rstrip("/")))
    columns = "{dt: 'VARCHAR', run: 'VARCHAR', committed_at: 'VARCHAR', tables: 'MAP(VARCHAR, JSON)'}"
    # What is truncated or no manifest gives nulls; a manifest under another name is not one.
    live = (
        f"SELECT dt, arg_max(run, committed_at || run) AS run FROM read_json({_quote(f'{folder}/{RUNS}/*/*.json')}, "
        f"columns = {columns}, format = 'newline_delimited', ignore_errors = true, filename = true) "
        "WHERE ends_with(filename, concat('/', dt, '/', run, '.json'))"
    )
    return "\n".join(
        f"CREATE OR REPLACE VIEW {name} AS SELECT t.* "
        f"FROM read_parquet({_quote(f'{folder}/{name}/dt=*/run=*/*.parquet')}, "
        f"hive_partitioning = true, union_by_name = true, hive_types = {{dt: 'DATE', run: 'VARCHAR'}}) t "
        f"JOIN ({live} AND map_contains(tables, '{name}') GROUP BY dt) live "
        "ON live.dt = CAST(t.dt AS VARCHAR) AND live.run = t.run;"
        for name in _list_tables(storage)
    )


VIEWS: Mapping[str, Callable[[Storage], str]] = {"spark": render_spark_views, "duckdb": render_duckdb_views}


def _list_tables(storage: Storage) -> list[str]:
    """List the tables of all runs."""
    names = sorted({name for manifest in list_recorded(storage) for name in manifest.tables})
    if not names:
        raise InputError("there are no committed runs", where=storage.uri, hint="run `assay evaluate` first")
    return names


def _strip_scheme(uri: str) -> str:
    return uri.removeprefix("file://")


def _escape_glob(path: str) -> str:
    """Escape a path for DuckDB's patterns."""
    if "\\" in path:
        hint = "move the warehouse, or use --sql spark"
        raise InputError("DuckDB lists no files below a folder with a backslash in its name", where=path, hint=hint)
    return re.sub(r"[\[*?]", lambda match: f"[{match[0]}]", path)


def _quote(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
