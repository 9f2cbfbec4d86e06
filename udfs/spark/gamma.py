"""Quantiles and probabilities of the Gamma posterior of a rate, as Spark columns."""

from collections.abc import Callable

import pandas as pd
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import pandas_udf
from scipy.special import gammainc, gammaincinv

from udfs.spark.worker import prepare_worker


def _quantile(shape: pd.Series, rate: pd.Series, level: pd.Series) -> pd.Series:
    prepare_worker()
    return pd.Series(gammaincinv(shape.to_numpy(), level.to_numpy()) / rate.to_numpy())


def gamma_quantile(shape: Column, rate: Column, level: float) -> Column:
    """The quantile of Gamma(shape, rate); not Beta, since clicks per examination can exceed 1."""
    call: Callable[..., Column] = pandas_udf(_quantile, T.DoubleType())  # type: ignore[call-overload]
    return call(shape, rate, F.lit(level))


def _probability(shape: pd.Series, rate: pd.Series, value: pd.Series) -> pd.Series:
    prepare_worker()
    return pd.Series(gammainc(shape.to_numpy(), rate.to_numpy() * value.to_numpy()))


def gamma_probability(shape: Column, rate: Column, value: Column) -> Column:
    """The probability that Gamma(shape, rate) is below a value."""
    call: Callable[..., Column] = pandas_udf(_probability, T.DoubleType())  # type: ignore[call-overload]
    return call(shape, rate, value)
