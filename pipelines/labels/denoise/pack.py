"""Read a log once, as bundles of narrow rows: ids as hashes, and the impressions of a page as lists.

Text stays behind: the names of pairs travel once per task, those of pages once per page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pipelines.inputs.log_rows import LogRows
from pipelines.labels.denoise.apply import combine_arrays
from pipelines.labels.denoise.columns import (
    Texts,
    combine_codes,
    decode_texts,
    hash_chained,
    read_flags,
    read_micros,
)
from pipelines.labels.denoise.kinds import CART, CLICK, PURCHASE
from pipelines.labels.denoise.nameless import SharedUser, find_nameless
from pipelines.labels.denoise.row_hash import hash_rows
from pipelines.labels.denoise.settings import DenoiseSettings
from schemas.inputs import INTERACTIONS
from schemas.label_days import Kind
from udfs.ragged import Bools, Ints
from udfs.spark.bundles import BUNDLES, build_bundles, divide_rows
from udfs.spark.crawlers import is_crawler
from udfs.xxhash import hash_like_spark

FREQUENT_USERS = 8  # per task
ROWS_OF_TASK = 500_000  # of a worker at once
ROWS_WORTH_A_TASK = 200_000
_IDS = ("serp_id", "query_id", "doc_id", "user_id", "user_agent", "system")
_OF_IMPRESSIONS = (*_IDS, "position", "ts", "sponsored")
_KINDS = {"click": CLICK, "cart": CART, "purchase": PURCHASE}


def choose_partitions(spark: SparkSession, impressions: int | None) -> int:
    """The partitions of the label stage: those of the session for few rows, and enough for many."""
    usual = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    if impressions is None:
        return usual
    return max(1, ceil(impressions / ROWS_OF_TASK), min(usual, ceil(impressions / ROWS_WORTH_A_TASK)))


def pack_impressions(
    impressions: LogRows,
    settings: DenoiseSettings,
    *,
    contexts: Sequence[str],
    shared_user: SharedUser | None,
    buckets: int,
    folder: str | None = None,
) -> DataFrame:
    """Impressions as bundles of places, visits and names; `contexts` are columns that have their own curves."""

    def pack(rows: pa.Table) -> Iterator[pa.RecordBatch]:
        yield from _pack_rows(rows, settings, contexts, shared_user, buckets)

    return impressions.transform(pack, [*_OF_IMPRESSIONS, *contexts], BUNDLES, folder=folder)


def pack_events(
    interactions: LogRows,
    settings: DenoiseSettings,
    *,
    shared_user: SharedUser | None,
    buckets: int,
    folder: str | None = None,
) -> DataFrame:
    """Interactions as bundles of events."""

    def pack(rows: pa.Table) -> Iterator[pa.RecordBatch]:
        yield _pack_events(rows, settings, shared_user, buckets)

    return interactions.transform(pack, INTERACTIONS.names, BUNDLES, folder=folder)


def _pack_events(
    rows: pa.Table, settings: DenoiseSettings, shared_user: SharedUser | None, buckets: int
) -> pa.RecordBatch:
    users, serps, kinds = (Texts.of(rows[name]) for name in ("user_id", "serp_id", "kind"))
    events = rows["event_id"].combine_chunks().cast(pa.large_string())
    text = pa.large_string()
    own_pages = pc.binary_join_element_wise(pa.scalar("unattributed/", text), events, pa.scalar("", text))
    features = {"user_id": users, "sponsored": np.zeros(rows.num_rows, dtype=np.bool_)}
    nameless = find_nameless(users, shared_user)
    event = hash_like_spark(events)
    packed = {
        "suspect": users.hashes,
        "document": Texts.of(rows["doc_id"]).hashes,
        "page": serps.hashes,
        "placed": ~serps.is_null,
        "own_page": hash_like_spark(own_pages),
        "event": event,
        "row": hash_rows(rows),
        "kind": kinds.spread(np.array([_KINDS[kind] for kind in kinds.distinct.to_pylist()], dtype=np.int8), 0),
        "ts": read_micros(rows["ts"]),
        "dwell": rows["dwell_seconds"],
        "bits": combine_arrays("result", settings, features, rows.num_rows).astype(np.int32),
        "nameless": nameless,
    }
    return divide_rows(pa.table(packed), np.where(nameless, event, users.hashes), buckets, Kind.EVENTS)


def _pack_rows(
    rows: pa.Table,
    settings: DenoiseSettings,
    contexts: Sequence[str],
    shared_user: SharedUser | None,
    buckets: int,
) -> Iterator[pa.RecordBatch]:
    serps, queries, documents, users, agents, systems = (Texts.of(rows[name]) for name in _IDS)
    contexts_of_rows = [Texts.of(rows[name]) for name in contexts]
    ts, sponsored = read_micros(rows["ts"]), read_flags(rows["sponsored"])
    by_row = combine_arrays("result", settings, {"user_id": users, "sponsored": sponsored}, rows.num_rows)
    same = [column.codes for column in (serps, users, agents, queries, systems, *contexts_of_rows)]
    starts = find_runs([*same, ts, by_row])
    page, suspect, ts = serps.take(starts).hashes, users.take(starts).hashes, ts[starts]
    nameless = find_nameless(users.take(starts), shared_user)
    crawler = _find_crawlers(agents.take(starts))
    # Nameless users are judged by the user agent of each impression alone.
    by_agent = combine_arrays("user", settings, {"crawler": crawler}, len(starts))
    bits = by_row[starts] | np.where(nameless, by_agent, 0)
    borders = pa.array(np.append(starts, rows.num_rows).astype(np.int32))
    pairs, first = combine_codes([queries, documents])
    pair = hash_chained([queries.take(first), documents.take(first)])
    lists = {
        "document": pa.array(documents.hashes),
        "pair": pa.array(pair[pairs]),
        "position": rows["position"].combine_chunks(),
    }
    places = {
        "page": page,
        "suspect": suspect,
        "ts": ts,
        "bits": bits.astype(np.int32),
        "nameless": nameless,
        "serp_id": serps.take(starts).to_texts(),
        "query_id": queries.take(starts).to_texts(),
        "context": name_contexts(contexts, [column.take(starts) for column in contexts_of_rows], len(starts)),
        "system": systems.take(starts).to_arrow(),
        **{name: pa.ListArray.from_arrays(borders, values) for name, values in lists.items()},
    }
    yield divide_rows(pa.table(places), page, buckets, Kind.PLACES)
    named = np.flatnonzero(~nameless)
    visits = {"suspect": suspect[named], "page": page[named], "ts": ts[named], "crawler": crawler[named]}
    yield divide_rows(pa.table(visits), suspect[named], buckets, Kind.VISITS)
    names = {"query_id": queries.take(first).to_texts(), "doc_id": documents.take(first).to_texts()}
    yield divide_rows(pa.table({"pair": pair, **names}), pair, buckets, Kind.NAMES)
    frequent = _count_frequent(suspect, page, ~nameless, users.take(starts))
    yield build_bundles(np.zeros(1, dtype=np.int64), [frequent], Kind.FREQUENT)


def name_contexts(names: Sequence[str], columns: Sequence[Texts], rows: int) -> pa.DictionaryArray:
    """The values of the columns that have their own curves, as one text."""
    if not columns:
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array(["all"]))
    codes, first = combine_codes(columns)
    unknown = pa.scalar("?", pa.string())
    values = [decode_texts(column.take(first).to_texts().fill_null(unknown)) for column in columns]
    texts = [
        ", ".join(f"{name}={value}" for name, value in zip(names, row, strict=True))
        for row in zip(*values, strict=True)
    ]
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(texts, pa.string()))


def find_runs(keys: Sequence[npt.NDArray[np.generic]]) -> Ints:
    """The first row of each run of rows with equal keys."""
    differs = np.ones(len(keys[0]), dtype=np.bool_)
    differs[1:] = keys[0][1:] != keys[0][:-1]
    for key in keys[1:]:
        differs[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(differs)


def _find_crawlers(agents: Texts) -> Bools:
    """Per row whether its user agent names a crawler."""
    names = [is_crawler(name) for name in decode_texts(agents.distinct)]
    return agents.spread(np.array(names, dtype=np.bool_), is_crawler(""))


def _count_frequent(suspect: Ints, page: Ints, named: Bools, users: Texts) -> pa.Table:
    """The users with most pages and the number of all pages, without a user; `task` is a number for these rows."""
    pairs = pd.DataFrame({"suspect": suspect, "page": page, "named": named}).drop_duplicates()
    counts = pairs.loc[pairs["named"], "suspect"].value_counts().head(FREQUENT_USERS)
    example = np.array([int(np.argmax(suspect == code)) for code in counts.index], dtype=np.int64)
    columns = {
        "task": pa.array([int(page[0])] * (len(counts) + 1), pa.int64()),
        "suspect": pa.array([*counts.index.to_list(), None], pa.int64()),
        "user_id": pa.array([*decode_texts(users.take(example).to_texts()), None], pa.string()),
        "pages": pa.array([*counts.to_list(), len(pairs)], pa.int64()),
    }
    return pa.table(columns)
