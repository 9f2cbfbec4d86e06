"""The arguments of the public functions as a configuration, and their tables as what each engine reads."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.dates import parse_date, require_year
from schemas.errors import ConfigurationError, InputError, did_you_mean
from schemas.inputs import INPUTS

if TYPE_CHECKING:
    import pyarrow as pa

    from pipelines.config.model import Config

_READERS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "json", ".ndjson": "json", ".arrow": "ipc"}
SPARK = "pyspark"
KINDS = ("pandas", "polars", "pyarrow", SPARK)
ARGUMENTS = ("baseline", "columns", "date", "spark", "warehouse")  # of the functions, beside tables and options


def select_given(tables: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    """The tables that are not None; those that are `required` must be among them."""
    for name in required:
        if tables[name] is None:
            raise InputError(f"{name} is None", hint="give a DataFrame, an Arrow table or a path")
    present = {name: table for name, table in tables.items() if table is not None}
    for name, table in present.items():
        _require_table(table, name)
    return present


def read_date(date: dt.date | str | None) -> dt.date:
    """The date of a run, today by default."""
    if date is None:
        return dt.datetime.now(tz=dt.UTC).date()
    try:
        value = parse_date(date) if isinstance(date, str) else date
        if not isinstance(value, dt.date):
            raise ValueError(f"{date!r} is not a date; write a date, or text such as 2026-11-01")
        require_year(value)
    except ValueError as error:
        raise ConfigurationError(str(error), where="date") from None
    return value.date() if isinstance(value, dt.datetime) else value


def build_arguments_config(
    function: str, tables: Mapping[str, Any], columns: Mapping[str, Mapping[str, str]], options: Mapping[str, Any]
) -> Config:
    """The configuration of the arguments of a public function; a wrong one is reported with its key."""
    from pipelines.config.load import build_config
    from pipelines.config.model import Config

    foreign = [key for key in ("inputs", "labels_of") if key in options]
    if foreign:
        hint = "give tables as arguments, and publish with `.publish(warehouse)`"
        raise ConfigurationError(f"{foreign[0]} is not an option of {function}", hint=hint)
    unknown = [key for key in options if key not in Config.model_fields]
    if unknown:
        allowed = ({*Config.model_fields, *ARGUMENTS} - {"inputs", "labels_of"}) | set(INPUTS)
        raise ConfigurationError(f"{function} has no option {unknown[0]!r}", hint=did_you_mean(unknown[0], allowed))
    if not isinstance(columns, Mapping) or not all(isinstance(names, Mapping) for names in columns.values()):
        table = next(iter(tables))
        hint = f'name the table first, as in columns={{"{table}": {{"doc_id": "product"}}}}'
        raise ConfigurationError("columns is not a mapping of tables to mappings of names", hint=hint)
    unread = [name for name in columns if name not in tables]
    if unread:
        raise ConfigurationError(f"columns has {unread[0]!r}, which is not among the tables: {', '.join(tables)}")
    inputs = {name: _describe_source(table, columns.get(name, {})) for name, table in tables.items()}
    values = dict(options) | {"inputs": inputs}
    values["segments"] = list_names(options.get("segments", ()), "segments")
    return build_config(values, function)


def _describe_source(table: Any, columns: Mapping[str, str]) -> dict[str, Any]:
    """The section `inputs.<name>` of a table: as it is, where it is written as one."""
    if isinstance(table, Mapping):
        return {**table, "columns": {**table.get("columns", {}), **columns}}
    return {"table": describe_kind(table), "columns": dict(columns)}


def list_names(names: Sequence[str], argument: str) -> list[str]:
    """The names of an argument as a list, also one that is written without."""
    if not isinstance(names, Iterable) or isinstance(names, Mapping):
        raise ConfigurationError(f"{argument} is {names!r}", hint="give a name, or a list of them")
    return [names] if isinstance(names, str) else list(names)


def describe_kind(table: Any) -> str:
    """Where a table comes from, for messages and manifests."""
    if isinstance(table, str | Path):
        return str(table)
    return f"{find_kind(table)}.{type(table).__name__}"


def find_kind(table: Any) -> str:
    """The library of a table: pandas, polars, pyarrow or pyspark; pandas for paths."""
    if isinstance(table, str | Path | Mapping):
        return "pandas"
    return type(table).__module__.partition(".")[0]


def expand_path(path: str | Path) -> dict[str, str]:
    """A path as a section of the configuration, with the format that its name tells."""
    kind = _READERS.get(Path(path).suffix.lower(), "parquet")
    if kind == "ipc":
        raise InputError("Spark does not read Arrow files", where=str(path), hint="pass it as an Arrow table")
    return {"path": str(path), "format": kind}


def read_file(path: str | Path) -> pa.Table:
    """A file, or a folder of Parquet files, as an Arrow table."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    place = Path(path)
    kind = "parquet" if place.is_dir() else _READERS.get(place.suffix.lower())
    if kind is None:
        hint = f"give {', '.join(_READERS)} or a folder of Parquet files, or pass a DataFrame"
        raise InputError(f"cannot tell the format of {place.name}", where=str(path), hint=hint)
    try:
        return ds.dataset(str(place), format=kind).to_table()
    except FileNotFoundError:
        raise InputError("no such file or folder", where=str(path)) from None
    except (pa.ArrowException, OSError) as error:
        raise InputError("cannot be read", where=str(path), hint=str(error).splitlines()[0]) from None


def _require_table(table: Any, name: str) -> None:
    """Refuse what is no table, before anything else is looked at."""
    if isinstance(table, Mapping):
        if not {"path", "table", "view"} & set(table):
            hint = 'give a DataFrame; a mapping is a section of inputs, such as {"path": "runs", "format": "trec_run"}'
            raise InputError(f"{name} is a mapping without path, table or view", hint=hint)
        return
    kind, written = type(table).__name__, f"{type(table).__module__}.{type(table).__name__}"
    if isinstance(table, str | Path) or (find_kind(table) in KINDS and kind in ("DataFrame", "Table", "RecordBatch")):
        return
    hints = {"LazyFrame": "call .collect() on it", "list": "make a DataFrame of it: pandas.DataFrame(rows)"}
    otherwise = f"give a path, or a table of {', '.join(KINDS)}"
    raise InputError(f"{name} is a {written}", hint=hints.get(kind, otherwise))


def require_session(spark: Any) -> None:
    """Refuse what is no session of Spark."""
    if spark is not None and not hasattr(spark, "createDataFrame"):
        hint = "give a SparkSession, or leave it out"
        raise ConfigurationError(f"spark is a {type(spark).__module__}.{type(spark).__name__}", hint=hint)


def require_path(path: Any, argument: str) -> None:
    """Refuse what is no path."""
    if not isinstance(path, str | Path):
        raise ConfigurationError(f"{argument} is of type {type(path).__name__}", hint="give a path as text")
