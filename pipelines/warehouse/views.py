"""Views of the published tables: each shows the newest run of every date that has the table; `runs` lists all runs.

A view reads the manifests at each query, so it stays current as runs are added and removed. SQL has views; for pandas
and Polars, a function reads what a view would show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pipelines.warehouse.literal_paths import NO_PATTERN, escape_pattern, quote_sql
from pipelines.warehouse.runs import COMMITTED, RUNS, list_recorded
from pipelines.warehouse.storage import Storage
from schemas.errors import InputError

# A manifest whose date or time is none is foreign; it must not be the newest one, nor fail the views.
_HAS_TIMES = "try_cast({of}dt AS DATE) IS NOT NULL AND try_cast({of}committed_at AS TIMESTAMP) IS NOT NULL"


def render_spark_views(storage: Storage) -> str:
    """Render temporary views for a Spark SQL session."""
    manifests = quote_sql(f"{escape_pattern(storage.path(RUNS))}/*/*.json")
    options = ", ".join(f"{name} {quote_sql(value)}" for name, value in {**NO_PATTERN, "mergeSchema": "true"}.items())
    live = (
        "SELECT dt, max_by(run, struct(committed_at, run)) AS run FROM assay_manifests "
        "WHERE map_contains_key(tables, '{name}') GROUP BY dt"
    )
    columns = (
        "STRUCT<dt: STRING, run: STRING, committed_at: STRING, status: STRING, config_hash: STRING, "
        "gate: ARRAY<STRUCT<verdict: STRING>>, tables: MAP<STRING, STRING>>"
    )
    views = [
        "CREATE OR REPLACE TEMPORARY VIEW assay_manifest_files USING text "
        f"OPTIONS (path {manifests}, wholetext 'true');",
        # What is truncated or no manifest gives nulls; a manifest under another name is not one.
        "CREATE OR REPLACE TEMPORARY VIEW assay_manifests AS SELECT m.* FROM (SELECT input_file_name() AS file, "
        f"from_json(value, '{columns}') AS m FROM assay_manifest_files) "
        f"WHERE endswith(file, concat('/', m.dt, '/', m.run, '.json')) AND {_HAS_TIMES.format(of='m.')};",
        f"CREATE OR REPLACE TEMPORARY VIEW {RUNS} AS "
        + _select_runs("assay_manifests", "transform(gate, condition -> condition.verdict)", "array_contains"),
    ]
    for name in list_tables(storage):
        place = quote_sql(storage.path(name))
        views.append(
            f"CREATE OR REPLACE TEMPORARY VIEW {name}_of_all_runs USING parquet "
            f"OPTIONS (path {place}, {options});\n"
            f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT t.* FROM {name}_of_all_runs t "
            f"JOIN ({live.format(name=name)}) live ON live.dt = CAST(t.dt AS STRING) AND live.run = t.run;"
        )
    return "\n".join(views)


def render_catalog_views(namespace: str, names: Sequence[str]) -> str:
    """Render temporary views of catalog tables for Spark SQL: each shows the newest run of every date.

    The join begins with `runs`, so that Spark looks up the version of the table after it has chosen the runs.
    """
    return "\n".join(
        f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT t.* FROM (SELECT dt, "
        f"max_by(run, struct(committed_at, run)) AS run FROM {namespace}.{RUNS} "
        f"WHERE array_contains(tables, '{name}') GROUP BY dt) live "
        f"JOIN {namespace}.{name} t ON t.dt = live.dt AND t.run = live.run;"
        for name in names
    )


def render_duckdb_views(storage: Storage) -> str:
    """Render views for DuckDB.

    The pattern of files has the exact depth of a run's files: deeper ones are unfinished files of a task.
    """
    folder = _escape_glob(_strip_scheme(storage.uri.rstrip("/")))
    columns = (
        "{dt: 'VARCHAR', run: 'VARCHAR', committed_at: 'VARCHAR', status: 'VARCHAR', config_hash: 'VARCHAR', "
        "gate: 'JSON', tables: 'MAP(VARCHAR, JSON)'}"
    )
    # What is truncated or no manifest gives nulls; a manifest under another name is not one.
    manifests = (
        f"read_json({_quote(f'{folder}/{RUNS}/*/*.json')}, columns = {columns}, format = 'newline_delimited', "
        "ignore_errors = true, filename = true) WHERE ends_with(filename, concat('/', dt, '/', run, '.json')) "
        f"AND {_HAS_TIMES.format(of='')}"
    )
    live = f"SELECT dt, arg_max(run, committed_at || run) AS run FROM {manifests}"
    verdicts = "json_extract_string(gate, '$[*].verdict')"
    runs = f"CREATE OR REPLACE VIEW {RUNS} AS " + _select_runs(f"(FROM {manifests})", verdicts, "list_contains")
    views = [
        f"CREATE OR REPLACE VIEW {name} AS SELECT t.* "
        f"FROM read_parquet({_quote(f'{folder}/{name}/dt=*/run=*/*.parquet')}, "
        f"hive_partitioning = true, union_by_name = true, hive_types = {{dt: 'DATE', run: 'VARCHAR'}}) t "
        f"JOIN ({live} AND map_contains(tables, '{name}') GROUP BY dt) live "
        "ON live.dt = CAST(t.dt AS VARCHAR) AND live.run = t.run;"
        for name in list_tables(storage)
    ]
    return "\n".join([runs, *views])


def _select_runs(manifests: str, verdicts: str, contains: str) -> str:
    """Select the runs, with the worst verdict of the gate; `contains` is the function that looks one up in them."""
    return (
        "SELECT try_cast(dt AS DATE) AS dt, run, committed_at, status, config_hash AS configuration, "
        f"CASE WHEN {contains}({verdicts}, 'fail') THEN 'fail' "
        f"WHEN {contains}({verdicts}, 'undecidable') THEN 'undecidable' "
        f"WHEN {contains}({verdicts}, 'pass') THEN 'pass' END AS gate, "
        f"status = '{COMMITTED}' AND run = first_value(run) OVER "
        "(PARTITION BY dt, status ORDER BY committed_at DESC, run DESC) AS live "
        f"FROM {manifests};"
    )


def render_pandas_reader(storage: Storage) -> str:
    """Render functions that read the tables with pandas."""
    return _render_reader(
        storage,
        "import pandas",
        'pandas.read_parquet(path).assign(dt=manifest["dt"], run=manifest["run"])',
        "pandas.concat(parts, ignore_index=True)",
        "pandas.DataFrame(rows)",
    )


def render_polars_reader(storage: Storage) -> str:
    """Render functions that read the tables with Polars."""
    return _render_reader(
        storage,
        "import polars",
        'polars.read_parquet(path / "*.parquet", hive_partitioning=False).with_columns('
        'dt=polars.lit(manifest["dt"]), run=polars.lit(manifest["run"]))',
        'polars.concat(parts, how="diagonal_relaxed")',
        "polars.DataFrame(rows)",
    )


def _render_reader(storage: Storage, library: str, read: str, join: str, build: str) -> str:
    folder = _strip_scheme(storage.uri.rstrip("/"))
    if "://" in folder:
        raise InputError("pandas and Polars read local warehouses only", where=folder, hint="use --sql duckdb or spark")
    names = ", ".join(list_tables(storage))
    return _READER.format(
        library=library, folder=str(Path(folder).absolute()), read=read, join=join, build=build, names=names
    )


_READER = '''\
# Tables: {names}
import json
from datetime import date, datetime
from pathlib import Path

{library}

WAREHOUSE = Path({folder!r})


def read_manifests():
    """The manifests of all runs, oldest first; what is truncated, or under another name, is none."""
    manifests = []
    for path in WAREHOUSE.glob("runs/*/*.json"):
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            names, _ = (manifest["dt"], manifest["run"]), manifest["tables"]
            date.fromisoformat(manifest["dt"]), datetime.fromisoformat(manifest["committed_at"])
        except (OSError, ValueError, TypeError, KeyError):
            continue
        if names == (path.parent.name, path.stem):
            manifests.append(manifest)
    return sorted(manifests, key=lambda manifest: (manifest["committed_at"], manifest["run"]))


def read_table(name):
    """The newest run of every date that has the table."""
    newest = {{manifest["dt"]: manifest for manifest in read_manifests() if name in manifest["tables"]}}
    parts = []
    for manifest in newest.values():
        path = WAREHOUSE / name / f"dt={{manifest['dt']}}" / f"run={{manifest['run']}}"
        parts.append({read})
    return {join}


def read_runs():
    """One row per run: its date, configuration, the worst verdict of its gate, and whether it is the date's newest."""
    manifests = read_manifests()
    live = {{m["dt"]: m["run"] for m in manifests if m["status"] == "committed"}}
    rows = []
    for m in manifests:
        verdicts = [condition["verdict"] for condition in m.get("gate", ())]
        gate = next((v for v in ("fail", "undecidable", "pass") if v in verdicts), None)
        rows.append({{"dt": m["dt"], "run": m["run"], "committed_at": m["committed_at"], "status": m["status"],
                     "configuration": m["config_hash"], "gate": gate, "live": live.get(m["dt"]) == m["run"]}})
    return {build}'''


VIEWS: Mapping[str, Callable[[Storage], str]] = {"spark": render_spark_views, "duckdb": render_duckdb_views}
READERS: Mapping[str, Callable[[Storage], str]] = {"pandas": render_pandas_reader, "polars": render_polars_reader}


def list_tables(storage: Storage) -> list[str]:
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
        raise InputError("DuckDB cannot list files below a folder with a backslash in its name", where=path, hint=hint)
    return re.sub(r"[\[*?]", lambda match: f"[{match[0]}]", path)


def _quote(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
