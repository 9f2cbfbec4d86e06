"""Compute the metrics of one system inside a Spark worker: a function for `GroupedData.applyInArrow`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from udfs.compute import compute_system_metrics
from udfs.conventions import Conventions
from udfs.exposure import Exposure
from udfs.ragged import Ragged
from udfs.registry import MetricSpec
from udfs.spark.worker import prepare_worker


def score_system(specs: Sequence[MetricSpec], conventions: Conventions) -> Callable[[pa.Table], pa.Table]:
    """The function from the documents of one system to one row per metric.

    Each document comes with the number of lists that have it in their top k, in the column `name_top(k)`.
    """

    def run(documents: pa.Table) -> pa.Table:
        prepare_worker()
        lists = documents["lists"].to_numpy()[:1].astype(np.int64)

        def exposure_at(k: int | None) -> Exposure:
            list_count = documents[name_top(k)].to_numpy().astype(np.int64)
            shown = list_count > 0
            return Exposure(
                documents=Ragged.of_lengths([shown.sum()]),
                list_count=list_count[shown],
                in_catalogue=documents["in_catalogue"].to_numpy()[shown],
                catalogue_size=documents["catalogue_size"][0].as_py(),
                lists=lists,
            )

        values = compute_system_metrics(exposure_at, specs, conventions)
        return pa.table(
            {
                "system": pa.repeat(documents["system"][0], len(specs)),
                "metric": [spec.key for spec in specs],
                "macro": pa.array(np.concatenate([values[spec.key] for spec in specs]), from_pandas=True),
                "queries": np.repeat(lists, len(specs)),
            }
        )

    return run


def name_top(k: int | None) -> str:
    """The column with the number of lists that have a document in their top k."""
    return "in_all" if k is None else f"in_top_{k}"
