"""Choose the queries of a published run to judge, and build their sheet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.comparison.judging.difference import FEWEST, predict_answer, read_answer
from pipelines.comparison.judging.sample import compute_chances, sample_queries
from pipelines.comparison.judging.sheet import SheetRow
from pipelines.warehouse.tables import RunTables
from schemas.errors import ConfigurationError, InputError, did_you_mean
from udfs.ragged import Floats
from udfs.registry import MetricSpec
from udfs.statistics.plan import EVERYTHING, Row
from udfs.statistics.resample import draw_words
from udfs.tables import hash_texts
from udfs.tabulate import DELTA_SD, SD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipelines.config.model import Config
    from pipelines.warehouse.runs import Manifest


@dataclass(frozen=True)
class SamplePlan:
    """The queries to judge for one pair of systems, with their chances, and what to expect of it."""

    baseline: str
    candidate: str
    spec: MetricSpec
    chances: Mapping[str, float]  # by query, in the order of the sheet
    queries: int  # of the comparison
    present: tuple[float, float]  # the interval without judged queries
    expected_width: float


@dataclass(frozen=True)
class _Spread:
    """The queries of a comparison: the model's difference, and its standard deviation over draws."""

    query_ids: pa.LargeStringArray
    difference: Floats
    spread: Floats


def plan_sample(
    tables: RunTables, spec: MetricSpec, *, baseline: str, candidate: str, queries: int, seed: int, confidence: float
) -> SamplePlan:
    """Draw `queries` queries of a published comparison, by the spread of their differences over draws."""
    if queries < FEWEST:
        raise ConfigurationError(
            f"{queries} judged queries are too few to decide anything", where="--queries", hint=f"draw {FEWEST} or more"
        )
    row = _find_comparison(tables, spec, baseline, candidate)
    read = _read_spread(tables, spec, baseline, candidate)
    chance = compute_chances(read.spread, queries)
    drawn = sample_queries(chance, hash_texts(read.query_ids).view(np.uint64), queries, seed)
    low, high = predict_answer(read_answer(row), read.difference, read.spread, chance).interval(confidence)
    names = read.query_ids.take(pa.array(drawn)).to_pylist()
    return SamplePlan(
        baseline=baseline,
        candidate=candidate,
        spec=spec,
        chances=dict(zip(names, map(float, chance[drawn]), strict=True)),
        queries=row["queries"],
        present=(row["delta_low"], row["delta_high"]),
        expected_width=float(high - low),
    )


def _find_comparison(tables: RunTables, spec: MetricSpec, baseline: str, candidate: str) -> Row:
    """The comparison over all queries, which must be on drawn labels."""
    run = tables.manifest.run
    where = (pc.field("segment") == EVERYTHING) & (pc.field("baseline") == baseline)
    rows: list[Row] = [row for batch in tables.batches("comparisons", where=where) for row in batch.to_pylist()]
    candidates = {row["candidate"] for row in rows}
    if candidate not in candidates:
        hint = did_you_mean(candidate, candidates) if candidates else "set compare.baseline and evaluate"
        raise InputError(f"run {run} does not compare {candidate!r} with {baseline!r}", hint=hint)
    matches = [row for row in rows if row["candidate"] == candidate and row["metric"] == spec.key]
    if not matches:
        hint = did_you_mean(spec.key, {row["metric"] for row in rows})
        raise InputError(f"run {run} does not compare {spec.name}", where="--metric", hint=hint)
    if matches[0].get("label_share") is None:
        raise InputError(
            f"run {run} has no posterior of {spec.name}, which judged queries could correct",
            hint="evaluate on labels from a log, with unjudged: posterior",
        )
    return matches[0]


def _read_spread(tables: RunTables, spec: MetricSpec, baseline: str, candidate: str) -> _Spread:
    """The spread of every query: that of the difference from the run's baseline, a bound for another pair."""
    published = tables.manifest.config["compare"]["baseline"] == baseline
    spread = spec.key + (DELTA_SD if published else SD)
    one, two = (_read_system(tables, system, [spec.key, spread]) for system in (baseline, candidate))
    names = two["query_id"].combine_chunks()
    place = pc.index_in(names, value_set=one["query_id"].combine_chunks())
    beside = one.take(place)
    difference, of_baseline = (
        two[spec.key].to_numpy() - beside[spec.key].to_numpy(),
        beside[spread].to_numpy(),
    )
    own = two[spread].to_numpy()
    size = own if published else np.sqrt(own**2 + of_baseline**2)
    return _Spread(names, difference, np.where(np.isnan(difference), np.nan, size))


def _read_system(tables: RunTables, system: str, columns: Sequence[str]) -> pa.Table:
    names = ["query_id", *columns]
    batches = tables.batches("query_metrics", names, pc.field("system") == system)
    table = pa.Table.from_batches(list(batches)).select(names)
    kinds = [pa.large_string(), *[pa.float64()] * len(columns)]
    return table.cast(pa.schema(list(zip(names, kinds, strict=True))))


def build_sheet(
    spark: SparkSession, manifest: Manifest, config: Config, sample: SamplePlan, seed: int
) -> Iterator[SheetRow]:
    """The union of both systems' top k of every drawn query, in an order that tells nothing of the systems."""
    from pyspark.sql import functions as F

    from pipelines.scoring.place import place_documents
    from pipelines.scoring.read_again import read_again
    from udfs.conventions import Conventions

    queries = spark.createDataFrame([(query,) for query in sample.chances], "query_id string")
    rankings, _ = read_again(spark, manifest, config, "rankings")
    drawn = rankings.join(F.broadcast(queries), "query_id", "left_semi")
    pair = drawn.where(F.col("system").isin(sample.baseline, sample.candidate))
    placed = place_documents(pair, Conventions.model_validate(manifest.conventions))
    top = placed if sample.spec.k is None else placed.where(F.col("rank") <= sample.spec.k)
    union = top.select("query_id", "doc_id").distinct()
    titles = _read_texts(spark, manifest, config, ("documents",), "doc_id", "title", union.select("doc_id").distinct())
    texts = _read_texts(spark, manifest, config, ("queries", "impressions"), "query_id", "query", queries)
    docs: dict[str, list[str]] = {}
    for row in union.collect():
        docs.setdefault(row["query_id"], []).append(row["doc_id"])
    for query, chance in sample.chances.items():
        for doc in shuffle_documents(query, docs.get(query, []), seed):
            yield SheetRow(query, texts.get(query, ""), doc, titles.get(doc, ""), chance)


def shuffle_documents(query: str, docs: Sequence[str], seed: int) -> list[str]:
    """The documents of a query ordered by hash, whatever order they come in."""
    ordered = sorted(docs)
    keys = hash_texts(pa.array([f"{query}\0{doc}" for doc in ordered], pa.large_string())).view(np.uint64)
    return [ordered[at] for at in np.argsort(draw_words(keys, 1, seed)[:, 0], kind="stable")]


def _read_texts(
    spark: SparkSession,
    manifest: Manifest,
    config: Config,
    inputs: Sequence[str],
    key: str,
    column: str,
    ids: DataFrame,
) -> dict[str, str]:
    """The texts of these ids, from the first of the inputs that has any."""
    from pyspark.sql import functions as F

    from pipelines.scoring.read_again import read_again

    for name in inputs:
        if name not in config.sources():
            continue
        rows, _ = read_again(spark, manifest, config, name)
        texts_of_rows = rows.where(F.col(column).isNotNull())
        of_ids = texts_of_rows.join(F.broadcast(ids), key, "left_semi").groupBy(key).agg(F.min(column).alias(column))
        texts = {row[key]: row[column] for row in of_ids.collect()}
        if texts:
            return texts
    return {}
