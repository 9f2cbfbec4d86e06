"""Inspect the data of a run: its inputs before they are used, and its results before they are committed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from pipelines.check import Asked, Checked, Rider
from pipelines.config import Config
from pipelines.quality.checks import checks
from pipelines.quality.data_docs import pages
from pipelines.quality.figures import asked_days, distinct, figures, riders
from pipelines.quality.history import past
from pipelines.quality.outcomes import outcomes
from pipelines.quality.registry import Facts, percent
from pipelines.quality.relations import LOOKED_AT, SLACK, drawn_by_query, relations
from pipelines.quality.results import Result, refusal, result_of, summary
from pipelines.quality.suite import Suites, Validated, usable
from pipelines.read import Input
from pipelines.storage import Storage
from schemas.conform import Conformed
from schemas.outputs import OUTPUTS, VALIDATION_RESULTS

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult

    from pipelines.publish import Attempt

DOCS = "data_docs"


@dataclass
class Inspection:
    """What was looked at so far, and what was found."""

    config: Config
    date: dt.date
    history: list[dict[str, dict[str, Any]]] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    _given: dict[str, tuple[ExpectationValidationResult, ...]] = field(default_factory=dict)
    _figures: dict[str, dict[str, Rider]] = field(default_factory=dict)
    _suites: Suites = field(default_factory=Suites)

    @classmethod
    def begin(cls, config: Config, storage: Storage, date: dt.date) -> Inspection:
        """An inspection that knows what earlier runs of the same inputs were like."""
        if config.checks == "off":
            return cls(config, date)
        return cls(config, date, past(storage, config.published()["inputs"], date, most=config.quality.runs))

    def ask(self, tables: Mapping[str, Conformed]) -> dict[str, Asked]:
        """What is to be counted over all rows of the inputs, and drawn from them, while they are counted anyway."""
        if self.config.checks == "off":
            return {}
        most = self.config.quality.sample_rows
        drawn = drawn_by_query(tables, most=most) if self.config.checks == "full" else {}
        for name, table in tables.items():
            self._figures[name] = riders(table, self.config.sources()[name], self.date)
        return {
            name: Asked(
                [*map(Rider, self._suites.ask(table.table, table.cast)), *self._figures[name].values()],
                drawn.get(name, {}),
                SLACK * most,
            )
            for name, table in tables.items()
        }

    def inputs(self, inputs: Mapping[str, Input], checked: Checked) -> None:
        """Look at every input: its rows by its contract, then what the declared checks want to know."""
        if self.config.checks == "off":
            return
        known = {name: self._counted(table, checked) for name, table in checked.tables.items()}
        if "impressions" in known and "interactions" in known:
            known["interactions"]["shown"] = checked.counts["impressions"].kept
        if self.config.checks == "full":
            kept = {name: count.kept for name, count in checked.counts.items()}
            most = self.config.quality.sample_rows
            for name, found in relations(checked.tables, kept, checked.drawn, most=most).items():
                known[name] |= found
        self._declared(known, {name: record(inputs[name], checked, name) | of for name, of in known.items()})

    def _counted(self, table: Conformed, checked: Checked) -> dict[str, Any]:
        """Hold the counts of an input, of all rows as they were cast, against its contract; the others are figures."""
        name, most = table.table.name, self.config.max_rejected
        count, ridden, figured = checked.counts[name], checked.ridden[name], self._figures[name]
        asked = len(ridden) - len(figured)
        found = self._suites.tell(table.table, table.cast, ridden[:asked], tolerated=most)
        rejected = table.rejected.limit(3).collect() if count.rejected else []
        sample = [f"{row['reason']}: {row['row']}" for row in rejected]
        of_all = usable(name, count.read, count.rejected, tolerated=most, sample=sample)
        self._take(name, replace(found, results=(of_all, *found.results)))
        days = asked_days(self.config.sources()[name], self.date)
        return figures(dict(zip(figured, ridden[asked:], strict=True)), days) | distinct(table)

    def outputs(self, made: Mapping[str, DataFrame]) -> None:
        """Look at the tables that the run has made, before they are committed."""
        if self.config.checks != "full":
            return
        for name, rows in made.items():
            if name in OUTPUTS and name != "quarantine":
                self._take(name, self._suites.validate(OUTPUTS[name], rows, tolerated=0.0))
        known = outcomes(made)
        self._declared(known, known)

    def _take(self, name: str, validated: Validated) -> None:
        self.results += validated.results
        self._given[name] = validated.given

    def _declared(self, figures: dict[str, dict[str, Any]], tables: Mapping[str, Mapping[str, Any]]) -> None:
        """Run the declared checks on all that is known of these tables, and keep what was gathered for them."""
        self.figures |= figures
        facts = Facts(self.date, tables, self.history)
        for name, check in checks().items():
            settings = self.config.quality.of(name)
            if settings.severity != "ignore":
                for finding in check.run(facts, settings.threshold):
                    part = tables[finding.table].get(LOOKED_AT) if check.drawn else None
                    of_part = "" if part is None else f", in {percent(part)} of the rows, drawn at random"
                    told = replace(finding, observed=finding.observed + of_part)
                    self.results.append(result_of(check, told, settings.severity))

    def facts(self) -> dict[str, Any]:
        """What the manifest keeps."""
        return summary(self.config.checks, self.results) | ({"figures": self.figures} if self.figures else {})

    def publish(self, attempt: Attempt, spark: SparkSession) -> dict[str, Any]:
        """Write the results as a table and as pages beside the run; what the manifest keeps is returned."""
        if not self.results:
            return self.facts()
        attempt.write(VALIDATION_RESULTS.name, self.table(spark))
        folder = f"{DOCS}/dt={attempt.dt}/run={attempt.run}"
        for name, content in self.pages(f"{attempt.dt}, run {attempt.run}"):
            attempt.storage.put(f"{folder}/{name}", content)
        return self.facts() | {"docs": folder}

    def table(self, spark: SparkSession) -> DataFrame:
        """The results as `validation_results`."""
        rows = [tuple(asdict(result)[name] for name in VALIDATION_RESULTS.names) for result in self.results]
        return spark.createDataFrame(rows, VALIDATION_RESULTS.struct()).coalesce(1)

    def pages(self, title: str) -> list[tuple[str, str]]:
        """The results as Data Docs."""
        return list(pages(self.results, self._given, title=title))

    def settle(self, attempt: Attempt, spark: SparkSession, facts: Mapping[str, Any]) -> None:
        """Stop the run where something must not become a number: all that is published is what was found."""
        error = refusal(self.results, f"run {attempt.run} of {attempt.dt}, which is not published")
        if error is not None:
            found = self.publish(attempt, spark)
            error.details = [*error.details, f"Data Docs: {attempt.storage.path(found['docs'])}/index.html"]
            attempt.refuse(VALIDATION_RESULTS.name, conventions={}, checks=found, **facts)
            raise error


def record(source: Input, checked: Checked, name: str) -> dict[str, Any]:
    """What was read of an input, as the manifest keeps it and the checks see it."""
    return {
        "places": source.places,
        "missing_days": source.missing_days,
        "files": source.files,
        "digest": source.digest,
        "columns": {field.name: field.dataType.simpleString() for field in source.raw.schema},
        **asdict(checked.counts[name]),
    }
