"""Count every row that was read as kept, or as dropped by a rule."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.labels.denoise.cells import COUNTS
from pipelines.labels.denoise.registry import ORDER, name_first_rule, rule_bit
from pipelines.labels.denoise.row_hash import hash_row
from pipelines.labels.denoise.settings import DenoiseSettings
from schemas.errors import DataQualityError
from schemas.outputs import DENOISE_FUNNEL, QUARANTINE
from schemas.redact import cut_text

_FIELDS = ("event_id", "kind", "doc_id", "user_id", "ts", "serp_id", "dwell_seconds", "value")


def count_funnel(tallied: DataFrame) -> DataFrame:
    """Per rule: the rows it dropped, the users it affected, and the rows that no other rule would have dropped."""
    rules = F.array(*[F.struct(F.lit(name).alias("rule"), F.lit(rule_bit(name)).alias("bit")) for name in ORDER])
    hit = F.col("bits").bitwiseAND(F.col("bit")) != 0
    rows = sum((F.col(name) for name in COUNTS[1:]), F.col(COUNTS[0]))
    counts = [F.sum(name).alias(name) for name in COUNTS]
    by_rules = tallied.groupBy("bits").agg(*counts, F.coalesce(F.sum("dropped_users"), F.lit(0)).alias("users"))
    return (
        by_rules.unionByName(_count_users_of_pairs(tallied))
        .select("*", F.explode(rules).alias("of"))
        .select("*", "of.*")
        .groupBy("rule", "bit")
        .agg(
            *[F.sum(F.when(hit, F.col(name)).otherwise(0)).alias(f"{name}_dropped") for name in COUNTS],
            F.sum(F.when(hit, F.col("users")).otherwise(0)).alias("users_touched"),
            F.sum(F.when(F.col("bits") == F.col("bit"), rows).otherwise(0)).alias("only_this_rule"),
        )
        .orderBy("bit")
        .select(*DENOISE_FUNNEL.names)
    )


def _count_users_of_pairs(tallied: DataFrame) -> DataFrame:
    """The users whose rows the rules on pairs drop, by all of these rules of a user."""
    by_user = tallied.where("dropped_user IS NOT NULL").groupBy("dropped_user").agg(F.bit_or("bits").alias("bits"))
    none = {name: F.lit(0) for name in COUNTS}
    return by_user.groupBy("bits").agg(F.count("*").alias("users")).withColumns(none)


def check_row_counts(read: dict[str, int], kept: dict[str, int], dropped: dict[str, int]) -> None:
    """Raise unless kept + dropped = read for impressions and each kind of event."""
    for kind, rows in read.items():
        total = kept.get(kind, 0) + dropped.get(kind, 0)
        if total != rows:
            raise DataQualityError(
                f"{kind}: {rows:,} rows were read, but {total:,} are kept or dropped",
                where="denoise",
                hint="the input changed while it was read, or a row has no key; run again on a fixed copy",
            )


def require_kept_rows(tallied: DataFrame, settings: DenoiseSettings) -> None:
    """Raise if no impression is kept, with the rule that dropped most of them. Runs a small Spark job."""
    if not tallied.where(F.col("bits") == 0).isEmpty():
        return
    read = tallied.agg(F.sum("impressions")).first()
    order = F.struct("impressions_dropped", "only_this_rule", "rule")
    worst = count_funnel(tallied).agg(F.max(order).alias("worst")).select("worst.*").first()
    if read is None or worst is None:
        return
    raise build_empty_log_error(worst.rule, worst.impressions_dropped, read[0], settings)


def build_empty_log_error(rule: str, dropped: int, read: int, settings: DenoiseSettings) -> DataQualityError:
    """The error of a log of which the rules leave no impression."""
    values = getattr(settings, rule).model_dump(exclude={"enabled"})
    current = ", ".join(f"{name} = {cut_text(str(value), 80)}" for name, value in values.items())
    return DataQualityError(
        f"the rules leave no impression to build labels from: {rule} dropped {dropped:,} of {read:,}",
        where=f"labels.denoise.{rule}",
        hint=f"if these are people, {f'change its settings ({current}) or ' if current else ''}set enabled: false",
    )


def select_quarantine(tallied: DataFrame, interactions: DataFrame) -> DataFrame:
    """Interactions with documents that were not shown, as rows of the quarantine.

    Those without a page of their own are shown with the page of the click that they are attributed to.
    """
    hashed = interactions.withColumn("key", hash_row())
    reasons = tallied.where("row IS NOT NULL").select("row", "source", name_first_rule(F.col("bits")).alias("reason"))
    keys = reasons.distinct()
    pages = hashed.select(F.col("key").alias("source"), F.col("serp_id").alias("source_page"))
    moved = keys.where("row != source").select("source").distinct()
    pages = pages.join(moved, on="source", how="left_semi").distinct()
    fields = [F.coalesce("serp_id", "source_page").alias(n) if n == "serp_id" else n for n in _FIELDS]
    return (
        hashed.join(keys, on=hashed["key"] == keys["row"], how="inner")
        .join(pages, on="source", how="left")
        .select(F.lit("interactions").alias("table"), "reason", F.to_json(F.struct(*fields)).alias("row"))
        .select(*QUARANTINE.names)
    )
