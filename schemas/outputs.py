"""The tables that Assay publishes. Each also carries `dt` and `run`, its partition columns."""

from schemas.inputs import QUERY_ID, SYSTEM
from schemas.table import Column, Table

QUERY_METRICS = Table(
    "query_metrics",
    "one system and query; one more column per metric and segment",
    (
        SYSTEM,
        QUERY_ID,
        Column("weight", "double", "traffic of the query"),
        Column("retrieved", "int", "documents in the list, duplicates removed"),
        Column("duplicates", "int", "documents that stood in the list before"),
        Column("tied", "int", "documents at the same place as the one before"),
        Column("labelled", "int", "labels that the query has"),
        Column("relevant", "int", "relevant documents that the query has"),
        Column("judged", "int", "documents of the list that have a label"),
    ),
    key=("system", "query_id"),
)

SEGMENT_METRICS = Table(
    "segment_metrics",
    "one system, segment and metric",
    (
        SYSTEM,
        Column("segment", "string", "the columns that cut the segment; `all` for everything"),
        Column("value", "string", "the segment's value in those columns"),
        Column("metric", "string", "the metric's key"),
        Column("macro", "double", "mean over the queries where it is defined", nullable=True),
        Column("weighted", "double", "the same, weighted by traffic", nullable=True),
        Column("stddev", "double", "standard deviation over queries", nullable=True),
        Column("queries", "bigint", "queries in the mean"),
        Column("skipped", "bigint", "queries left out because the metric is undefined for them"),
    ),
    key=("system", "segment", "value", "metric"),
)

QUARANTINE = Table(
    "quarantine",
    "one input row that could not be used",
    (
        Column("table", "string", "the input"),
        Column("reason", "string", "the column and what was wrong with it"),
        Column("row", "string", "the row as it was read, as JSON"),
    ),
)

OUTPUTS = {table.name: table for table in (QUERY_METRICS, SEGMENT_METRICS, QUARANTINE)}
