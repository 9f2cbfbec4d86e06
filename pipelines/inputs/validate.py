"""Conform every input to its contract, count its rows, and refuse one that cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.config.model import Config
from pipelines.inputs.contracts import resolve_contract
from pipelines.inputs.count import CountRequest, CountResult, RowCount, count_ignored, count_rows
from pipelines.inputs.count_files import count_files
from pipelines.inputs.day_files import LOG
from pipelines.inputs.days import LogDay, count_new_rows, find_shown, select_pages
from pipelines.inputs.log_rows import LogRows
from pipelines.inputs.opinions import add_opinion_columns
from pipelines.inputs.plain_files import PlainFiles, find_plain_files
from pipelines.inputs.read import InputTable
from pipelines.inputs.systems import require_one_file_per_system
from pipelines.warehouse.concurrent import run_concurrently
from schemas.conform import SOURCE_FILE, ConformedTable, conform
from schemas.errors import ConfigurationError, DataQualityError, InputError, did_you_mean
from schemas.outputs import QUARANTINE
from schemas.spark_errors import raise_input_errors
from schemas.table import NOT_ONE_OF
from udfs.sorting import sort_distinct
from udfs.xxhash import hash_like_spark

PAGE = "serp_id"
TOP_GRADE = 3.0  # of labels built from behaviour

BuildRequests = Callable[[Mapping[str, ConformedTable]], Mapping[str, CountRequest]]
CountTable = Callable[[ConformedTable, CountRequest], CountResult]


@dataclass(frozen=True)
class ValidatedInputs:
    """The inputs of a run in the shape of their contracts, and their counts."""

    tables: Mapping[str, ConformedTable]
    results: Mapping[str, CountResult]
    systems: tuple[str, ...]
    max_grade: float
    from_behaviour: bool  # whether labels are built from a log
    days: tuple[LogDay, ...] = ()  # of the log, where labels are incremental
    files: Mapping[str, PlainFiles] = field(default_factory=dict)  # that workers can read; all their rows fit

    @property
    def counts(self) -> dict[str, RowCount]:
        """The row counts of each input."""
        return {name: result.rows for name, result in self.results.items()}

    def rows(self, name: str) -> DataFrame:
        """The rows of an input that fit its contract."""
        return self.tables[name].rows

    def log_rows(self, name: str) -> LogRows:
        """The same rows of a table of the log, for functions of Arrow."""
        return LogRows(self.rows(name), self.tables[name].table, self.files.get(name))

    def select_inspected(self, name: str) -> ConformedTable:
        """The rows of an input to check for keys and references: all, or of an incremental log the days it reads.

        Events on pages of other days are left out: their impressions are not read.
        """
        days = self._inspected_days if name in LOG else ()
        if not days:
            return self.tables[name]
        rows = reduce(DataFrame.unionByName, [day.tables[name].marked_rows for day in days])
        others = self._other_days
        if name == "interactions" and others:
            pages = select_pages(others)
            rows = rows.join(pages, on=F.xxhash64("serp_id") == pages["page"], how="left_anti")
        return replace(self.tables[name], marked_rows=rows)

    def select_samples(self, name: str) -> Mapping[str, pa.Table]:
        """The sampled rows of an input by their unit, where workers read its files; without the same events."""
        samples = self.results[name].unit_samples
        if name != "interactions" or PAGE not in samples or not self._other_days:
            return samples
        events = samples[PAGE]
        pages = hash_like_spark(events[PAGE].combine_chunks().cast(pa.large_string()))
        others = find_shown(self._other_days, sort_distinct(pages))
        return {**samples, PAGE: events.filter(pa.array(~np.isin(pages, others)))}

    def count_inspected(self) -> dict[str, int]:
        """The usable rows of the days that an incremental log reads."""
        days = self._inspected_days
        return {name: sum(day.results[name].rows.kept for day in days) for name in LOG} if days else {}

    @property
    def _other_days(self) -> Sequence[LogDay]:
        days = self._inspected_days
        return [day for day in self.days if all(day is not inspected for inspected in days)]

    @property
    def _inspected_days(self) -> Sequence[LogDay]:
        """The days without committed statistics; where there are none, the last one."""
        return [day for day in self.days if day.record is None] or self.days[-1:]

    def quarantine(self) -> DataFrame:
        """The rejected rows of all inputs but an incremental log; inputs without any are not read again."""
        names = [name for name, count in self.counts.items() if count.rejected and not (self.days and name in LOG)]
        rejected = [self.tables[name].rejected_rows for name in names]
        empty = next(iter(self.tables.values())).rejected_rows.where(F.lit(False))
        return reduce(DataFrame.unionByName, rejected, empty).select(*QUARANTINE.names)


def validate_inputs(
    inputs: Mapping[str, InputTable],
    config: Config,
    build_requests: BuildRequests = lambda _: {},
    *,
    count: CountTable = count_rows,
    days: tuple[LogDay, ...] = (),
) -> ValidatedInputs:
    """Conform and count every input, and refuse one that is empty or largely unusable.

    `build_requests` says what else to compute in the pass that counts the rows. `count` counts them; for a log with
    `days`, it can add up what is known of each day.
    """
    tables: dict[str, ConformedTable] = {}
    for name, source in config.sources().items():
        with raise_input_errors(_describe_place(name, inputs[name])):
            contract = resolve_contract(name, config)
            if name == "opinions":
                contract = add_opinion_columns(
                    contract, inputs[name].raw.schema, source.columns, config.labels.opinions
                )
            tables[name] = conform(inputs[name].raw, contract, columns=source.columns)
    files = _find_files(inputs, config, tables, () if not days else LOG)
    tables |= {name: replace(tables[name], known_rows=plain.rows) for name, plain in files.items()}
    tables |= {name: replace(tables[name], known_rows=rows) for name, rows in count_new_rows(days).items()}
    requests = build_requests(tables)
    from_files = _count_files(inputs, files, requests)

    def count_input(name: str) -> CountResult:
        with raise_input_errors(_describe_place(name, inputs[name])):
            result = from_files.get(name) or count(tables[name], requests.get(name, CountRequest()))
            ignored = count_ignored(inputs[name].ignored)
            return replace(result, rows=replace(result.rows, ignored=ignored))

    counted = run_concurrently([partial(count_input, name) for name in tables])
    results: dict[str, CountResult] = dict(zip(tables, counted, strict=True))
    for name, table in tables.items():
        require_one_file_per_system(table, results[name], where=_describe_place(name, inputs[name]))
    for name, result in results.items():
        # With checks on, `usable_rows` reports rejected rows in more detail.
        limit = config.max_rejected if config.checks == "off" else 1.0
        require_usable(name, result.rows, limit, where=_describe_place(name, inputs[name]))
    systems = tuple(sorted(results["rankings" if "rankings" in results else "impressions"].systems))
    require_ranked(config, systems)
    from_behaviour = "impressions" in results or config.labels_of is not None
    return ValidatedInputs(
        tables=tables,
        results=results,
        systems=systems,
        max_grade=TOP_GRADE if from_behaviour else float(results["judgments"].max_grade or 0.0),
        from_behaviour=from_behaviour,
        days=days,
        files={name: plain for name, plain in files.items() if name in from_files},
    )


def _find_files(
    inputs: Mapping[str, InputTable],
    config: Config,
    tables: Mapping[str, ConformedTable],
    by_day: Collection[str],
) -> dict[str, PlainFiles]:
    """The files of the inputs that workers can read without Spark; those `by_day` are read day by day."""
    sources = config.sources()
    plain_files = {
        name: find_plain_files(sources[name], inputs[name], table)
        for name, table in tables.items()
        if name not in by_day
    }
    return {name: files for name, files in plain_files.items() if files is not None}


def _count_files(
    inputs: Mapping[str, InputTable], files: Mapping[str, PlainFiles], requests: Mapping[str, CountRequest]
) -> dict[str, CountResult]:
    """The counts of these inputs, of which all rows fit."""
    if not files:
        return {}
    spark = next(iter(inputs.values())).raw.sparkSession
    with raise_input_errors(", ".join(_describe_place(name, inputs[name]) for name in files)):
        return count_files(spark, files, {name: requests.get(name, CountRequest()) for name in files})


def describe_input(source: InputTable, count: RowCount) -> dict[str, Any]:
    """The record of an input in the manifest."""
    return {
        "places": source.places,
        "missing_days": source.missing_days,
        "skipped": source.skipped,
        "files": source.files,
        "digest": source.digest,
        "columns": {
            field.name: field.dataType.simpleString() for field in source.raw.schema if field.name != SOURCE_FILE
        },
        **asdict(count),
    }


def require_ranked(config: Config, systems: Sequence[str]) -> None:
    """Refuse a configured system without rankings before anything is scored."""
    configured = {"earlier": config.earlier, "compare.baseline": config.compare.baseline}
    configured |= {f"gate[{n}].candidate": condition.candidate for n, condition in enumerate(config.gate)}
    for where, name in configured.items():
        if name is not None and systems and name not in systems:
            hint = did_you_mean(name, systems)
            raise ConfigurationError(f"the system {name!r} has no rankings", where=where, hint=hint)


def _describe_place(name: str, source: InputTable) -> str:
    return f"inputs.{name}: {', '.join(source.places)}"


def require_usable(name: str, count: RowCount, max_rejected: float, *, where: str) -> None:
    """Refuse an input that is empty, or of which more than `max_rejected` of the rows are rejected."""
    if not count.read and count.ignored:
        reasons = ", ".join(f"{reason} ({rows:,})" for reason, rows in count.ignored.items())
        hint = f"{reasons}; check path, and the options of the format"
        raise InputError(f"none of the {sum(count.ignored.values()):,} rows is for {name}", where=where, hint=hint)
    if not count.read:
        raise InputError(f"{name} is empty", where=where, hint="check path, where and --date")
    reasons = ", ".join(f"{reason} ({rows:,})" for reason, rows in count.rejected.items())
    if not count.kept:
        hint = f"{reasons}; {_suggest_values(count.rejected) or 'check format and columns, `assay inspect` shows both'}"
        raise InputError(f"none of the {count.read:,} rows of {name} can be used", where=where, hint=hint)
    if count.read - count.kept > max_rejected * count.read:
        raise DataQualityError(
            f"{count.read - count.kept:,} of {count.read:,} rows of {name} cannot be used, "
            f"more than max_rejected = {max_rejected:g} allows",
            where=where,
            hint=f"{reasons}. Fix the data, or raise max_rejected",
        )


def _suggest_values(rejected: Mapping[str, int]) -> str:
    """How to map the values of a column that the contract does not know; empty where no row was rejected for them."""
    for reason in rejected:
        column, unknown, known = reason.partition(f": {NOT_ONE_OF} ")
        if unknown:
            first = known.partition(",")[0]
            return f"map its values, as in columns: {{{column}: {{from: NAME, values: {{theirs: {first}}}}}}}"
    return ""
