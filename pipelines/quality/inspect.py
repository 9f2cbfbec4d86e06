"""Inspect the data of a run: its inputs before they are used, and its outputs before they are committed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from pipelines.config.model import Config
from pipelines.inputs.count import Aggregate, CountRequest
from pipelines.inputs.read import InputTable
from pipelines.inputs.systems import find_lost_systems
from pipelines.inputs.validate import ValidatedInputs, describe_input
from pipelines.quality.expectations.data_docs import render_data_docs
from pipelines.quality.expectations.suite import ContractSuites, SuiteResult, check_usable_rows
from pipelines.quality.output_figures import collect_output_figures
from pipelines.quality.past_figures import read_past_figures
from pipelines.quality.reference_figures import SAMPLED_SHARE, collect_reference_figures
from pipelines.quality.reference_samples import Samples, request_samples
from pipelines.quality.registry import CHECKS, Check, Figures, Finding, QualityFacts, format_percent
from pipelines.quality.results import Result, build_refusal, build_result, format_rejected_row, summarise_results
from pipelines.quality.row_figures import (
    build_aggregates,
    collect_row_figures,
    count_distinct_ids,
    list_requested_days,
    split_by_day,
)
from pipelines.warehouse.runs import table_path
from pipelines.warehouse.storage import Storage
from schemas.conform import ConformedTable
from schemas.outputs import OUTPUTS, VALIDATION_RESULTS
from udfs.spark.file_counts import FileRequest

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult

    from pipelines.warehouse.attempt import Attempt

DOCS = "data_docs"


@dataclass
class Inspection:
    """The checks of one run: their results so far, and the figures they are based on."""

    config: Config
    date: dt.date
    past: list[dict[str, dict[str, Any]]] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    _expectation_results: dict[str, tuple[ExpectationValidationResult, ...]] = field(default_factory=dict)
    _suites: ContractSuites = field(default_factory=ContractSuites)

    @classmethod
    def start(cls, config: Config, storage: Storage, date: dt.date) -> Inspection:
        """An inspection with the figures of earlier runs of the same inputs."""
        if config.checks == "off":
            return cls(config, date)
        inputs = config.dump_redacted()["inputs"]
        return cls(config, date, past=read_past_figures(storage, inputs, date, limit=config.quality.runs))

    def request_counts(self, tables: Mapping[str, ConformedTable]) -> dict[str, CountRequest]:
        """The aggregates and samples to compute in the pass that counts the rows of each input."""
        if self.config.checks == "off":
            return {}
        full = self.config.checks == "full"
        samples = request_samples(tables, target=self.config.quality.sample_rows) if full else Samples()
        requests = {}
        for name, table in tables.items():
            source = self.config.sources()[name]
            aggregates: dict[Hashable, Aggregate] = {}
            aggregates.update(self._suites.request_counts(table.table, table.cast_rows).items())
            aggregates.update(build_aggregates(table, source, self.date).items())
            split = split_by_day(table, source, self.date)
            requests[name] = CountRequest(
                aggregates, samples.of_rows.get(name), split, samples.of_files.get(name, FileRequest())
            )
        return requests

    def check_inputs(self, inputs: Mapping[str, InputTable], validated: ValidatedInputs) -> None:
        """Check every input: its rows against the contract, then the declared checks."""
        if self.config.checks == "off":
            return
        figures = {name: self._check_rows(table, validated) for name, table in validated.tables.items()}
        counts = validated.counts
        if "impressions" in figures and "interactions" in figures:
            figures["interactions"]["shown"] = counts["impressions"].kept
        if self.config.checks == "full":
            tables = {name: validated.select_inspected(name) for name in validated.tables}
            kept = {name: count.kept for name, count in counts.items()} | validated.count_inspected()
            samples = {name: result.sample for name, result in validated.results.items()}
            target = self.config.quality.sample_rows
            of_files = {name: validated.select_samples(name) for name in validated.tables}
            references = collect_reference_figures(tables, kept, samples, of_files, target=target)
            for name, reference_figures in references.items():
                figures[name] |= reference_figures
        records = {name: describe_input(inputs[name], counts[name]) for name in figures}
        self._run_declared_checks(figures, {name: records[name] | own for name, own in figures.items()})

    def check_outputs(self, outputs: Mapping[str, DataFrame]) -> None:
        """Check the tables that the run has written, before they are committed."""
        if self.config.checks != "full":
            return
        for name, rows in outputs.items():
            if name in OUTPUTS and name != "quarantine":
                self._add_suite_result(name, self._suites.validate(OUTPUTS[name], rows, tolerated=0.0))
        figures = collect_output_figures(outputs)
        self._run_declared_checks(figures, figures)

    def refuse_if_failed(self, attempt: Attempt, facts: Mapping[str, Any]) -> None:
        """Stop the run if a check failed with severity error; only the results are published then."""
        error = build_refusal(self.results, f"run {attempt.run} of {attempt.dt}, which is not published")
        if error is not None:
            summary = self.publish_results(attempt)
            error.details = [*error.details, f"Data Docs: {attempt.storage.path(summary['docs'])}/index.html"]
            attempt.refuse(VALIDATION_RESULTS.name, conventions={}, checks=summary, **facts)
            raise error

    def publish_results(self, attempt: Attempt) -> dict[str, Any]:
        """Write the results as a table and as Data Docs beside the run; returns the summary for the manifest."""
        if not self.results:
            return self.summarise()
        attempt.write_rows(VALIDATION_RESULTS, map(asdict, self.results))
        folder = table_path(DOCS, attempt.dt, attempt.run)
        for name, content in self.render_pages(f"{attempt.dt}, run {attempt.run}"):
            attempt.storage.put(f"{folder}/{name}", content)
        return self.summarise() | {"docs": folder}

    def summarise(self) -> dict[str, Any]:
        """The summary for the manifest: the results, and the figures for later runs to compare with."""
        return summarise_results(self.config.checks, self.results) | ({"figures": self.figures} if self.figures else {})

    def render_pages(self, title: str) -> list[tuple[str, str]]:
        """The results as Data Docs: names and contents of the pages."""
        return list(render_data_docs(self.results, self._expectation_results, title=title))

    def _check_rows(self, table: ConformedTable, validated: ValidatedInputs) -> dict[str, Any]:
        """Check the counts of an input, over all rows after the cast, against its contract; return its figures."""
        name, tolerated = table.table.name, self.config.max_rejected
        result = validated.results[name]
        suite = self._suites.validate_counts(table.table, table.cast_rows, result.values, tolerated=tolerated)
        inspected = validated.select_inspected(name)
        rejected = inspected.rejected_rows.limit(3).collect() if result.rows.rejected else []
        columns = self.config.sources()[name].columns
        sample = [format_rejected_row(row["reason"], row["row"], columns) for row in rejected]
        usable = check_usable_rows(name, result.rows, tolerated=tolerated, sample=sample)
        self._add_suite_result(name, replace(suite, results=(usable, *suite.results)))
        days = list_requested_days(self.config.sources()[name], self.date)
        ranked = "system" in table.source_columns and result.rows.rejected
        lost = {"lost_systems": find_lost_systems(inspected)} if ranked else {}
        return collect_row_figures(result.values, days) | count_distinct_ids(inspected, result.sketches) | lost

    def _add_suite_result(self, name: str, suite: SuiteResult) -> None:
        self.results += suite.results
        self._expectation_results[name] = suite.expectation_results

    def _run_declared_checks(self, figures: dict[str, dict[str, Any]], tables: Mapping[str, Figures]) -> None:
        """Run the declared checks on these tables, and keep their figures for the manifest."""
        self.figures |= figures
        facts = QualityFacts(self.date, tables, self.past)
        for name, check in CHECKS.items():
            settings = self.config.quality.for_check(name)
            if settings.severity != "ignore":
                for finding in check.run(facts, settings.threshold):
                    noted = _note_sampling(check, finding, tables[finding.table])
                    self.results.append(build_result(check, noted, settings.severity))


def _note_sampling(check: Check, finding: Finding, figures: Figures) -> Finding:
    """The finding, with the share of the rows that it is based on where they were sampled."""
    share = figures.get(SAMPLED_SHARE) if check.sampled else None
    if share is None:
        return finding
    return replace(finding, observed=f"{finding.observed}, in a sample of {format_percent(share)} of the rows")
