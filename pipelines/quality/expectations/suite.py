"""Run the contracts as suites of Great Expectations: one bundled pass per table, and a second one for what failed.

The counts of an input's suite are computed in the pass that counts its rows: `request_counts` says what to count, and
`validate_counts` runs the suite on the counts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipelines.inputs.count import FittingRows, RowAggregate, RowCount
from pipelines.quality.expectations.count_sheet import CountSheet, MetricKey
from pipelines.quality.expectations.rules import RULES, USABLE
from pipelines.quality.results import Result, format_samples
from schemas.redact import cut_text
from schemas.table import Table

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult
    from pyspark.sql import DataFrame

    from pipelines.quality.expectations.engine import CountingDatasource

# Of the values that fail, three are shown.
_DETAILS = {"result_format": "SUMMARY", "partial_unexpected_count": 3}


@dataclass(frozen=True)
class SuiteResult:
    """The results of one suite: ours, and those of Great Expectations for the Data Docs."""

    results: tuple[Result, ...]
    expectation_results: tuple[ExpectationValidationResult, ...]


@dataclass
class ContractSuites:
    """Runs suites in one ephemeral context, which is created with the first one."""

    _runs: int = field(default=0, init=False)
    _sheets: dict[str, CountSheet] = field(default_factory=dict, init=False)

    @cached_property
    def _source(self) -> CountingDatasource:
        import great_expectations as gx
        from great_expectations.data_context.types.base import (
            DataContextConfig,
            InMemoryStoreBackendDefaults,
            ProgressBarsConfig,
        )

        from pipelines.quality.expectations.engine import CountingDatasource

        settings = DataContextConfig(
            store_backend_defaults=InMemoryStoreBackendDefaults(),
            progress_bars=ProgressBarsConfig(globally=False),
            analytics_enabled=False,
        )
        sources: Any = gx.get_context(mode="ephemeral", project_config=settings).data_sources
        # By default Great Expectations persists every DataFrame and never unpersists it.
        source = sources.add_counting_spark("assay", persist=False)
        assert isinstance(source, CountingDatasource)
        return source

    def request_counts(self, table: Table, rows: DataFrame) -> dict[MetricKey, RowAggregate]:
        """The aggregates over all `rows` that the suite of this contract needs; no job is started."""
        self._sheets[table.name] = sheet = CountSheet(table.name)
        self._run(table.name, rows, table.expectations(), "BOOLEAN_ONLY", sheet)
        return {key: RowAggregate(column, fitting=_find_fitting(key)) for key, column in sheet.requested.items()}

    def validate_counts(
        self, table: Table, rows: DataFrame, values: Mapping[Hashable, Any], *, tolerated: float
    ) -> SuiteResult:
        """Run the suite of this contract on the values of the requested aggregates."""
        sheet = self._sheets[table.name]
        sheet.counts = {key: values[key] for key in sheet.requested}
        first = self._run(table.name, rows, table.expectations(), "BOOLEAN_ONLY", sheet)
        return self._add_details(table, rows, first, tolerated)

    def validate(self, table: Table, rows: DataFrame, *, tolerated: float) -> SuiteResult:
        """Run the suite of this contract on `rows`; a failing share above `tolerated` is an error, else a warning."""
        first = self._run(table.name, rows, table.expectations(), "BOOLEAN_ONLY")
        return self._add_details(table, rows, first, tolerated)

    def _add_details(
        self, table: Table, rows: DataFrame, first: list[ExpectationValidationResult], tolerated: float
    ) -> SuiteResult:
        """Run the failed expectations again, for their counts and samples."""
        failed = [_identify(result) for result in first if not result.success]
        if failed:
            again = [e for e in table.expectations() if (e["type"], str(e["kwargs"]["column"])) in failed]
            details = {_identify(result): result for result in self._run(table.name, rows, again, _DETAILS)}
            first = [details.get(_identify(result), result) for result in first]
        return SuiteResult(tuple(_build_result(table, result, tolerated) for result in first), tuple(first))

    def _run(
        self,
        name: str,
        rows: DataFrame,
        expectations: Sequence[dict[str, Any]],
        result_format: Any,
        sheet: CountSheet | None = None,
    ) -> list[ExpectationValidationResult]:
        from great_expectations.core import ExpectationSuite
        from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

        self._runs += 1
        asset = self._source.add_dataframe_asset(f"{name} {self._runs}")
        batch = asset.add_batch_definition_whole_dataframe("all rows").get_batch({"dataframe": rows})
        suite = ExpectationSuite(name=name, expectations=[ExpectationConfiguration(**e) for e in expectations])
        engine: Any = self._source.get_execution_engine()
        engine.sheet = sheet
        return list(batch.validate(suite, result_format=result_format).results)


def check_usable_rows(table: str, count: RowCount, *, tolerated: float, sample: Iterable[str]) -> Result:
    """Whether enough rows of an input fit its contract, from the counts of rejected rows."""
    failed = count.read - count.kept
    reasons = ", ".join(f"{reason} ({rows:,})" for reason, rows in count.rejected.items())
    return Result(
        table=table,
        check=USABLE.name,
        column=None,
        severity="warn" if 0 < failed <= tolerated * count.read else "error",
        passed=not failed,
        rows=count.read,
        failed_rows=failed,
        observed=f"{failed:,} of {count.read:,} rows cannot be used: {reasons}" if failed else None,
        allowed=USABLE.allowed.format(tolerated),
        sample=format_samples(sample),
        reason=USABLE.reason,
        advice=USABLE.advice,
    )


def _find_fitting(key: MetricKey) -> FittingRows | None:
    """The value of a metric where all rows fit the contract that the suite was built from."""
    if key.metric == "table.row_count":
        return FittingRows("rows")
    if key.metric == "column_values.nonnull.unexpected_count":
        return FittingRows("nulls", key.column)
    return FittingRows("nothing") if key.metric.endswith(".unexpected_count") else None


def _identify(result: ExpectationValidationResult) -> tuple[str, str]:
    """The kind of expectation and its column."""
    config = result.expectation_config
    assert config is not None  # every result of Great Expectations has it
    return config.type, str(config.kwargs["column"])


def _build_result(table: Table, expected: ExpectationValidationResult, tolerated: float) -> Result:
    kind, column = _identify(expected)
    rule, passed = RULES[kind], bool(expected.success)
    details: Mapping[str, Any] = expected.result or {}
    rows, failed = details.get("element_count"), details.get("unexpected_count")
    few = rows is not None and failed is not None and failed <= tolerated * rows
    sample = () if passed else (value for value in details.get("partial_unexpected_list") or () if value is not None)
    return Result(
        table=table.name,
        check=rule.name,
        column=column,
        severity="warn" if few and not passed else "error",
        passed=passed,
        rows=rows,
        failed_rows=failed,
        observed=None if passed else _describe_failure(details, expected),
        allowed=rule.allowed or (table[column].type if rule.name == "type" else table[column].describe_values()),
        sample=format_samples(sample),
        reason=rule.reason,
        advice=rule.advice.replace("TABLE", table.name),
    )


def _describe_failure(details: Mapping[str, Any], expected: ExpectationValidationResult) -> str:
    if details.get("unexpected_count") is not None:
        return f"{details['unexpected_count']:,} of {details['element_count']:,} rows fail"
    if details.get("observed_value") is not None:
        return f"{details['observed_value']}"
    exception = str(expected.exception_info or "").strip()
    return f"could not be checked: {cut_text(exception, 300)}" if "raised_exception': True" in exception else "absent"
