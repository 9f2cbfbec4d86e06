"""A datasource of Great Expectations whose counts are computed elsewhere. Imported only with Great Expectations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal

from great_expectations.datasource.fluent.spark_datasource import SparkDatasource
from great_expectations.execution_engine.execution_engine import MetricComputationConfiguration
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine

from pipelines.quality.expectations.count_sheet import CountSheet, MetricKey


class CountingEngine(SparkDFExecutionEngine):
    """The Spark engine; while it has a sheet, it looks its counts up there instead of starting a job."""

    sheet: CountSheet | None = None

    def resolve_metric_bundle(self, metric_fn_bundle: Iterable[MetricComputationConfiguration]) -> dict[Any, Any]:
        """The values of all metrics that are one aggregate of the rows."""
        if self.sheet is None:
            return super().resolve_metric_bundle(metric_fn_bundle)
        return {metric.metric_configuration.id: self._look_up(metric, self.sheet) for metric in metric_fn_bundle}

    def _look_up(self, computation: MetricComputationConfiguration, sheet: CountSheet) -> int:
        metric = computation.metric_configuration
        assert "count" in metric.metric_name, f"{metric.metric_name} cannot be summed over groups of rows"
        key = MetricKey(
            table=sheet.table,
            metric=metric.metric_name,
            column=str(metric.metric_domain_kwargs.get("column")),
            arguments=str(metric.metric_value_kwargs_id),
        )
        return sheet.look_up(key, computation.metric_fn)


class CountingDatasource(SparkDatasource):
    """A Spark datasource with that engine, registered as `add_counting_spark`; other datasources keep the stock one."""

    type: Literal["counting_spark"] = "counting_spark"  # type: ignore[assignment]  # each datasource has its own
    execution_engine_override: ClassVar[Any] = CountingEngine
