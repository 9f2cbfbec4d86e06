"""The sample of cells that diagnostics read."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipelines.labels.denoise.pairs import TALLY
from pipelines.labels.propensity.statistics import gather_statistics, merge_sums

CELLS = 5_000  # of 500 queries
MOST = 1_000


def sample_queries(spark: SparkSession, partitions: int) -> list[int]:
    """The buckets, one for each query, of the sampled cells."""
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    query = F.col("id").cast("int") % 500
    cells = spark.range(CELLS).select(
        F.concat(F.lit("q"), query).alias("query_id"),
        F.concat(F.lit("d"), "id").alias("doc_id"),
        F.lit("all").alias("context"),
        query.alias("bucket"),
        F.lit(1).alias("position"),
        F.lit(0).alias("history"),
        F.lit(False).alias("shuffled"),
        F.lit(2).cast("bigint").alias("impressions"),
        F.lit(1).cast("bigint").alias("clicks"),
    )
    sums = gather_statistics(cells, spark.createDataFrame([], TALLY), max_cells=MOST).toPandas()
    merged = merge_sums(sums)
    assert merged.loc[merged["statistic"] == "place", "shown"].sum() == 2 * CELLS
    return sorted(merged.loc[merged["statistic"] == "cell", "bucket"].to_list())


def test_a_sample_has_whole_queries_and_does_not_depend_on_partitions(spark: SparkSession) -> None:
    sampled = sample_queries(spark, 1)
    assert 0.7 * MOST < len(sampled) < 1.3 * MOST
    assert all(sampled.count(query) == 10 for query in set(sampled))
    assert sample_queries(spark, 5) == sampled
