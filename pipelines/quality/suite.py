"""The contracts as suites of Great Expectations: one bundled pass per table, and a second look only at what failed.

The rows of an input are counted by reason before anything else is done with them. What a suite would count in a pass of
its own rides on that one: the suite is asked what it wants (`ask`), and told what came of it (`tell`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipelines.quality.results import Result, samples
from pipelines.quality.sheet import Sheet
from schemas.table import Table

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.datasource.fluent.spark_datasource import SparkDatasource
    from pyspark.sql import Column, DataFrame

# Of the values that fail, three are shown; everything else about them is counted.
_DETAILS = {"result_format": "SUMMARY", "partial_unexpected_count": 3}


@dataclass(frozen=True)
class Rule:
    """How a kind of expectation is called here, why a contract has it, and what to do where it fails."""

    name: str
    allowed: str  # empty where the contract says it of the column
    reason: str
    advice: str


USABLE = Rule(
    "usable_rows",
    "at most max_rejected = {:g} of the rows",
    "A row that does not fit its contract cannot be used, and what is left may no longer speak for the whole.",
    "the table quarantine has every such row with its reason; mend the data, or raise max_rejected",
)
_MEND = "look at the sample, mend the data or name the right column in inputs.TABLE.columns"
RULES: Mapping[str, Rule] = {
    "expect_column_to_exist": Rule(
        "column_exists", "the column", "A number made without a column that it needs is another number.", _MEND
    ),
    "expect_column_values_to_be_of_type": Rule(
        "type", "", "Text is sorted, summed and compared by other rules than numbers.", _MEND
    ),
    "expect_column_values_to_not_be_null": Rule(
        "not_null", "a value in every row", "A row without it belongs to nothing that it could be counted for.", _MEND
    ),
    "expect_column_values_to_be_between": Rule(
        "range", "", "A value outside of it is another quantity, or broken.", _MEND
    ),
    "expect_column_values_to_be_in_set": Rule(
        "values", "", "A word that means nothing here is not counted as anything.", _MEND
    ),
    "expect_column_values_to_match_regex": Rule(
        "pattern", "", "A name of another form is not the name of what it should be.", _MEND
    ),
}


@dataclass(frozen=True)
class Validated:
    """The results of one suite, ours and those of Great Expectations."""

    results: tuple[Result, ...]
    given: tuple[ExpectationValidationResult, ...]


@dataclass
class Suites:
    """Runs suites in one ephemeral context, which is made, and imported, when the first one is run."""

    _runs: int = field(default=0, init=False)
    _sheets: dict[str, Sheet] = field(default_factory=dict, init=False)

    @cached_property
    def _source(self) -> SparkDatasource:
        import great_expectations as gx
        from great_expectations.data_context.types.base import (
            DataContextConfig,
            InMemoryStoreBackendDefaults,
            ProgressBarsConfig,
        )
        from great_expectations.datasource.fluent.spark_datasource import SparkDatasource

        from pipelines.quality.engine import SheetEngine

        SparkDatasource.execution_engine_override = SheetEngine  # type: ignore[misc]  # declared for all engines at once

        settings = DataContextConfig(
            store_backend_defaults=InMemoryStoreBackendDefaults(),
            progress_bars=ProgressBarsConfig(globally=False),
            analytics_enabled=False,
        )
        context = gx.get_context(mode="ephemeral", project_config=settings)
        # By default Great Expectations persists what it looks at, and never lets it go.
        return context.data_sources.add_spark("assay", persist=False)

    def ask(self, table: Table, rows: DataFrame) -> list[Column]:
        """What is to be counted over all `rows` to hold them against the contract; no job is started."""
        self._sheets[table.name] = sheet = Sheet()
        self._run(table.name, rows, table.expectations(), "BOOLEAN_ONLY", sheet)
        return list(sheet.asked.values())

    def tell(self, table: Table, rows: DataFrame, counted: Sequence[int], *, tolerated: float) -> Validated:
        """What the contract says, now that all that it asked for is counted."""
        sheet = self._sheets[table.name]
        sheet.counted = dict(zip(sheet.asked, counted, strict=True))
        first = self._run(table.name, rows, table.expectations(), "BOOLEAN_ONLY", sheet)
        return self._detailed(table, rows, first, tolerated)

    def validate(self, table: Table, rows: DataFrame, *, tolerated: float) -> Validated:
        """Hold `rows` against the contract; more than `tolerated` of them failing is an error, fewer a warning."""
        return self._detailed(table, rows, self._run(table.name, rows, table.expectations(), "BOOLEAN_ONLY"), tolerated)

    def _detailed(
        self, table: Table, rows: DataFrame, first: list[ExpectationValidationResult], tolerated: float
    ) -> Validated:
        """The results, with a second look at what failed."""
        failed = [_identity(of) for of in first if not of.success]
        if failed:
            wanted = [e for e in table.expectations() if _key(e["type"], e["kwargs"]) in failed]
            details = {_identity(of): of for of in self._run(table.name, rows, wanted, _DETAILS)}
            first = [details.get(_identity(of), of) for of in first]
        return Validated(tuple(_result(table, of, tolerated) for of in first), tuple(first))

    def _run(
        self,
        name: str,
        rows: DataFrame,
        wanted: Sequence[dict[str, Any]],
        result_format: Any,
        sheet: Sheet | None = None,
    ) -> list[ExpectationValidationResult]:
        from great_expectations.core import ExpectationSuite
        from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

        self._runs += 1
        asset = self._source.add_dataframe_asset(f"{name} {self._runs}")
        batch = asset.add_batch_definition_whole_dataframe("all rows").get_batch({"dataframe": rows})
        suite = ExpectationSuite(name=name, expectations=[ExpectationConfiguration(**e) for e in wanted])
        engine: Any = self._source.get_execution_engine()
        engine.sheet = sheet
        return list(batch.validate(suite, result_format=result_format).results)


def usable(table: str, read: int, rejected: Mapping[str, int], *, tolerated: float, sample: Iterable[str]) -> Result:
    """Whether the rows of an input can be used: what Great Expectations would find is counted already."""
    failed = sum(rejected.values())
    reasons = ", ".join(f"{reason} ({rows:,})" for reason, rows in rejected.items())
    return Result(
        table,
        USABLE.name,
        None,
        "warn" if 0 < failed <= tolerated * read else "error",
        not failed,
        read,
        failed,
        f"{failed:,} of {read:,} rows cannot be used: {reasons}" if failed else None,
        USABLE.allowed.format(tolerated),
        samples(sample),
        USABLE.reason,
        USABLE.advice,
    )


def _key(kind: str, kwargs: Mapping[str, Any]) -> tuple[str, str]:
    return kind, str(kwargs["column"])


def _identity(given: ExpectationValidationResult) -> tuple[str, str]:
    config = given.expectation_config
    assert config is not None  # Great Expectations gives it with every result
    return _key(config.type, config.kwargs)


def _result(table: Table, given: ExpectationValidationResult, tolerated: float) -> Result:
    kind, column = _identity(given)
    rule, passed = RULES[kind], bool(given.success)
    found: Mapping[str, Any] = given.result or {}
    rows, failed = found.get("element_count"), found.get("unexpected_count")
    few = rows is not None and failed is not None and failed <= tolerated * rows
    return Result(
        table.name,
        rule.name,
        column,
        "warn" if few and not passed else "error",
        passed,
        rows,
        failed,
        None if passed else _observed(found, given),
        rule.allowed or (table[column].type if rule.name == "type" else table[column].allowed()),
        () if passed else samples(value for value in found.get("partial_unexpected_list") or () if value is not None),
        rule.reason,
        rule.advice.replace("TABLE", table.name),
    )


def _observed(found: Mapping[str, Any], given: ExpectationValidationResult) -> str:
    if found.get("unexpected_count") is not None:
        return f"{found['unexpected_count']:,} of {found['element_count']:,} rows fail"
    if found.get("observed_value") is not None:
        return f"{found['observed_value']}"
    said = str(given.exception_info or "").strip()
    return f"could not be looked at: {said[:300]}" if "raised_exception': True" in said else "absent"
