"""The days of a log that are read one by one: the files of each, and what its statistics are computed from."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pipelines.config.model import Config
from pipelines.inputs.contracts import resolve_contract
from pipelines.inputs.count import CountResult
from pipelines.inputs.day_files import LOG, list_day, select_log_sources
from pipelines.inputs.listing import FileListing, list_with_spark, window_dates
from pipelines.inputs.log_rows import LogRows
from pipelines.inputs.plain_files import PlainFiles, find_plain_files
from pipelines.inputs.read import InputTable, read_day
from pipelines.inputs.settings import InputSource
from pipelines.labels.propensity.registry import ESTIMATORS
from pipelines.warehouse.code_version import hash_code
from pipelines.warehouse.day_records import DayRecord, find_day
from pipelines.warehouse.label_days import read_bundles_of_days
from pipelines.warehouse.run_key import hash_json
from pipelines.warehouse.storage import Storage
from schemas.conform import ConformedTable, conform
from schemas.label_days import BY_PAGE, Kind
from udfs.ragged import Ints
from udfs.spark.bundles import read_bundles, unpack_rows
from udfs.spark.worker import run_in_worker


@dataclass(frozen=True)
class LogDay:
    """One day of a log: its files, and the record of its statistics where they are committed."""

    date: dt.date
    key: str
    record: DayRecord | None
    listings: Mapping[str, FileListing]
    window: Mapping[str, InputTable]
    config: Config
    spark: SparkSession
    results: dict[str, CountResult] = field(default_factory=dict)  # by input; filled when the rows are counted
    fitting: dict[str, PlainFiles] = field(default_factory=dict)  # likewise: the files all of whose rows fit

    @cached_property
    def inputs(self) -> Mapping[str, InputTable]:
        """The tables of the day as they were read."""
        return {name: self._read(name, source) for name, source in select_log_sources(self.config).items()}

    @cached_property
    def tables(self) -> Mapping[str, ConformedTable]:
        """The rows of the day, conformed to their contracts."""
        return {
            name: conform(self.inputs[name].raw, resolve_contract(name, self.config), columns=source.columns)
            for name, source in select_log_sources(self.config).items()
        }

    @cached_property
    def files(self) -> Mapping[str, PlainFiles]:
        """The files of the day that workers can read without Spark, by input."""
        plain_files = {
            name: find_plain_files(source, self.inputs[name], self.tables[name])
            for name, source in select_log_sources(self.config).items()
            if self.listings[name].files
        }
        return {name: files for name, files in plain_files.items() if files is not None}

    def log_rows(self, name: str) -> LogRows:
        """The rows of the day that fit, for functions of Arrow."""
        return LogRows(self.tables[name].rows, self.tables[name].table, self.fitting.get(name))

    def _read(self, name: str, source: InputSource) -> InputTable:
        window = self.window[name]
        return replace(window, raw=read_day(self.spark, name, source, self.date, self.listings[name], window))


def list_log_days(
    spark: SparkSession, config: Config, date: dt.date, inputs: Mapping[str, InputTable]
) -> tuple[LogDay, ...]:
    """The days of the window with their files and committed statistics; none where labels are not incremental."""
    sources = select_log_sources(config)
    if not config.labels.incremental or not sources:
        return ()
    storage, shared = Storage(config.warehouse), describe_day_settings(config, inputs)
    days = []
    for day in window_dates(date, sources["impressions"].days):
        listings = {name: _list_day(spark, name, source, day) for name, source in sources.items()}
        key = build_day_key(day, shared, {name: listing.digest for name, listing in listings.items()})
        record = find_day(storage, day.isoformat(), key)
        days.append(LogDay(day, key, record, listings, inputs, config, spark))
    return tuple(days)


def count_new_rows(days: Sequence[LogDay]) -> dict[str, int]:
    """The rows of the days that are read, by input, where the files of all of them say how many they have."""
    new = [day for day in days if day.record is None]
    return {name: sum(day.files[name].rows for day in new) for name in LOG if new and all(name in d.files for d in new)}


def build_day_key(day: dt.date, settings: Mapping[str, Any], digests: Mapping[str, str]) -> str:
    """Hash everything that the statistics of a day depend on: its date, its files, the settings and the code."""
    return hash_json([day.isoformat(), settings, digests, hash_code()])[:12]


def describe_day_settings(config: Config, inputs: Mapping[str, InputTable]) -> dict[str, Any]:
    """The settings that the statistics of a day depend on; not those of curves and grades, which follow later."""
    labels, sources = config.labels, select_log_sources(config)
    schemas = {name: inputs[name].file_schema for name in sources}
    return {
        "inputs": {name: source.model_dump(mode="json", exclude={"path"}) for name, source in sources.items()},
        "columns": {name: None if schema is None else schema.simpleString() for name, schema in schemas.items()},
        "contracts": {name: resolve_contract(name, config).names for name in sources},
        "contexts": labels.contexts,
        "denoise": labels.denoise.model_dump(mode="json"),
        "attribution": labels.attribution.model_dump(mode="json"),
        "history": ESTIMATORS.require(labels.propensity.estimator).history,
        "checks": config.checks,
    }


def select_pages(days: Sequence[LogDay]) -> DataFrame:
    """The pages that committed days show, by their hashes in the column `page`."""
    return unpack_rows(_read_pages(days), "page bigint, shown boolean").where("shown").select("page")


def _read_pages(days: Sequence[LogDay]) -> DataFrame:
    window, records = days[0], [day.record for day in days if day.record is not None]
    return read_bundles_of_days(window.spark, Storage(window.config.warehouse), records, BY_PAGE.name, Kind.PAGES)


def find_shown(days: Sequence[LogDay], pages: Ints) -> Ints:
    """Which of these pages, by their hashes, committed days show."""
    if not days or not len(pages):
        return np.zeros(0, dtype=np.int64)

    def select(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for table in read_bundles([batch]).values():
                shown = table["page"].filter(table["shown"])
                yield from pa.table({"page": shown.filter(pc.is_in(shown, pa.array(pages)))}).to_batches()

    shown = _read_pages(days).mapInArrow(run_in_worker(select), "page bigint").toArrow()
    return np.asarray(shown["page"].to_numpy(), dtype=np.int64)


def _list_day(spark: SparkSession, name: str, source: InputSource, day: dt.date) -> FileListing:
    one = source.model_copy(update={"days": 1})
    return list_day(name, source, day) or list_with_spark(spark, name, one, day, required=False)
