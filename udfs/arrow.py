"""Carry the metrics to Spark: a function for `DataFrame.mapInArrow`.

It takes the rows of rankings, labels, queries and decisions as one stream, all those of a query in the same
partition, and scores them as any other tables. So Spark has to bring rows together and nothing else, not even
to sort them, and both paths share all that follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.json

from udfs.collect import DESCRIBED, collect
from udfs.conventions import Conventions
from udfs.ragged import Bools
from udfs.registry import Spec, parse_all
from udfs.scored import scored
from udfs.tables import Source

# What a row of the stream is, is told by its `source`: from 0 on the place of a system among the names of systems, for
# a document that it ranked; a label; a query; or, from DECISION downwards, a decision of the first, second, … system.
# `value` is a score, a grade, or the weight of a query. `text` is the doc_id of a ranked or labelled document; for a
# query its segments and for a decision what was decided, each a line of JSON: columns of their own would be empty in
# nearly all rows, and cost as much as full ones.
LABEL, QUERY, DECISION = -1, -2, -3
DECIDED = {
    "expert": pa.string(),
    "optimal_expert": pa.string(),
    "retrieved": pa.bool_(),
    "retrieval_needed": pa.bool_(),
}

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class Wanted:
    """What is to be made of the rows of queries."""

    metrics: tuple[str, ...]
    conventions: Conventions
    systems: tuple[str, ...]
    segments: tuple[str, ...]
    columns: tuple[str, ...]
    earlier: str | None = None  # the system whose lists an earlier stage hands over


def score_queries(wanted: Wanted) -> Callable[[Batches], Batches]:
    """The function from the rows of queries to one row per system and query."""

    def run(batches: Batches) -> Batches:
        specs = parse_all(wanted.metrics)  # parsed where it runs: a kernel is code, and stays out of the closure
        held = [batch for batch in batches if batch.num_rows]
        if held:
            yield _scored(pa.Table.from_batches(held), specs, wanted)

    return run


def _scored(table: pa.Table, specs: Sequence[Spec], wanted: Wanted) -> pa.RecordBatch:
    source = np.concatenate([chunk.to_numpy() for chunk in table["source"].chunks])
    order = ["rank", "score"] if wanted.conventions.order == "rank" else ["score"]
    described = [name for name in DESCRIBED if name in table.schema.names]
    ranked = _rows(table, source >= 0, "query_id", "doc_id", *order, *described)
    labels = _rows(table, source == LABEL, "query_id", "doc_id", "grade", *described)
    queries = _rows(table, source == QUERY, "query_id", "weight", "text")
    decisions = _rows(table, source <= DECISION, "query_id", "text")
    ranked = ranked.append_column("system", pa.array(source[source >= 0]))
    decisions = decisions.append_column("system", pa.array(DECISION - source[source <= DECISION]))
    asked = _told(queries, dict.fromkeys(wanted.segments, pa.string()), "query_id")
    decided = _told(decisions, DECIDED, "query_id", "system")
    collected = collect(
        Source(ranked, "rankings"),
        Source(labels, "labels"),
        queries=Source(asked, "queries"),
        decisions=Source(decided, "decisions"),
        systems=pa.array(wanted.systems, pa.string()),
        conventions=wanted.conventions,
    )
    earlier = None if wanted.earlier is None else wanted.systems.index(wanted.earlier)
    made = scored(collected, specs, wanted.conventions, earlier=earlier, pooled=True)
    made["query_id"] = made["query_id"].cast(pa.string())
    row = collected.listed[collected.query]
    listed = asked.take(pa.array(row, mask=row < 0)).combine_chunks()
    made |= {name: pa.concat_arrays(listed[name].chunks) for name in wanted.segments}
    # Spark takes the columns of a batch by their order, so it must be that of the contract.
    return pa.RecordBatch.from_pydict({name: made[name] for name in wanted.columns})


def _rows(table: pa.Table, chosen: Bools, *columns: str) -> pa.Table:
    """The chosen rows of the stream under the names of the table that they came from."""
    called = {"score": "value", "grade": "value", "weight": "value", "doc_id": "text"}
    return pa.table({name: table[called.get(name, name)] for name in columns}).filter(pa.array(chosen))


def _told(rows: pa.Table, fields: Mapping[str, pa.DataType], *keys: str) -> pa.Table:
    """The rows with what their text tells as columns.

    Where two rows have the same keys, the later one counts: so that this does not hang on the order in which
    they came, the smallest stands last.
    """
    table = rows.drop_columns(["text"])
    for name, values in _spelled(rows["text"], fields).items():
        table = table.append_column(name, values)
    if len(table.group_by(list(keys)).aggregate([])) == len(table):
        return table
    return table.sort_by([(name, "descending") for name in table.schema.names])


def _spelled(lines: pa.ChunkedArray, fields: Mapping[str, pa.DataType]) -> dict[str, pa.ChunkedArray]:
    """The fields of lines of JSON, each of which ends with the sign for its end."""
    if not fields or not len(lines):
        return {name: pa.chunked_array([], kind) for name, kind in fields.items()}
    text = _bytes(pa.concat_arrays(lines.chunks))
    options = pyarrow.json.ParseOptions(explicit_schema=pa.schema(fields.items()), unexpected_field_behavior="ignore")
    whole = pyarrow.json.ReadOptions(use_threads=False, block_size=text.size + 1)
    read = pyarrow.json.read_json(pa.BufferReader(text), read_options=whole, parse_options=options)
    return {name: read[name] for name in fields}


def _bytes(texts: pa.StringArray) -> pa.Buffer:
    """All texts one after the other, as they stand in memory."""
    _, borders, data = texts.buffers()
    offsets = np.frombuffer(borders, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return data.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
