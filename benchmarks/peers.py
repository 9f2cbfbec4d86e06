"""The same metrics with other tools, none of which handles ties, duplicates or gaps as Assay does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from pyspark.ml.evaluation import RankingEvaluator
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from udfs.evaluator import Evaluator
from udfs.registry import parse_metric


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
