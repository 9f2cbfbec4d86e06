"""Rules on query-document pairs."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipelines.labels.denoise.registry import rule
from pipelines.labels.denoise.settings import OneUserDominates


@rule("one_user_dominates", "pair")
def one_user_dominates(settings: OneUserDominates) -> Column:
    """What one user has beyond a fifth of a pair's clicks; impressions and clicks are dropped together.

    Of the user's rows on the pair, a share chosen by hash is kept, so that the user's own click rate stays the same.
    Features: `user_clicks`, `pair_clicks`, `user_rows`, `user_row` (numbered by hash).
    """
    others = F.col("pair_clicks") - F.col("user_clicks")
    allowed = F.greatest(F.floor(others * (settings.share / (1.0 - settings.share))), F.lit(1))
    dominates = (F.col("user_clicks") >= settings.clicks) & (
        F.col("user_clicks") > settings.share * F.col("pair_clicks")
    )
    return dominates & (F.col("user_row") > F.ceil(F.col("user_rows") * allowed / F.col("user_clicks")))
