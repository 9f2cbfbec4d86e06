"""Carry the metrics to Spark: a function for `DataFrame.mapInArrow`.

It takes the rows of rankings, labels, queries and decisions as one stream in which those of a query stand
together, cuts that between queries into tables bounded in memory, and scores these as any other tables. So
Spark has to bring rows together and nothing else, and both paths share all that follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from udfs.collect import DESCRIBED, collect
from udfs.conventions import Conventions
from udfs.registry import Spec, parse_all
from udfs.scored import scored
from udfs.tables import Source

# A row of the stream that has `doc`, the 64-bit hash of a document, comes from a ranked list if it has a `system`
# (its place among the names of systems), and else from the labels; `value` is its score or its grade. `doc_id`
# is looked at where documents are tied. A row that has `asked` holds what is known of a query, one that has
# `decided` what a system decided for it.
ROWS_AT_ONCE = 1 << 18  # bounds the memory of a Python worker; a query with more rows makes a table of its own

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class Wanted:
    """What is to be made of the rows of queries."""

    metrics: tuple[str, ...]
    conventions: Conventions
    systems: tuple[str, ...]
    columns: tuple[str, ...]
    earlier: str | None = None  # the system whose lists an earlier stage hands over


def score_queries(wanted: Wanted) -> Callable[[Batches], Batches]:
    """The function from the rows of queries to one row per system and query."""

    def run(batches: Batches) -> Batches:
        specs = parse_all(wanted.metrics)  # parsed where it runs: a kernel is code, and stays out of the closure
        for table in whole_queries(batches):
            yield _scored(table, specs, wanted)

    return run


def whole_queries(batches: Batches, rows: int = ROWS_AT_ONCE) -> Iterator[pa.Table]:
    """The stream as tables of about `rows` rows that end where a query does."""
    held: list[pa.RecordBatch] = []
    count, enough = 0, rows
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count < enough:
            continue
        table = pa.Table.from_batches(held)
        border = _last_border(table["query_id"])
        if border:
            yield table.slice(0, border)
        held, count = table.slice(border).to_batches(), count - border
        enough = max(rows, 2 * count)  # doubled, so that a query of many rows is not looked through at every batch
    if count:
        yield pa.Table.from_batches(held)


def _last_border(query: pa.ChunkedArray) -> int:
    """Where the last query of the column begins."""
    others = np.flatnonzero(pc.not_equal(query, query[-1]).to_numpy())
    return int(others[-1]) + 1 if len(others) else 0


def _scored(table: pa.Table, specs: Sequence[Spec], wanted: Wanted) -> pa.RecordBatch:
    present = set(table.schema.names)
    shown, of_system = table["doc"].is_valid(), table["system"].is_valid()
    order = ("rank", "score") if wanted.conventions.order == "rank" else ("score",)
    described = [name for name in DESCRIBED if name in present]
    ranked = _rows(table, pc.and_(shown, of_system), "query_id", "system", "doc", "doc_id", *order, *described)
    labels = _rows(table, pc.and_not(shown, of_system), "query_id", "doc", "grade", *described)
    asked = _facts(table, "query_id", "asked") if "asked" in present else None
    decided = _facts(table, "query_id", "system", "decided") if "decided" in present else None
    collected = collect(
        Source(ranked, "rankings"),
        Source(labels, "labels"),
        queries=None if asked is None else Source(asked, "queries"),
        decisions=None if decided is None else Source(decided, "decisions"),
        systems=pa.array(wanted.systems, pa.string()),
        conventions=wanted.conventions,
    )
    earlier = None if wanted.earlier is None else wanted.systems.index(wanted.earlier)
    made = scored(collected, specs, wanted.conventions, earlier=earlier, pooled=True)
    made["query_id"] = made["query_id"].cast(pa.string())
    if asked is not None:
        row = collected.listed[collected.query]
        listed = asked.take(pa.array(row, mask=row < 0)).combine_chunks()
        made = {name: pa.concat_arrays(listed[name].chunks) for name in listed.schema.names} | made
    # Spark takes the columns of a batch by their order, so it must be that of the contract.
    return pa.RecordBatch.from_pydict({name: made[name] for name in wanted.columns})


def _rows(table: pa.Table, chosen: pa.ChunkedArray, *columns: str) -> pa.Table:
    """The chosen rows of the stream under the names of the table that they came from."""
    picked = {name: table["value" if name in ("score", "grade") else name] for name in columns}
    return pa.table(picked).filter(chosen)


def _facts(table: pa.Table, *columns: str) -> pa.Table:
    """The rows that hold facts, the fields of the last column, and what they are about.

    Where two rows are about the same, the later one counts: so that this does not hang on the order in which
    they came, the smallest stands last.
    """
    rows = table.select(columns).filter(table[columns[-1]].is_valid())
    told = rows[columns[-1]]
    fields = dict(zip([field.name for field in told.type], told.flatten(), strict=True))
    facts = pa.table({name: rows[name] for name in columns[:-1]} | fields)
    if len(facts.group_by(columns[:-1]).aggregate([])) == len(facts):
        return facts
    return facts.sort_by([(name, "descending") for name in facts.schema.names])
