"""What the rows of bundles are divided by."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from pipelines.labels.denoise.columns import read_flags, read_integers
from schemas.label_days import Kind
from udfs.ragged import Ints
from udfs.spark.bundles import divide_rows


def _key_by(name: str) -> Callable[[pa.Table], Ints]:
    return lambda table: read_integers(table[name])


def _key_event(table: pa.Table) -> Ints:
    return np.where(read_flags(table["nameless"]), read_integers(table["event"]), read_integers(table["suspect"]))


KEYS: Mapping[int, Callable[[pa.Table], Ints]] = {
    Kind.PLACES: _key_by("page"),
    Kind.NAMES: _key_by("pair"),
    Kind.VISITS: _key_by("suspect"),
    Kind.EVENTS: _key_event,
    Kind.FLAGS: _key_by("suspect"),
    Kind.MARKS: _key_by("page"),
    Kind.ACTS: _key_by("page"),
    Kind.DROPS: _key_by("page"),
    Kind.PAGES: _key_by("page"),
    Kind.KEPT: _key_by("pair"),
    Kind.CELLS: _key_by("pair"),
    Kind.TOUCHED: _key_by("page"),
    Kind.MOVED: _key_by("page"),
    Kind.WITHDRAWN: _key_by("pair"),
}


def divide_kind(
    table: pa.Table, buckets: int, kind: Kind, encode: Callable[[pa.Table], pa.Table] | None = None
) -> pa.RecordBatch:
    """The rows of a kind as one bundle for each bucket that has some; `encode` as in `divide_rows`."""
    return divide_rows(table, KEYS[kind](table), buckets, kind, encode)
