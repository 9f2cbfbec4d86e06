"""The arguments of the public functions as a configuration, and their tables as what each engine reads."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigurationError, InputError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

    from pipelines.config.model import Config

_READERS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "json", ".ndjson": "json", ".arrow": "ipc"}
SPARK = "pyspark"


def select_given(tables: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    """The tables that are not None; those that are `required` must be among them."""
    for name in required:
        if tables[name] is None:
            raise InputError(f"{name} is None", hint="give a DataFrame, an Arrow table or a path")
    return {name: table for name, table in tables.items() if table is not None}


def read_date(date: dt.date | str | None) -> dt.date:
    """The date of a run, today by default."""
    return dt.date.fromisoformat(date) if isinstance(date, str) else date or dt.datetime.now(tz=dt.UTC).date()


def build_arguments_config(
    function: str, tables: Mapping[str, Any], columns: Mapping[str, Mapping[str, str]], options: Mapping[str, Any]
) -> Config:
    """The configuration of the arguments of a public function; a wrong one is reported with its key."""
    from pipelines.config.load import build_config

    foreign = [key for key in ("inputs", "labels_of") if key in options]
    if foreign:
        hint = "give tables as arguments, and publish with `.publish(warehouse)`"
        raise ConfigurationError(f"{foreign[0]} is not an option of {function}", hint=hint)
    unread = [name for name in columns if name not in tables]
    if unread:
        raise ConfigurationError(f"columns has {unread[0]!r}, which is not among the tables: {', '.join(tables)}")
    inputs = {name: _describe_source(table, columns.get(name, {})) for name, table in tables.items()}
    values = dict(options) | {"inputs": inputs}
    values["segments"] = list(options.get("segments", ()))
    return build_config(values, function)


def _describe_source(table: Any, columns: Mapping[str, str]) -> dict[str, Any]:
    """The section `inputs.<name>` of a table: as it is, where it is written as one."""
    if isinstance(table, Mapping):
        return {**table, "columns": {**table.get("columns", {}), **columns}}
    return {"table": describe_kind(table), "columns": dict(columns)}


def list_names(metrics: Sequence[str]) -> list[str]:
    """Metrics as a list, also one that is written without."""
    return [metrics] if isinstance(metrics, str) else list(metrics)


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


def require_kind(table: Any, name: str) -> None:
    """Refuse what is no table."""
    kinds = ("pandas", "polars", "pyarrow", SPARK)
    if find_kind(table) not in kinds:
        hint = f"give a path or a table of {', '.join(kinds)}; {did_you_mean(find_kind(table), kinds)}"
        raise InputError(f"{name} is a {type(table).__module__}.{type(table).__name__}", hint=hint)
