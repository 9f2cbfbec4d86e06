"""Count kept impressions by query, document and position, and dropped rows by rule, from bundles by pair."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.labels.denoise.columns import join_chunks, read_integers
from pipelines.labels.denoise.hashes import find_repeated, is_among, mix_numbers
from pipelines.labels.denoise.keys import divide_kind
from pipelines.labels.denoise.kinds import limit_draws
from pipelines.labels.denoise.pair_arrays import (
    UserRows,
    apply_pair_rules,
    combine_pair_rules,
    draw_numbers,
    group_rows,
    number_user_rows,
)
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.history import History, Outcome, Read
from schemas.errors import DataQualityError
from schemas.label_days import Kind
from udfs.ragged import Bools, Ints
from udfs.spark.bundles import BUNDLES, exchange, read_bundles
from udfs.spark.files import narrow_numbers
from udfs.spark.worker import run_in_worker

PAIR = ("query_id", "doc_id")
PLACE = ("context", "position", "history", "shuffled")
COUNTS = ("impressions", "clicks", "carts", "purchases")
KEYS = ("pair", "context", "system", "day", "position", "history", "page_mark")  # of a cell
LISTS = ("person", "page", "clicks", "carts", "purchases", "users")  # of a cell, per row
BUCKETS = 50  # of the jackknife
EPOCH = dt.date(1970, 1, 1)
_TEXTS = ("context", "system")
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

    The rows of a window are the cells of its days, without withdrawn rows and with those that are judged again.
    """

    def tally(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = read_bundles(batches)
        if Kind.KEPT in tables or Kind.CELLS in tables:
            yield from tally_rows(tables, settings, origin).to_batches()
        if Kind.DROPS in tables:
            yield from list_drops(tables[Kind.DROPS]).to_batches()

    kinds = [int(kind) for kind in (Kind.KEPT, Kind.CELLS, Kind.WITHDRAWN, Kind.NAMES, Kind.DROPS)]
    chosen = bundles.where(F.col("kind").isin(*kinds))
    return exchange(chosen, buckets).mapInArrow(run_in_worker(tally), TALLY)


def count_cells(bundles: DataFrame, *, buckets: int, partitions: int) -> DataFrame:
    """Bundles of the cells and names of a day, from those of its kept rows and names."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = read_bundles(batches)
        if Kind.KEPT in tables:
            yield divide_kind(build_cells(tables[Kind.KEPT]), buckets, Kind.CELLS)
        if Kind.NAMES in tables:
            names = tables[Kind.NAMES]
            first = np.flatnonzero(~pd.Series(read_integers(names["pair"])).duplicated().to_numpy())
            yield divide_kind(names.take(pa.array(first)), buckets, Kind.NAMES)

    chosen = bundles.where(F.col("kind").isin(int(Kind.KEPT), int(Kind.NAMES)))
    return exchange(chosen, buckets, partitions).mapInArrow(run_in_worker(count), BUNDLES)


def build_cells(kept: pa.Table) -> pa.Table:
    """Kept rows by pair and place: their counts, and as lists their users, pages and events."""
    rows = KeptRows.of(kept)
    keys = [read_codes(kept[name]) if name in _TEXTS else read_integers(kept[name]) for name in KEYS]
    group, example = group_rows(keys)
    order = np.argsort(group, kind="stable")
    borders = pa.array(np.append(0, np.cumsum(np.bincount(group))).astype(np.int32))
    users = number_user_rows(rows.pair, rows.person, rows.page, rows.position, rows.clicks)
    by_row = replace(rows, users=np.equal(users.number, 1).astype(np.int64)).take(order)
    cells = {name: kept[name].take(pa.array(example)) for name in KEYS}
    for name in LISTS:
        values = pa.chunked_array([pa.array(getattr(by_row, name))])
        narrow = values if name in ("person", "page") else narrow_numbers(values)
        cells[name] = pa.ListArray.from_arrays(borders, join_chunks(narrow))
    return pa.table(cells)


@dataclass(frozen=True)
class KeptRows:
    """Kept impressions one by one: their pair, user, page and position, and how many events they have.

    `users` is 1 for the rows of a day that are the first of their user on the pair.
    """

    pair: Ints
    person: Ints
    page: Ints
    position: Ints
    clicks: Ints
    carts: Ints
    purchases: Ints
    users: Ints

    @classmethod
    def of(cls, table: pa.Table | None) -> KeptRows:
        size = 0 if table is None else table.num_rows
        numbers = {name: np.zeros(size, dtype=np.int64) for name in _FIELDS}
        if table is not None:
            numbers |= {name: read_integers(table[name]) for name in _FIELDS if name != "users"}
        return cls(**numbers)

    @classmethod
    def of_cells(cls, cells: pa.Table, owner: Ints) -> KeptRows:
        lists = {name: read_list(cells[name]) for name in LISTS}
        return cls(**lists, **{name: read_integers(cells[name])[owner] for name in ("pair", "position")})

    def take(self, rows: Ints) -> KeptRows:
        return KeptRows(**{name: getattr(self, name)[rows] for name in _FIELDS})

    @classmethod
    def join(cls, parts: Sequence[KeptRows]) -> KeptRows:
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS})


_FIELDS = tuple(field.name for field in fields(KeptRows))


@dataclass(frozen=True)
class Groups:
    """The groups that rows and cells are counted in: by pair, place and origin."""

    group: Ints  # per row of the cells, the withdrawn rows and the others, in this order
    texts: pa.Table  # per group
    numbers: Mapping[str, Ints]  # per group
    pair: Ints  # per group, the number of its pair


def tally_rows(tables: Mapping[int, pa.Table], settings: DenoiseSettings, origin: Origin) -> pa.Table:
    """Apply the rules on pairs, and count impressions by pair, place and origin; what a rule drops also by user."""
    parts = [tables[kind] for kind in (Kind.CELLS, Kind.WITHDRAWN, Kind.KEPT) if kind in tables]
    groups = _group_rows(parts, origin)
    counts = _count_rows(tables, groups)
    rows, group, users = _select_rows(tables, groups, counts["clicks"], settings)
    pair = groups.pair[group]
    pair_clicks = np.bincount(groups.pair, weights=counts["clicks"]).astype(np.int64)[pair]
    outcomes = apply_pair_rules(pair, rows.person, rows.page, rows.position, rows.clicks, pair_clicks, settings)
    counts["users"] = users + _sum_by(group, outcomes.users, len(groups.pair))
    dropped = np.flatnonzero(outcomes.bits)  # rows of their own, by rules and user
    lost, of_group = rows.take(dropped), group[dropped]
    beside, example = group_rows([of_group, outcomes.bits[dropped], lost.person])
    counts_beside = {"users": np.zeros(len(example), dtype=np.int64)}
    for name in COUNTS:
        values = np.ones(len(dropped), dtype=np.int64) if name == "impressions" else getattr(lost, name)
        counts[name] = counts[name] - _sum_by(of_group, values, len(groups.pair))
        counts_beside[name] = _sum_by(beside, values, len(example))
    present = np.flatnonzero(counts["impressions"])
    bits = np.concatenate([np.zeros(len(present), dtype=np.int64), outcomes.bits[dropped][example]])
    person = np.concatenate([np.zeros(len(present), dtype=np.int64), lost.person[example]])
    taken = np.concatenate([present, of_group[example]])
    all_counts = {name: np.concatenate([counts[name][present], counts_beside[name]]) for name in (*COUNTS, "users")}
    return _build_tally(groups, taken, tables[Kind.NAMES], origin, bits, person, all_counts)


def _group_rows(parts: Sequence[pa.Table], origin: Origin) -> Groups:
    joined = pa.concat_tables([part.select(KEYS) for part in parts], promote_options="permissive").unify_dictionaries()
    numbers = {name: read_integers(joined[name]) for name in KEYS if name not in _TEXTS}
    pair = pd.factorize(numbers["pair"])[0].astype(np.int64)
    is_inspected = draw_numbers(numbers["pair"], numbers["day"]) < limit_draws(origin.inspected_share)
    learned = _is_within(numbers["day"], origin.learned_days)
    numbers["day"] = np.where(is_inspected, numbers["day"], -1)
    numbers["learned"] = learned.astype(np.int64)
    codes = [read_codes(joined[name]) for name in _TEXTS]
    group, example = group_rows([pair, *codes, *(values for name, values in numbers.items() if name != "pair")])
    texts = joined.select(_TEXTS).take(pa.array(example))
    return Groups(group, texts, {name: values[example] for name, values in numbers.items()}, pair[example])


def _count_rows(tables: Mapping[int, pa.Table], groups: Groups) -> dict[str, Ints]:
    """The rows and events of each group, before the rules on pairs."""
    counts = {}
    for name in COUNTS:
        weights = []
        if Kind.CELLS in tables:
            weights.append(_sum_lists(tables[Kind.CELLS], name))
        for kind, sign in ((Kind.WITHDRAWN, -1), (Kind.KEPT, 1)):
            if kind in tables:
                rows = tables[kind]
                ones = np.ones(rows.num_rows, dtype=np.int64)
                weights.append(sign * (ones if name == "impressions" else read_integers(rows[name])))
        counts[name] = _sum_by(groups.group, np.concatenate(weights), len(groups.pair))
    return counts


def _sum_lists(cells: pa.Table, name: str) -> Ints:
    """The rows of each cell, or the sum of their events."""
    lengths = _measure_lists(cells)
    if name == "impressions":
        return lengths
    return _sum_by(np.repeat(np.arange(len(lengths)), lengths), read_list(cells[name]), len(lengths))


def _measure_lists(cells: pa.Table) -> Ints:
    return np.asarray(pc.list_value_length(cells[LISTS[0]]).to_numpy()).astype(np.int64)


def _sum_by(group: Ints, values: Ints, size: int) -> Ints:
    rows = np.flatnonzero(values)  # few, of events
    return np.bincount(group[rows], weights=values[rows], minlength=size).astype(np.int64)


def _select_rows(
    tables: Mapping[int, pa.Table], groups: Groups, clicks: Ints, settings: DenoiseSettings
) -> tuple[KeptRows, Ints, Ints]:
    """The rows that the rules on pairs need one by one, their groups, and the users of all others per group.

    All rows of the log; of a window, those that are judged again, and those of the days whose user has other rows on
    the pair. The other rows of its days are the only ones of their user: these are already counted, and no rule drops
    them.
    """
    kept = KeptRows.of(tables.get(Kind.KEPT))
    of_kept = groups.group[len(groups.group) - len(kept.pair) :]
    if Kind.CELLS not in tables:
        return kept, of_kept, np.zeros(len(groups.pair), dtype=np.int64)
    cells, withdrawn = tables[Kind.CELLS], KeptRows.of(tables.get(Kind.WITHDRAWN))
    lengths = _measure_lists(cells)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    rows, group = KeptRows.of_cells(cells, owner), groups.group[: len(lengths)][owner]
    is_chosen = _find_dropped(rows, groups, group, clicks, settings)
    repeated = find_repeated(np.concatenate([mix_numbers(part.person, part.pair) for part in (rows, withdrawn, kept)]))
    is_chosen[repeated[repeated < len(is_chosen)]] = True
    users = _sum_by(group, np.where(is_chosen, 0, rows.users), len(groups.pair))
    chosen = np.flatnonzero(is_chosen)
    rows, group = rows.take(chosen), group[chosen]
    left = np.flatnonzero(~is_among(rows.page, np.unique(withdrawn.page)))
    return KeptRows.join([rows.take(left), kept]), np.concatenate([group[left], of_kept]), users


def _find_dropped(
    rows: KeptRows, groups: Groups, group: Ints, clicks: Ints, settings: DenoiseSettings
) -> npt.NDArray[np.bool_]:
    """Whether the rules on pairs would drop each row if it were the only one of its user on the pair."""
    pair_clicks = np.bincount(groups.pair, weights=clicks).astype(np.int64)
    clicked = np.flatnonzero(rows.clicks)  # few; the others differ in their pair only
    both = np.concatenate([np.zeros(len(pair_clicks), dtype=np.int64), rows.clicks[clicked]])
    of_pair = np.concatenate([pair_clicks, pair_clicks[groups.pair[group[clicked]]]])
    one = np.ones_like(both)
    dropped = combine_pair_rules(UserRows(one, one, both), of_pair, settings) != 0
    unclicked = np.flatnonzero(dropped[: len(pair_clicks)])
    is_dropped = np.zeros(len(rows.pair), dtype=np.bool_)
    is_dropped[clicked] = dropped[len(pair_clicks) :]
    is_dropped |= np.equal(rows.clicks, 0) & is_among(groups.pair[group], unclicked)
    return is_dropped


def _build_tally(
    groups: Groups,
    taken: Ints,
    names: pa.Table,
    origin: Origin,
    bits: Ints,
    person: Ints,
    counts: Mapping[str, Ints],
) -> pa.Table:
    numbers = {name: values[taken] for name, values in groups.numbers.items()}
    texts = {name: groups.texts[name].take(pa.array(taken)).cast(pa.string()) for name in _TEXTS}
    named = find_names(names, numbers["pair"])
    columns = {
        **{name: named[name] for name in ("query_id", "doc_id")},
        "context": texts["context"],
        **{name: pa.array(numbers[name].astype(np.int32)) for name in ("position", "history")},
        "shuffled": pc.is_in(texts["system"], pa.array(origin.shuffled_systems, pa.string())),
        "system": texts["system"],
        "day": pa.array(numbers["day"].astype(np.int32), mask=numbers["day"] < 0),
        "learned": pa.array(numbers["learned"] != 0),
        "page_mark": pa.array(numbers["page_mark"].astype(np.int32)),
        "bits": pa.array(bits.astype(np.int32)),
        "dropped_user": pa.array(person, mask=bits == 0),
        **{name: pa.nulls(len(taken), pa.int64()) for name in ("row", "source")},
        **{name: pa.array(counts[name]) for name in (*COUNTS, "users")},
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


def read_list(column: pa.ChunkedArray) -> Ints:
    """The values of all lists of integers, one after the other."""
    return read_integers(join_chunks(column).flatten())


def read_codes(column: pa.ChunkedArray) -> Ints:
    """The numbers of the texts of a dictionary, −1 for null."""
    return read_integers(join_chunks(column).indices, null=-1)


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
