"""Score queries inside a Spark worker: a function for `DataFrame.mapInArrow`.

It takes the rows of rankings, labels, queries and decisions as one stream, all rows of a query in the same
partition, and scores them with the code that scores tables in memory. Spark only shuffles; it does not sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.json

from udfs.collect import DOC_TEXT, collect_lists
from udfs.conventions import Conventions
from udfs.draws import LabelDraws
from udfs.ragged import Bools
from udfs.registry import MetricSpec, parse_metrics
from udfs.spark.bundles import read_bundles
from udfs.spark.divide import LABELS, QUERIES, RANKINGS
from udfs.statistics.counting import CountingRule
from udfs.tables import TableReader, join_bytes, slice_bytes
from udfs.tabulate import DRAWS, tabulate_metrics

# `source` is the kind of a row: from 0 on, a document ranked by the system of that index; LABEL; QUERY; from DECISION
# downwards, a decision of the first, second, … system. `value` is a score, a grade, or the weight of a query. `text` is
# the doc_id of a ranked or labelled document; for a query its segments and for a decision its fields, each a line of
# JSON: columns of their own would be empty in nearly all rows, and cost as much as full ones. Where metrics read them,
# `category` has the categories of a ranked document and the subtopics of a label, as distinct hashes in the order of
# their texts. Where labels are drawn, `evidence` is that of a label, as `udfs.draws` reads it.
LABEL, QUERY, DECISION = -1, -2, -3
DECISION_COLUMNS = {
    "expert": pa.string(),
    "optimal_expert": pa.string(),
    "retrieved": pa.bool_(),
    "retrieval_needed": pa.bool_(),
}

Batches = Iterable[pa.RecordBatch]

_ROWS_PER_BATCH, _BYTES_PER_BATCH = 1 << 14, 1 << 28


@dataclass(frozen=True)
class ScoreRequest:
    """What to compute, and the columns to return."""

    metrics: tuple[str, ...]
    conventions: Conventions
    systems: tuple[str, ...]
    segments: tuple[str, ...]
    columns: tuple[str, ...]
    earlier: str | None = None  # the system of the earlier stage
    baseline: str | None = None  # the system that the spread of differences over draws is against
    draws: LabelDraws | None = None
    counting: CountingRule | None = None

    def find_system(self, name: str | None) -> int | None:
        return None if name is None else self.systems.index(name)


def score_queries(request: ScoreRequest) -> Callable[[Batches], Batches]:
    """The function from the rows of queries to one row per system and query."""

    def run(batches: Batches) -> Batches:
        specs = parse_metrics(request.metrics)  # in the worker, to keep kernels out of the closure
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            yield from _split_rows(_score_rows(pa.Table.from_batches(filled), specs, request))

    return run


def score_bundles(request: ScoreRequest) -> Callable[[Batches], Batches]:
    """The same function from bundles of rankings, labels and queries, as `udfs.spark.divide` makes them."""

    def run(batches: Batches) -> Batches:
        specs = parse_metrics(request.metrics)
        tables = read_bundles(batches)
        if tables:
            yield from _split_rows(_score_tables(_name_tables(tables, request), specs, request))

    return run


def _name_tables(bundled: Mapping[int, pa.Table], request: ScoreRequest) -> _Tables:
    """The tables by the kinds of their bundles; those without rows are empty."""
    number = "rank" if request.conventions.order == "rank" else "score"
    columns = {"query_id": pa.string(), "doc_id": pa.int64()}
    of_lists = {**columns, DOC_TEXT: pa.string(), "system": pa.int16(), number: pa.float64()}
    of_queries = {"query_id": pa.string(), "weight": pa.float64(), **dict.fromkeys(request.segments, pa.string())}
    queries = bundled.get(QUERIES, _build_empty(of_queries))
    queries = queries.set_column(
        queries.schema.get_field_index("query_id"), "query_id", queries["query_id"].cast(pa.string())
    )
    present = [name for name in of_queries if name in queries.column_names]
    decisions = _build_empty({"query_id": pa.string(), "system": pa.int64(), **DECISION_COLUMNS})
    return _Tables(
        rankings=bundled.get(RANKINGS, _build_empty(of_lists)),
        labels=bundled.get(LABELS, _build_empty({**columns, "grade": pa.float64()})),
        queries=put_smallest_last(queries.select(present), ["query_id"]),
        decisions=decisions,
    )


def _build_empty(columns: Mapping[str, pa.DataType]) -> pa.Table:
    return pa.schema(columns.items()).empty_table()


@dataclass(frozen=True)
class _Tables:
    """The rows of a partition."""

    rankings: pa.Table
    labels: pa.Table
    queries: pa.Table
    decisions: pa.Table


def _score_rows(table: pa.Table, specs: Sequence[MetricSpec], request: ScoreRequest) -> pa.RecordBatch:
    source = np.concatenate([chunk.to_numpy() for chunk in table["source"].chunks])
    order = ["rank", "score"] if request.conventions.order == "rank" else ["score"]
    documents = [name for name in ("category", "popularity") if name in table.schema.names]
    subtopics = [name for name in ("subtopics",) if "category" in table.schema.names]
    rankings = _select_rows(table, source >= 0, "query_id", "doc_id", *order, *documents)
    rankings = rankings.append_column("system", pa.array(source[source >= 0]))
    evidence = [] if request.draws is None else ["evidence"]
    labels = _select_rows(table, source == LABEL, "query_id", "doc_id", "grade", *subtopics, *evidence)
    queries = _select_rows(table, source == QUERY, "query_id", "weight", "text")
    queries = _parse_text(queries, dict.fromkeys(request.segments, pa.string()), "query_id")
    decisions = _select_rows(table, source <= DECISION, "query_id", "text")
    decisions = decisions.append_column("system", pa.array(DECISION - source[source <= DECISION]))
    decisions = _parse_text(decisions, DECISION_COLUMNS, "query_id", "system")
    return _score_tables(_Tables(rankings, labels, queries, decisions), specs, request)


def _score_tables(tables: _Tables, specs: Sequence[MetricSpec], request: ScoreRequest) -> pa.RecordBatch:
    collected = collect_lists(
        TableReader(tables.rankings, "rankings"),
        TableReader(tables.labels, "labels"),
        queries=TableReader(tables.queries, "queries"),
        decisions=TableReader(tables.decisions, "decisions"),
        systems=pa.array(request.systems, pa.string()),
        conventions=request.conventions,
        draws=request.draws,
    )
    columns = tabulate_metrics(
        collected,
        specs,
        request.conventions,
        earlier=request.find_system(request.earlier),
        baseline=request.find_system(request.baseline),
        pooled=True,
    )
    columns["query_id"] = columns["query_id"].cast(pa.string())
    row = collected.query_row[collected.query]
    segments = tables.queries.take(pa.array(row, mask=row < 0)).combine_chunks()
    columns |= {name: pa.concat_arrays(segments[name].chunks) for name in request.segments}
    columns["counted"] = (request.counting or CountingRule(specs[0].key if specs else "")).mark(columns)
    # Spark takes the columns of a batch by their order, so it must be that of the contract.
    return pa.RecordBatch.from_pydict({name: columns[name] for name in request.columns})


def _split_rows(batch: pa.RecordBatch) -> Batches:
    """The rows in pieces of bounded size, so that draws need no offsets beyond 32 bits."""
    at = batch.schema.get_field_index(DRAWS)
    width = 0 if at < 0 else batch.schema.field(at).type.byte_width
    most = max(min(_ROWS_PER_BATCH, _BYTES_PER_BATCH // max(width, 1)), 1)
    for start in range(0, batch.num_rows, most):
        piece = batch.slice(start, most)
        yield piece if at < 0 else piece.set_column(at, DRAWS, slice_bytes(batch[at], start, most))


def _select_rows(table: pa.Table, mask: Bools, *columns: str) -> pa.Table:
    """The rows of the mask under the column names of the table they came from."""
    sources = {"score": "value", "grade": "value", "weight": "value", "doc_id": "text", "subtopics": "category"}
    return pa.table({name: table[sources.get(name, name)] for name in columns}).filter(pa.array(mask))


def _parse_text(rows: pa.Table, fields: Mapping[str, pa.DataType], *keys: str) -> pa.Table:
    """The rows with the fields of their text as columns.

    Of rows with equal keys the last one counts; the smallest is sorted last, so that the result does not depend on
    the order of the rows.
    """
    table = rows.drop_columns(["text"])
    for name, values in _parse_json(rows["text"], fields).items():
        table = table.append_column(name, values)
    return put_smallest_last(table, keys)


def put_smallest_last(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The table as it is where no two rows have equal keys, and otherwise with the smallest row sorted last."""
    if len(table.group_by(list(keys)).aggregate([])) == len(table):
        return table
    return table.sort_by([(name, "descending") for name in table.schema.names])


def _parse_json(lines: pa.ChunkedArray, fields: Mapping[str, pa.DataType]) -> dict[str, pa.ChunkedArray]:
    """The fields of JSON lines, each of which ends with a newline."""
    if not fields or not len(lines):
        return {name: pa.chunked_array([], kind) for name, kind in fields.items()}
    text = join_bytes(pa.concat_arrays(lines.chunks))
    options = pyarrow.json.ParseOptions(explicit_schema=pa.schema(fields.items()), unexpected_field_behavior="ignore")
    whole = pyarrow.json.ReadOptions(use_threads=False, block_size=text.size + 1)
    table = pyarrow.json.read_json(pa.BufferReader(text), read_options=whole, parse_options=options)
    return {name: table[name] for name in fields}
