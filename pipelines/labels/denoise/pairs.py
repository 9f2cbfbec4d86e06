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

from pipelines.labels.denoise.cells import COUNTS, KEYS, TEXTS, KeptRows, choose_rows, read_codes, sum_by
from pipelines.labels.denoise.columns import read_integers
from pipelines.labels.denoise.hashes import is_among
from pipelines.labels.denoise.kinds import limit_draws
from pipelines.labels.denoise.pair_arrays import (
    apply_pair_rules,
    draw_numbers,
    group_rows,
)
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.history import History, Outcome, Read
from schemas.errors import DataQualityError
from schemas.label_days import Kind
from udfs.ragged import Bools, Ints, Ragged
from udfs.sorting import sort_distinct
from udfs.spark.bundles import exchange, read_bundles
from udfs.spark.worker import run_in_worker

PAIR = ("query_id", "doc_id")
PLACE = ("context", "position", "history", "shuffled")
BUCKETS = 50  # of the jackknife
EPOCH = dt.date(1970, 1, 1)
TALLY = (
    "query_id string, doc_id string, context string, position int, history int, shuffled boolean, system string, "
    "day int, learned boolean, page_mark int, bits int, dropped_user bigint, dropped_users bigint, row bigint, "
    "source bigint, impressions bigint, clicks bigint, carts bigint, purchases bigint, users bigint"
)


@dataclass(frozen=True)
class Origin:
    """What a tally says of where an impression comes from, beside its system."""

    shuffled_systems: Sequence[str] = ()  # that serve in random order
    inspected_share: float = 1.0  # of documents and days, drawn by hash, whose day is kept
    learned_days: Sequence[tuple[dt.date, dt.date]] = field(default=())  # ranges with both ends included


def tally_pairs(bundles: DataFrame, settings: DenoiseSettings, origin: Origin, *, buckets: int) -> DataFrame:
    """Kept rows by context × query × document × position, and dropped rows by rules, with their counts.

    `bits` is 0 for kept rows. `users` counts each user of a pair once, at one position, so that it sums up to the
    users of the pair. What the rules on pairs drop is also counted by user, its `dropped_user`; of all other rules,
    `dropped_users` is how many users they drop rows of, by all rules of a user. `shuffled` marks results of the systems
    that serve in random order, and `learned` those of `learned_days`. `day` is kept for a share of the documents and
    days. This table is small, and nothing after it reads the log again.

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
    pair_clicks = np.bincount(groups.pair, weights=counts["clicks"]).astype(np.int64)
    rows, group, users = _select_rows(tables, groups, pair_clicks, settings)
    pair = groups.pair[group]
    outcomes = apply_pair_rules(pair, rows.person, rows.page, rows.position, rows.clicks, pair_clicks[pair], settings)
    counts["users"] = users + sum_by(group, outcomes.users, len(groups.pair))
    dropped = np.flatnonzero(outcomes.bits)  # rows of their own, by rules and user
    lost, of_group = rows.take(dropped), group[dropped]
    beside, example = group_rows([of_group, outcomes.bits[dropped], lost.person])
    counts_beside = {"users": np.zeros(len(example), dtype=np.int64)}
    for name in COUNTS:
        counts[name] = counts[name] - sum_by(of_group, lost.count(name), len(groups.pair))
        counts_beside[name] = sum_by(beside, lost.count(name), len(example))
    present = np.flatnonzero(counts["impressions"])
    bits = np.concatenate([np.zeros(len(present), dtype=np.int64), outcomes.bits[dropped][example]])
    person = np.concatenate([np.zeros(len(present), dtype=np.int64), lost.person[example]])
    taken = np.concatenate([present, of_group[example]])
    all_counts = {name: np.concatenate([counts[name][present], counts_beside[name]]) for name in (*COUNTS, "users")}
    return _build_tally(groups, taken, tables[Kind.NAMES], origin, bits, person, all_counts)


def _group_rows(parts: Sequence[pa.Table], origin: Origin) -> Groups:
    joined = pa.concat_tables([part.select(KEYS) for part in parts], promote_options="permissive").unify_dictionaries()
    numbers = {name: read_integers(joined[name]) for name in KEYS if name not in TEXTS}
    pair = pd.factorize(numbers["pair"])[0].astype(np.int64)
    is_inspected = draw_numbers(numbers["pair"], numbers["day"]) < limit_draws(origin.inspected_share)
    learned = _is_within(numbers["day"], origin.learned_days)
    numbers["day"] = np.where(is_inspected, numbers["day"], -1)
    numbers["learned"] = learned.astype(np.int64)
    codes = [read_codes(joined[name]) for name in TEXTS]
    group, example = group_rows([pair, *codes, *(values for name, values in numbers.items() if name != "pair")])
    texts = joined.select(TEXTS).take(pa.array(example))
    return Groups(group, texts, {name: values[example] for name, values in numbers.items()}, pair[example])


def _count_rows(tables: Mapping[int, pa.Table], groups: Groups) -> dict[str, Ints]:
    """The rows and events of each group, before the rules on pairs."""
    counts = {}
    withdrawn, kept = (KeptRows.of(tables.get(kind)) for kind in (Kind.WITHDRAWN, Kind.KEPT))
    for name in COUNTS:
        weights = [read_integers(tables[Kind.CELLS][name])] if Kind.CELLS in tables else []
        weights += [-withdrawn.count(name), kept.count(name)]
        counts[name] = sum_by(groups.group, np.concatenate(weights), len(groups.pair))
    return counts


def _select_rows(
    tables: Mapping[int, pa.Table], groups: Groups, pair_clicks: Ints, settings: DenoiseSettings
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
    of_cells = groups.group[: cells.num_rows]
    borders = np.append(0, np.cumsum(read_integers(cells["impressions"])))
    chosen = choose_rows(cells, borders, groups.pair[of_cells], pair_clicks, (withdrawn, kept), settings)
    owner = np.searchsorted(borders, chosen, side="right") - 1
    rows, group = KeptRows.of_cells(cells, owner, chosen), of_cells[owner]
    size = len(groups.pair)
    users = sum_by(of_cells, read_integers(cells["users"]), size) - sum_by(group, rows.first, size)
    left = np.flatnonzero(~is_among(rows.page, sort_distinct(withdrawn.page)))
    return KeptRows.join([rows.take(left), kept]), np.concatenate([group[left], of_kept]), users


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
    texts = {name: groups.texts[name].take(pa.array(taken)).cast(pa.string()) for name in TEXTS}
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
        **{name: pa.nulls(len(taken), pa.int64()) for name in ("dropped_users", "row", "source")},
        **{name: pa.array(counts[name]) for name in (*COUNTS, "users")},
    }
    return pa.table(columns)


def list_drops(drops: pa.Table) -> pa.Table:
    """Dropped rows as rows of the tally: counts by rules, the events in the quarantine, and users by their rules.

    All drops of a user must be here, but for those of the rules on pairs.
    """
    bits, person = read_integers(drops["bits"]), read_integers(drops["person"])
    is_event = np.asarray(drops["row"].is_valid().to_numpy()).astype(np.bool_)
    counted, events = np.flatnonzero(~is_event), drops.filter(pa.array(is_event))
    group, example = group_rows([bits[counted]])
    by_rules = {name: sum_by(group, read_integers(drops[name])[counted], len(example)) for name in COUNTS}
    order = np.argsort(person, kind="stable")
    of_users = Ragged.of_sorted(person[order]).reduce(np.bitwise_or, bits[order])
    rules, users = np.unique(of_users, return_counts=True)
    parts = [
        pa.table({"bits": bits[counted][example], **by_rules}),
        events.select(["bits", "row", "source", *COUNTS]),
        pa.table({"bits": rules, "dropped_users": users}),
    ]
    tally = pa.schema(_list_tally_fields())
    joined = pa.concat_tables([tally.empty_table(), *parts], promote_options="permissive").select(tally.names)
    for name in (*COUNTS, "users"):
        joined = joined.set_column(joined.schema.get_field_index(name), name, joined[name].fill_null(0))
    return joined.cast(tally)


def _list_tally_fields() -> list[tuple[str, pa.DataType]]:
    types = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "boolean": pa.bool_()}
    return [(name, types[kind]) for name, kind in (column.split() for column in TALLY.split(", "))]


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
