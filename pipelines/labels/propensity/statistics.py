"""Aggregate the counts of a log to what estimators read: a few rows per context, bucket and pair of positions.

Workers sum over the pairs of a partition in NumPy, and `merge_sums` adds up the partitions. In Spark's SQL the same
sums are a dozen stages, which take longer to plan than most logs take to sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.labels.denoise.columns import join_chunks, read_flags, read_integers
from pipelines.labels.denoise.pair_arrays import group_rows
from udfs.ragged import Bools, Floats, Ints, Ragged
from udfs.spark.worker import run_in_worker

_KEYS = ("context", "bucket", "pair", "position", "other")
_SUMS = ("shown", "clicks", "weight")
SUMS = (
    "statistic string, context string, bucket int, pair bigint, position int, other int, "
    "shown bigint, clicks bigint, weight bigint"
)
# Weighted counts are integers of millionths, so that sums do not depend on the order of rows.
_MICRO = 1_000_000
_DRAWS = 1_000_000
_ROWS_AT_ONCE = 1 << 17  # of pairs by position that are compared with each other

Counts = Mapping[str, Ints]


def gather_statistics(cells: DataFrame, tallied: DataFrame, *, max_cells: int) -> DataFrame:
    """The sums of `SUMS` by partition, which `merge_sums` puts together.

    They are sums by position, by pair of positions and on shuffled pages; a sample of cells; how far documents move.
    """
    pair, draw = F.xxhash64("query_id", "doc_id"), F.pmod(F.xxhash64(F.lit("cells"), "query_id"), F.lit(_DRAWS))
    total = cells.agg(F.count(F.lit(1)).alias("total"))
    counted = cells.crossJoin(F.broadcast(total)).select(
        pair.alias("pair"),
        (draw * F.col("total") < F.lit(max_cells * _DRAWS)).alias("sampled"),
        *("context", "bucket", "position", "history", "shuffled", "impressions", "clicks"),
        F.lit(None).cast("bigint").alias("served"),
    )
    of_days = tallied.where("bits = 0 AND system IS NOT NULL AND day IS NOT NULL AND NOT shuffled")
    served = of_days.select(pair.alias("pair"), "position", "impressions", F.xxhash64("system", "day").alias("served"))
    rows = counted.unionByName(served, allowMissingColumns=True).repartition("pair")
    return rows.mapInArrow(run_in_worker(_sum_batches), SUMS)


def _sum_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    filled = [batch for batch in batches if batch.num_rows]
    if filled:
        for part in sum_rows(pa.Table.from_batches(filled)):
            yield from part.to_batches()


def sum_rows(rows: pa.Table) -> Iterator[pa.Table]:
    """The sums over all rows of a set of pairs."""
    by_day = rows["served"].is_valid()
    yield _sum_moves(rows.filter(by_day))
    cells = rows.filter(rows["served"].is_null())
    contexts = join_chunks(cells["context"].dictionary_encode())
    names = ("bucket", "pair", "position", "history", "impressions", "clicks")
    counts = {name: read_integers(cells[name]) for name in names}
    counts |= {"context": read_integers(contexts.indices), "other": counts["history"]}
    counts |= {"shown": counts["impressions"], "weight": np.zeros(cells.num_rows, dtype=np.int64)}

    def build(statistic: str, sums: Counts) -> pa.Table:
        return _build_sums(statistic, contexts.dictionary, sums)

    yield build("place", _sum_by(counts, ("context", "bucket", "position", "other")))
    shuffled = np.flatnonzero(read_flags(cells["shuffled"]))
    yield build("shuffled", _sum_by(_take(counts, shuffled), ("context", "bucket", "position")))
    for edges in _sum_edges(counts):
        yield build("edge", edges)
    sampled = np.flatnonzero(read_flags(cells["sampled"]))
    yield build("cell", _sum_by(_take(counts, sampled), _KEYS))


def merge_sums(sums: pd.DataFrame) -> pd.DataFrame:
    """The statistics of the log: rows (statistic, context, bucket, pair, position, other, shown, clicks, weight)."""
    merged = sums.groupby(["statistic", *_KEYS], as_index=False)[list(_SUMS)].sum()
    is_edge = (merged["statistic"] == "edge").to_numpy()
    for name in ("shown", "clicks"):
        values = merged[name].to_numpy(np.float64)
        merged[name] = np.where(is_edge, values / _MICRO, values)
    return merged.astype({"weight": np.float64})


def _build_sums(statistic: str, contexts: pa.Array, sums: Counts) -> pa.Table:
    size = len(sums["shown"])
    numbers = {name: sums.get(name, np.zeros(size, dtype=np.int64)) for name in (*_KEYS, *_SUMS)}
    named = contexts.take(pa.array(numbers["context"])) if len(contexts) else pa.array([""] * size, pa.string())
    columns = {"statistic": pa.array([statistic] * size, pa.string()), "context": named}
    for name in (*_KEYS[1:], *_SUMS):
        kind = pa.int64() if name in ("pair", *_SUMS) else pa.int32()
        columns[name] = pa.array(numbers[name].astype(kind.to_pandas_dtype()))
    return pa.table(columns)


def _take(counts: Counts, rows: Ints) -> Counts:
    return {name: values[rows] for name, values in counts.items()}


def _sum_by(counts: Counts, keys: Sequence[str]) -> Counts:
    """The sums of each combination of keys, in integers."""
    group, example = group_rows([counts[name] for name in keys])
    order = np.argsort(group, kind="stable")
    groups = Ragged.of_sorted(group[order])
    return {name: counts[name][example] for name in keys} | {
        name: groups.reduce(np.add, counts[name][order]) for name in _SUMS
    }


def _sum_edges(counts: Counts) -> Iterator[Counts]:
    """Σ ω and Σ ω·C_k/N_k over the documents seen at both k and j, with ω = N_k·N_j/(N_k + N_j)."""
    places = _sum_by(counts, ("context", "bucket", "pair", "position"))
    order = np.lexsort((places["position"], places["pair"], places["context"]))
    places = _take(places, order)
    if not len(order):
        return
    documents = Ragged.of_sorted(places["context"], places["pair"])
    for part in documents.slices(_ROWS_AT_ONCE):
        borders = documents.offsets[part.start : part.stop + 1]
        lists = Ragged(borders - borders[0])
        here, there = _pair_rows(lists)
        yield _weigh_edges(_take(places, here + borders[0]), _take(places, there + borders[0]))


def _pair_rows(lists: Ragged) -> tuple[Ints, Ints]:
    """All ordered pairs of two rows of a list."""
    others = lists.lengths[lists.owner]
    here = np.repeat(np.arange(lists.rows), others)
    pairs = Ragged.of_lengths(others)
    there = lists.offsets[:-1][lists.owner][here] + pairs.place - 1
    apart = here != there
    return here[apart], there[apart]


def _weigh_edges(here: Counts, there: Counts) -> Counts:
    n, other = here["shown"], there["shown"]
    weight = n * other / (n + other)
    edges = {name: here[name] for name in ("context", "bucket", "position")} | {"other": there["position"]}
    edges |= {
        "shown": _round_half_up(weight * _MICRO),
        "clicks": _round_half_up(weight * here["clicks"] / n * _MICRO),
        "weight": np.ones_like(n),
    }
    return _sum_by(edges, ("context", "bucket", "position", "other"))


def _round_half_up(values: Floats) -> Ints:
    whole = np.floor(values)
    up: Bools = values - whole >= 0.5
    return np.asarray(whole + up).astype(np.int64)


def _sum_moves(rows: pa.Table) -> pa.Table:
    """Of the inspected days: impressions, and those off the usual position of their document, system and day."""
    counts = {name: read_integers(rows[name]) for name in ("pair", "served", "position")}
    counts |= {"shown": read_integers(rows["impressions"])}
    counts |= dict.fromkeys(("clicks", "weight"), np.zeros(rows.num_rows, dtype=np.int64))
    positions = _sum_by(counts, ("pair", "served", "position"))
    order = np.lexsort((positions["served"], positions["pair"]))
    lists = Ragged.of_sorted(*(positions[name][order] for name in ("pair", "served")))
    shown = positions["shown"][order]
    off = int(shown.sum()) - int(lists.reduce(np.maximum, shown).sum()) if len(shown) else 0
    moved = {"shown": np.array([int(shown.sum())]), "clicks": np.array([off])}
    return _build_sums("moved", pa.array([], pa.string()), moved)
