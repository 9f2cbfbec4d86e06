"""The files of single days of a log, listed without Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from pipelines.config.model import Config
from pipelines.inputs.listing import FileListing, list_locally, window_dates
from pipelines.inputs.settings import InputSource
from pipelines.warehouse.code_version import hash_code
from pipelines.warehouse.day_records import list_days
from pipelines.warehouse.storage import Storage

LOG = ("impressions", "interactions")


def select_log_sources(config: Config) -> dict[str, InputSource]:
    """The two tables of a log, if the run reads one."""
    return {name: source for name, source in config.sources().items() if name in LOG}


def list_day(name: str, source: InputSource, day: dt.date) -> FileListing | None:
    """List the files of one day; None where only Spark can tell what its path leads to."""
    return list_locally(name, source.model_copy(update={"days": 1}), day, required=False)


def describe_sources(listings: Mapping[str, FileListing]) -> dict[str, str]:
    """What the statistics of a day were computed from, as far as that is known before Spark starts."""
    return {name: listing.digest for name, listing in listings.items()} | {"code": hash_code()}


def measure_spark_bytes(config: Config, date: dt.date, listings: Mapping[str, FileListing]) -> int:
    """The bytes of the files whose rows pass through Spark: not those of a log that workers read, or of kept days.

    An estimate before Spark starts: the rows of a plain log may turn out not to fit, and kept days are recognised by
    their files and the code, not by the settings.
    """
    sources = select_log_sources(config)
    plain = {name for name, source in sources.items() if source.is_plain}
    if len(plain) == len(sources) or not config.labels.incremental:
        return sum(listing.bytes for name, listing in listings.items() if name not in plain)
    size = sum(listing.bytes for name, listing in listings.items() if name not in sources)
    if sources:
        storage = Storage(config.warehouse)
        for day in window_dates(date, sources["impressions"].days):
            listed = {name: list_day(name, source, day) for name, source in sources.items()}
            files = {name: listing for name, listing in listed.items() if listing is not None}
            described = describe_sources(files)
            if all(record.facts.get("sources") != described for record in list_days(storage, day.isoformat())):
                size += sum(listing.bytes for listing in files.values())
    return size
