"""The outcomes of one day's pages in a form that can be added up over days, and the tally of such days.

Kept impressions are grouped by query, document and place, with the user and page of each in an array: the rules on
pairs, and the number of users of a pair, need all days. Arrays cost a fraction of single rows to shuffle.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.labels.denoise.pages import distribute
from pipelines.labels.denoise.pairs import (
    COUNTS,
    PAIR,
    TALLY,
    describe_origin,
    read_numbers,
    salt_dropped,
    tally_dropped,
    tally_kept,
)
from pipelines.labels.denoise.settings import DenoiseSettings
from schemas.label_days import CELLS, DROPS
from udfs.spark.worker import run_in_worker

_CELL = tuple(name for name in CELLS.names if name != "rows")
_EVENTS = COUNTS[1:]
_DAY, _WITHDRAWN, _ADDED, _DROPPED = range(4)  # what a row of the tally's input is


def group_kept(outcomes: DataFrame) -> DataFrame:
    """The impressions that no rule drops so far, by query, document and place."""
    kept = F.struct("person", "page", *_EVENTS)
    return outcomes.where("bits = 0").groupBy(*_CELL).agg(F.collect_list(kept).alias("rows"))


def group_dropped(outcomes: DataFrame) -> DataFrame:
    """The dropped rows by page, user and rules; those for the quarantine stay apart."""
    dropped = outcomes.where("bits != 0").withColumns({name: F.col(name).cast("bigint") for name in COUNTS})
    alone = dropped.where("row IS NOT NULL").select(*DROPS.names)
    keys = [name for name in DROPS.names if name not in COUNTS]
    others = dropped.where("row IS NULL").groupBy(*keys).agg(*[F.sum(name).alias(name) for name in COUNTS])
    return alone.unionByName(others)


def tally_cells(
    cells: DataFrame,
    drops: DataFrame,
    settings: DenoiseSettings,
    *,
    withdrawn: DataFrame,
    added: DataFrame,
    shuffled_systems: Sequence[str] = (),
    inspected_share: float = 1.0,
    learned_days: Sequence[tuple[dt.date, dt.date]] = (),
    impressions: int | None = None,
) -> DataFrame:
    """The tally of `tally_rows`, from the cells and dropped rows of single days.

    `withdrawn` are impressions (query_id, doc_id, page) of pages whose outcome the cells have wrong, because it depends
    on other days too, and `added` the cells of these pages with the right outcome; `drops` are without the wrong ones.
    """
    origin = describe_origin(shuffled_systems, inspected_share, learned_days)
    zeros = [F.lit(0).alias(name) for name in _EVENTS]
    page = F.array(F.struct(F.lit(0).cast("bigint").alias("person"), "page", *zeros)).alias("rows")
    parts = (
        *((table.select(*_CELL, "rows"), change) for table, change in ((cells, _DAY), (added, _ADDED))),
        (withdrawn.select(*PAIR, page), _WITHDRAWN),
    )
    marked = [table.withColumn("change", F.lit(change)) for table, change in parts]
    kept = reduce(lambda one, two: one.unionByName(two, allowMissingColumns=True), marked)
    placed = kept.select(F.xxhash64(*PAIR).alias("key"), "change", *[c for c in _CELL if c != "day"], *origin, "rows")
    dropped = drops.select(
        salt_dropped().alias("key"), F.lit(_DROPPED).alias("change"), "bits", "person", "row", *COUNTS
    )
    rows = placed.unionByName(dropped, allowMissingColumns=True)

    def tally(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            table = pa.Table.from_batches(filled).combine_chunks()
            is_dropped = pc.equal(table["change"], _DROPPED)
            yield from _tally_cells(table.filter(pc.invert(is_dropped)), settings).to_batches()
            yield from tally_dropped(table.filter(is_dropped)).to_batches()

    return distribute(rows, "key", impressions).mapInArrow(run_in_worker(tally), TALLY)


def _tally_cells(table: pa.Table, settings: DenoiseSettings) -> pa.Table:
    """Tally the impressions of the cells, without those that are withdrawn."""
    lists = table["rows"].combine_chunks()
    lists = lists.chunk(0) if isinstance(lists, pa.ChunkedArray) else lists
    owner = np.repeat(np.arange(table.num_rows), pc.list_value_length(lists).to_numpy(zero_copy_only=False))
    fields = pa.Table.from_struct_array(lists.flatten())
    change = read_numbers(table, "change")[owner]
    page = read_numbers(fields, "page")
    withdrawn = pd.unique(page[change == _WITHDRAWN])
    is_counted = change != _WITHDRAWN
    if len(withdrawn):
        is_counted &= (change == _ADDED) | ~pd.Series(page).isin(withdrawn).to_numpy()
    numbers = {name: read_numbers(fields, name)[is_counted] for name in ("person", *_EVENTS)}
    numbers |= {"page": page[is_counted], COUNTS[0]: np.ones(int(is_counted.sum()), dtype=np.int64)}
    return tally_kept(table, numbers, settings, owner[is_counted])
