"""Put the pool of every query together inside Spark workers: a function for `DataFrame.mapInArrow`.

It takes lists, evidence, grades and opinions as one stream, all rows of a query in one partition. `kind` says what a
row is: from 0 on, a document in the system of that slot, at its usual position for the first slots, in a ranked list
for the others; or one of the kinds below. `a`, `b` and `c` are clicks, examinations and depth of `EVIDENCE`, the grade
of `FIXED` and `FLOOR`, and the score in a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from udfs.conventions import Conventions
from udfs.posterior.factors import ABSENT, UNKNOWN
from udfs.ragged import Bools, Floats, Ints, Ragged
from udfs.spark.place import find_places
from udfs.tables import TableReader, encode_ids, hash_ids

Batches = Iterable[pa.RecordBatch]
Ranks = npt.NDArray[np.int32]

EVIDENCE, FIXED, FLOOR, OPINION = -1, -2, -3, -4
POOL_DDL = (
    "query_id string, doc_id string, clicks double, examinations double, depth double, floor double, fixed double, "
    "ranks array<int>, query_clicks double, query_examinations double"
)
LIST = "list"  # a column with the query of a row's list, where lists are apart within a query
_ROWS_PER_BATCH = 1 << 16
_NOWHERE = np.iinfo(np.int32).max  # the rank of a document that a slot does not have


@dataclass(frozen=True)
class PoolRequest:
    """The slots, in this order: `serving` systems by position, `compared` ones and the serving ones by list."""

    serving: int
    compared: int
    top: int  # ranks of a list that belong to the pool
    conventions: Conventions
    opinions: tuple[str, ...] = ()

    @property
    def slots(self) -> int:
        return 2 * self.serving + self.compared


def collect_pool(request: PoolRequest) -> Callable[[Batches], Batches]:
    """The function from the rows of queries to one row per document of their pools, with the counts of the query."""

    def run(batches: Batches) -> Batches:
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            yield from _collect_rows(pa.Table.from_batches(filled), request).to_batches(max_chunksize=_ROWS_PER_BATCH)

    return run


def _collect_rows(table: pa.Table, request: PoolRequest) -> pa.Table:
    (query,), _ = encode_ids(table["query_id"])
    (doc,) = hash_ids(table["doc_id"])
    rows, rank = _place_lists(table, query, request)
    order = np.lexsort((doc[rows], query[rows]))
    rows, rank = rows[order], rank[order]
    kind, pairs = table["kind"].to_numpy()[rows], Ragged.of_sorted(query[rows], doc[rows])
    by_slot = [
        pairs.reduce(np.minimum, np.where(kind == slot, rank, np.int32(_NOWHERE))) for slot in range(request.slots)
    ]
    listed = np.logical_or.reduce([ranks <= request.top for ranks in by_slot[request.serving :]])
    numbers = _sum_evidence([_read_floats(table, name)[rows] for name in "abc"], kind, pairs)
    kept = np.flatnonzero(listed | (numbers["examinations"] > 0) | ~np.isnan(numbers["fixed"]))
    example = rows[pairs.offsets[:-1]][kept]
    queries = Ragged.of_sorted(query[example])
    ranks = _code_ranks([of_slot[kept] for of_slot in by_slot], queries, request)
    columns = {name: pa.array(values[kept], from_pandas=True) for name, values in numbers.items()}
    ends = np.arange(len(kept) + 1, dtype=np.int32) * np.int32(ranks.shape[1])
    columns["ranks"] = pa.ListArray.from_arrays(ends, pa.array(ranks.ravel()))
    for name in ("clicks", "examinations"):
        columns[f"query_{name}"] = pa.array(queries.sums(numbers[name][kept])[queries.owner])
    ids = table.select(["query_id", "doc_id"]).take(pa.array(example))
    opinion = _find_opinions(rows, kind, pairs)[kept]
    opinions = {name: table[name].take(pa.array(opinion, mask=opinion < 0)) for name in request.opinions}
    return pa.table({name: ids[name] for name in ids.column_names} | columns | opinions)


def _place_lists(table: pa.Table, query: Ints, request: PoolRequest) -> tuple[Ints, Ranks]:
    """The rows without duplicates in lists, and their ranks as they are scored."""
    kind = table["kind"].to_numpy()
    is_list = kind >= request.serving
    rows, others = np.flatnonzero(is_list), np.flatnonzero(~is_list)
    lists = table.filter(pa.array(is_list))
    owner = encode_ids(lists[LIST])[0][0] if LIST in table.column_names else query[rows]
    reader = TableReader(lists.rename_columns({"a": "score"}), "rankings")
    picked, place = find_places(reader, owner * request.slots + kind[rows], request.conventions)
    rank = pc.fill_null(table["rank"], _NOWHERE).to_numpy()[others]
    return np.concatenate((others, rows[picked])), np.concatenate((rank, place)).astype(np.int32)


def _sum_evidence(values: list[Floats], kind: Ints, pairs: Ragged) -> dict[str, Floats]:
    """Per pair, sums of its evidence, which is on a grid, its least grade, and its grade by people."""
    is_evidence = kind == EVIDENCE
    names = ("clicks", "examinations", "depth")
    sums = [pairs.sums(np.where(is_evidence, column, 0.0)) for column in values]
    floor = pairs.reduce(np.fmax, np.where(kind == FLOOR, values[0], np.nan))
    fixed = pairs.reduce(np.fmax, np.where(kind == FIXED, values[0], np.nan))
    return dict(zip(names, sums, strict=True)) | {"floor": np.where(np.isnan(floor), 0.0, floor), "fixed": fixed}


def _find_opinions(rows: Ints, kind: Ints, pairs: Ragged) -> Ints:
    """Per pair the row of its opinions, or −1."""
    row = np.full(pairs.size, -1)
    of_opinions = kind == OPINION
    row[pairs.owner[of_opinions]] = rows[of_opinions]
    return row


def _read_floats(table: pa.Table, name: str) -> Floats:
    return np.asarray(table[name].to_numpy(), dtype=np.float64)


def _code_ranks(by_slot: list[Ranks], queries: Ragged, request: PoolRequest) -> Ranks:
    """Per pair the rank in every system of the plan.

    That in a serving system is by what it showed, or else by its list, and unknown for queries that it did neither for.
    """

    def has_query(ranks: Ranks) -> Bools:
        return (queries.reduce(np.minimum, ranks) < _NOWHERE)[queries.owner]

    codes = [np.where(ranks < _NOWHERE, ranks, ABSENT) for ranks in by_slot]
    systems, columns = request.serving + request.compared, codes[: request.serving + request.compared]
    for slot in range(request.serving):
        by_list = np.where(has_query(by_slot[systems + slot]), codes[systems + slot], UNKNOWN)
        columns[slot] = np.where(has_query(by_slot[slot]), codes[slot], by_list)
    return np.stack(columns, axis=1).astype(np.int32) if columns else np.zeros((queries.rows, 0), dtype=np.int32)
