"""Read a log once, as bundles of narrow rows: ids as hashes, and the impressions of a page as lists.

Text stays behind: the names of pairs travel once per task, those of pages once per page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.labels.denoise.apply import combine_arrays, combine_columns
from pipelines.labels.denoise.kinds import CART, CLICK, PURCHASE
from pipelines.labels.denoise.settings import DenoiseSettings
from schemas.inputs import INTERACTIONS
from schemas.label_days import Kind
from udfs.ragged import Ints
from udfs.spark.bundles import BUNDLES, build_bundles, collect_rows, divide_rows
from udfs.spark.crawlers import is_crawler
from udfs.spark.worker import run_in_worker

FREQUENT_USERS = 8  # per task
ROWS_OF_TASK = 500_000  # of a worker at once
ROWS_WORTH_A_TASK = 200_000
_RUN = ("page", "suspect", "agent", "origin", "ts", "bits", "nameless")  # what the rows of a run have in common
_LISTS = ("document", "pair", "position")


def choose_partitions(spark: SparkSession, impressions: int | None) -> int:
    """The partitions of the label stage: those of the session for few rows, and enough for many."""
    usual = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    if impressions is None:
        return usual
    return max(1, ceil(impressions / ROWS_OF_TASK), min(usual, ceil(impressions / ROWS_WORTH_A_TASK)))


def name_context(contexts: Sequence[str]) -> Column:
    """The values of the columns that have their own curves, as one text."""
    parts = [F.concat(F.lit(f"{name}="), F.coalesce(F.col(name).cast("string"), F.lit("?"))) for name in contexts]
    return F.concat_ws(", ", *parts) if parts else F.lit("all")


def pack_impressions(impressions: DataFrame, settings: DenoiseSettings, *, context: Column, buckets: int) -> DataFrame:
    """Impressions with `nameless` as bundles of places, visits and names."""
    rows = impressions.withColumn("context", context).select(
        F.xxhash64("serp_id").alias("page"),
        F.xxhash64("doc_id").alias("document"),
        F.xxhash64("query_id", "doc_id").alias("pair"),
        F.xxhash64("user_id").alias("suspect"),
        F.xxhash64("user_agent").alias("agent"),
        F.xxhash64("query_id", "context", "system").alias("origin"),
        F.unix_micros("ts").alias("ts"),
        "position",
        combine_columns("result", settings).alias("bits"),
        "nameless",
        *("serp_id", "query_id", "doc_id", "user_id", "user_agent", "context", "system"),
    )

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in collect_rows(batches):
            yield from _pack_table(table.combine_chunks(), settings, buckets)

    return rows.mapInArrow(run_in_worker(pack), BUNDLES)


def pack_events(interactions: DataFrame, settings: DenoiseSettings, *, buckets: int) -> DataFrame:
    """Interactions with `nameless` as bundles of events."""
    rows = interactions.withColumn("sponsored", F.lit(False)).select(
        F.xxhash64("user_id").alias("suspect"),
        F.xxhash64("doc_id").alias("document"),
        F.xxhash64("serp_id").alias("page"),
        F.col("serp_id").isNotNull().alias("placed"),
        F.xxhash64(F.concat(F.lit("unattributed/"), "event_id")).alias("own_page"),
        F.xxhash64("event_id").alias("event"),
        hash_row().alias("row"),
        _code_kind().alias("kind"),
        F.unix_micros("ts").alias("ts"),
        F.col("dwell_seconds").alias("dwell"),
        combine_columns("result", settings).alias("bits"),
        "nameless",
    )

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in collect_rows(batches):
            nameless = read_flags(table["nameless"])
            key = np.where(nameless, read_integers(table["event"]), read_integers(table["suspect"]))
            yield divide_rows(table, key, buckets, Kind.EVENTS)

    return rows.mapInArrow(run_in_worker(pack), BUNDLES)


def hash_row() -> Column:
    """A hash of all fields of an interaction: equal rows have equal outcomes."""
    return F.xxhash64(*INTERACTIONS.names)


def _code_kind() -> Column:
    kind = F.col("kind")
    return F.when(kind == "click", CLICK).when(kind == "cart", CART).otherwise(PURCHASE).cast("tinyint")


def read_integers(column: pa.Array | pa.ChunkedArray, null: int = 0) -> Ints:
    """A column as integers of 64 bits, nulls as `null`."""
    filled = column.fill_null(null) if column.null_count else column
    return np.asarray(filled.to_numpy()).astype(np.int64, copy=False)


def read_flags(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """A column of booleans, nulls as false."""
    return np.asarray(column.fill_null(False).cast(pa.uint8()).to_numpy()).astype(np.bool_)


def _pack_table(table: pa.Table, settings: DenoiseSettings, buckets: int) -> Iterator[pa.RecordBatch]:
    numbers = {
        name: read_integers(table[name]) for name in ("page", "suspect", "agent", "origin", "ts", "bits", "pair")
    }
    nameless = read_flags(table["nameless"])
    starts = find_runs([*(numbers[name] for name in _RUN[:-1]), nameless])
    run = {name: values[starts] for name, values in numbers.items()}
    texts = table.select(["serp_id", "query_id", "user_id", "user_agent", "context", "system"]).take(pa.array(starts))
    crawler = _match_agents(run["agent"], texts["user_agent"])
    anonymous = nameless[starts]
    # Nameless users are judged by the user agent of each impression alone.
    by_agent = combine_arrays("user", settings, {"crawler": crawler}, len(starts))
    bits = (run["bits"] | np.where(anonymous, by_agent, 0)).astype(np.int32)
    borders = pa.array(np.append(starts, table.num_rows).astype(np.int32))
    places = {
        "page": pa.array(run["page"]),
        "suspect": pa.array(run["suspect"]),
        "ts": pa.array(run["ts"]),
        "bits": pa.array(bits),
        "nameless": pa.array(anonymous),
        "serp_id": texts["serp_id"],
        "query_id": texts["query_id"],
        "context": texts["context"].dictionary_encode(),
        "system": texts["system"].dictionary_encode(),
        **{name: pa.ListArray.from_arrays(borders, join_chunks(table[name])) for name in _LISTS},
    }
    yield divide_rows(pa.table(places), run["page"], buckets, Kind.PLACES)
    named = np.flatnonzero(~anonymous)
    visits = {name: pa.array(run[name][named]) for name in ("suspect", "page", "ts")}
    visits["crawler"] = pa.array(crawler[named])
    yield divide_rows(pa.table(visits), run["suspect"][named], buckets, Kind.VISITS)
    first = np.flatnonzero(~pd.Series(numbers["pair"]).duplicated().to_numpy())
    names = table.select(["pair", "query_id", "doc_id"]).take(pa.array(first))
    yield divide_rows(names, numbers["pair"][first], buckets, Kind.NAMES)
    frequent = _count_frequent(run["suspect"], run["page"], ~anonymous, texts["user_id"])
    yield build_bundles(np.zeros(1, dtype=np.int64), [frequent], Kind.FREQUENT)


def join_chunks(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def find_runs(keys: Sequence[npt.NDArray[np.generic]]) -> Ints:
    """The first row of each run of rows with equal keys."""
    differs = np.ones(len(keys[0]), dtype=np.bool_)
    differs[1:] = keys[0][1:] != keys[0][:-1]
    for key in keys[1:]:
        differs[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(differs)


def _match_agents(agent: Ints, texts: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Per run whether its user agent, whose hash is `agent`, names a crawler."""
    codes, distinct = pd.factorize(agent)
    example = np.empty(len(distinct), dtype=np.int64)
    example[codes[::-1]] = np.arange(len(codes))[::-1]
    names = texts.take(pa.array(example)).fill_null("").to_pylist()
    return np.array([is_crawler(name) for name in names], dtype=np.bool_)[codes]


def _count_frequent(suspect: Ints, page: Ints, named: npt.NDArray[np.bool_], user_id: pa.ChunkedArray) -> pa.Table:
    """The users with most pages and the number of all pages, without a user; `task` is a number for these rows."""
    pairs = pd.DataFrame({"suspect": suspect, "page": page, "named": named}).drop_duplicates()
    counts = pairs.loc[pairs["named"], "suspect"].value_counts().head(FREQUENT_USERS)
    example = [int(np.argmax(suspect == code)) for code in counts.index]
    columns = {
        "task": pa.array([int(page[0])] * (len(counts) + 1), pa.int64()),
        "suspect": pa.array([*counts.index.to_list(), None], pa.int64()),
        "user_id": pa.array([*user_id.take(pa.array(example, pa.int64())).to_pylist(), None], pa.string()),
        "pages": pa.array([*counts.to_list(), len(pairs)], pa.int64()),
    }
    return pa.table(columns)
