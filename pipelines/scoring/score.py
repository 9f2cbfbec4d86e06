"""Score every system's lists against the labels, in one pass.

One shuffle brings together all rows of a query: its lists, labels, weight, segments and decisions. They go to Python as
they are, without joins, sorting or arrays in the JVM. Rows of all kinds share five columns, since every further column
is carried by all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import ceil

import pyarrow as pa
from pyspark.errors import PySparkAttributeError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.scoring.from_files import ListFiles, score_files
from pipelines.scoring.page_traffic import PageLists
from schemas.outputs import QUERY_METRICS
from schemas.table import Column as TableColumn
from schemas.table import Table
from udfs.conventions import POINT_RULE, Conventions
from udfs.draws import LabelDraws, NormalDraws, PosteriorDraws
from udfs.registry import POOL, MetricSpec
from udfs.spark.score import DECISION, DECISION_COLUMNS, LABEL, QUERY, ScoreRequest, score_queries
from udfs.spark.worker_table import WorkerTable
from udfs.statistics.counting import CountingRule
from udfs.tabulate import DELTA_SD, DRAWS, SD

ROWS_PER_PARTITION = 2_000_000  # the most a Python worker holds at once, in about 0.7 GB
ROWS_PER_TASK = 400_000  # the target once every core has a task: each takes a while to start
ROWS_WORTH_A_TASK = 100_000  # fewer are not worth a task, even where a core is idle
_NEEDED_TABLES = {"documents", "subtopics", "decisions"}  # needs of metrics that only Spark can join


@dataclass(frozen=True)
class ScoringTables:
    """The tables that lists are scored with; `earlier` names the system of the earlier stage."""

    labels: DataFrame
    queries: DataFrame | None = None
    documents: DataFrame | None = None
    decisions: DataFrame | None = None
    earlier: str | None = None


def build_query_metrics_contract(
    segments: Sequence[str], specs: Sequence[MetricSpec], *, drawn: bool = False, baseline: str | None = None
) -> Table:
    """The contract of `query_metrics` for these segments and metrics; `drawn` where labels are drawn."""
    cut = [TableColumn(name, "string", "a segment", nullable=True) for name in segments]
    measured = [TableColumn(spec.key, "double", spec.metric.summary, nullable=True) for spec in specs]
    pooled = [
        TableColumn(spec.key + POOL, "double", f"what {spec.name} was divided by", nullable=True)
        for spec in specs
        if spec.metric.pool is not None
    ]
    own = [spec for spec in specs if drawn and spec.metric.scope == "list"]
    spread = [
        TableColumn(spec.key + SD, "double", f"standard deviation of {spec.name} over draws of labels", nullable=True)
        for spec in own
    ]
    against = [
        TableColumn(
            spec.key + DELTA_SD,
            "double",
            f"that of its difference from {baseline}; null for {baseline}",
            nullable=True,
        )
        for spec in own
        if baseline is not None
    ]
    return QUERY_METRICS.add_columns([*cut, *measured, *pooled, *spread, *against])


@dataclass(frozen=True)
class Scorer:
    """Scores the lists of a run by any labels; `dataclasses.replace` changes its metrics or conventions."""

    rankings: DataFrame
    tables: ScoringTables
    systems: Sequence[str]
    segments: Sequence[str]
    specs: Sequence[MetricSpec]
    conventions: Conventions
    rows: int = 0
    draws: LabelDraws | None = None  # how labels are drawn, where they are
    baseline: str | None = None  # the system that the spread of differences over draws is against
    counting: CountingRule | None = None  # by what a query counts; the first metric by default
    pages: PageLists | None = None  # the pages and all lists, where segments are of the log
    files: ListFiles | None = None  # of the rankings and `tables`, where workers can read them

    def __call__(self, labels: DataFrame) -> DataFrame:
        """The rows of `score`."""
        return self.score(labels).rows()

    def score(self, labels: DataFrame) -> WorkerTable:
        """Score by these labels; they are drawn if they have the column that `draws` needs.

        Labels without it, or under another rule than `posterior`, are scored by their published grades.
        """
        posterior = isinstance(self.draws, PosteriorDraws)
        drawn = self.draws is not None and self.draws.column in labels.columns
        if posterior and self.conventions.unjudged != "posterior":
            drawn = False
        conventions = self.conventions
        if conventions.unjudged == "posterior" and not drawn:
            conventions = conventions.model_copy(update={"unjudged": POINT_RULE})
        return score_lists(
            self.rankings,
            replace(self.tables, labels=labels),
            systems=self.systems,
            segments=self.segments,
            specs=self.specs,
            conventions=conventions,
            rows=self.rows,
            draws=self.draws if drawn else None,
            baseline=self.baseline,
            counting=self.counting,
            files=self.files if labels is self.tables.labels else None,
        )


def score_lists(
    rankings: DataFrame,
    tables: ScoringTables,
    *,
    systems: Sequence[str],
    segments: Sequence[str],
    specs: Sequence[MetricSpec],
    conventions: Conventions,
    rows: int = 0,
    draws: LabelDraws | None = None,
    baseline: str | None = None,
    counting: CountingRule | None = None,
    files: ListFiles | None = None,
) -> WorkerTable:
    """One row per system and query: every metric, and the counts behind it.

    Every system gets a row for every query that has labels or is in `queries`, even if it returned nothing, and one for
    every other query that it ranked or decided on. `rows` is the number of rows of all tables, 0 if unknown.

    With `draws`, labels have the column that it needs (`evidence`, or `grade_sd` for human grades); metrics then have
    their spread over draws, and the result a column `draws` beside the contract, for the estimates.

    With `files` of the same tables, workers read these where that is enough.
    """
    needs = {need for spec in specs for need in spec.metric.needs}
    baseline = baseline if draws is not None and baseline in systems else None
    table = build_query_metrics_contract(segments, specs, drawn=draws is not None, baseline=baseline)
    columns = [*table.names, DRAWS] if draws is not None else table.names
    request = ScoreRequest(
        metrics=tuple(spec.name for spec in specs),
        conventions=conventions,
        systems=tuple(systems),
        segments=tuple(segments),
        columns=tuple(columns),
        earlier=tables.earlier if "earlier" in needs else None,
        baseline=baseline,
        draws=draws,
        counting=counting if counting is not None and counting.metric in table.names else None,
    )
    schema = table.arrow_schema()
    if draws is not None:
        schema = schema.append(pa.field(DRAWS, pa.binary()))
    spark = rankings.sparkSession
    usual = int(spark.conf.get("spark.sql.shuffle.partitions") or 0)
    cores = _count_cores(spark, usual)
    from_files = draws is None and rows >= ROWS_WORTH_A_TASK and needs.isdisjoint(_NEEDED_TABLES)
    if from_files and files is not None and files.can_read(segments):
        partitions = _count_partitions(rows, cores, usual)
        return score_files(spark, files, request, schema, partitions=partitions, cores=cores)
    stream = _stack_tables(rankings, tables, systems, segments, needs, draws)
    if rows:
        by_query = stream.repartition(_count_partitions(rows, cores, usual), "query_id")
    else:
        by_query = stream.repartition("query_id")
    return WorkerTable(by_query, score_queries(request), schema)


def _stack_tables(
    rankings: DataFrame,
    tables: ScoringTables,
    systems: Sequence[str],
    segments: Sequence[str],
    needs: Collection[str],
    draws: LabelDraws | None,
) -> DataFrame:
    """The rows of all tables as one stream of a few shared columns."""
    documents = None
    if tables.documents is not None and {"documents", "subtopics"}.intersection(needs):
        documents = _select_documents(tables.documents)
    parts = [
        _select_rankings(rankings, documents, systems),
        _select_labels(tables.labels, documents, draws, with_subtopics="subtopics" in needs),
    ]
    if tables.queries is not None:
        parts.append(
            tables.queries.select("query_id", _source(QUERY), _to_json_line(segments), F.col("weight").alias("value"))
        )
    if "decisions" in needs and tables.decisions is not None:
        parts.append(_select_decisions(tables.decisions, systems))
    return reduce(lambda one, two: one.unionByName(two, allowMissingColumns=True), parts)


def _count_partitions(rows: int, cores: int, usual: int) -> int:
    """The partitions by query: fewer than usual for few rows, more for very many.

    If the number of rows is unknown, Spark chooses by their size: the two or three partitions that it makes of small
    data would leave cores idle.
    """
    busy = min(cores, ceil(rows / ROWS_WORTH_A_TASK))
    enough = min(max(ceil(rows / ROWS_PER_TASK), busy), usual)
    return max(enough, ceil(rows / ROWS_PER_PARTITION))


def _count_cores(spark: SparkSession, otherwise: int) -> int:
    """The tasks that run at once, which Spark Connect does not report."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkAttributeError:
        return otherwise


def _select_rankings(rankings: DataFrame, documents: DataFrame | None, systems: Sequence[str]) -> DataFrame:
    """The rows of the ranked lists of `systems`."""
    if documents is not None:
        rankings = rankings.join(documents, "doc_id", "left")
    return rankings.where(F.col("system").isin(*systems)).select(
        "query_id",
        _index(systems).alias("source"),
        F.col("doc_id").alias("text"),
        "rank",
        F.col("score").alias("value"),
        *([F.col("category"), _fill_popularity()] if documents is not None else []),
    )


def _select_labels(
    labels: DataFrame, documents: DataFrame | None, draws: LabelDraws | None, *, with_subtopics: bool
) -> DataFrame:
    """The rows of the labels; without draws of a posterior, only of documents that were shown."""
    if "evidence" in labels.columns and not isinstance(draws, PosteriorDraws):
        shown = F.substring("evidence", 1, 1) == F.lit(b"\x01")  # see `lay_out_evidence`
        labels = labels.where(F.col("evidence").isNull() | shown)
    subtopics = []
    if with_subtopics:
        category = F.lit(None).cast("array<bigint>") if documents is None else F.col("category")
        if "subtopics" in labels.columns:
            labels = _join_subtopics(labels)
            category = F.coalesce(F.when(F.size("subtopics") > 0, _hash_texts("subtopics")), category)
        labels = labels if documents is None else labels.join(documents, "doc_id", "left")
        subtopics.append(category.alias("category"))
    evidence = []
    if isinstance(draws, NormalDraws):
        deviation = F.coalesce(F.col(NormalDraws.column).cast("double"), F.lit(0.0))
        evidence.append(F.when(F.col("grade").isNotNull(), deviation).alias("evidence"))
    elif draws is not None:
        evidence.append(F.col("evidence"))
    return labels.select(
        "query_id",
        _source(LABEL),
        F.col("doc_id").alias("text"),
        F.col("grade").alias("value"),
        *subtopics,
        *evidence,
    )


def _join_subtopics(judgments: DataFrame) -> DataFrame:
    """One row for a pair that is judged several times: its best grade, and all subtopics that it is relevant to."""
    relevant = F.when(F.col("grade") > 0, F.col("subtopics"))
    others = [name for name in judgments.columns if name not in ("query_id", "doc_id", "grade", "subtopics")]
    best = F.min(F.struct((-F.col("grade")).alias("worst"), "grade", *others))
    joined = judgments.groupBy("query_id", "doc_id").agg(
        best.alias("best"), F.flatten(F.collect_list(relevant)).alias("subtopics")
    )
    return joined.select("query_id", "doc_id", "best.grade", *[f"best.{name}" for name in others], "subtopics")


def _select_decisions(decisions: DataFrame, systems: Sequence[str]) -> DataFrame:
    """The rows of the decisions of `systems`."""
    return decisions.where(F.col("system").isin(*systems)).select(
        "query_id", (F.lit(DECISION) - _index(systems)).alias("source"), _to_json_line(list(DECISION_COLUMNS))
    )


def _source(kind: int) -> Column:
    return F.lit(kind).alias("source")


def _to_json_line(columns: Sequence[str]) -> Column:
    """The columns as a line of JSON."""
    json = F.to_json(F.struct(*columns)) if columns else F.lit("{}")
    return F.concat(json, F.lit("\n")).alias("text")


def _index(systems: Sequence[str]) -> Column:
    """The index of the system in `systems`."""
    index = F.when(F.col("system") == systems[0], 0)
    for at, system in enumerate(systems[1:], start=1):
        index = index.when(F.col("system") == system, at)
    return index


def _select_documents(documents: DataFrame) -> DataFrame:
    """Per document its categories and its share of all popularity; one row for a document that is listed twice."""
    distinct = documents.groupBy("doc_id").agg(
        F.flatten(F.collect_list("category")).alias("category"), F.max("popularity").alias("popularity")
    )
    total = distinct.agg(F.sum("popularity").alias("total"))
    return distinct.crossJoin(F.broadcast(total)).select(
        "doc_id",
        _hash_texts("category").alias("category"),
        (F.col("popularity") / F.nullif("total", F.lit(0.0))).alias("popularity"),
    )


def _hash_texts(name: str) -> Column:
    """An array of texts as distinct hashes of 63 bits, in the order of the texts."""
    texts = F.array_sort(F.array_distinct(F.array_compact(name)))
    return F.transform(texts, lambda text: F.shiftrightunsigned(F.xxhash64(text), 1))


def _fill_popularity() -> Column:
    return F.coalesce("popularity", F.lit(float("nan"))).alias("popularity")
