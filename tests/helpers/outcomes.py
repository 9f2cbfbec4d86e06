"""Read the outcomes of the rules on pages."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def name_kinds(outcomes: DataFrame) -> DataFrame:
    """The outcomes with the names of their kinds instead of the codes."""
    names = F.array(*[F.lit(name) for name in ("impression", "click", "cart", "purchase")])
    return outcomes.withColumn("kind", names[F.col("kind").cast("int")])
