"""Account for every row that was read: kept, or dropped and by which rule."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.denoise.pairs import COUNTS
from pipelines.denoise.registry import ORDER, bit, first_reason
from schemas.errors import DataQualityError
from schemas.outputs import DENOISE_FUNNEL, QUARANTINE


def count_funnel(tallied: DataFrame) -> DataFrame:
    """Per rule, what it dropped, whom it touched, and how many rows no other rule would have dropped."""
    rules = F.array(*[F.struct(F.lit(name).alias("rule"), F.lit(bit(name)).alias("bit")) for name in ORDER])
    hit = F.col("bits").bitwiseAND(F.col("bit")) != 0
    rows = sum((F.col(name) for name in COUNTS[1:]), F.col(COUNTS[0]))
    return (
        tallied.groupBy("dropped_user", "bits")
        .agg(*[F.sum(name).alias(name) for name in COUNTS])
        .select("*", F.explode(rules).alias("of"))
        .select("*", "of.*")
        .groupBy("rule", "bit")
        .agg(
            *[F.sum(F.when(hit, F.col(name)).otherwise(0)).alias(f"{name}_dropped") for name in COUNTS],
            F.count_distinct(F.when(hit, F.col("dropped_user"))).alias("users_touched"),
            F.sum(F.when(F.col("bits") == F.col("bit"), rows).otherwise(0)).alias("only_this_rule"),
        )
        .orderBy("bit")
        .select(*DENOISE_FUNNEL.names)
    )


def count_kept(tallied: DataFrame) -> DataFrame:
    """One row per kind: how many rows were kept and how many dropped."""
    kept = F.col("bits") == 0
    kinds = F.array(*[F.struct(F.lit(name).alias("kind"), F.col(name).alias("rows")) for name in COUNTS])
    return (
        tallied.select("bits", F.explode(kinds).alias("of"))
        .groupBy("of.kind")
        .agg(
            F.sum(F.when(kept, F.col("of.rows")).otherwise(0)).alias("kept"),
            F.sum(F.when(~kept, F.col("of.rows")).otherwise(0)).alias("dropped"),
        )
        .select("kind", "kept", "dropped")
    )


def count_read(impressions: DataFrame, interactions: DataFrame) -> DataFrame:
    """One row per kind: how many rows came in, counted on the inputs themselves."""
    shown = impressions.agg(F.count(F.lit(1)).alias("read")).select(F.lit("impressions").alias("kind"), "read")
    plural = F.concat(F.col("kind"), F.lit("s"))
    done = interactions.groupBy(plural.alias("kind")).agg(F.count(F.lit(1)).alias("read"))
    return shown.unionByName(done)


def assert_nothing_is_lost(read: dict[str, int], kept: dict[str, int], dropped: dict[str, int]) -> None:
    """Kept + dropped = read, for impressions and each kind of event; anything else is a fault of ours."""
    for kind, rows in read.items():
        found = kept.get(kind, 0) + dropped.get(kind, 0)
        if found != rows:
            raise DataQualityError(
                f"{kind}: {rows:,} rows were read but {found:,} are accounted for",
                where="denoise",
                hint="the input changed while it was read, or a row has no key; read it again from a fixed copy",
            )


def quarantine_of(tallied: DataFrame) -> DataFrame:
    """Interactions with what was never shown, as rows of the quarantine."""
    return tallied.where(F.col("row").isNotNull()).select(
        F.lit("interactions").alias("table"), first_reason(F.col("bits")).alias("reason"), "row"
    ).select(*QUARANTINE.names)  # fmt: skip
