"""What a run is about to compute, known before Spark starts: its inputs on local disks, its key, committed work."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.config.model import Config
from pipelines.inputs.day_files import measure_spark_bytes
from pipelines.inputs.listing import FileListing, list_locally
from pipelines.warehouse.run_key import build_run_key
from pipelines.warehouse.runs import Manifest, find_labels_run, list_committed
from pipelines.warehouse.storage import Storage
from schemas.errors import ConfigurationError

logger = logging.getLogger(__name__)

SMALL_BYTES = 16 * 2**20  # of inputs for which a run of few tasks in one process is faster
LIST_ROWS = 16  # rows of a list and its labels, at least, for one row of query metrics


@dataclass(frozen=True)
class Outcome:
    """A committed run, and whether it was committed by an earlier call."""

    manifest: Manifest
    reused: bool


@dataclass(frozen=True)
class Work:
    """A computation: its configuration, the settings that its key depends on, and the run whose labels it uses."""

    config: Config
    settings: Mapping[str, Any]
    labels_run: str | None = None

    def build_key(self, date: dt.date, digests: Mapping[str, str]) -> str:
        """Return the key of a run on inputs with these digests."""
        inputs = digests if self.labels_run is None else {**digests, "labels": self.labels_run}
        return build_run_key(date, self.settings, inputs)

    def find_committed(self, date: dt.date, key: str) -> Outcome | None:
        """Find a committed run of the same date, configuration, inputs and code."""
        for manifest in list_committed(Storage(self.config.warehouse), date=date.isoformat()):
            if manifest.key == key:
                logger.debug("run %s has the same key %s", manifest.run, key)
                return Outcome(manifest, reused=True)
        return None


def define_evaluation(config: Config) -> Work:
    """Define what `evaluate` computes."""
    labels_run = None if config.labels_of is None else find_labels_run(Storage(config.warehouse), config.labels_of)
    return Work(config, config.dump_settings(), labels_run)


def define_labelling(config: Config) -> Work:
    """Define what `label` computes."""
    if config.inputs.impressions is None:
        hint = "set inputs.impressions and inputs.interactions"
        raise ConfigurationError("there is no log to build labels from", where="inputs", hint=hint)
    log = config.select_log()
    return Work(log, {"labels alone": log.dump_settings()})


@dataclass(frozen=True)
class LocalInputs:
    """The files of a run whose inputs are all on local disks, and the committed run of the same work, if any."""

    listings: Mapping[str, FileListing]
    committed: Outcome | None
    spark_bytes: int  # of the files whose rows pass through Spark

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(listing.bytes for listing in self.listings.values())


def list_inputs(config: Config, date: dt.date) -> dict[str, FileListing] | None:
    """List the files of all inputs without Spark; None where Spark is needed to list them."""
    if not (config.spark.master or "local").startswith("local") or "spark.hadoop.fs.defaultFS" in config.spark.settings:
        return None
    listings: dict[str, FileListing] = {}
    for name, source in config.sources().items():
        listing = list_locally(name, source, date)
        if listing is None:
            return None
        listings[name] = listing
    return listings


def look_ahead(work: Work, date: dt.date) -> LocalInputs | None:
    """List the inputs without Spark, and look for committed work; None where Spark is needed to list them."""
    listings = list_inputs(work.config, date)
    if listings is None:
        return None
    spark_bytes = measure_spark_bytes(work.config, date, listings)
    if _has_plain_lists(work.config):
        spark_bytes //= LIST_ROWS
    if work.config.output.namespace is not None:  # only Spark can tell whether a committed run is in the catalog
        return LocalInputs(listings, None, spark_bytes)
    key = work.build_key(date, {name: listing.digest for name, listing in listings.items()})
    return LocalInputs(listings, work.find_committed(date, key), spark_bytes)


def _has_plain_lists(config: Config) -> bool:
    """Whether workers read and score all inputs, so that Spark has one row per list, as far as the settings say."""
    sources, judged = config.sources(), {"rankings", "judgments", "queries"}
    needs_others = config.labels_of is not None or config.label_draws or any(s.metric.needs for s in config.specs)
    return set(sources) <= judged and all(source.is_plain for source in sources.values()) and not needs_others
