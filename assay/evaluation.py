"""`assay.evaluate`: from tables or paths to a compared result, in memory."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigurationError, InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from assay.result import EvaluationResult
    from pipelines.config.model import Config

_READERS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "json", ".ndjson": "json", ".arrow": "ipc"}


def evaluate(
    rankings: Any,
    judgments: Any,
    metrics: Sequence[str] = ("ndcg@10", "recall@10"),
    baseline: str | None = None,
    *,
    queries: Any = None,
    documents: Any = None,
    decisions: Any = None,
    columns: Mapping[str, Mapping[str, str]] | None = None,
    date: dt.date | str | None = None,
    **options: Any,
) -> EvaluationResult:
    """Evaluate ranked lists against judgments, and compare the systems with `baseline`.

    Tables are pandas or Polars DataFrames, Arrow tables, or paths of Parquet, CSV and JSON lines files, in the shape of
    their contracts (docs/tables.md); `columns` maps the names of a contract to those of the data, per table. `options`
    are keys of the configuration (docs/configuration.md), such as `segments`, `gate`, `statistics` and `conventions`.

    Everything is computed in this process, without a JVM, with the numbers of a run. `date` is that of the run when it
    is published, today by default.
    """
    tables = {"rankings": rankings, "judgments": judgments, "queries": queries, "documents": documents}
    tables = {name: table for name, table in (tables | {"decisions": decisions}).items() if table is not None}
    for name, table in {"rankings": rankings, "judgments": judgments}.items():
        if table is None:
            raise InputError(f"{name} is None", hint="give a DataFrame, an Arrow table or a path")
    day = dt.date.fromisoformat(date) if isinstance(date, str) else date or dt.datetime.now(tz=dt.UTC).date()
    config = _build_config(tables, metrics, baseline, columns or {}, options)
    return _evaluate_in_memory(tables, config, day)


def _build_config(
    tables: Mapping[str, Any],
    metrics: Sequence[str],
    baseline: str | None,
    columns: Mapping[str, Mapping[str, str]],
    options: Mapping[str, Any],
) -> Config:
    """The configuration of these arguments; a wrong one is reported with its key."""
    from pipelines.config.load import build_config

    foreign = [key for key in ("inputs", "labels_of", "warehouse") if key in options]
    if foreign:
        hint = "give tables as arguments, and publish with `.publish(warehouse)`"
        raise ConfigurationError(f"{foreign[0]} is not an option of assay.evaluate", hint=hint)
    unread = [name for name in columns if name not in tables]
    if unread:
        raise ConfigurationError(f"columns has {unread[0]!r}, which is not among the tables: {', '.join(tables)}")
    compare = options.get("compare", {})
    if baseline is not None:
        compare = dict(compare) | {"baseline": baseline}
    inputs = {
        name: {"table": _describe_kind(table), "columns": columns.get(name, {})} for name, table in tables.items()
    }
    values = dict(options) | {"inputs": inputs, "metrics": _list_names(metrics), "compare": compare}
    values["segments"] = list(options.get("segments", ()))
    return build_config(values, "assay.evaluate")


def _list_names(metrics: Sequence[str]) -> list[str]:
    return [metrics] if isinstance(metrics, str) else list(metrics)


def _describe_kind(table: Any) -> str:
    if isinstance(table, str | Path):
        return str(table)
    return f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}"


def _evaluate_in_memory(tables: Mapping[str, Any], config: Config, date: dt.date) -> EvaluationResult:
    from assay.in_memory import evaluate_in_memory
    from assay.result import EvaluationResult
    from udfs.tables import TableReader

    read = {name: _read_file(table) if isinstance(table, str | Path) else table for name, table in tables.items()}
    readers = {name: TableReader(table, name) for name, table in read.items()}
    kind = "pandas" if isinstance(tables["rankings"], str | Path) else readers["rankings"].kind
    return EvaluationResult(evaluate_in_memory(readers, config), config, date, kind)


def _read_file(path: str | Path) -> pa.Table:
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
