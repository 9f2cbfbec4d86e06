"""Rules on query-document pairs."""

import numpy as np

from pipelines.labels.denoise.registry import Arrays, rule
from pipelines.labels.denoise.settings import OneUserDominates
from udfs.ragged import Bools


@rule("one_user_dominates", "pair")
def one_user_dominates(settings: OneUserDominates, pair: Arrays) -> Bools:
    """What one user has beyond a fifth of a pair's clicks; impressions and clicks are dropped together.

    Of the user's rows on the pair, a share chosen by hash is kept, so that the user's own click rate stays the same.
    Arrays: `user_clicks`, `pair_clicks`, `user_rows`, `user_row` (numbered by hash).
    """
    by_user = pair["user_clicks"]
    others = pair["pair_clicks"] - by_user
    allowed = np.maximum(np.floor(others * (settings.share / (1.0 - settings.share))), 1)
    dominates = (by_user >= settings.clicks) & (by_user > settings.share * pair["pair_clicks"])
    return dominates & (pair["user_row"] > np.ceil(pair["user_rows"] * allowed / np.maximum(by_user, 1)))
