"""Put the bundles of days together: into the buckets of a window, and into those of pages that differ there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.labels.denoise.pack import read_flags, read_integers
from pipelines.labels.denoise.pairs import TALLY, list_drops
from schemas.label_days import Kind
from udfs.ragged import Bools, Ints
from udfs.spark.bundles import BUNDLES, build_bundles, divide_rows, exchange, read_bundle, read_bundles
from udfs.spark.worker import run_in_worker

_BUCKETS = 8  # at least
_DAY_ROWS = 50_000  # of a bucket of a day
_WINDOW_ROWS = 1_000_000  # of a bucket of a window, which a worker holds at once
_TOUCHED = "touched"


def choose_day_buckets(impressions: int) -> int:
    """The buckets of a day: a power of two, so that those of a window are whole ones of its days."""
    return _round_up(impressions, _DAY_ROWS)


def choose_window_buckets(impressions: int) -> int:
    """The buckets of a window."""
    return _round_up(impressions, _WINDOW_ROWS)


def _round_up(impressions: int, rows: int) -> int:
    return max(_BUCKETS, 1 << (impressions // rows).bit_length())


def _key_by(name: str) -> Callable[[pa.Table], Ints]:
    return lambda table: read_integers(table[name])


def _key_event(table: pa.Table) -> Ints:
    return np.where(read_flags(table["nameless"]), read_integers(table["event"]), read_integers(table["suspect"]))


KEYS: Mapping[int, Callable[[pa.Table], Ints]] = {
    Kind.PLACES: _key_by("page"),
    Kind.NAMES: _key_by("pair"),
    Kind.VISITS: _key_by("suspect"),
    Kind.EVENTS: _key_event,
    Kind.KEPT: _key_by("pair"),
    Kind.DROPS: _key_by("page"),
    Kind.PAGES: _key_by("page"),
}


def change_buckets(bundles: DataFrame, buckets: int, smallest: int) -> DataFrame:
    """The bundles of days in the buckets of a window; `smallest` is the least number of buckets that a day has.

    Buckets are ranges of hashes: each is part of one bucket of a window that has fewer. The rows of others are divided.
    """
    moved = bundles.where(F.col("buckets") >= buckets).withColumn(
        "bucket", F.expr(f"bucket div (buckets div {buckets})")
    )
    if smallest >= buckets:
        return moved.drop("buckets")

    def divide(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for day, kind, data in zip(
                batch["log_day"].to_pylist(), batch["kind"].to_pylist(), batch["data"], strict=True
            ):
                table = read_bundle(data)
                divided = divide_rows(table, KEYS[kind](table), buckets, kind)
                yield divided.append_column("log_day", pa.array(np.full(divided.num_rows, day, dtype=np.int32)))

    rows = bundles.where((F.col("buckets") < buckets) & F.col("kind").isin(*map(int, KEYS)))
    columns = ["bucket", "kind", "data", "log_day"]
    divided = rows.select(*columns).mapInArrow(run_in_worker(divide), f"{BUNDLES}, log_day int")
    return moved.select(*columns).unionByName(divided)


def collect_touched(judged: DataFrame, pages: DataFrame, *, buckets: int) -> DataFrame:
    """Pages that differ in a window, as `TOUCHED`: by users and events, or because several days have rows of them."""

    def collect(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = read_bundles(batches)
        touched = [np.zeros(0, dtype=np.int64)]
        if Kind.TOUCHED in tables:
            touched.append(read_integers(tables[Kind.TOUCHED]["page"]))
        if Kind.PAGES in tables:
            in_order = np.sort(read_integers(tables[Kind.PAGES]["page"]))
            touched.append(in_order[1:][in_order[1:] == in_order[:-1]])
        distinct = np.unique(np.concatenate(touched))
        yield divide_rows(pa.table({"page": pa.array(distinct)}), distinct, buckets, Kind.TOUCHED)

    of_users = judged.where(F.col("kind") == int(Kind.TOUCHED)).select("bucket", "kind", "data")
    both = of_users.unionByName(pages.select("bucket", "kind", "data"))
    return exchange(both, buckets).mapInArrow(run_in_worker(collect), BUNDLES)


def select_touched(bundles: DataFrame, touched: DataFrame) -> DataFrame:
    """The rows of touched pages; bundles without any are left out."""

    def select(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for kept in _filter_pages(batches, lambda among: among):
            if kept is not None:
                yield kept

    return _add_touched(bundles, touched, how="inner").mapInArrow(run_in_worker(select), BUNDLES)


def tally_untouched(drops: DataFrame, touched: DataFrame) -> DataFrame:
    """The dropped rows of all other pages, as rows of the tally."""

    def tally(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for kept in _filter_pages(batches, lambda among: ~among):
            if kept is not None:
                for table in read_bundles([kept]).values():
                    yield from list_drops(table).to_batches()

    return _add_touched(drops, touched, how="left").mapInArrow(run_in_worker(tally), TALLY)


def _add_touched(bundles: DataFrame, touched: DataFrame, *, how: str) -> DataFrame:
    pages = touched.select("bucket", F.col("data").alias(_TOUCHED))
    joined = bundles.select("bucket", "kind", "data").join(F.broadcast(pages), on="bucket", how=how)
    return joined.select("bucket", "kind", "data", _TOUCHED)


def _filter_pages(
    batches: Iterable[pa.RecordBatch], choose: Callable[[Bools], Bools]
) -> Iterator[pa.RecordBatch | None]:
    """Each bundle with the rows that `choose` takes, given which are of touched pages; None where it takes none."""
    for batch in batches:
        for bucket, kind, data, pages in zip(
            batch["bucket"].to_pylist(), batch["kind"].to_pylist(), batch["data"], batch[_TOUCHED], strict=True
        ):
            table = read_bundle(data)
            touched = read_integers(read_bundle(pages)["page"]) if pages.is_valid else np.zeros(0, dtype=np.int64)
            mask = choose(np.isin(read_integers(table["page"]), touched))
            yield build_bundles(np.array([bucket]), [table.filter(pa.array(mask))], kind) if mask.any() else None
