"""Apply the rules on events and pages to impressions and interactions together, in one shuffle."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.labels.attribute import UNPLACED
from pipelines.labels.denoise.nameless import person_id
from pipelines.labels.denoise.page_arrays import (
    CART,
    CLICK,
    IMPRESSION,
    KINDS,
    PURCHASE,
    SORTED_BY,
    PageRows,
    apply_rules,
    sort_rows,
)
from pipelines.labels.denoise.registry import rule_bit
from pipelines.labels.denoise.settings import DenoiseSettings
from pipelines.labels.denoise.users import to_day
from pipelines.labels.history import History
from udfs.spark.worker import run_in_worker

# What the rules read: ids only as hashes, which are compared faster than text.
_READ = {
    "page": "bigint", "result": "bigint", "tie": "bigint", "event": "bigint", "ts": "bigint", "kind": "tinyint",
    "position": "int", "bits": "int", "nameless": "boolean", "unplaced": "boolean", "dwell": "double",
}  # fmt: skip
_PASSED = ("query_id", "doc_id", "context", "system", "day", "page", "person", "position", "kind", "row")
_ADDED = dict.fromkeys(("bits", "page_mark", "history", "impressions", *KINDS), "int")
_ROWS_OF_TASK = 500_000  # of a worker at once: about 200 MB
_TASKS = 16  # below this, Spark chooses


def name_context(contexts: Sequence[str]) -> Column:
    """The values of the columns that have their own curves, as one text."""
    parts = [F.concat(F.lit(f"{name}="), F.coalesce(F.col(name).cast("string"), F.lit("?"))) for name in contexts]
    return F.concat_ws(", ", *parts) if parts else F.lit("all")


def combine_events(impressions: DataFrame, attributed: DataFrame, *, context: Column) -> DataFrame:
    """Impressions and events as rows of one table, distinguished by `kind`."""
    shown = impressions.select(
        *_name_row(),
        F.lit(IMPRESSION).cast("tinyint").alias("kind"),
        "query_id",
        "position",
        context.alias("context"),
        "system",
        F.coalesce("sponsored", F.lit(False)).alias("sponsored"),
        F.when(F.col("nameless"), F.col("user_agent")).alias("user_agent"),
        F.xxhash64("query_id", "user_id", "system", context).alias("tie"),
    )
    event = F.to_json(F.struct("event_id", "kind", "doc_id", "user_id", "ts", "serp_id", "dwell_seconds", "value"))
    done = attributed.select(
        *_name_row(),
        _code_kind().alias("kind"),
        F.xxhash64("event_id").alias("event"),
        F.col("attribution").isin(*UNPLACED).alias("unplaced"),
        F.col("dwell_seconds").alias("dwell"),
        event.alias("row"),  # for the quarantine
    )
    return shown.unionByName(done, allowMissingColumns=True)


def _name_row() -> tuple[Column | str, ...]:
    """The columns of every row."""
    return (
        "serp_id",
        "doc_id",
        "user_id",
        "nameless",
        F.col("ts").alias("at"),
        F.unix_micros("ts").alias("ts"),
        F.xxhash64("serp_id").alias("page"),
        F.xxhash64("serp_id", "doc_id").alias("result"),
        F.xxhash64(person_id()).alias("person"),
        to_day("ts").alias("day"),
    )


def _code_kind() -> Column:
    kind = F.col("kind")
    return F.when(kind == "click", CLICK).when(kind == "cart", CART).otherwise(PURCHASE).cast("tinyint")


def apply_page_rules(
    rows: DataFrame,
    settings: DenoiseSettings,
    *,
    history: History | None = None,
    impressions: int | None = None,
    also: Sequence[str] = (),
) -> DataFrame:
    """Kept impressions with the clicks, carts and purchases that count, and every dropped row with its rules in `bits`.

    `history` is the state that a session model conditions on, else 0 (see `pipelines.labels.history`); `page_mark`
    counts pages (see `PageMark`). `impressions` is the size of the log, if known. Columns in `also` are passed on.
    """
    passed = tuple(dict.fromkeys((*also, *_PASSED)))
    read = [F.col(name).cast(kind).alias(name) for name, kind in _READ.items()]
    table = distribute(rows.select(*[name for name in passed if name not in _READ], *read), "page", impressions)
    types = dict(table.dtypes)
    schema = ", ".join(f"{name} {kind}" for name, kind in ({name: types[name] for name in passed} | _ADDED).items())

    def apply(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            yield from _apply_to_table(
                pa.Table.from_batches(filled).combine_chunks(), settings, history, passed
            ).to_batches()

    return table.mapInArrow(run_in_worker(apply), schema)


def distribute(rows: DataFrame, key: str, size: int | None) -> DataFrame:
    """Partition rows by a key for a worker that takes a partition at once: into enough of them for `size` rows."""
    partitions = -(-(size or 0) // _ROWS_OF_TASK)
    return rows.repartition(partitions, key) if partitions > _TASKS else rows.repartition(key)


def _apply_to_table(
    table: pa.Table, settings: DenoiseSettings, history: History | None, passed: Sequence[str]
) -> pa.Table:
    columns = {name: _read_column(table[name], kind) for name, kind in _READ.items()}
    order = sort_rows(*(columns[name] for name in SORTED_BY))
    rows = PageRows(**{name: column[order] for name, column in columns.items() if name != "tie"})
    outcomes = apply_rules(rows, settings, history)
    selected = np.flatnonzero(~rows.is_event | (outcomes.bits != 0))
    out = {name: table[name] for name in passed}
    added = {name: getattr(outcomes, name)[selected] for name in _ADDED if name != "impressions"}
    quarantined = np.zeros(len(order), dtype=np.bool_)
    quarantined[order] = (outcomes.bits & rule_bit("no_impression")) != 0
    out["row"] = pc.if_else(pa.array(quarantined), table["row"], pa.scalar(None, table["row"].type))
    added["impressions"] = ~rows.is_event[selected]
    taken = pa.table(out).take(pa.array(order[selected]))
    numbers = {name: pa.array(added[name].astype(np.int32)) for name in _ADDED}
    return pa.table({name: taken[name] for name in passed} | numbers)


def _read_column(column: pa.ChunkedArray, kind: str) -> npt.NDArray[Any]:
    """A column as an array: nulls of numbers become 0, of reals NaN."""
    if kind == "double":
        return np.asarray(column.to_numpy(), dtype=np.float64)
    if column.null_count:
        column = column.fill_null(False if kind == "boolean" else 0)
    return np.asarray(column.to_numpy(), dtype=np.bool_ if kind == "boolean" else np.int64)


LAST_PAGE = ("serp_id", "at")  # what `select_last_pages` needs beside the rules


def select_last_pages(outcomes: DataFrame) -> DataFrame:
    """The newest page of each logged system and query that no rule drops, as rankings."""
    shown = outcomes.where((F.col("impressions") == 1) & (F.col("bits") == 0) & F.col("system").isNotNull())
    results = F.collect_list(F.struct("position", "doc_id")).alias("results")
    newest = F.max_by("results", F.struct("at", "serp_id")).alias("results")
    return (
        shown.groupBy("system", "query_id", "serp_id")
        .agg(F.max("at").alias("at"), results)
        .groupBy("system", "query_id")
        .agg(newest)
        .select("system", "query_id", F.explode("results").alias("result"))
        .select(
            "system",
            "query_id",
            F.col("result.doc_id").alias("doc_id"),
            F.col("result.position").alias("rank"),
            F.lit(None).cast("double").alias("score"),
        )
    )
