"""Great Expectations over rows that are counted elsewhere. Imported only where Great Expectations is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from great_expectations.execution_engine.execution_engine import MetricComputationConfiguration
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine

from pipelines.quality.sheet import Sheet


class SheetEngine(SparkDFExecutionEngine):
    """The engine for Spark; while it has a sheet, what it would count in one job is asked and answered there."""

    sheet: Sheet | None = None

    def resolve_metric_bundle(self, metric_fn_bundle: Iterable[MetricComputationConfiguration]) -> dict[Any, Any]:
        """The values of all metrics that are one aggregate of the rows."""
        if self.sheet is None:
            return super().resolve_metric_bundle(metric_fn_bundle)
        return {of.metric_configuration.id: self._noted(of, self.sheet) for of in metric_fn_bundle}

    def _noted(self, of: MetricComputationConfiguration, sheet: Sheet) -> int:
        metric = of.metric_configuration
        assert "count" in metric.metric_name, f"{metric.metric_name} does not add up over groups of rows"
        key = metric.metric_name, str(metric.metric_domain_kwargs.get("column")), str(metric.metric_value_kwargs_id)
        return sheet.count(key, of.metric_fn)
