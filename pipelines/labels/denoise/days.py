"""Put the bundles of days into the buckets of a window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.labels.denoise.compact_places import compact_places, expand_places
from pipelines.labels.denoise.keys import KEYS, divide_kind
from pipelines.labels.denoise.kinds import LOG_DAY
from schemas.label_days import Kind
from udfs.spark.bundles import BUNDLES, read_bundle
from udfs.spark.worker import run_in_worker

_BUCKETS = 8  # at least
_DAY_ROWS = 100_000  # of a bucket of a day: each bundle takes a moment to open, whatever its size
_WINDOW_ROWS = 4_000_000  # of a bucket of a window, of which a worker holds few numbers each
_TASK_ROWS = 8_000_000  # of a task that reads few of the rows


def choose_day_buckets(impressions: int) -> int:
    """The buckets of a day: a power of two, so that those of a window are whole ones of its days."""
    return _round_up(impressions, _DAY_ROWS)


def choose_window_buckets(impressions: int) -> int:
    """The buckets of a window."""
    return _round_up(impressions, _WINDOW_ROWS)


def choose_window_tasks(impressions: int, buckets: int) -> int:
    """The tasks that look for what a window changes: each leaves a bundle for every bucket, so few of them."""
    return min(buckets, max(_BUCKETS, impressions // _TASK_ROWS))


def _round_up(impressions: int, rows: int) -> int:
    return max(_BUCKETS, 1 << (impressions // rows).bit_length())


def change_buckets(bundles: DataFrame, buckets: int, smallest: int) -> DataFrame:
    """The bundles of days in the buckets of a window; `smallest` is the least number of buckets that a day has.

    Buckets are ranges of hashes: each is part of one bucket of a window that has fewer. The rows of others are divided;
    counts, which are not divided by a hash, stay in the first bucket.
    """
    columns = ["bucket", "kind", "data", LOG_DAY]
    is_hashed = F.col("kind").isin(*map(int, KEYS))
    fits = F.col("buckets") >= buckets
    place = F.when(is_hashed, F.expr(f"bucket div (buckets div {buckets})")).otherwise(0)
    moved = bundles.where(fits | ~is_hashed).withColumn("bucket", place.cast("int"))
    if smallest >= buckets:
        return moved.select(*columns)

    def divide(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for day, kind, data in zip(
                batch[LOG_DAY].to_pylist(), batch["kind"].to_pylist(), batch["data"], strict=True
            ):
                divided = _divide(read_bundle(data), buckets, Kind(kind))
                yield divided.append_column(LOG_DAY, pa.array(np.full(divided.num_rows, day, dtype=np.int32)))

    rows = bundles.where(~fits & is_hashed)
    divided = rows.select(*columns).mapInArrow(run_in_worker(divide), f"{BUNDLES}, {LOG_DAY} int")
    return moved.select(*columns).unionByName(divided)


def _divide(rows: pa.Table, buckets: int, kind: Kind) -> pa.RecordBatch:
    if kind == Kind.PLACES:
        return divide_kind(expand_places(rows), buckets, kind, compact_places)
    return divide_kind(rows, buckets, kind)
