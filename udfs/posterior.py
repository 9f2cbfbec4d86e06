"""Quantiles of the posterior of a rate, for many pairs at once."""

from collections.abc import Callable

import pandas as pd
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import pandas_udf
from scipy.special import gammaincinv

from udfs.worker import settle


def _quantile(shape: pd.Series, rate: pd.Series, level: pd.Series) -> pd.Series:
    settle()
    return pd.Series(gammaincinv(shape.to_numpy(), level.to_numpy()) / rate.to_numpy())


def posterior_quantile(shape: Column, rate: Column, level: float) -> Column:
    """The quantile of Gamma(shape, rate). Clicks per examination can exceed 1, so a Beta will not do."""
    call: Callable[..., Column] = pandas_udf(_quantile, T.DoubleType())  # type: ignore[call-overload]
    return call(shape, rate, F.lit(level))
