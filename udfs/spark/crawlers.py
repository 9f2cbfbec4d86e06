"""Match user agents with the list of crawlers in the package crawler-user-agents."""

from collections.abc import Callable
from functools import lru_cache

import pandas as pd
from pyspark.sql import Column
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import pandas_udf

from udfs.spark.worker import prepare_worker


@lru_cache(maxsize=100_000)
def is_crawler(user_agent: str) -> bool:
    """Whether a user agent is on the list."""
    from crawleruseragents import is_crawler as listed  # compiles hundreds of patterns, so only where it is used

    return bool(listed(user_agent))


def _match(agents: pd.Series) -> pd.Series:
    prepare_worker()
    codes, distinct = pd.factorize(agents.fillna(""))
    return pd.Series([is_crawler(agent) for agent in distinct], dtype=bool).take(codes).reset_index(drop=True)


def match_crawlers(user_agent: Column | str) -> Column:
    """`is_crawler` as a Spark column, computed once per distinct user agent of a batch."""
    match: Callable[[Column | str], Column] = pandas_udf(_match, T.BooleanType())  # type: ignore[call-overload]
    return match(user_agent)
