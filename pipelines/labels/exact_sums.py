"""Sums that have the same bits for any partitions and any order of the rows."""

from pyspark.sql import Column
from pyspark.sql import functions as F

GRID = 2.0**32  # a fraction is rounded to multiples of 1/GRID; sums of them are exact below 2^31 rows


def sum_exactly(value: Column) -> Column:
    """The sum of numbers, as the sum of their whole parts and of their rounded fractions, both in integers.

    A sum of floats depends on their order in the last bits, and the order of rows on the partitions.
    """
    whole = F.floor(value)
    fraction = F.rint((value - whole) * GRID).cast("bigint")
    return F.sum(whole) + F.sum(fraction) / GRID
