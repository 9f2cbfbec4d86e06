"""The outcomes of one day's pages in a form that can be added up over days, and the tally of such days.

Kept impressions are lists by bucket of pairs (see `cell_arrays`): the rules on pairs, and the number of users of a
pair, need those of all days.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from functools import partial, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.labels.denoise.cell_arrays import ADDED, KEPT, PLACE, ROW, WITHDRAWN, pack_rows, unpack_rows
from pipelines.labels.denoise.nameless import draw_number, limit_draws
from pipelines.labels.denoise.pages import distribute
from pipelines.labels.denoise.pair_arrays import read_numbers
from pipelines.labels.denoise.pairs import COUNTS, EPOCH, ORIGIN, PAIR, TALLY, tally_kept
from pipelines.labels.denoise.pairs import PLACE as TALLIED_PLACE
from pipelines.labels.denoise.settings import DenoiseSettings
from schemas.label_days import CELLS, DROPS
from udfs.spark.worker import run_in_worker

_BUCKETS = 8  # at least
_DAY_ROWS = 10_000  # of a bucket of a day: a window joins its buckets into fewer, but has to copy those that it divides
_WINDOW_ROWS = 250_000  # of a bucket of a window, which a worker holds at once


def group_kept(outcomes: DataFrame, impressions: int) -> DataFrame:
    """The impressions that no rule drops so far, as rows of `cells`."""
    buckets = _choose_buckets(impressions, _DAY_ROWS)
    rows = outcomes.where("bits = 0").select(
        F.pmod(F.xxhash64(*PAIR), F.lit(buckets)).cast("int").alias("bucket"),
        *_describe_place(),
        *[F.col(name).cast("bigint" if kind == pa.int64() else "int").alias(name) for name, kind in ROW.items()],
    )

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            yield from pack_rows(pa.Table.from_batches(filled).combine_chunks(), buckets).to_batches(max_chunksize=1)

    schema = ", ".join(f"{column.name} {column.type}" for column in CELLS.columns)
    return distribute(rows, "bucket", impressions).mapInArrow(run_in_worker(pack), schema)


def group_dropped(outcomes: DataFrame) -> DataFrame:
    """The dropped rows by page, user and rules; those for the quarantine stay apart."""
    dropped = outcomes.where("bits != 0").withColumns({name: F.col(name).cast("bigint") for name in COUNTS})
    keys = [name for name in DROPS.names if name not in COUNTS]
    return _sum_counts(dropped.select(*DROPS.names), keys)


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
    on other days too, and `added` the outcomes of these pages; `drops` are without the wrong ones.
    """
    buckets = _choose_buckets(impressions or 0, _WINDOW_ROWS)
    parts = [
        _change_buckets(cells, buckets).withColumn("change", F.lit(KEPT)),
        _nest_rows(added.where("bits = 0"), buckets).withColumn("change", F.lit(ADDED)),
        _nest_rows(_add_nulls(withdrawn), buckets).withColumn("change", F.lit(WITHDRAWN)),
    ]
    rows = reduce(DataFrame.unionByName, parts)
    name_origin = partial(
        _name_origin, shuffled=tuple(shuffled_systems), limit=limit_draws(inspected_share), learned=tuple(learned_days)
    )

    def tally(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            kept = unpack_rows(pa.Table.from_batches(filled))
            numbers = kept.numbers | {COUNTS[0]: np.ones(len(kept.place), dtype=np.int64)}
            yield from tally_kept(name_origin(kept.places), numbers, settings, kept.place).to_batches()

    tallied = distribute(rows, "bucket", impressions).mapInArrow(run_in_worker(tally), TALLY)
    dropped = _sum_counts(drops.withColumnRenamed("person", "dropped_user"), ["bits", "dropped_user", "row"])
    return tallied.unionByName(dropped.withColumn("users", F.lit(0).cast("bigint")), allowMissingColumns=True)


def _sum_counts(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The counts of equal rows; those for the quarantine stay apart."""
    alone = rows.where("row IS NOT NULL").select(*keys, *COUNTS)
    others = rows.where("row IS NULL").groupBy(*keys).agg(*[F.sum(name).alias(name) for name in COUNTS])
    return alone.unionByName(others)


def _describe_place() -> list[Column]:
    """The columns of a place, in the types of `cells`."""
    computed = {"key": F.xxhash64(*PAIR), "draw": draw_number(*PAIR, "day")}
    return [computed.get(name, F.col(name)).alias(name) for name in PLACE]


def _add_nulls(withdrawn: DataFrame) -> DataFrame:
    """Withdrawn impressions with all columns of outcomes."""
    texts = {name: F.lit(None).cast("string") for name in ("context", "system")}
    numbers = {name: F.lit(0) for name in ("position", "history", "day", "page_mark", "person", *COUNTS[1:])}
    return withdrawn.withColumns(texts | numbers)


def _choose_buckets(impressions: int, rows: int) -> int:
    """The number of buckets of about so many rows: a power of two, so that one of two numbers divides the other."""
    return max(_BUCKETS, 1 << (impressions // rows).bit_length())


def _change_buckets(cells: DataFrame, buckets: int) -> DataFrame:
    """The rows in their bucket of a window; those of a day with fewer buckets in each that their pairs may be in."""
    first, step = F.pmod("bucket", F.lit(buckets)), F.least("buckets", F.lit(buckets))
    bucket = F.explode(F.sequence(first, F.lit(buckets - 1), step))
    others = [name for name in CELLS.names if name not in ("bucket", "buckets")]
    return cells.select(bucket.alias("bucket"), F.lit(buckets).alias("buckets"), *others)


def _nest_rows(rows: DataFrame, buckets: int) -> DataFrame:
    """Single impressions as rows of `cells` with one of each."""
    types = {column.name: column.type for column in CELLS.columns}
    bucket = F.pmod(F.xxhash64(*PAIR), F.lit(buckets))
    lists = {
        "places": F.array(F.struct(*_describe_place())),
        "place": F.array(F.lit(0)),
        **{name: F.array(F.col(name)) for name in ROW},
    }
    values = {"bucket": bucket, "buckets": F.lit(buckets)} | lists
    return rows.select(*[value.cast(types[name]).alias(name) for name, value in values.items()])


def _name_origin(
    places: pa.Table, *, shuffled: Sequence[str], limit: int, learned: Sequence[tuple[dt.date, dt.date]]
) -> pa.Table:
    """The places with the columns of the tally: `shuffled`, `learned` and `day` as in `describe_origin`."""
    day = read_numbers(places["day"])
    is_learned = np.zeros(len(day), dtype=np.bool_)
    for first, last in learned:
        is_learned |= (day >= (first - EPOCH).days) & (day <= (last - EPOCH).days)
    is_shuffled = pc.is_in(places["system"], pa.array(shuffled, pa.string()))
    inspected = read_numbers(places["draw"]) < limit
    values = {
        "shuffled": is_shuffled,
        "learned": pa.array(is_learned),
        "day": pa.array(day.astype(np.int32), mask=~inspected),
        "row": pa.nulls(places.num_rows, pa.string()),
    }
    names = (*PAIR, *TALLIED_PLACE, *ORIGIN, "row")
    return pa.table({name: values[name] if name in values else places[name] for name in names})
