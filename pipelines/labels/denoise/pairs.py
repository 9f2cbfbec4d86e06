"""Count kept rows by query, document and position, and dropped rows by rule, in one shuffle."""

import datetime as dt
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.labels.denoise.nameless import hash_below
from pipelines.labels.denoise.pages import distribute
from pipelines.labels.denoise.pair_arrays import (
    apply_pair_rules,
    encode_texts,
    group_rows,
    number_densely,
    read_numbers,
)
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.history import History, Outcome, Read
from udfs.ragged import Ints
from udfs.spark.worker import run_in_worker
from udfs.tables import encode_ids

PAIR = ("query_id", "doc_id")
PLACE = ("context", "position", "history", "shuffled")
ORIGIN = ("system", "day", "learned", "page_mark")
COUNTS = ("impressions", "clicks", "carts", "purchases")
BUCKETS = 50  # of the jackknife
EPOCH = dt.date(1970, 1, 1)
_SALTS = 16
_TEXTS = (*PAIR, "context", "system", "row")
TALLY = (
    "query_id string, doc_id string, context string, position int, history int, shuffled boolean, system string, "
    "day int, learned boolean, page_mark int, bits int, dropped_user bigint, row string, impressions bigint, "
    "clicks bigint, carts bigint, purchases bigint, users bigint"
)


def tally_rows(
    outcomes: DataFrame,
    settings: DenoiseSettings,
    *,
    shuffled_systems: Sequence[str] = (),
    inspected_share: float = 1.0,
    learned_days: Sequence[tuple[dt.date, dt.date]] = (),
    impressions: int | None = None,
) -> DataFrame:
    """Kept rows by context × query × document × position, dropped rows by rules and user, with their counts.

    `bits` is 0 for kept rows. `users` counts each user of a pair once, at one position, so that it sums up to the
    users of the pair. `shuffled` marks results of the systems that serve in random order, and `learned` those of
    `learned_days`, ranges with both ends included. `day` is kept for a share of the documents and days, drawn by hash.
    This table is small, and nothing after it reads the log again.
    """
    kept = F.col("bits") == 0
    rows = outcomes.select(
        F.when(kept, F.xxhash64(*PAIR)).otherwise(salt_dropped()).alias("key"),
        *_TEXTS,
        *("position", "history", "page_mark", "bits", "page", "person", *COUNTS),
        *describe_origin(shuffled_systems, inspected_share, learned_days),
    )

    def tally(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            table = pa.Table.from_batches(filled).combine_chunks()
            is_kept = pc.equal(table["bits"], 0)
            kept_rows = table.filter(is_kept)
            numbers = {name: read_numbers(kept_rows[name]) for name in ("page", "person", *COUNTS)}
            yield from tally_kept(kept_rows, numbers, settings).to_batches()
            yield from tally_dropped(table.filter(pc.invert(is_kept))).to_batches()

    return distribute(rows, "key", impressions).mapInArrow(run_in_worker(tally), TALLY)


def salt_dropped() -> Column:
    """The key of dropped rows: one bot may have millions of them, so they are spread over several."""
    return F.xxhash64("person", F.pmod("page", F.lit(_SALTS)))


def describe_origin(
    shuffled_systems: Sequence[str], inspected_share: float, learned_days: Sequence[tuple[dt.date, dt.date]]
) -> tuple[Column, Column, Column]:
    """`shuffled`, `learned` and `day` of a row, see `tally_rows`."""
    shuffled = F.col("system").isin(*shuffled_systems) if shuffled_systems else F.lit(False)
    return (
        F.coalesce(shuffled, F.lit(False)).alias("shuffled"),
        _is_within(learned_days).alias("learned"),
        F.when(hash_below(inspected_share, *PAIR, "day"), F.col("day")).alias("day"),
    )


def tally_kept(
    table: pa.Table, numbers: dict[str, Ints], settings: DenoiseSettings, owner: Ints | None = None
) -> pa.Table:
    """Apply the rules on pairs, and count rows by pair, place and origin; those that a rule drops also by user.

    `numbers` are those of single rows; `table` has the pair, place and origin of each, at the index `owner`.
    """

    codes = {name: encode_ids(table[name].fill_null(""))[0][0] for name in (*PAIR, "context")}
    pair, _ = group_rows([codes[name] for name in PAIR])
    position = read_numbers(table["position"])
    alike = [read_numbers(table[name]) for name in ("history", "shuffled", "learned", "page_mark")]
    day = read_numbers(table["day"], null=-1)
    place, _ = group_rows([pair, codes["context"], position, encode_texts(table["system"]), day, *alike])
    if owner is not None:
        place, pair, position = place[owner], pair[owner], position[owner]
    outcomes = apply_pair_rules(pair, numbers["person"], numbers["page"], position, numbers["clicks"], settings)
    is_dropped = outcomes.bits != 0
    dropped, groups = np.flatnonzero(is_dropped), place.copy()
    beside = group_rows([values[dropped] for values in (place, outcomes.bits, numbers["person"])])[0]
    groups[dropped] = beside + place.max(initial=-1) + 1
    counts = {name: numbers[name] for name in COUNTS} | {"users": outcomes.users}
    return _sum_groups(table, groups, counts, outcomes.bits, pa.array(numbers["person"], mask=~is_dropped), owner)


def tally_dropped(table: pa.Table) -> pa.Table:
    """Count dropped rows by rules and user; the quarantined ones stay apart."""
    bits, person = read_numbers(table["bits"]), read_numbers(table["person"])
    alone = np.where(table["row"].is_valid().to_numpy(), np.arange(1, table.num_rows + 1), 0)
    counts = {name: read_numbers(table[name]) for name in COUNTS} | {"users": np.zeros_like(bits)}
    nothing = {name: pa.nulls(table.num_rows, table.schema.field(name).type) for name in (*PAIR, *PLACE, *ORIGIN)}
    blank = pa.table(nothing | {"row": table["row"]})
    groups, _ = group_rows([bits, person, alone])
    return _sum_groups(blank, groups, counts, bits, pa.array(person))


def _sum_groups(
    table: pa.Table,
    groups: Ints,
    counts: dict[str, Ints],
    bits: Ints,
    dropped_user: pa.Array,
    owner: Ints | None = None,
) -> pa.Table:
    """The sums of `counts` over the rows of each group, as rows of the tally."""
    groups, example = number_densely(groups)
    taken = table.take(pa.array(example if owner is None else owner[example]))
    sums = {
        name: pa.array(np.bincount(groups, weights=count, minlength=len(example)).astype(np.int64))
        for name, count in counts.items()
    }
    beside = {"bits": pa.array(bits[example].astype(np.int32)), "dropped_user": dropped_user.take(pa.array(example))}
    columns = {name: taken[name] for name in (*PAIR, *PLACE, *ORIGIN)} | beside | {"row": taken["row"]} | sums
    return pa.table(columns)


def _is_within(days: Sequence[tuple[dt.date, dt.date]]) -> Column:
    """Whether the day of a row lies in one of these ranges."""
    ranges = [F.col("day").between((first - EPOCH).days, (last - EPOCH).days) for first, last in days]
    return reduce(or_, ranges, F.lit(False))


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
