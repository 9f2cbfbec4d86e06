"""Count kept impressions by query, document and position, and dropped rows by rule, from bundles by pair."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.labels.denoise.kinds import limit_draws
from pipelines.labels.denoise.pack import read_integers
from pipelines.labels.denoise.pair_arrays import (
    apply_pair_rules,
    draw_numbers,
    group_rows,
    number_densely,
)
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.history import History, Outcome, Read
from schemas.errors import DataQualityError
from schemas.label_days import Kind
from udfs.ragged import Bools, Ints
from udfs.spark.bundles import exchange, read_bundles
from udfs.spark.worker import run_in_worker

PAIR = ("query_id", "doc_id")
PLACE = ("context", "position", "history", "shuffled")
COUNTS = ("impressions", "clicks", "carts", "purchases")
BUCKETS = 50  # of the jackknife
EPOCH = dt.date(1970, 1, 1)
TALLY = (
    "query_id string, doc_id string, context string, position int, history int, shuffled boolean, system string, "
    "day int, learned boolean, page_mark int, bits int, dropped_user bigint, row bigint, source bigint, "
    "impressions bigint, clicks bigint, carts bigint, purchases bigint, users bigint"
)


@dataclass(frozen=True)
class Origin:
    """What a tally says of where an impression comes from, beside its system."""

    shuffled_systems: Sequence[str] = ()  # that serve in random order
    inspected_share: float = 1.0  # of documents and days, drawn by hash, whose day is kept
    learned_days: Sequence[tuple[dt.date, dt.date]] = field(default=())  # ranges with both ends included


def tally_pairs(bundles: DataFrame, settings: DenoiseSettings, origin: Origin, *, buckets: int) -> DataFrame:
    """Kept rows by context × query × document × position, dropped rows by rules and user, with their counts.

    `bits` is 0 for kept rows. `users` counts each user of a pair once, at one position, so that it sums up to the
    users of the pair. `shuffled` marks results of the systems that serve in random order, and `learned` those of
    `learned_days`. `day` is kept for a share of the documents and days. This table is small, and nothing after it
    reads the log again.
    """

    def tally(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = read_bundles(batches)
        kept = select_kept(tables)
        if kept is not None:
            yield from tally_kept(kept, tables[Kind.NAMES], settings, origin).to_batches()
        if Kind.DROPS in tables:
            yield from list_drops(tables[Kind.DROPS]).to_batches()

    kinds = [int(kind) for kind in (Kind.KEPT, Kind.REJUDGED, Kind.WITHDRAWN, Kind.NAMES, Kind.DROPS)]
    chosen = bundles.where(F.col("kind").isin(*kinds))
    return exchange(chosen, buckets).mapInArrow(run_in_worker(tally), TALLY)


def select_kept(tables: Mapping[int, pa.Table]) -> pa.Table | None:
    """The kept impressions: those of days without the pages that are withdrawn, and what these have in a window."""
    kept, rejudged = tables.get(Kind.KEPT), tables.get(Kind.REJUDGED)
    if kept is not None and Kind.WITHDRAWN in tables:
        withdrawn = pd.unique(read_integers(tables[Kind.WITHDRAWN]["page"]))
        kept = kept.filter(pa.array(~np.isin(read_integers(kept["page"]), withdrawn)))
    parts = [part for part in (kept, rejudged) if part is not None and part.num_rows]
    return pa.concat_tables(parts).unify_dictionaries() if parts else None


def tally_kept(kept: pa.Table, names: pa.Table, settings: DenoiseSettings, origin: Origin) -> pa.Table:
    """Apply the rules on pairs, and count impressions by pair, place and origin; what a rule drops also by user."""
    numbers = {name: read_integers(kept[name]) for name in kept.schema.names if name not in ("context", "system")}
    codes = {name: _read_codes(kept[name]) for name in ("context", "system")}
    pair = pd.factorize(numbers["pair"])[0].astype(np.int64)
    is_inspected = draw_numbers(numbers["pair"], numbers["day"]) < limit_draws(origin.inspected_share)
    day = np.where(is_inspected, numbers["day"], -1)
    learned = _is_within(numbers["day"], origin.learned_days)
    keys = [pair, codes["context"], codes["system"], day, learned.astype(np.int64)]
    keys += [numbers[name] for name in ("position", "history", "page_mark")]
    group, example = group_rows(keys)
    outcomes = apply_pair_rules(
        pair, numbers["person"], numbers["page"], numbers["position"], numbers["clicks"], settings
    )
    dropped = np.flatnonzero(outcomes.bits)
    if len(dropped):  # rows of their own, by rules and user
        beside, _ = group_rows([values[dropped] for values in (group, outcomes.bits, numbers["person"])])
        group[dropped] = beside + len(example)
        group, example = number_densely(group)
    counts = {"impressions": np.bincount(group, minlength=len(example))}
    for name, values in (*((name, numbers[name]) for name in COUNTS[1:]), ("users", outcomes.users)):
        rows = np.flatnonzero(values)  # few
        counts[name] = np.bincount(group[rows], weights=values[rows], minlength=len(example)).astype(np.int64)
    texts = {name: kept[name].take(pa.array(example)).cast(pa.string()) for name in codes}
    named = find_names(names, numbers["pair"][example])
    bits = outcomes.bits[example]
    columns = {
        **{name: named[name] for name in ("query_id", "doc_id")},
        "context": texts["context"],
        **{name: pa.array(numbers[name][example].astype(np.int32)) for name in ("position", "history")},
        "shuffled": pc.is_in(texts["system"], pa.array(origin.shuffled_systems, pa.string())),
        "system": texts["system"],
        "day": pa.array(day[example].astype(np.int32), mask=day[example] < 0),
        "learned": pa.array(learned[example]),
        "page_mark": pa.array(numbers["page_mark"][example].astype(np.int32)),
        "bits": pa.array(bits.astype(np.int32)),
        "dropped_user": pa.array(numbers["person"][example], mask=bits == 0),
        **{name: pa.nulls(len(example), pa.int64()) for name in ("row", "source")},
        **{name: pa.array(counts[name].astype(np.int64)) for name in (*COUNTS, "users")},
    }
    return pa.table(columns)


def list_drops(drops: pa.Table) -> pa.Table:
    """Counts of dropped rows as rows of the tally."""
    size = drops.num_rows
    nothing = {
        **{name: pa.nulls(size, pa.string()) for name in ("query_id", "doc_id", "context")},
        **{name: pa.nulls(size, pa.int32()) for name in ("position", "history")},
        "shuffled": pa.nulls(size, pa.bool_()),
        "system": pa.nulls(size, pa.string()),
        "day": pa.nulls(size, pa.int32()),
        "learned": pa.nulls(size, pa.bool_()),
        "page_mark": pa.nulls(size, pa.int32()),
    }
    values = {"bits": drops["bits"].cast(pa.int32()), "dropped_user": drops["person"]}
    values |= {name: drops[name] for name in ("row", "source")}
    counts = {name: drops[name] for name in COUNTS} | {"users": pa.array(np.zeros(size, dtype=np.int64))}
    return pa.table(nothing | values | counts)


def find_names(names: pa.Table, pair: Ints) -> pa.Table:
    """The query and document of each pair; raises if two pairs have the same hash."""
    hashes = read_integers(names["pair"])
    order = np.argsort(hashes, kind="stable")
    starts = np.flatnonzero(np.diff(hashes[order], prepend=hashes[order][:1] - 1))
    repeated = np.flatnonzero(np.diff(hashes[order]) == 0)
    if len(repeated):
        one, two = (names.take(pa.array(order[repeated + step])) for step in (0, 1))
        for name in ("query_id", "doc_id"):
            if not pc.all(pc.equal(one[name], two[name])).as_py():
                raise DataQualityError(
                    "two pairs of query and document have the same 64-bit hash",
                    where="labels",
                    hint="label the log in parts, e.g. by locale",
                )
    place = np.searchsorted(hashes[order][starts], pair)
    return names.take(pa.array(order[starts][place]))


def _is_within(day: Ints, ranges: Sequence[tuple[dt.date, dt.date]]) -> Bools:
    """Whether each day lies in one of the ranges."""
    within = np.zeros(len(day), dtype=np.bool_)
    for first, last in ranges:
        within |= (day >= (first - EPOCH).days) & (day <= (last - EPOCH).days)
    return within


def _read_codes(column: pa.ChunkedArray) -> Ints:
    """The numbers of the texts of a dictionary, −1 for null."""
    joined = column.combine_chunks()
    joined = joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined
    return read_integers(joined.indices, null=-1)


def select_cells(
    tallied: DataFrame, *, max_position: int, history: History | None = None, outcome: Outcome = "click"
) -> DataFrame:
    """The kept rows by query × document × place, with the jackknife bucket of the query.

    Positions, also those of last clicks, end at `max_position`; `clicks` are those that the outcome counts.
    """
    deepest = F.lit(max_position)
    state = F.least("history", deepest) if history == "last_click" else F.col("history")
    successes = F.when(F.col("history") == int(Read.LAST), F.col("clicks")).otherwise(0)
    return (
        tallied.where(F.col("bits") == 0)
        .withColumn("clicks", F.col("clicks") if outcome == "click" else successes)
        .withColumns({"position": F.least("position", deepest), "history": state})
        .groupBy(*PAIR, *PLACE)
        .agg(*[F.sum(name).alias(name) for name in (*COUNTS, "users")])
        .withColumn("bucket", F.pmod(F.xxhash64(F.lit("jackknife"), "query_id"), F.lit(BUCKETS)).cast("int"))
        .select(*PAIR, *PLACE, "bucket", *COUNTS, "users")
    )
