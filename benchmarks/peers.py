"""The same metrics with other tools, none of which handles ties, duplicates or gaps as Assay does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
from pyspark.ml.evaluation import RankingEvaluator
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from udfs.evaluator import Evaluator
from udfs.registry import parse_metric


def score_with_duckdb(folder: Path, cuts: Sequence[int], *, counts: bool = False) -> float:
    """One SQL statement: join, windows for the ideal and for average precision, then sums.

    With `counts` it also computes what else Assay publishes of a list: the numbers of judged, tied and duplicate
    documents and of labels, and the divisors of ratios.
    """
    gain, each = "(power(2, grade) - 1)", "sum(CASE WHEN {place} <= {k} THEN {what} ELSE 0 END)"
    ideal = [each.format(place="place", k=k, what=f"{gain} / log2(place + 1)") + f" AS idcg_{k}" for k in cuts]
    sums = [each.format(place="rank", k=k, what=f"{gain} / log2(rank + 1)") + f" AS dcg_{k}" for k in cuts]
    sums += [each.format(place="rank", k=k, what="1") + f" AS hits_{k}" for k in cuts]
    sums += [each.format(place="rank", k=k, what="hit * 1.0 / rank") + f" AS ap_{k}" for k in cuts]
    final = [f"coalesce(dcg_{k}, 0) / idcg_{k} AS ndcg_at_{k}" for k in cuts]
    final += [f"coalesce(hits_{k}, 0) / {k} AS precision_at_{k}" for k in cuts]
    final += [f"coalesce(hits_{k}, 0) / relevant AS recall_at_{k}" for k in cuts]
    final += [f"coalesce(ap_{k}, 0) / relevant AS map_at_{k}" for k in cuts]
    final += ["coalesce(1.0 / best, 0) AS mrr", "coalesce(at_relevant, 0) / relevant AS rprec"]
    of_list, beside = "count(*) AS retrieved", "retrieved"
    if counts:
        of_list += ", count(*) - count(DISTINCT doc_id) AS duplicates, count(*) - count(DISTINCT rank) AS tied"
        beside = "weight, retrieved, duplicates, tied, labelled, relevant, coalesce(judged, 0) AS judged"
        beside += "".join(f", idcg_{k}, {k}.0 AS precision_{k}_of, relevant AS recall_{k}_of" for k in cuts)
    sql = f"""
        WITH ideal AS (
            SELECT query_id, count(*) AS labelled, count(*) FILTER (grade > 0) AS relevant, {", ".join(ideal)} FROM (
                SELECT query_id, grade, row_number() OVER (PARTITION BY query_id ORDER BY grade DESC) AS place
                FROM '{folder}/labels/*.parquet')
            GROUP BY query_id),
        matched AS {"MATERIALIZED" if counts else "NOT MATERIALIZED"} (
            SELECT system, query_id, rank, grade
            FROM '{folder}/rankings/*.parquet' JOIN '{folder}/labels/*.parquet' USING (query_id, doc_id)),
        hits AS (
            SELECT *, row_number() OVER (PARTITION BY system, query_id ORDER BY rank) AS hit
            FROM matched WHERE grade > 0),
        sums AS (
            SELECT system, query_id, min(rank) AS best, count(*) FILTER (rank <= relevant) AS at_relevant,
                   {", ".join(sums)}
            FROM hits JOIN ideal USING (query_id) GROUP BY system, query_id),
        seen AS (SELECT system, query_id, count(*) AS judged FROM matched GROUP BY ALL),
        lists AS (SELECT system, query_id, {of_list} FROM '{folder}/rankings/*.parquet' GROUP BY system, query_id)
        SELECT system, query_id, segment_of, {beside}, {", ".join(final)}
        FROM lists LEFT JOIN sums USING (system, query_id) JOIN ideal USING (query_id)
             {"LEFT JOIN seen USING (system, query_id)" if counts else ""}
             JOIN '{folder}/queries/*.parquet' USING (query_id)
        WHERE relevant > 0"""
    target = folder / "duckdb.parquet"
    with duckdb.connect(config={"threads": 2}) as duck:
        duck.execute(f"COPY ({sql}) TO '{target}'")
        means = ", ".join(f"avg({column.rpartition(' AS ')[2]})" for column in final)
        sets = "GROUPING SETS ((system), (system, segment_of))"
        duck.execute(f"SELECT system, segment_of, {means} FROM '{target}' GROUP BY {sets}").fetchall()
        answer = duck.execute(f"SELECT avg(ndcg_at_10) FROM '{target}'").fetchone()
    return float(answer[0]) if answer else float("nan")


def score_with_polars(folder: Path, cuts: Sequence[int]) -> float:
    """Lazy frames: the same joins and sums as the SQL."""
    rankings, labels, queries = (
        pl.scan_parquet(folder / name / "*.parquet") for name in ("rankings", "labels", "queries")
    )
    gain = (2.0 ** pl.col("grade")) - 1
    place = pl.col("grade").rank("ordinal", descending=True).over("query_id")
    ideal = (
        labels.with_columns(place=place, gain=gain)
        .group_by("query_id")
        .agg(
            (pl.col("grade") > 0).sum().alias("relevant"),
            *[_within("place", k, pl.col("gain") / (pl.col("place") + 1).log(2)).alias(f"idcg_{k}") for k in cuts],
        )
        .filter(pl.col("relevant") > 0)
    )
    hits = rankings.join(labels.filter(pl.col("grade") > 0), on=["query_id", "doc_id"])
    hits = hits.with_columns(hit=pl.col("rank").rank("ordinal").over("system", "query_id"), gain=gain)
    sums = (
        hits.join(ideal.select("query_id", "relevant"), on="query_id")
        .group_by("system", "query_id")
        .agg(
            pl.col("rank").min().alias("best"),
            (pl.col("rank") <= pl.col("relevant")).sum().alias("at_relevant"),
            *[_within("rank", k, pl.col("gain") / (pl.col("rank") + 1).log(2)).alias(f"dcg_{k}") for k in cuts],
            *[(pl.col("rank") <= k).sum().alias(f"hits_{k}") for k in cuts],
            *[_within("rank", k, pl.col("hit") / pl.col("rank")).alias(f"ap_{k}") for k in cuts],
        )
    )
    lists = rankings.group_by("system", "query_id").agg(pl.len().alias("retrieved"))
    relevant = pl.col("relevant")
    table = (
        lists.join(sums, on=["system", "query_id"], how="left")
        .join(ideal, on="query_id")
        .join(queries, on="query_id")
        .select(
            "system",
            "query_id",
            "segment_of",
            *[(pl.col(f"dcg_{k}").fill_null(0) / pl.col(f"idcg_{k}")).alias(f"ndcg_at_{k}") for k in cuts],
            *[(pl.col(f"hits_{k}").fill_null(0) / k).alias(f"precision_at_{k}") for k in cuts],
            *[(pl.col(f"hits_{k}").fill_null(0) / relevant).alias(f"recall_at_{k}") for k in cuts],
            *[(pl.col(f"ap_{k}").fill_null(0) / relevant).alias(f"map_at_{k}") for k in cuts],
            (1 / pl.col("best")).fill_null(0).alias("mrr"),
            (pl.col("at_relevant").fill_null(0) / relevant).alias("rprec"),
        )
        .collect()
    )
    table.write_parquet(folder / "polars.parquet")
    for by in (["system"], ["system", "segment_of"]):
        table.group_by(by).agg(pl.selectors.float().mean())
    return float(table["ndcg_at_10"].mean())  # type: ignore[arg-type]


def _within(place: str, k: int, value: Any) -> Any:
    return pl.when(pl.col(place) <= k).then(value).otherwise(0.0).sum()


def score_with_ranking_evaluator(spark: SparkSession, folder: Path, cuts: Sequence[int]) -> float:
    """Spark's own evaluator: binary, means only, one job per metric. Its ndcg is not graded."""
    labels = spark.read.parquet(str(folder / "labels")).where("grade > 0")
    truth = labels.groupBy("query_id").agg(F.collect_list(F.hash("doc_id").cast("double")).alias("label"))
    ranked = (
        spark.read.parquet(str(folder / "rankings"))
        .groupBy("query_id")
        .agg(
            F.expr(
                "transform(array_sort(collect_list(struct(rank, doc_id))), x -> cast(hash(x.doc_id) as double))"
            ).alias("prediction")
        )
    )
    pairs = ranked.join(truth, "query_id")
    names = {
        "ndcgAtK": cuts,
        "precisionAtK": cuts,
        "recallAtK": cuts,
        "meanAveragePrecisionAtK": cuts,
        "meanAveragePrecision": (10,),
    }
    values = {}
    for name, ks in names.items():
        for k in ks:
            evaluator = RankingEvaluator(metricName=name, k=k, predictionCol="prediction", labelCol="label")  # type: ignore[arg-type]
            values[name, k] = evaluator.evaluate(pairs)
    return float(values["ndcgAtK", 10])


def score_with_apply_in_pandas(spark: SparkSession, folder: Path, metrics: Sequence[str]) -> float:
    """The usual first version: a Python function, called once per query."""
    labels, rankings = (spark.read.parquet(str(folder / name)) for name in ("labels", "rankings"))
    keys = [parse_metric(name).key for name in metrics]

    def one(key: tuple[str], left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
        ranked = left.sort_values("rank")["doc_id"].tolist()
        values = Evaluator(metrics=metrics).evaluate_ranking(
            ranked, dict(zip(right["doc_id"], right["grade"], strict=True))
        )
        return pd.DataFrame(
            [[key[0], *[np.nan if v is None else v for v in values.values()]]], columns=["query_id", *keys]
        )

    schema = "query_id string, " + ", ".join(f"{key} double" for key in keys)
    table = rankings.groupBy("query_id").cogroup(labels.groupBy("query_id")).applyInPandas(one, schema)
    means = table.agg(*[F.mean(F.nanvl(F.col(key), F.lit(None))).alias(key) for key in keys]).first()
    return float(means["ndcg_at_10"]) if means else float("nan")
