"""The evaluation: one way through, from inputs to a committed run."""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.aggregate import aggregate
from pipelines.check import Checked, check
from pipelines.complaints import input_errors
from pipelines.config import Config
from pipelines.coverage import coverage
from pipelines.publish import Attempt
from pipelines.read import Input, read
from pipelines.runs import Manifest, code_version, committed, digest, run_key
from pipelines.score import Evidence, score
from pipelines.storage import Storage
from schemas.errors import DataQualityError
from udfs.conventions import Conventions

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """A committed run, and whether this call did the work or found it done."""

    manifest: Manifest
    found_done: bool


@dataclass
class Stages:
    """The stages that ran, with their seconds."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        logger.debug("stage %s begins", name)
        yield
        self.seconds[name] = round(time.monotonic() - start, 3)
        logger.info("stage=%s seconds=%.1f", name, self.seconds[name])


def evaluate(spark: SparkSession, config: Config, date: dt.date, *, force: bool = False) -> Outcome:
    """Evaluate the configured systems for `date` and publish the result.

    Work that is already committed is found and returned; `force` does it again as a new run.
    """
    stages = Stages()
    storage = Storage(config.warehouse)
    with stages.stage("read"):
        inputs = {name: read(spark, name, source, date) for name, source in config.sources().items()}
        key = run_key(date, config.settings(), {name: source.digest for name, source in inputs.items()})
    done = [manifest for manifest in committed(storage, date=date.isoformat()) if manifest.key == key]
    if done and not force:
        return Outcome(done[0], found_done=True)

    with Attempt(storage, date, key) as attempt, input_errors("while evaluating"):
        with stages.stage("check"):
            checked = check(inputs, config)
            conventions = resolved(config.conventions, checked)
            attempt.write("quarantine", checked.quarantine())
        with stages.stage("score"):
            listed = [spec for spec in config.specs if spec.metric.scope != "system"]
            query_metrics = attempt.write(
                "query_metrics",
                score(
                    checked.rows("rankings"),
                    evidence(checked, config),
                    systems=checked.systems,
                    segments=config.segment_columns,
                    specs=listed,
                    conventions=conventions,
                ),
            )
            refuse(query_metrics, conventions)
        with stages.stage("aggregate"):
            means = aggregate(query_metrics, segments=config.segments, specs=listed)
            whole = [spec for spec in config.specs if spec.metric.scope == "system"]
            if whole:
                shown, catalogue = checked.rows("rankings"), checked.rows("documents")
                means = means.unionByName(coverage(shown, catalogue, specs=whole, conventions=conventions))
            attempt.write("segment_metrics", means.coalesce(1))
        manifest = attempt.commit(
            seconds=stages.seconds,
            config=config.published(),
            config_hash=digest(config.settings())[:12],
            code=code_version(),
            spark=spark.version,
            inputs={name: _record(inputs[name], checked, name) for name in inputs},
            systems=checked.systems,
            conventions=conventions.model_dump(),
        )
    return Outcome(manifest, found_done=False)


def evidence(checked: Checked, config: Config) -> Evidence:
    """The tables that lists are scored by, as far as they are configured."""
    given = {name: checked.rows(name) for name in ("queries", "documents", "decisions") if name in checked.tables}
    return Evidence(checked.rows("judgments"), **given, earlier=config.earlier)


def resolved(conventions: Conventions, checked: Checked) -> Conventions:
    """The conventions with what depends on the data filled in, as they are stored with the numbers."""
    unjudged = "zero" if conventions.unjudged == "auto" else conventions.unjudged
    top = conventions.max_grade or (checked.max_grade if checked.max_grade > 0 else None)
    return conventions.model_copy(update={"unjudged": unjudged, "max_grade": top})


def refuse(query_metrics: DataFrame, conventions: Conventions) -> None:
    """Stop where the conventions allow neither ties nor duplicates and the lists have some."""
    for column, forbidden in {"tied": conventions.ties, "duplicates": conventions.duplicates}.items():
        if forbidden != "error":
            continue
        found = query_metrics.where(F.col(column) > 0).select("system", "query_id", column)
        first = found.orderBy("system", "query_id").first()
        if first is not None:
            raise DataQualityError(
                f"{found.count():,} lists have {column} documents, first system {first['system']!r}, "
                f"query {first['query_id']!r}",
                hint=f"mend the rankings, or choose another conventions.{'ties' if column == 'tied' else column}",
            )


def _record(source: Input, checked: Checked, name: str) -> dict[str, object]:
    return {
        "places": source.places,
        "missing_days": source.missing_days,
        "files": source.files,
        "digest": source.digest,
        "columns": {field.name: field.dataType.simpleString() for field in source.raw.schema},
        **asdict(checked.counts[name]),
    }
